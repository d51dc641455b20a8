"""The times of a schedule: on days of the week, at a local time or every few hours.

Times are those of a zone's clocks. A time that the clocks skip, as they do when summer time
begins, is due as long after the last hour that they showed; a time that they show twice is due the
first time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

#: As a schedule stores them, in the order of `date.weekday`.
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
#: Hours between two times of a day: parts of it, so that every day has the same times.
EVERY_HOURS = (1, 2, 3, 4, 6, 8, 12, 24)
_HOURS = 24
#: A zone that crosses the date line skips or repeats a day.
_MOST_SHIFT = timedelta(days=2)
_WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Timetable:
    """`days`: names of DAYS, all days if empty. `at`: hour and minute of one time of a day; the
    others are `every_hours` (of EVERY_HOURS) before and after it, none with 24.
    """

    zone: tzinfo
    at: time
    days: tuple[str, ...] = ()
    every_hours: int = _HOURS

    def next_after(self, moment: datetime) -> datetime:
        """The first due time after an aware moment, in UTC."""
        found = self._between(moment - _MOST_SHIFT, moment + _WEEK + _MOST_SHIFT)
        return min(due for due in found if due > moment)

    def last_until(self, moment: datetime) -> datetime:
        """The last due time that is not after an aware moment, in UTC."""
        found = self._between(moment - _WEEK - _MOST_SHIFT, moment + _MOST_SHIFT)
        return max(due for due in found if due <= moment)

    @property
    def times(self) -> tuple[time, ...]:
        """The local times of a day, the earliest first."""
        count = _HOURS // self.every_hours
        hours = sorted((self.at.hour + number * self.every_hours) % _HOURS for number in range(count))
        return tuple(time(hour, self.at.minute) for hour in hours)

    def _between(self, begin: datetime, end: datetime) -> set[datetime]:
        """The due times of the local days of both moments and of those between, in UTC: a set,
        because a skipped time may be due together with another.
        """
        days = _days(begin.astimezone(self.zone).date(), end.astimezone(self.zone).date())
        return {self._utc(day, at) for day in days if self._is_on(day) for at in self.times}

    def _is_on(self, day: date) -> bool:
        return not self.days or DAYS[day.weekday()] in self.days

    def _utc(self, day: date, at: time) -> datetime:
        """`fold` is 0: the first of two, and for a skipped time the offset before the change."""
        return datetime.combine(day, at, self.zone).astimezone(UTC)


def _days(first: date, last: date) -> Iterator[date]:
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)
