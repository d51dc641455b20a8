"""The precision that some blocks will reach, predicted from a few seconds of slices. Pure.

The half-width of a comparison is that of its interval over blocks. So it follows from the scatter
of a block's centre, which has two parts: the scatter of its slices, which a look at the machine
measures on a fixed piece of work, and what fresh processes differ by.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from pgperf.analysis.samples import BLOCKS, SPREAD_OF_CENTRE, Sample, interval

#: The standard deviation of the log ratio of two programs over their processes: a process is faster
#: or slower than another of its program by up to one or two percent for as long as it lives.
PROCESSES = 0.01
#: Fewer slices tell nothing of their scatter.
LEAST_SLICES = 12
#: The standard deviation of normal values over their mean absolute value.
_OF_MEAN_SIZE = math.sqrt(math.pi / 2)


def pair_scatter(slices_us: Sequence[float], distance: int = 1) -> float | None:
    """The standard deviation of the log ratio of two slices of the same work that are so many slices
    apart; None from too few slices.

    From the mean size of the log ratios, so that a few interrupted slices count as little as they
    do in a block's centre.
    """
    if len(slices_us) < LEAST_SLICES:
        return None
    logs = np.log(np.asarray(slices_us, dtype=float))
    apart = max(1, min(distance, len(logs) // 3))
    return float(np.abs(logs[apart:] - logs[:-apart]).mean()) * _OF_MEAN_SIZE


def block_scatter(pair: float, rounds: int) -> float:
    """The standard deviation of a block's centre, of the log ratio of two variants in `rounds`
    rounds.
    """
    return math.hypot(pair * SPREAD_OF_CENTRE / math.sqrt(rounds), PROCESSES)


def half_width(scatter: float, blocks: int, comparisons: int, widening: float = 1.0) -> float:
    """The half-width of the widest of so many comparisons after so many blocks (two or more), whose
    centres have this standard deviation. `widening`: the factor of a run that may stop early.
    """
    return scatter * widening * _of_typical_blocks(blocks) * _widest(blocks, comparisons)


@lru_cache(maxsize=256)
def _of_typical_blocks(blocks: int) -> float:
    """The half-width of the interval over blocks whose values are where normal ones are expected,
    with a standard deviation of 1.
    """
    normal = NormalDist()
    values = np.array([normal.inv_cdf((rank - 0.375) / (blocks + 0.25)) for rank in range(1, blocks + 1)])
    found = interval(Sample(BLOCKS, values / values.std(ddof=1), blocks)).half_width()
    assert found is not None
    return found


@lru_cache(maxsize=256)
def _widest(blocks: int, comparisons: int) -> float:
    """The median of the largest of so many standard deviations of normal values, each of so many
    blocks, by the chi-squared distribution (Wilson and Hilferty).
    """
    part = 2 / (9 * (blocks - 1))
    cube_root = 1 - part + NormalDist().inv_cdf(0.5 ** (1 / comparisons)) * math.sqrt(part)
    return max(cube_root, 0.0) ** 1.5
