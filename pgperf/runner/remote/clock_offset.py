"""The offset between two machines' monotonic clocks, from a third clock that both can read. Pure.

Each side reads its own clock before and after it asks the third one. The third clock was read in
between, so each answer bounds the offset from both sides, and the offset lies where the bounds of
all answers overlap.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

_MOST_NS = 2**62


@dataclass(frozen=True)
class Ping:
    """One reading of the third clock, ns: this clock before and after, and its value, which it cuts
    down to a multiple of `step_ns`.
    """

    before_ns: int
    third_ns: int
    after_ns: int
    step_ns: int = 0

    @property
    def least_ns(self) -> int:
        """The offset if the third clock was read last."""
        return self.third_ns - self.after_ns

    @property
    def most_ns(self) -> int:
        """The offset if it was read first."""
        return self.third_ns + self.step_ns - self.before_ns

    @property
    def width_ns(self) -> int:
        return self.most_ns - self.least_ns


@dataclass(frozen=True)
class ClockOffset:
    """The value to add to one clock's time to get the other's, right to within `error_ns`."""

    ns: int
    error_ns: int

    @classmethod
    def best_of(cls, pings: Iterable[Ping]) -> Self:
        """From what all answers agree on; from the quickest where a clock was set in between.

        Raises ValueError if there is no answer.
        """
        known = list(pings)
        best = min(known, key=lambda ping: ping.width_ns)
        least, most = max(ping.least_ns for ping in known), min(ping.most_ns for ping in known)
        if least > most:
            least, most = best.least_ns, best.most_ns
        return cls((least + most) // 2, (most - least + 1) // 2)

    @classmethod
    def over(cls, first: Self, last: Self) -> Self:
        """The offset for the time between two measurements: between the bounds of both.

        Where they overlap, the overlap would not do: clocks may drift apart within their errors.
        """
        least = min(first.ns - first.error_ns, last.ns - last.error_ns)
        most = max(first.ns + first.error_ns, last.ns + last.error_ns)
        return cls((least + most) // 2, (most - least + 1) // 2)

    @staticmethod
    def drift_ns(first: "ClockOffset", last: "ClockOffset") -> int:
        """By how much the offset changed between two measurements, at least."""
        return max(0, abs(last.ns - first.ns) - first.error_ns - last.error_ns)

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
        except (TypeError, KeyError, OverflowError) as error:
            raise ValueError("a clock's offset has ns and error_ns") from error

    @classmethod
    def checked(cls, data: Any) -> Self:
        """The same from what may be forged. Raises ValueError also for an offset that no two clocks
        have.
        """
        offset = cls.from_json(data)
        if abs(offset.ns) >= _MOST_NS or not 0 <= offset.error_ns < _MOST_NS:
            raise ValueError("no two clocks are so far apart")
        return offset
