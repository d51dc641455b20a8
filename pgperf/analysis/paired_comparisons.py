"""The difference of two variants, from slices that shared a round.

Two variants that shared none are compared through a third that shared rounds with both.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pgperf.analysis.paired_statistics import Estimate, log_ratios
from pgperf.analysis.samples import BLOCKS, ROUNDS, Sample, difference, interval, sample_of
from pgperf.core import layers
from pgperf.core.records import SliceRecord, Variant, VariantBlock

Measure = Callable[[SliceRecord], float]
#: The values of variant and baseline in the rounds of one block that have both.
Pairs = tuple[np.ndarray, np.ndarray]
#: round -> what was measured, for each (cohort, block).
Series = dict[tuple[int, int], dict[int, float]]


def us_per_op(piece: SliceRecord) -> float:
    return piece.us_per_op


def us_between_operations(piece: SliceRecord) -> float:
    """Of all clients together; times their number, it is the mean time per operation."""
    return 1e6 / piece.ops_per_s if piece.ops_per_s else math.inf


def ops_per_s(piece: SliceRecord) -> float:
    return piece.ops_per_s


def _time_of(variant: Variant, baseline: Variant) -> Measure:
    """The time per operation that both know: of one that counts its operations and times none, the
    plain mean, in which an interruption counts in full.
    """
    if all(layers.times_operations(each.layer, each.connect) for each in (variant, baseline)):
        return us_per_op
    return us_between_operations


@dataclass(frozen=True)
class PairedDifference:
    """How far one variant is from another; `via` is the other's distance where both were measured
    from a third.
    """

    direct: Sample
    via: Sample | None = None

    def at(self, confidence: float) -> Estimate:
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
    """Variant over baseline: `log` the log ratio, `delta` the difference in µs, of time per
    operation.
    """

    log: PairedDifference
    delta: PairedDifference


class Measurements:
    """A run's slices by variant, block and round. Variants without any usable slice are absent."""

    def __init__(self, blocks: Iterable[VariantBlock]) -> None:
        self._slices: dict[Variant, dict[tuple[int, int], tuple[SliceRecord, ...]]] = {}
        self._cache: dict[tuple[Variant, Variant], PairedComparison | None] = {}
        for block in blocks:
            usable = tuple(filter(_usable, block.slices))
            if usable:
                self._slices.setdefault(block.variant, {})[block.cohort, block.block] = usable

    def __contains__(self, variant: Variant) -> bool:
        return variant in self._slices

    def level(self, variant: Variant, measure: Measure = us_per_op) -> Sample:
        """The variant's own values. Raises KeyError for one that is absent."""
        blocks = self._slices[variant].values()
        return sample_of([np.array([measure(piece) for piece in pieces]) for pieces in blocks])

    def paired(self, variant: Variant, baseline: Variant) -> PairedComparison | None:
        """None if no round has both and no third variant has shared rounds with each of them."""
        if (variant, baseline) not in self._cache:
            self._cache[variant, baseline] = self._paired(variant, baseline)
        return self._cache[variant, baseline]

    def ratio(self, variant: Variant, baseline: Variant, measure: Measure) -> PairedDifference | None:
        """The log ratio of a measure that is above 0; None as of `paired`."""
        shared = self._shared(variant, baseline, measure)
        return PairedDifference(*map(_log_sample, shared)) if shared else None

    def log_ratios(self, variant: Variant, baseline: Variant) -> dict[int, np.ndarray]:
        """Block -> the log ratios of the rounds that both shared; other blocks are absent."""
        pairs = self._by_block(variant, baseline, us_per_op)
        return {block: log_ratios(ours, theirs) for block, (ours, theirs) in pairs}

    def _paired(self, variant: Variant, baseline: Variant) -> PairedComparison | None:
        shared = self._shared(variant, baseline, _time_of(variant, baseline))
        if not shared:
            return None
        return PairedComparison(
            PairedDifference(*map(_log_sample, shared)), PairedDifference(*map(_delta_sample, shared))
        )

    def _shared(self, variant: Variant, baseline: Variant, measure: Measure) -> list[list[Pairs]]:
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

    def _pairs(self, variant: Variant, baseline: Variant, measure: Measure) -> list[Pairs]:
        """The values of both, block by block, for the rounds that have both."""
        return [pairs for _block, pairs in self._by_block(variant, baseline, measure)]

    def _by_block(self, variant: Variant, baseline: Variant, measure: Measure) -> Iterator[tuple[int, Pairs]]:
        ours, theirs = self._series(variant, measure), self._series(baseline, measure)
        for key in [key for key in ours if key in theirs]:
            rounds = [round_ for round_ in ours[key] if round_ in theirs[key]]
            if rounds:
                yield key[1], (_take(ours[key], rounds), _take(theirs[key], rounds))

    def _series(self, variant: Variant, measure: Measure) -> Series:
        blocks = self._slices.get(variant, {})
        times = variant.clients if measure is us_between_operations else 1
        return {
            key: {piece.round: times * measure(piece) for piece in pieces} for key, pieces in blocks.items()
        }


def _take(values: dict[int, float], rounds: list[int]) -> np.ndarray:
    return np.array([values[round_] for round_ in rounds])


def _log_sample(pairs: Sequence[Pairs]) -> Sample:
    return sample_of([log_ratios(ours, theirs) for ours, theirs in pairs])


def _delta_sample(pairs: Sequence[Pairs]) -> Sample:
    return sample_of([ours - theirs for ours, theirs in pairs])


def _usable(piece: SliceRecord) -> bool:
    """A slice in which nothing completed has no time per operation."""
    return piece.ops > 0 and math.isfinite(piece.us_per_op) and piece.us_per_op > 0
