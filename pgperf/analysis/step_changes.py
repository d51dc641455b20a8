"""What each layer adds to the one below it, set against the same step of another run, in µs.

A run keeps its ladders, which say what stands on what, and one value per block of each variant (the
levels of `pgperf.analysis.run_comparison`). The step of a block is the rung's distance from the base
layer less that of the rung below, both paired inside the block. So the drift between blocks cancels;
the machine's speed during the run is part of the step. The lowest rung is its own step.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pgperf.analysis.ladder import Ladder
from pgperf.analysis.outcome import CONFIDENCE, INCONCLUSIVE, MARGIN, IntervalAt, classify, may_be_made
from pgperf.analysis.paired_statistics import Estimate
from pgperf.analysis.run_comparison import TIME, Level, Values, unpaired
from pgperf.core.records import Variant

#: The names of a rung and of the one below it, "" for the lowest.
Key = tuple[str, str]


@dataclass(frozen=True)
class Added:
    """The time that a layer adds in one run: `us` as the run's page shows it, and one value per block,
    from which a second sample is subtracted.

    `widening`: the factor on half-widths of a run that may stop early.
    """

    us: float
    by_block: Values
    widening: float = 1.0


@dataclass(frozen=True)
class LayerStep:
    """A rung of a ladder, the one below it (None for the lowest), and what it adds."""

    level: Level
    below: Level | None
    added: Added

    def key(self, *, named: bool) -> Key:
        """The same for the same step of another run, where its variants are `named` alike."""
        return _name(self.level, named=named), _name(self.below, named=named) if self.below else ""

    @property
    def taken_us(self) -> tuple[float, float]:
        """The most that others took of the time of the rung, and of the one below, where a measurement
        was much disturbed.
        """
        return _taken_us(self.level), _taken_us(self.below) if self.below else 0.0


@dataclass(frozen=True)
class StepChange:
    """A step of the second run less that of the first, µs per operation.

    `below` is None for the lowest rung. `delta` has Welch's 95 % interval. The outcome `equivalent`
    is within ±1 % of the rung's time. `is_doubted`: a disturbance may explain the difference, or have
    hidden one, so it is inconclusive. `blocks` counts those of both runs.
    """

    variant: Variant
    below: Variant | None
    before: float
    after: float
    delta: Estimate
    outcome: str
    blocks: tuple[int, int]
    is_doubted: bool = False


@dataclass(frozen=True)
class OtherGround:
    """A rung that both runs have, above another one in each; None is the ground of the ladder."""

    variant: Variant
    before: Variant | None
    after: Variant | None


def steps(levels: Iterable[Level], ladders: Iterable[Ladder]) -> list[LayerStep]:
    """The steps of a run, lowest first, each once: two ladders may stand on one rung. Without those of
    rungs that kept no level.
    """
    known = {level.variant.label: level for level in levels}
    most = max((len(level.log_us[0]) for level in known.values()), default=0)
    found = {(upper, below): us for ladder in ladders for upper, below, us in _rungs(ladder)}
    return [
        _step(known[upper], known.get(below), us, most)
        for (upper, below), us in found.items()
        if upper in known and (not below or below in known)
    ]


def step_changes(before: Sequence[LayerStep], after: Sequence[LayerStep]) -> list[StepChange]:
    """The steps that both runs have, in the order of the second, as one family of outcomes.

    A rung that stands on another one in the two runs is not compared.
    """
    earlier, later = _identified(before, after)
    pairs = [(earlier[key], step) for key, step in later.items() if key in earlier]
    outcomes = classify([_share_at(*pair) for pair in pairs])
    return [_change(*pair, outcome.word) for pair, outcome in zip(pairs, outcomes, strict=True)]


def other_grounds(before: Sequence[LayerStep], after: Sequence[LayerStep]) -> list[OtherGround]:
    """The rungs that are not compared because they stand on another one in the second run."""
    earlier, later = _identified(before, after)
    compared = {upper for upper, _below in earlier.keys() & later.keys()}
    first = {upper: step for (upper, _below), step in earlier.items() if upper not in compared}
    return [
        OtherGround(step.level.variant, _ground(first[upper]), _ground(step))
        for (upper, _below), step in later.items()
        if upper in first
    ]


def difference(before: Added, after: Added) -> Estimate:
    """What the second adds more than the first, with Welch's 95 % interval around the difference of
    the steps that are shown.
    """
    return _difference_at(before, after)(CONFIDENCE)


def _difference_at(before: Added, after: Added) -> IntervalAt:
    plus = after.by_block[:1] + before.by_block[1:]
    minus = before.by_block[:1] + after.by_block[1:]
    at = unpaired(plus, minus, max(before.widening, after.widening))
    return lambda confidence: at(confidence).moved_to(after.us - before.us)


def _rungs(ladder: Ladder) -> Iterator[tuple[str, str, float]]:
    """Each rung, the one below it, and the step as the page shows it."""
    for first in ladder.steps[:1]:
        yield first.label, "", first.step_us
        above = [*pairwise(ladder.steps), *((first, beside) for beside in ladder.side)]
        yield from ((upper.label, below.label, upper.step_us) for below, upper in above)


def _step(level: Level, below: Level | None, us: float, blocks: int) -> LayerStep:
    return LayerStep(level, below, Added(us, _by_block(level, below, blocks), level.widening))


def _by_block(level: Level, below: Level | None, blocks: int) -> Values:
    """From distances that were paired inside blocks, else from the times of blocks, which come in the
    same order. Where either lacks some of the run's blocks, which need not be those that the other
    lacks, both samples.
    """
    if below is None:
        return (_times(level),)
    if level.base == below.variant:
        return level.us_over
    upper, lower = _distances(level, below) or (_times(level), _times(below))
    if len(upper) != len(lower) or len(upper) < blocks:
        return upper, lower
    return (tuple(one - other for one, other in zip(upper, lower, strict=True)),)


def _distances(level: Level, below: Level) -> Values:
    """From the base that both have; none without one, or in other blocks."""
    if level.base is None or level.base != below.base:
        return ()
    found = (*level.us_over, *below.us_over)
    return found if len(found) == 2 and len(found[0]) == len(found[1]) else ()


def _times(level: Level) -> tuple[float, ...]:
    return tuple(math.exp(value) for value in level.log_us[0])


def _name(level: Level, *, named: bool) -> str:
    return level.variant.as_named(named).label


def _ground(step: LayerStep) -> Variant | None:
    return step.below.variant if step.below else None


def _taken_us(level: Level) -> float:
    return level.disturbed * _time_us(level)


def _time_us(level: Level) -> float:
    return level.shown(TIME)


def _identified(
    before: Sequence[LayerStep], after: Sequence[LayerStep]
) -> tuple[Mapping[Key, LayerStep], Mapping[Key, LayerStep]]:
    """By a name that the same step has in both runs, as `run_comparison.identified`."""
    named = any(step.level.variant.named for step in (*before, *after))
    earlier, later = ({step.key(named=named): step for step in each} for each in (before, after))
    return earlier, later


def _share_at(before: LayerStep, after: LayerStep) -> IntervalAt:
    """As a share of the rung's time: a small one is nearly a log ratio, and has the same margin."""
    at, whole = _difference_at(before.added, after.added), _whole_us(before, after)
    return lambda confidence: at(confidence).times(1 / whole)


def _whole_us(before: LayerStep, after: LayerStep) -> float:
    """The rung's time, the geometric mean of both runs."""
    return math.sqrt(_time_us(before.level) * _time_us(after.level))


def _change(before: LayerStep, after: LayerStep, word: str) -> StepChange:
    delta = difference(before.added, after.added)
    equal = MARGIN * _whole_us(before, after)
    doubted = may_be_made(word, (delta.low, delta.high), _undisturbed(delta, before, after), (-equal, equal))
    return StepChange(
        variant=after.level.variant,
        below=_ground(after),
        before=before.added.us,
        after=after.added.us,
        delta=delta,
        outcome=INCONCLUSIVE if doubted else word,
        blocks=(len(before.added.by_block[0]), len(after.added.by_block[0])),
        is_doubted=doubted,
    )


def _undisturbed(delta: Estimate, before: LayerStep, after: LayerStep) -> tuple[float | None, float | None]:
    """The ends of the interval, moved out by the most that others may have taken on either side."""
    (own_before, below_before), (own_after, below_after) = before.taken_us, after.taken_us
    least = None if delta.low is None else delta.low - own_after - below_before
    most = None if delta.high is None else delta.high + own_before + below_after
    return least, most
