"""The offset between two machines' monotonic clocks, from a third clock that both can read. Pure.

Each side reads its own clock before and after it asks the third one. The third clock was read in
between, so the midpoint is right to within half the round trip. The quickest of several answers is
the most precise.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Ping:
    """One reading of the third clock, ns: this clock before and after, and its value."""

    before_ns: int
    third_ns: int
    after_ns: int


@dataclass(frozen=True)
class ClockOffset:
    """The value to add to one clock's time to get the other's, right to within `error_ns`."""

    ns: int
    error_ns: int

    @classmethod
    def best_of(cls, pings: Iterable[Ping]) -> Self:
        """From the quickest answer. Raises ValueError if there is none."""
        best = min(pings, key=lambda ping: ping.after_ns - ping.before_ns)
        middle = (best.before_ns + best.after_ns) // 2
        return cls(best.third_ns - middle, (best.after_ns - best.before_ns + 1) // 2)

    @classmethod
    def over(cls, first: Self, last: Self) -> Self:
        """The offset for the time between two measurements.

        The drift in between adds to the error.
        """
        drift = abs(last.ns - first.ns)
        return cls((first.ns + last.ns) // 2, max(first.error_ns, last.error_ns) + (drift + 1) // 2)

    def then_back(self, other: Self) -> Self:
        """The offset from this clock to another one, whose offset to the third clock is `other`."""
        return type(self)(self.ns - other.ns, self.error_ns + other.error_ns)

    def to_json(self) -> dict[str, int]:
        return {"ns": self.ns, "error_ns": self.error_ns}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Raises ValueError for anything but what `to_json` gives."""
        try:
            return cls(int(data["ns"]), int(data["error_ns"]))
        except (TypeError, KeyError) as error:
            raise ValueError("a clock's offset has ns and error_ns") from error
