"""Outcomes in words: differs, equivalent or inconclusive, held to one error rate over all
comparisons of a run.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgperf.analysis.paired_statistics import Estimate

DIFFERS, EQUIVALENT, INCONCLUSIVE = "differs", "equivalent", "inconclusive"
#: ±1 %, the same in both directions on the log scale: ratios from 1/1.01 to 1.01.
MARGIN = math.log(1.01)
CONFIDENCE = 0.95
_POWER = 0.80
_WIDEST = math.log(1e9)  # of a log ratio

#: The interval of a log ratio at any confidence.
IntervalAt = Callable[[float], Estimate]
#: Both ends of an interval; None where it has none.
Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class Outcome:
    """`mde`: the smallest ratio change that had an 80 % chance to come out as `differs`; None if
    none had.
    """

    word: str
    mde: float | None


def classify(family: Sequence[IntervalAt]) -> list[Outcome]:
    """The outcome of each of a family of comparisons, in their order.

    `differs`: the interval at Holm's confidence lies wholly outside the margin; over the whole
    family, a false one is said in at most 5 % of runs. `equivalent`: the 95 % interval, the one
    that is shown, lies wholly inside.
    """
    return [_outcome(at, confidence) for at, confidence in zip(family, _holm(family), strict=True)]


def may_be_made(word: str, ends: Ends, moved: Ends, equal: tuple[float, float]) -> bool:
    """May the outcome, a difference or none, be made by others? `moved`: the ends of the interval,
    moved out by the most that others may have taken; `equal`: the ends of the margin.
    """
    least, most = moved
    if least is None or most is None or moved == ends:
        return False
    if word == EQUIVALENT:
        return least < equal[0] or most > equal[1]
    return word == DIFFERS and least <= equal[1] and most >= equal[0]


def _holm(family: Sequence[IntervalAt]) -> list[float]:
    """The confidence at which each is decided: start with all sharing 5 %; what one that differs
    used is set free.
    """
    confidences = [CONFIDENCE] * len(family)
    open_ = list(range(len(family)))
    while open_:
        confidence = 1 - (1 - CONFIDENCE) / len(open_)
        for index in open_:
            confidences[index] = confidence
        undecided = [index for index in open_ if not _outside(family[index](confidence))]
        if len(undecided) == len(open_):
            break
        open_ = undecided
    return confidences


def _outcome(at: IntervalAt, confidence: float) -> Outcome:
    mde = _smallest_effect(at, confidence)
    if _outside(at(confidence)):
        return Outcome(DIFFERS, mde)
    return Outcome(EQUIVALENT if _inside(at(CONFIDENCE)) else INCONCLUSIVE, mde)


def _outside(estimate: Estimate) -> bool:
    if estimate.low is None or estimate.high is None:
        return False
    return estimate.low > MARGIN or estimate.high < -MARGIN


def _inside(estimate: Estimate) -> bool:
    if estimate.low is None or estimate.high is None:
        return False
    return max(-estimate.low, estimate.high) <= MARGIN


def _smallest_effect(at: IntervalAt, confidence: float) -> float | None:
    """Margin, plus what the interval reaches, plus the one-sided 80 % reach: that of a two-sided 60
    % interval. None also where the interval is so wide that no ratio has the size: two blocks and many
    comparisons.
    """
    reach, slack = at(confidence).half_width(), at(2 * _POWER - 1).half_width()
    if reach is None or slack is None or reach + slack > _WIDEST:
        return None
    return math.expm1(MARGIN + reach + slack)
