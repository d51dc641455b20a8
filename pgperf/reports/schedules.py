"""Schedules in words: their times, and what came of the last one."""

from collections.abc import Iterable
from datetime import datetime, time
from typing import Any

from django.utils.dates import WEEKDAYS_ABBR
from django.utils.timezone import get_default_timezone
from django.utils.translation import gettext as _

from pgperf.core.timetable import DAYS
from pgperf.models import Schedule
from pgperf.reports.table import Table, text_column, words
from pgperf.runs import dates

#: More times of a day are named by their distance.
_MOST_TIMES = 4
_HEADS = ("Schedule", "Benchmark", "Database", "Times", "Owner", "Next due", "Last due", "Outcome")


def times(schedule: Schedule) -> str:
    """For example "Mon to Fri at 02:30"."""
    found = schedule.timetable(get_default_timezone()).times
    if len(found) <= _MOST_TIMES:
        return _("%(days)s at %(times)s") % {
            "days": _days(schedule.days),
            "times": ", ".join(map(_clock, found)),
        }
    names = {"days": _days(schedule.days), "every": schedule.get_every_hours_display()}
    return _("%(days)s, %(every)s from %(first)s") % {**names, "first": _clock(found[0])}


def outcome(schedule: Schedule) -> str:
    """What came of the last due time."""
    label = str(Schedule.Outcome(schedule.outcome).label)
    return f"{label}: {schedule.reason}" if schedule.reason else label


def rows(schedules: Iterable[Schedule]) -> list[dict[str, Any]]:
    """As JSON."""
    return [
        {
            "id": row.pk,
            "benchmark": row.benchmark.name,
            "database": row.database.name,
            "quick": row.quick,
            "days": row.days or list(DAYS),
            "times": [_clock(each) for each in row.timetable(get_default_timezone()).times],
            "enabled": row.enabled,
            "owner": row.owner.get_username() if row.owner else None,
            "next_due": row.due_at.isoformat() if row.due_at else None,
            "last_due": row.last_due_at.isoformat() if row.last_due_at else None,
            "outcome": row.outcome or None,
            "reason": row.reason,
        }
        for row in schedules
    ]


def table(schedules: Iterable[Schedule]) -> Table:
    return Table(
        "Schedules",
        tuple(map(text_column, _HEADS)),
        [tuple(map(words, _line(row))) for row in schedules],
        "listing",
    )


def _moment(due: datetime | None) -> str:
    """By the site's clocks; "–" for none."""
    return dates.moment(due) if due else "–"


def _line(row: Schedule) -> tuple[str, ...]:
    owner = row.owner.get_username() if row.owner else "deleted"
    due = _moment(row.due_at) if row.enabled else "off"
    length = f"{row.benchmark}, quick" if row.quick else str(row.benchmark)
    return (
        str(row.pk),
        length,
        str(row.database),
        times(row),
        owner,
        due,
        _moment(row.last_due_at),
        outcome(row),
    )


def _days(days: Iterable[str]) -> str:
    """Three or more in a row are a range."""
    found = sorted(DAYS.index(day) for day in days)
    if len(found) in (0, len(DAYS)):
        return _("every day")
    first, last = found[0], found[-1]
    if len(found) > 2 and last - first + 1 == len(found):
        return _("%(first)s to %(last)s") % {"first": WEEKDAYS_ABBR[first], "last": WEEKDAYS_ABBR[last]}
    return ", ".join(str(WEEKDAYS_ABBR[day]) for day in found)


def _clock(at: time) -> str:
    return f"{at:%H:%M}"
