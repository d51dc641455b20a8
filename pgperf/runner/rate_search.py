"""The rates of a search for the highest rate, slice by slice: bisection that keeps all evidence."""

from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import numpy as np

from pgperf.analysis import knee
from pgperf.analysis.latency import MIN_SAMPLES
from pgperf.core import protocol
from pgperf.core.limits import RATE_HIGH
from pgperf.core.records import SliceRecord, Variant
from pgperf.runner.slice_window import SliceWindow

#: Shares of the capacity that draw the curve, in turn, at the first slice and every third one.
CURVE = (0.5, 0.25, 0.75, 0.1, 0.9)
_CURVE_EVERY = 3
_UNKNOWN_S = 0.01  # of an operation that was never tried


@dataclass
class RateSearch:
    """The search of one variant. `capacity`: the operations/s of its closed loop, before a block
    measures them.
    """

    variant: Variant
    limit_ms: float
    capacity: float
    _count: int = 0
    _before: knee.Evidence = field(default_factory=knee.nothing)  # of earlier blocks
    _tried: list[SliceRecord] = field(default_factory=list)  # in this block
    _reached: list[float] = field(default_factory=list)  # by the closed loop in this block

    def next_block(self) -> None:
        """Fresh processes have a capacity of their own."""
        self._before, self.capacity = self._evidence(), self._capacity()
        self._tried, self._reached = [], []

    def next_rate(self) -> float:
        """In operations/s, within what clients can be asked for."""
        turn, rest = divmod(self._count, _CURVE_EVERY)
        share = knee.middle(self._evidence()) if rest else CURVE[turn % len(CURVE)]
        least = protocol.MIN_RATE * self.variant.connections
        return min(RATE_HIGH, max(least, share * self._capacity()))

    def learn(self, record: SliceRecord) -> None:
        """Keep a slice of the search; one with failed requests says nothing."""
        if record.due and not record.errors:
            self._tried.append(record)
            self._count += 1

    def learn_capacity(self, record: SliceRecord) -> None:
        """Keep a slice of the closed loop."""
        if record.ops and not record.errors:
            self._reached.append(record.ops_per_s)

    def _evidence(self) -> knee.Evidence:
        capacity, found = self._capacity(), self._before
        for record in self._tried:
            share = (record.asked_per_s or 0.0) / capacity
            found = found + knee.evidence(share, record.due or 0, record.over or 0)
        return found

    def _capacity(self) -> float:
        return median(self._reached) if self._reached else self.capacity


@dataclass
class Searches:
    """The searches of a run, by variant."""

    _each: dict[Variant, RateSearch] = field(default_factory=dict)

    def begin_block(self, variant: Variant, op_s: float, limit_ms: float) -> None:
        """Begin a search if the variant is one, or its next block.

        `op_s`: the time of an operation when it was tried, 0 if it was not.
        """
        if variant in self._each:
            self._each[variant].next_block()
        elif variant.is_search:
            capacity = variant.connections / (op_s or _UNKNOWN_S)
            self._each[variant] = RateSearch(variant, limit_ms, capacity)

    def next_rate(self, variant: Variant) -> float | None:
        """The rate of the search's next slice; None for other variants."""
        return self._each[variant].next_rate() if variant in self._each else None

    def learned(
        self, variant: Variant, record: SliceRecord, window: SliceWindow, rate: float | None
    ) -> SliceRecord:
        """The record with what a search tried. Searches learn from it, and from their closed loops."""
        for search in self._each.values():
            if search.variant.closed == variant:
                search.learn_capacity(record)
        if variant not in self._each:
            return record
        own = self._each[variant]
        record = replace(record, asked_per_s=rate, **tried(window, own.limit_ms))
        own.learn(record)
        return record


def tried(window: SliceWindow, limit_ms: float) -> dict[str, Any]:
    """What the record of a search says of the window."""
    latencies = window.latencies
    return {
        "over": int(np.count_nonzero(latencies > limit_ms * 1e6)),
        "p50_ns": _percentile(latencies, 50.0),
        "p90_ns": _percentile(latencies, 90.0),
        "p99_ns": _percentile(latencies, 99.0),
    }


def _percentile(durations: Any, percentile: float) -> int | None:
    """None where there are too few durations for it."""
    if len(durations) < MIN_SAMPLES.get(percentile, 1):
        return None
    return int(np.percentile(durations, percentile, method="inverted_cdf"))
