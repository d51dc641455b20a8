"""What counts as one independent value, and the interval that follows from it.

Two processes of one program differ by 1 to 2 % for as long as they live, so the rounds of one block
are not independent draws of what the comparison is about. With two blocks or more, the sample is
one robust centre per block and the interval is the signed-rank test's, or Student's where so few
blocks have no such interval. With a single block, the rounds are all there is: the sample is the
rounds, and its interval speaks of these processes only. `benchmarks/coverage.py` shows why there is
no test in between that would pool the rounds when blocks seem to agree.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pgperf.analysis import student_t
from pgperf.analysis.paired_statistics import (
    Estimate,
    hodges_lehmann,
    interpolated_rank_interval,
    signed_rank_interval,
)

ROUNDS, BLOCKS = "rounds", "blocks"
#: For normal values the Hodges-Lehmann centre varies by pi/3 of what their mean does.
SPREAD_OF_CENTRE = math.sqrt(math.pi / 3)


@dataclass(frozen=True)
class Sample:
    """`values` are centres of blocks or single rounds, as `kind` says; `observations` counts the
    slices behind them. `widening`: the factor on the half-widths of its intervals.
    """

    kind: str
    values: np.ndarray
    observations: int
    widening: float = 1.0


def sample_of(blocks: Sequence[np.ndarray]) -> Sample:
    """The sample in values grouped by block: at least one block, none of them empty."""
    observations = sum(len(block) for block in blocks)
    if len(blocks) == 1:
        return Sample(ROUNDS, np.asarray(blocks[0], dtype=float), observations)
    return Sample(BLOCKS, np.array([hodges_lehmann(block) for block in blocks]), observations)


def interval(sample: Sample, confidence: float = 0.95) -> Estimate:
    """The Hodges-Lehmann centre of the sample with its interval; no bounds for a sample of one
    value.

    A few values cannot give the signed-rank test every confidence (fewer than six, not even 95 %):
    Student's then stands in, at least as wide as all the values.
    """
    if len(sample.values) == 1:
        return Estimate(float(sample.values[0]), None, None, 1, 0.0)
    ranks = interpolated_rank_interval if sample.kind == BLOCKS else signed_rank_interval
    ranked = ranks(sample.values, confidence)
    found = _widest(sample.values, confidence) if ranked.low is None else ranked
    return found.widened(sample.widening)


def standard_error(values: np.ndarray) -> float:
    """How far the Hodges-Lehmann centre of two or more normal values typically is from the truth."""
    n, apart = len(values), values - values.sum() / len(values)
    return math.sqrt(apart @ apart / (n - 1) / n) * SPREAD_OF_CENTRE


def _student_interval(values: np.ndarray, confidence: float) -> Estimate:
    n = len(values)
    centre = hodges_lehmann(values)
    reach = student_t.quantile(confidence, n - 1) * standard_error(values)
    return Estimate(centre, centre - reach, centre + reach, n, confidence)


def _widest(values: np.ndarray, confidence: float) -> Estimate:
    found = _student_interval(values, confidence)
    reach = max(found.half_width() or 0.0, float(np.abs(values - found.centre).max()))
    return replace(found, low=found.centre - reach, high=found.centre + reach)


def difference(first: Estimate, second: Estimate) -> Estimate:
    """first - second for two independent estimates: on each side their distances add as squares
    (method MOVER).
    """
    centre = first.centre - second.centre
    n, confidence = min(first.n, second.n), min(first.confidence, second.confidence)
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(centre, None, None, n, 0.0)
    below = math.hypot(first.centre - first.low, second.high - second.centre)
    above = math.hypot(first.high - first.centre, second.centre - second.low)
    return Estimate(centre, centre - below, centre + above, n, confidence)
