"""Timetables against the zones' own clocks, also where these skip or repeat a time."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.timetable import DAYS, EVERY_HOURS, Timetable

#: Zones that change by 1 h, 30 min and 2 h, at midnight, twice in a Ramadan, and by a whole day.
ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "America/Sao_Paulo",
    "Africa/Casablanca", "Asia/Kathmandu", "Pacific/Apia",
)  # fmt: skip
#: Days on which clocks of these zones change, and any other.
BEGINS = (
    date(2026, 3, 28), date(2026, 10, 24), date(2026, 3, 7), date(2026, 10, 31), date(2026, 4, 4), date(2018, 11, 3),
    date(2018, 2, 17), date(2026, 2, 14), date(2011, 12, 28), date(2024, 2, 27),
)  # fmt: skip
HORIZON = timedelta(days=9)
#: The last time of a chain may be that long after it.
WEEK = timedelta(days=7)

tables = st.builds(
    Timetable,
    zone=st.sampled_from(ZONES).map(ZoneInfo),
    at=st.builds(time, st.integers(0, 23), st.integers(0, 59)),
    days=st.lists(st.sampled_from(DAYS), unique=True).map(tuple),
    every_hours=st.sampled_from(EVERY_HOURS),
)
moments = st.builds(
    lambda day, seconds: datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=seconds),
    st.sampled_from(BEGINS) | st.dates(date(1972, 1, 1), date(2037, 1, 1)),
    st.integers(0, 3 * 86_400),
)


def chain(table: Timetable, begin: datetime) -> list[datetime]:
    """The due times of the nine days after a moment, each as the next after the one before."""
    found = [table.next_after(begin)]
    while found[-1] < begin + HORIZON:
        found.append(table.next_after(found[-1]))
    return found


def local_times(table: Timetable, first: date) -> list[datetime]:
    """Every day and time that the table names, within these days, by the calendar alone."""
    days = [first + timedelta(days=number) for number in range((HORIZON + WEEK).days + 4)]
    named = [day for day in days if DAYS[day.weekday()] in (table.days or DAYS)]
    hours = {(table.at.hour + hour) % 24 for hour in range(0, 24, table.every_hours)}
    return [datetime.combine(day, time(hour, table.at.minute)) for day in named for hour in hours]


def readings(zone: ZoneInfo, shown: datetime) -> list[datetime]:
    """The moments in UTC at which the zone's clocks show it: none, one or two."""
    both = {shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(each for each in both if each.astimezone(zone).replace(tzinfo=None) == shown)


@given(tables, moments)
def test_each_named_time_is_due_once(table: Timetable, begin: datetime) -> None:
    """A time that the clocks show twice is due the first time, a skipped one with the next hours."""
    found = chain(table, begin)
    explained = set()
    for shown in local_times(table, begin.date() - timedelta(days=2)):
        moments = readings(table.zone, shown)  # type: ignore[arg-type]
        due = moments[0] if moments else shown.replace(tzinfo=table.zone).astimezone(UTC)
        if begin < due <= found[-1]:
            assert found.count(due) == 1
            explained.add(due)
        assert not set(moments[1:]) & set(found)
    assert explained == set(found)
    assert found == sorted(set(found))


@given(tables, moments)
def test_the_last_time_is_the_one_before_the_next(table: Timetable, moment: datetime) -> None:
    following = table.next_after(moment)
    assert table.last_until(following) == following
    last = table.last_until(moment)
    assert last <= moment < following
    assert table.next_after(last) == following


@given(tables, moments)
def test_the_zone_of_the_question_does_not_matter(table: Timetable, moment: datetime) -> None:
    assert table.next_after(moment) == table.next_after(moment.astimezone(ZoneInfo("Asia/Tokyo")))


@pytest.mark.parametrize(
    ("zone", "at", "before", "due"),
    [
        (
            "Europe/Berlin",
            time(2, 30),
            "2026-03-28T12:00",
            ["2026-03-29T03:30+02:00", "2026-03-30T02:30+02:00"],
        ),
        (
            "Europe/Berlin",
            time(2, 30),
            "2026-10-24T12:00",
            ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"],
        ),
        (
            "America/New_York",
            time(2, 0),
            "2026-03-07T12:00",
            ["2026-03-08T03:00-04:00", "2026-03-09T02:00-04:00"],
        ),
        (
            "Pacific/Apia",
            time(9, 0),
            "2011-12-29T20:00",
            ["2011-12-31T09:00+14:00", "2012-01-01T09:00+14:00"],
        ),
    ],
)
def test_known_changes_of_the_clocks(zone: str, at: time, before: str, due: list[str]) -> None:
    found = Timetable(ZoneInfo(zone), at)
    moment = datetime.fromisoformat(before).replace(tzinfo=UTC)
    for expected in due:
        moment = found.next_after(moment)
        assert moment == datetime.fromisoformat(expected)


def test_the_times_of_a_day() -> None:
    found = Timetable(ZoneInfo("UTC"), time(9, 15), every_hours=6)
    assert found.times == (time(3, 15), time(9, 15), time(15, 15), time(21, 15))
