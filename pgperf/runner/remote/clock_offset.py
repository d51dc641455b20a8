"""Two machines' monotonic clocks, put together by a third clock that both may ask. Pure.

Each side notes its own clock before and after it asked the third one. The third clock was read somewhere in between, so
the middle is right to within half the round trip; the quickest of several answers says most.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Ping:
    """One question to the third clock, ns: our clock before and after, and what it said."""

    before_ns: int
    theirs_ns: int
    after_ns: int


@dataclass(frozen=True)
class ClockOffset:
    """What to add to one clock's time to have the other's, right to within `error_ns`."""

    ns: int
    error_ns: int

    @classmethod
    def best_of(cls, pings: Iterable[Ping]) -> Self:
        """From the quickest answer. Raises ValueError when there is none."""
        best = min(pings, key=lambda ping: ping.after_ns - ping.before_ns)
        middle = (best.before_ns + best.after_ns) // 2
        return cls(best.theirs_ns - middle, (best.after_ns - best.before_ns + 1) // 2)

    @classmethod
    def over(cls, first: Self, last: Self) -> Self:
        """For all the time between two measurements: clocks that drift apart meanwhile make it less certain."""
        drift = abs(last.ns - first.ns)
        return cls((first.ns + last.ns) // 2, max(first.error_ns, last.error_ns) + (drift + 1) // 2)

    def then_back(self, other: Self) -> Self:
        """From our clock to the third one, and from there to the clock that is `other` away from it."""
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
