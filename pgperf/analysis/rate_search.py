"""A search for the highest rate that holds a latency limit: its steps, and what it found. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import fmean, median
from typing import Any, Self

import numpy as np

from pgperf.analysis import knee
from pgperf.analysis.disturbances import POOR
from pgperf.analysis.grade import Grade
from pgperf.analysis.open_loop import is_lower_bound
from pgperf.analysis.paired_statistics import Estimate, hodges_lehmann
from pgperf.core.records import SliceRecord, Variant, VariantBlock

#: Steps are one point where the logarithms of their shares round to the same multiple of it.
_ALIKE = 0.05
#: Blocks by their cohort and number.
_Blocks = Mapping[tuple[int, int], VariantBlock]


class Outcome(StrEnum):
    FOUND = "found"
    DISTURBED = "disturbed"  # others had a part in the latencies, so that there is no number
    NONE_HOLDS = "none_holds"  # the limit is exceeded at every rate that was tried
    ALL_HOLD = "all_hold"  # it is exceeded at none
    UNKNOWN = "unknown"  # too little was measured


@dataclass(frozen=True)
class Step:
    """A slice of a search. `capacity`: what the closed loop beside it reached in the same block.

    `over`: the operations of those `due` that were over the limit. Percentiles of the latency in µs,
    from the intended start; `p99_us` is None where fewer than 1,000 operations were due. `backlog`:
    the operations that had not begun when the window closed; 0 in runs of older versions.
    """

    block: int
    round: int
    rate: float  # operations/s
    capacity: float  # operations/s
    due: int
    over: int
    p50_us: float | None
    p90_us: float | None
    p99_us: float | None
    backlog: int = 0

    @property
    def share(self) -> float:
        """Of the capacity."""
        return self.rate / self.capacity

    @property
    def over_share(self) -> float:
        return self.over / self.due

    @property
    def holds(self) -> bool:
        return self.over_share <= knee.ALLOWED


@dataclass(frozen=True)
class Point:
    """Neighbouring steps of a search together. `share` and `rate` are their means (of logarithms, the
    rate at the throughput of the closed loop), percentiles the medians of the known ones.
    """

    share: float
    rate: float
    slices: int
    due: int
    over: int
    p50_us: float | None
    p90_us: float | None
    p99_us: float | None
    backlog: int

    @property
    def over_share(self) -> float:
        return self.over / self.due

    def is_lower_bound(self, percentile: float) -> bool:
        """May operations that had not begun be at this percentile?"""
        return is_lower_bound(percentile, self.due, self.backlog)


@dataclass(frozen=True, kw_only=True)
class RateSearch:
    """What the search beside a closed loop found. `rate` is in operations/s, `share` is that over the
    `capacity`, which is the throughput of the closed loop; `low` and `high` are 95 % intervals. All
    are None unless the outcome is FOUND.

    `grade`: how undisturbed the closed loop was.
    """

    variant: str  # the label of the search
    reference: str  # and that of the closed loop
    workload: str
    layer: str
    mode: str
    route: str
    clients: int
    workers: int
    connect: str
    environment: str
    schedule: str
    hosts: int = 0  # not in runs of older versions
    limit_ms: float
    outcome: str
    grade: str
    capacity: float | None
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    steps: tuple[Step, ...] = ()

    def points(self) -> list[Point]:
        """The latency over the rate, the lowest first: steps of about the same share are one point. No
        points where the capacity is not known.
        """
        alike: dict[int, list[Step]] = {}
        for step in self.steps if self.capacity else ():
            alike.setdefault(round(math.log(step.share) / _ALIKE), []).append(step)
        return [_point(alike[place], self.capacity or 0.0) for place in sorted(alike)]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**{**stored, "steps": tuple(Step(**each) for each in stored["steps"])})


def searches(
    limit_ms: float,
    blocks: Sequence[VariantBlock],
    capacities: Mapping[Variant, float],
    grades: Mapping[Variant, Grade],
    widening: float = 1.0,
) -> list[RateSearch]:
    """The searches of a run. `capacities` and `grades` are those of its closed loops, by variant;
    `widening` is the factor on the half-widths of its intervals.
    """
    variants = dict.fromkeys(block.variant for block in blocks if block.variant.is_search)
    return [_searched(limit_ms, variant, blocks, capacities, grades, widening) for variant in variants]


def _searched(
    limit_ms: float,
    variant: Variant,
    blocks: Sequence[VariantBlock],
    capacities: Mapping[Variant, float],
    grades: Mapping[Variant, Grade],
    widening: float,
) -> RateSearch:
    steps = tuple(_steps(_own(blocks, variant), _own(blocks, variant.closed)))
    capacity, grade = capacities.get(variant.closed), grades.get(variant.closed, Grade())
    outcome = _outcome(steps, capacity, grade)
    found = _found(steps, capacity or 0.0, widening) if outcome == Outcome.FOUND else {}
    same = (
        "workload", "layer", "mode", "route", "clients", "workers", "connect", "environment", "schedule", "hosts",
    )  # fmt: skip
    return RateSearch(
        variant=variant.label,
        reference=variant.closed.label,
        **{name: getattr(variant, name) for name in same},
        limit_ms=limit_ms,
        outcome=outcome,
        grade=grade.word,
        capacity=capacity,
        steps=steps,
        **found,
    )


def _own(blocks: Iterable[VariantBlock], variant: Variant) -> _Blocks:
    return {(block.cohort, block.block): block for block in blocks if block.variant == variant}


def _steps(searched: _Blocks, references: _Blocks) -> Iterator[Step]:
    """The steps of all blocks whose closed loop was measured."""
    for key, block in searched.items():
        reached = (
            [piece.ops_per_s for piece in references[key].slices if piece.ops] if key in references else []
        )
        if reached:
            capacity = hodges_lehmann(np.array(reached))
            yield from (_step(block.block, capacity, piece) for piece in block.slices if piece.due)


def _step(block: int, capacity: float, piece: SliceRecord) -> Step:
    return Step(
        block,
        piece.round,
        piece.asked_per_s or 0.0,
        capacity,
        piece.due or 0,
        piece.over or 0,
        p50_us=_us(piece.p50_ns),
        p90_us=_us(piece.p90_ns),
        p99_us=_us(piece.p99_ns),
        backlog=piece.backlog or 0,
    )


def _us(ns: int | None) -> float | None:
    return None if ns is None else ns / 1000


def _point(steps: Sequence[Step], capacity: float) -> Point:
    share = math.exp(fmean(math.log(step.share) for step in steps))
    return Point(
        share=share,
        rate=share * capacity,
        slices=len(steps),
        due=sum(step.due for step in steps),
        over=sum(step.over for step in steps),
        p50_us=_median(step.p50_us for step in steps),
        p90_us=_median(step.p90_us for step in steps),
        p99_us=_median(step.p99_us for step in steps),
        backlog=sum(step.backlog for step in steps),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _outcome(steps: Sequence[Step], capacity: float | None, grade: Grade) -> Outcome:
    if not steps or not capacity:
        return Outcome.UNKNOWN
    if (grade.others or 0.0) >= POOR:
        return Outcome.DISTURBED
    if not any(step.holds for step in steps):
        return Outcome.NONE_HOLDS
    return Outcome.ALL_HOLD if all(step.holds for step in steps) else Outcome.FOUND


def _found(steps: Sequence[Step], capacity: float, widening: float) -> dict[str, Any]:
    """Rate and share with their intervals."""
    by_block: dict[int, list[Step]] = {}
    for step in steps:
        by_block.setdefault(step.block, []).append(step)
    evidence = [sum(map(_evidence, own), knee.nothing()) for own in by_block.values()]
    share, values = knee.highest(evidence)
    at = [value + math.log(own[0].capacity) for value, own in zip(values, by_block.values(), strict=True)]
    rate = knee.around(share.centre + math.log(capacity), at, share.half_width() or 0.0)
    return {**_ends(rate, widening, "rate", ""), **_ends(share, widening, "share", "share_")}


def _evidence(step: Step) -> knee.Evidence:
    return knee.evidence(step.share, step.due, step.over)


def _ends(log: Estimate, widening: float, name: str, prefix: str) -> dict[str, Any]:
    found = log.widened(widening).exp()
    return {name: found.centre, f"{prefix}low": found.low, f"{prefix}high": found.high}
