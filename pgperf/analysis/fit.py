"""One figure for each variant of a run, from which all figures that are shown follow.

The centres of comparisons do not quite agree with each other: that of A over C is not exactly the
product of those of A over B and of B over C. So the logarithms of the variants' values are fitted
to all comparisons of the run, by least squares. A comparison counts the more, the narrower its 95 %
interval is. Then the ratio that is shown is the quotient of the values that are shown, the
difference is their difference, and each interval keeps its width and moves with its centre.

Comparisons say nothing about the level of the values. The machine's level is the centre over blocks
of what is left of the variants' own values without the fitted logarithms.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_comparisons import (
    Block,
    Measure,
    Measurements,
    PairedComparison,
    PairedDifference,
)
from pgperf.analysis.paired_statistics import Estimate, hodges_lehmann
from pgperf.analysis.samples import BLOCKS, interval
from pgperf.core.records import Variant

Pair = tuple[Variant, Variant]

#: Half-widths below it count as this one: no comparison is exact.
_NARROWEST = 0.001


@dataclass(frozen=True)
class Fit:
    """The fitted values of a measure by variant, as logarithms. Variants that were not measured are
    absent.
    """

    measurements: Measurements
    measure: Measure
    logs: Mapping[Variant, float]

    @classmethod
    def of(cls, measurements: Measurements, pairs: Iterable[Pair], measure: Measure | None = None) -> Self:
        """Fitted to the comparisons of these pairs; without `measure`, of the time per operation."""
        measure = measure or measurements.time
        found = ((pair, measurements.paired(*pair, measure)) for pair in dict.fromkeys(pairs))
        links = _links({pair: comparison.log for pair, comparison in found if comparison})
        logs: dict[Variant, float] = {}
        for group in _connected(measurements, links):
            heights = _heights(group, [link for link in links if link.upper in group])
            level = _machine_level(measurements, heights, measure)
            logs |= {variant: level + height for variant, height in heights.items()}
        return cls(measurements, measure, logs)

    def __contains__(self, variant: Variant) -> bool:
        return variant in self.logs

    def value(self, variant: Variant) -> float:
        """In the measure's unit. Raises KeyError for a variant that was not measured."""
        return math.exp(self.logs[variant])

    def level(self, variant: Variant) -> Estimate:
        """The value with its 95 % interval, which contains the machine's drift."""
        own = interval(self.measurements.level(variant, self.measure), CONFIDENCE)
        return own.moved_to(self.logs[variant]).exp()

    def paired(self, variant: Variant, baseline: Variant) -> PairedComparison | None:
        """The ratio and the difference of two values; None where they cannot be compared."""
        found = self.measurements.paired(variant, baseline, self.measure)
        if found is None:
            return None
        return PairedComparison(
            found.log.moved_to(self.logs[variant] - self.logs[baseline]),
            found.delta.moved_to(self.value(variant) - self.value(baseline)),
        )


@dataclass(frozen=True)
class _Link:
    """A comparison: the logarithm of `upper` less that of `lower`, and how much it counts."""

    upper: Variant
    lower: Variant
    log: float
    weight: float


def _links(differences: Mapping[Pair, PairedDifference]) -> list[_Link]:
    """A comparison of one block only counts least where others have several: its interval is of
    these processes only.
    """
    estimates = {pair: each.at(CONFIDENCE) for pair, each in differences.items()}
    reaches = {pair: each.half_width() for pair, each in estimates.items()}
    of_blocks = {pair: reach for pair, reach in reaches.items() if differences[pair].kind == BLOCKS}
    known = {pair: reach for pair, reach in (of_blocks or reaches).items() if reach is not None}
    widest = max(known.values(), default=1.0)
    return [
        _Link(*pair, each.centre, max(known.get(pair, widest), _NARROWEST) ** -2)
        for pair, each in estimates.items()
    ]


def _connected(variants: Iterable[Variant], links: Iterable[_Link]) -> list[list[Variant]]:
    """The variants in groups that links connect."""
    group_of = {variant: [variant] for variant in variants}
    for link in links:
        group, other = group_of[link.upper], group_of[link.lower]
        if group is not other:
            group.extend(other)
            group_of.update(dict.fromkeys(other, group))
    return [*{id(group): group for group in group_of.values()}.values()]


def _heights(group: Sequence[Variant], links: Iterable[_Link]) -> dict[Variant, float]:
    """The weighted least-squares logarithms of connected variants, the first 0."""
    at = {variant: index for index, variant in enumerate(group)}
    equations, right = np.zeros((len(group), len(group))), np.zeros(len(group))
    for link in links:
        upper, lower = at[link.upper], at[link.lower]
        equations[[upper, lower], [upper, lower]] += link.weight
        equations[[upper, lower], [lower, upper]] -= link.weight
        right[[upper, lower]] += link.weight * link.log, -link.weight * link.log
    heights = np.linalg.solve(equations[1:, 1:], right[1:])
    return dict(zip(group, [0.0, *map(float, heights)], strict=True))


def _machine_level(measurements: Measurements, heights: Mapping[Variant, float], measure: Measure) -> float:
    """The centre over blocks of what the variants' own logarithms have above their heights."""
    rests: dict[Block, list[float]] = {}
    for variant, height in heights.items():
        for block, log in measurements.log_centres(variant, measure).items():
            rests.setdefault(block, []).append(log - height)
    return hodges_lehmann(np.array([hodges_lehmann(np.array(rest)) for rest in rests.values()]))
