"""What became of a variant's rate in an open loop: held or not, late, skipped, left over. Pure.

A rate is never lowered. Where a variant cannot hold it, more is due than ends, and the queue grows
for as long as the slice lasts.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from pgperf.core.records import SliceRecord, Variant

#: A rate is held if no larger share of what was due has not ended.
SHORT = 0.02


@dataclass(frozen=True)
class OpenLoop:
    """Of all windows together: the operations that were `due`, those that `ended`, `late` ones that
    ended after the latency limit (None: there is none), `skipped` ones that would have begun after
    it, and the `backlog` that had not begun at the end. Rates in operations per second.

    `edge`: how many operations the ends of the windows may have cut, in either direction: one of each
    connection, times the square root of the number of windows. Their scatter alone is less with many
    connections. But a slice begins with idle ones, so more operations are under way at the end of a
    window than at its begin, where they take about as long as the lead-in.
    """

    rate: float
    schedule: str
    due: int
    ended: int
    late: int | None
    skipped: int
    backlog: int
    seconds: float
    edge: float = 0.0

    @property
    def offered_per_s(self) -> float:
        """As the schedule had it, which scatters around the rate where gaps are exponential."""
        return self.due / self.seconds

    @property
    def achieved_per_s(self) -> float:
        return self.ended / self.seconds

    @property
    def is_held(self) -> bool:
        """Did as many operations end as were due, but for what the ends of windows cut? They cut no
        skipped one, which never began.
        """
        cut = self.due - self.ended - self.skipped
        return self.skipped + max(0.0, cut - self.edge) <= SHORT * self.due

    @property
    def late_share(self) -> float | None:
        """Of what was due, what ended after the limit or was skipped."""
        return None if self.late is None or not self.due else (self.late + self.skipped) / self.due

    def is_lower_bound(self, percentile: float) -> bool:
        """Have so many operations not begun that this percentile may be one of them? Skipped ones have
        no latency.
        """
        return is_lower_bound(percentile, self.due - self.skipped, self.backlog)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """None for a closed loop."""
        return cls(**stored) if stored else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def is_lower_bound(percentile: float, due: int, backlog: int) -> bool:
    """May this percentile of the latencies of the operations that were due be that of one that had not
    begun? These count with the time that they had waited.
    """
    return 0 < 100 * backlog >= (100 - percentile) * due


def open_loop(variant: Variant, slices: Iterable[SliceRecord]) -> OpenLoop | None:
    """None for a closed loop, and without a slice."""
    timed = [piece for piece in slices if piece.due is not None and piece.window_ns]
    if variant.rate is None or not timed:
        return None
    late = [piece.late for piece in timed]
    return OpenLoop(
        rate=variant.rate,
        schedule=variant.schedule,
        due=sum(piece.due or 0 for piece in timed),
        ended=sum(piece.ops for piece in timed),
        late=None if None in late else sum(number or 0 for number in late),
        skipped=sum(piece.skipped or 0 for piece in timed),
        backlog=sum(piece.backlog or 0 for piece in timed),
        seconds=sum(piece.window_ns for piece in timed) / 1e9,
        edge=variant.connections * math.sqrt(len(timed)),
    )
