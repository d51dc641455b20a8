"""The difference of two variants, from slices that shared a round.

Two variants that shared none are compared through a third that shared rounds with both.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from pgperf.analysis.paired_statistics import Estimate, hodges_lehmann, log_ratios
from pgperf.analysis.samples import BLOCKS, ROUNDS, Sample, difference, interval, sample_of
from pgperf.core import layers
from pgperf.core.records import SliceRecord, Variant, VariantBlock

Measure = Callable[[SliceRecord], float]
#: The values of variant and baseline in the rounds of one block that have both.
Pairs = tuple[np.ndarray, np.ndarray]
Block = tuple[int, int]
#: round -> what was measured, for each (cohort, block).
Series = dict[Block, dict[int, float]]


def us_per_op(piece: SliceRecord) -> float:
    return piece.us_per_op


def us_between_operations(piece: SliceRecord) -> float:
    """Of all clients together; times their number, it is the mean time per operation."""
    return 1e6 / piece.ops_per_s if piece.ops_per_s else math.inf


def ops_per_s(piece: SliceRecord) -> float:
    return piece.ops_per_s


def of_variant(variant: Variant, measure: Measure) -> Measure:
    """The measure of one slice of the variant. Its time between operations is that of one client; in
    an open loop, whose clients also wait, it is the time per operation.
    """
    if measure is not us_between_operations:
        return measure
    if variant.is_open_loop:
        return us_per_op
    return lambda piece: variant.connections * us_between_operations(piece)


@dataclass(frozen=True)
class PairedDifference:
    """How far one variant is from another; `via` is the other's distance where both were measured
    from a third. `centre`: where a fit moved it, else None.
    """

    direct: Sample
    via: Sample | None = None
    centre: float | None = None

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Self:
        """Of one sample, or of one and that of the third variant."""
        return cls(samples[0], samples[1] if len(samples) > 1 else None)

    def at(self, confidence: float) -> Estimate:
        own = self._own(confidence)
        return own if self.centre is None else own.moved_to(self.centre)

    def moved_to(self, centre: float) -> Self:
        """The same around another centre."""
        return replace(self, centre=centre)

    def _own(self, confidence: float) -> Estimate:
        estimate = interval(self.direct, confidence)
        return estimate if self.via is None else difference(estimate, interval(self.via, confidence))

    @property
    def kind(self) -> str:
        """ROUNDS as soon as one of its samples is rounds: then the interval speaks of these
        processes only.
        """
        return BLOCKS if all(sample.kind == BLOCKS for sample in self._samples) else ROUNDS

    @property
    def pairs(self) -> int:
        """Pairs of slices behind it; of an indirect one, those of its poorer side."""
        return min(sample.observations for sample in self._samples)

    @property
    def _samples(self) -> tuple[Sample, ...]:
        return (self.direct,) if self.via is None else (self.direct, self.via)


@dataclass(frozen=True)
class PairedComparison:
    """Variant over baseline: `log` the log ratio, `delta` the difference of a measure, in its unit."""

    log: PairedDifference
    delta: PairedDifference


class Measurements:
    """A run's slices by variant, block and round. Variants without any usable slice are absent.

    `widening`: the factor on the half-widths of all intervals that are made from them.
    """

    def __init__(self, blocks: Iterable[VariantBlock], widening: float = 1.0) -> None:
        self.widening = widening
        self._slices: dict[Variant, dict[tuple[int, int], tuple[SliceRecord, ...]]] = {}
        self._cache: dict[tuple[Variant, Variant, Measure], PairedComparison | None] = {}
        self._known_series: dict[tuple[Variant, Measure], Series] = {}
        for block in blocks:
            usable = tuple(filter(_usable, block.slices))
            if usable:
                self._slices.setdefault(block.variant, {})[block.cohort, block.block] = usable
        timed = all(layers.times_operations(each.layer, each.connect) for each in self._slices)
        #: The time per operation that all variants know. Where one counts its operations and times
        #: none, it is the plain mean, in which an interruption counts in full; but for open loops,
        #: whose clients also wait between operations.
        self.time: Measure = us_per_op if timed else us_between_operations

    def __contains__(self, variant: Variant) -> bool:
        return variant in self._slices

    def sample(self, blocks: Sequence[np.ndarray]) -> Sample:
        """Values grouped by block, with intervals as wide as this run's are."""
        return replace(sample_of(blocks), widening=self.widening)

    def __iter__(self) -> Iterator[Variant]:
        return iter(self._slices)

    def level(self, variant: Variant, measure: Measure) -> Sample:
        """The logarithms of the variant's own values. Raises KeyError for one that is absent."""
        return self.sample([*self._logs(variant, measure).values()])

    def log_centres(self, variant: Variant, measure: Measure) -> dict[Block, float]:
        """The centre of the logarithms of the variant's own values, block by block."""
        return {key: hodges_lehmann(logs) for key, logs in self._logs(variant, measure).items()}

    def paired(
        self, variant: Variant, baseline: Variant, measure: Measure | None = None
    ) -> PairedComparison | None:
        """None if no round has both and no third variant has shared rounds with each of them. Without
        `measure`, of the time per operation.
        """
        key = variant, baseline, measure or self.time
        if key not in self._cache:
            self._cache[key] = self._paired(*key)
        return self._cache[key]

    def log_ratios(self, variant: Variant, baseline: Variant) -> list[dict[int, np.ndarray]]:
        """Block -> the log ratios of the rounds that both shared; other blocks are absent. Where they
        shared none: those of each over the third variant that `paired` compares them by, or nothing.
        """
        return [
            {block: log_ratios(*pairs) for (_cohort, block), pairs in each.items()}
            for each in self._shared(variant, baseline, self.time)
        ]

    def _paired(self, variant: Variant, baseline: Variant, measure: Measure) -> PairedComparison | None:
        shared = self._shared(variant, baseline, measure)
        if not shared:
            return None
        pairs = [[*each.values()] for each in shared]
        logs, deltas = ([*map(make, pairs)] for make in (self._log_sample, self._delta_sample))
        return PairedComparison(PairedDifference.of(logs), PairedDifference.of(deltas))

    def _shared(self, variant: Variant, baseline: Variant, measure: Measure) -> list[dict[Block, Pairs]]:
        """The pairs of both; where they have none, those of each with the first third variant that
        has with both.
        """
        pairs = self._pairs(variant, baseline, measure)
        if pairs:
            return [pairs]
        for reference in self._slices:
            both = [self._pairs(one, reference, measure) for one in (variant, baseline)]
            if all(both):
                return both
        return []

    def _pairs(self, variant: Variant, baseline: Variant, measure: Measure) -> dict[Block, Pairs]:
        """The values of both, block by block, for the rounds that have both."""
        ours, theirs = self._series(variant, measure), self._series(baseline, measure)
        found: dict[Block, Pairs] = {}
        for key in [key for key in ours if key in theirs]:
            rounds = [round_ for round_ in ours[key] if round_ in theirs[key]]
            if rounds:
                found[key] = _take(ours[key], rounds), _take(theirs[key], rounds)
        return found

    def _log_sample(self, pairs: Sequence[Pairs]) -> Sample:
        return self.sample([log_ratios(ours, theirs) for ours, theirs in pairs])

    def _delta_sample(self, pairs: Sequence[Pairs]) -> Sample:
        return self.sample([ours - theirs for ours, theirs in pairs])

    def _series(self, variant: Variant, measure: Measure) -> Series:
        key = variant, measure
        if key not in self._known_series:
            blocks, own = self._slices.get(variant, {}), of_variant(variant, measure)
            self._known_series[key] = {
                at: {piece.round: own(piece) for piece in pieces} for at, pieces in blocks.items()
            }
        return self._known_series[key]

    def _logs(self, variant: Variant, measure: Measure) -> dict[Block, np.ndarray]:
        if variant not in self._slices:
            raise KeyError(variant)
        series = self._series(variant, measure)
        return {key: np.log([*values.values()]) for key, values in series.items()}


def _take(values: dict[int, float], rounds: list[int]) -> np.ndarray:
    return np.array([values[round_] for round_ in rounds])


def _usable(piece: SliceRecord) -> bool:
    """A slice in which nothing completed has no time per operation."""
    return piece.ops > 0 and math.isfinite(piece.us_per_op) and piece.us_per_op > 0
