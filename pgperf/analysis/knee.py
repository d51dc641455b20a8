"""The highest load that holds a latency limit, from slices at many loads. Pure.

Each slice shows which share of its operations was over the limit. In a queue the logarithm of that
share is a line over the load. Where it crosses ALLOWED, and how steep it is, are unknown. Far below
and far above, other things decide the share (rare interruptions, the length of a slice), so the
line ends at a tenth of ALLOWED and at ten times as much. The evidence of a slice is the logarithm of
the likelihood of each place and steepness; evidence of several slices adds up.

Loads are shares of the capacity, 1 for all of it.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pgperf.analysis import student_t
from pgperf.analysis.paired_statistics import Estimate

Evidence = NDArray[np.float64]

#: A slice holds the limit if no larger share of its operations is over it: the 99th percentile.
ALLOWED = 0.01
#: Loads that may be the highest one, in steps of 2 %.
LOWEST, HIGHEST, _STEPS = 0.01, 1.5, 252
#: Steepness: the logarithm of how many times more operations are over the limit at a load that is
#: higher by all of the capacity. Any is possible; a few slices outweigh the guess.
_FLAT, _LIKELY, _STEEP, _SLOPES = 3.0, 50.0, 300.0, 14
_UNSURE = 1.5
_FEW, _MANY = ALLOWED / 10, ALLOWED * 10
#: The operations of a slice depend on each other, because they share its queue and its
#: interruptions. It counts as so many that do not.
_INDEPENDENT = 30

_LOADS = np.geomspace(LOWEST, HIGHEST, _STEPS)
_SLOPE = np.geomspace(_FLAT, _STEEP, _SLOPES)
_GUESS = -0.5 * (np.log(_SLOPE / _LIKELY) / _UNSURE) ** 2
_LEAST_REACH = math.log(HIGHEST / LOWEST) / _STEPS / 2
_Z95 = 1.96


def nothing() -> Evidence:
    """The evidence of no slice."""
    return np.zeros((_STEPS, _SLOPES))


def evidence(load: float, due: int, over: int) -> Evidence:
    """Of a slice at that load, of whose `due` operations `over` were over the limit."""
    if not due:
        return nothing()
    line = math.log(ALLOWED) + _SLOPE[None, :] * (load - _LOADS[:, None])
    expected = np.exp(np.clip(line, math.log(_FEW), math.log(_MANY)))
    share = min(over / due, _MANY)
    found: Evidence = share * np.log(expected) + (1 - share) * np.log1p(-expected)
    return min(due, _INDEPENDENT) * found


def middle(found: Evidence) -> float:
    """The load that is as likely above the highest one as below."""
    return float(_LOADS[int(np.searchsorted(np.cumsum(_likely(found)), 0.5))])


def highest(blocks: Sequence[Evidence]) -> tuple[Estimate, list[float]]:
    """The logarithm of the highest load with its 95 % interval, and a value for each block: what it
    adds to the others (jackknife). A single block has no interval.
    """
    whole, count = sum(blocks, nothing()), len(blocks)
    centre = _mean(whole)
    without = [_mean(whole - each) for each in blocks]
    values = [count * centre - (count - 1) * mean for mean in without]
    return around(centre, values, max(_LEAST_REACH, _Z95 * _spread(whole, centre))), values


def around(centre: float, values: Sequence[float], least: float) -> Estimate:
    """A centre with Student's 95 % interval of the values of blocks, which reaches `least` far."""
    count = len(values)
    if count < 2:
        return Estimate(centre, None, None, count, 0.0)
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    reach = max(least, student_t.quantile(0.95, count - 1) * error)
    return Estimate(centre, centre - reach, centre + reach, count, 0.95)


def _likely(found: Evidence) -> NDArray[np.float64]:
    """The probability of each load."""
    logs = found + _GUESS
    weights = np.exp(logs - logs.max()).sum(axis=1)
    likely: NDArray[np.float64] = weights / weights.sum()
    return likely


def _mean(found: Evidence) -> float:
    return float(_likely(found) @ np.log(_LOADS))


def _spread(found: Evidence, mean: float) -> float:
    return math.sqrt(float(_likely(found) @ (np.log(_LOADS) - mean) ** 2))
