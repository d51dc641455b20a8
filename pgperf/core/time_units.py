"""The units in which people read times: µs, ms from 10,000 µs on, and s from 10,000 ms on.

Times are stored, calculated and exported in µs.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

#: So many of a unit are read in the next larger one.
_MANY = 10_000


@dataclass(frozen=True)
class TimeUnit:
    """`us`: how many µs it is. `decimals`: the most that a number in it needs."""

    name: str
    us: float
    decimals: int


MICROSECONDS = TimeUnit("µs", 1.0, 2)
MILLISECONDS = TimeUnit("ms", 1e3, 5)
SECONDS = TimeUnit("s", 1e6, 5)


def unit_of(times_us: Iterable[float | None]) -> TimeUnit:
    """The unit that fits the longest of the times, which may be negative or unknown."""
    longest = max((abs(us) for us in times_us if us is not None), default=0.0)
    if round(longest / MILLISECONDS.us) >= _MANY:
        return SECONDS
    return MILLISECONDS if round(longest) >= _MANY else MICROSECONDS


def decimals(value: float, most: int) -> int:
    """As many as show three digits of a number, but no more than `most`."""
    size = abs(value)
    if 0 < size < 1:
        return min(most, 2 - math.floor(math.log10(size)))
    return 0 if size >= 100 else 1 if size >= 10 else 2
