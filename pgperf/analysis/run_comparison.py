"""Two runs set against each other, block by block: their slices never shared a round, so nothing
can be paired.

Each run keeps of each variant one value per block (`levels`): the centre of its log times, and the
centre of its distances to the libpq beside it, which were paired inside the run. The second kind
cancels whatever made the whole machine faster or slower on that day; the first does not.
`docs/method.md` says what each may be taken for, and when a disturbance leaves a difference undecided.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache, partial
from statistics import fmean
from typing import Any, NamedTuple, Self

import numpy as np

from pgperf.analysis import level_fields, student_t
from pgperf.analysis.fit import Fit
from pgperf.analysis.level_fields import Values
from pgperf.analysis.outcome import (
    CONFIDENCE,
    DIFFERS,
    INCONCLUSIVE,
    MARGIN,
    IntervalAt,
    Outcome,
    classify,
    may_be_made,
)
from pgperf.analysis.paired_comparisons import PairedDifference
from pgperf.analysis.paired_statistics import Estimate, hodges_lehmann
from pgperf.analysis.samples import BLOCKS, Sample, standard_error
from pgperf.core.layers import has_workers
from pgperf.core.records import Variant

TIME, OVER = "time", "over_base"
#: The stored values end here: a ten-millionth in a logarithm, a tenth of a nanosecond in µs.
_LOG_DIGITS, _US_DIGITS = 7, 4
#: The fields of a Level with samples; the first one is of all, the others of those with a base.
_SAMPLED = ("log_us", "log_over", "us_over")


@dataclass(frozen=True)
class Level:
    """A variant of one run by blocks. `base_layer` is the layer of its base, the same variant else;
    "": it has none.

    `log_us` is ln µs per operation; `log_over` is ln of the time over the base's, `us_over` the
    difference in µs. `us` and `base_us` are the times of the run's pages, None in a run of an
    earlier version. `widening`: the factor on half-widths of a run that may stop early. `disturbed`
    and `base_disturbed`: the most of its time that others took, where the measurement was much
    disturbed; they are not stored with the level.
    """

    variant: Variant
    log_us: Values
    base_layer: str = ""
    log_over: Values = ()
    us_over: Values = ()
    us: float | None = None
    base_us: float | None = None
    widening: float = 1.0
    disturbed: float = 0.0
    base_disturbed: float = 0.0

    def to_json(self) -> dict[str, Any]:
        values = {name: list(map(list, getattr(self, name))) for name in _SAMPLED}
        times = {"us": self.us, "base_us": self.base_us, "widening": self.widening}
        return {"variant": asdict(self.variant), "base_layer": self.base_layer, **values, **times}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError or ValueError, which name the field, for what is no level."""
        values: dict[str, Any] = {name: level_fields.samples(name, data[name]) for name in _SAMPLED}
        base_layer = level_fields.words("base_layer", data["base_layer"])
        needed = _SAMPLED if base_layer else _SAMPLED[:1]
        if empty := [name for name in needed if not values[name]]:
            raise ValueError(f"{empty[0]} has no samples")
        values |= {name: level_fields.time(name, data.get(name)) for name in ("us", "base_us")}
        values["widening"] = level_fields.factor("widening", data.get("widening", 1.0))
        return cls(level_fields.variant(data["variant"]), base_layer=base_layer, **values)

    @cached_property
    def base(self) -> Variant | None:
        """A layer without workers has a client for each connection instead."""
        if not self.base_layer:
            return None
        own = replace(self.variant, layer=self.base_layer)
        return own if has_workers(self.base_layer) else replace(own, clients=own.connections, workers=1)

    def with_disturbances(self, shares: Mapping[str, float]) -> Self:
        """`shares`: the most that others took, by the labels of the run's much disturbed variants."""
        if not shares:
            return self
        base = self.base
        return replace(
            self,
            disturbed=shares.get(self.variant.label, 0.0),
            base_disturbed=shares.get(base.label, 0.0) if base else 0.0,
        )

    def left(self, measure: str) -> tuple[float, float]:
        """The least that stays of the time, and of the base's, without what others took."""
        return max(0.0, 1 - self.disturbed), 1.0 if measure == TIME else max(0.0, 1 - self.base_disturbed)

    def shown(self, measure: str) -> float:
        """What the run's pages show: µs per operation for TIME, times the base's for OVER."""
        if self.us is None or (measure == OVER and not self.base_us):
            return math.exp(_centre(_logs(self, measure)))
        return self.us / self.base_us if measure == OVER and self.base_us else self.us

    def shown_us(self, measure: str) -> float:
        """The time, or the difference from the base's for OVER, µs."""
        if self.us is None or (measure == OVER and self.base_us is None):
            return _centre(_us(self, measure))
        return self.us - (self.base_us or 0.0) if measure == OVER else self.us


Identified = dict[str, Level]


@dataclass(frozen=True)
class Change:
    """One variant, second run over first, by one measure: TIME, or OVER the time of the base in the
    same run.

    `base` is None for TIME.

    `before` and `after` are µs per operation for TIME and times the base's for OVER; `delta` is in
    µs: of the time for TIME, of what the variant takes more than its base for OVER. `blocks` counts
    both runs'. `least` and `most`: the ends of the ratio's interval, if what others took in a much
    disturbed measurement is taken off; None where the interval has no end. A difference that they do
    not show is inconclusive, and `is_doubted`.
    """

    variant: Variant
    measure: str
    base: Variant | None
    before: float
    after: float
    ratio: Estimate
    delta: Estimate
    outcome: str
    mde: float | None
    blocks: tuple[int, int]
    least: float | None = None
    most: float | None = None
    is_doubted: bool = False

    @property
    def may_be_chance(self) -> bool:
        """Is it inconclusive although the 95 % interval lies wholly outside the margin? Among so many
        comparisons, some do by chance.
        """
        low, high = self.ratio.low, self.ratio.high
        if self.outcome != INCONCLUSIVE or self.is_doubted or low is None or high is None:
            return False
        return low > math.exp(MARGIN) or high < math.exp(-MARGIN)

    def is_worse_by(self, share: float) -> bool:
        """Does it differ, and surely take more than `share` (0.05 for 5 %) longer?"""
        return self.outcome == DIFFERS and self.least is not None and self.least > 1 + share

    def may_be_worse_by(self, share: float) -> bool:
        """May it take more than `share` longer, and more than what counts as equal, although it is not
        shown to?
        """
        most = max(1 + share, math.exp(MARGIN))
        return not self.is_worse_by(share) and (self.most is None or self.most > most)

    def others_may_explain(self, share: float) -> bool:
        """Would it be decided without what others may have taken?"""
        alone = replace(self, least=self.ratio.low, most=self.ratio.high)
        return self.is_doubted or alone.is_worse_by(share) or not alone.may_be_worse_by(share)


def levels(fit: Fit, variants: Sequence[Variant], bases: Mapping[Variant, Variant]) -> list[Level]:
    """What a run keeps for later comparisons: a Level for each variant that was measured."""
    return [_level(fit, of, bases.get(of)) for of in variants if of in fit]


def changes(
    before: Sequence[Level], after: Sequence[Level], only: Collection[str] | None = None
) -> list[Change]:
    """The variants that both runs have, in the order of the second; per measure one family of
    outcomes. `only`: the labels of those that are told of all that are in the family.

    Two variants are the same if their labels and their workloads' names are. Runs of one workload
    each need not share its name.
    """
    earlier, later = identified(before, after)
    both = [(earlier[name], level) for name, level in later.items() if name in earlier]
    over = [(one, other) for one, other in both if one.base_layer and one.base_layer == other.base_layer]
    return _changes(TIME, both, only) + _changes(OVER, over, only)


def identified(before: Sequence[Level], after: Sequence[Level]) -> tuple[Identified, Identified]:
    """The levels of both runs by a name that the same variant has in both.

    Where one of the runs has several workloads, the names have the workload.
    """
    named = any(level.variant.named for level in (*before, *after))
    earlier, later = (
        {level.variant.as_named(named).label: level for level in each} for each in (before, after)
    )
    return earlier, later


def unpaired(plus: Values, minus: Values, widening: float = 1.0) -> IntervalAt:
    """The sum of the centres of `plus` less that of `minus`, all independent samples: Welch's
    interval at any confidence, whose half-width is `widening` times as wide.

    Each centre is a Hodges-Lehmann one; the errors add as squares and the degrees of freedom are
    Satterthwaite's, rounded down. No bounds where a sample has one value only.
    """
    samples = [(1, _sample(values)) for values in plus] + [(-1, _sample(values)) for values in minus]
    centre = sum(sign * sample.centre for sign, sample in samples)
    n = min(sample.n for _, sample in samples)
    if n < 2:
        return lambda _confidence: Estimate(centre, None, None, n, 0.0)
    total = sum(sample.square for _, sample in samples)
    rest = sum(sample.square**2 / (sample.n - 1) for _, sample in samples)
    freedom = max(1, math.floor(total**2 / rest)) if rest else n - 1
    return partial(_student, centre, widening * math.sqrt(total), freedom, n)


class _Sample(NamedTuple):
    """The centre of a sample, the square of its standard error, and its size."""

    centre: float
    square: float
    n: int


@lru_cache(maxsize=4096)
def _sample(values: tuple[float, ...]) -> _Sample:
    """The samples of a baseline are in each of its comparisons."""
    array, n = np.array(values), len(values)
    return _Sample(hodges_lehmann(array), standard_error(array) ** 2 if n > 1 else 0.0, n)


def _student(centre: float, error: float, freedom: int, n: int, confidence: float) -> Estimate:
    reach = error * student_t.quantile(confidence, freedom)
    return Estimate(centre, centre - reach, centre + reach, n, confidence)


def _changes(
    measure: str, pairs: Sequence[tuple[Level, Level]], only: Collection[str] | None
) -> list[Change]:
    intervals = [_interval_at(*pair, measure) for pair in pairs]
    return [
        _change(measure, pair, at(CONFIDENCE), outcome)
        for pair, at, outcome in zip(pairs, intervals, classify(intervals), strict=True)
        if only is None or pair[1].variant.label in only
    ]


def _change(measure: str, pair: tuple[Level, Level], log: Estimate, outcome: Outcome) -> Change:
    one, other = pair
    delta = _difference(_us(other, measure), _us(one, measure), _widening(pair))(CONFIDENCE)
    ratio = log.exp()
    least, most = _undisturbed(ratio, one.left(measure), other.left(measure))
    equal = math.exp(-MARGIN), math.exp(MARGIN)
    is_doubted = may_be_made(outcome.word, (ratio.low, ratio.high), (least, most), equal)
    return Change(
        variant=other.variant,
        measure=measure,
        base=other.base if measure == OVER else None,
        before=one.shown(measure),
        after=other.shown(measure),
        ratio=ratio,
        delta=delta.moved_to(other.shown_us(measure) - one.shown_us(measure)),
        outcome=INCONCLUSIVE if is_doubted else outcome.word,
        mde=outcome.mde,
        blocks=(len(_logs(one, measure)[0]), len(_logs(other, measure)[0])),
        least=least,
        most=most,
        is_doubted=is_doubted,
    )


def _undisturbed(
    ratio: Estimate, before: tuple[float, float], after: tuple[float, float]
) -> tuple[float | None, float | None]:
    """The ends of the interval, moved out by the most that others may have taken on either side."""
    least = None if ratio.low is None else ratio.low * after[0] * before[1]
    share = before[0] * after[1]
    most = None if ratio.high is None else ratio.high / share if share else math.inf
    return least, most


def _interval_at(before: Level, after: Level, measure: str) -> IntervalAt:
    """Of the log ratio, around the quotient of the values that are shown."""
    logs = _logs(after, measure), _logs(before, measure)
    centre = math.log(after.shown(measure) / before.shown(measure))
    at = _difference(*logs, _widening((before, after)))
    return lambda confidence: at(confidence).moved_to(centre)


def _widening(pair: tuple[Level, Level]) -> float:
    """Of two runs, of which one or both may have stopped early."""
    return max(level.widening for level in pair)


def _difference(after: Values, before: Values, widening: float) -> IntervalAt:
    return unpaired(after[:1] + before[1:], before[:1] + after[1:], widening)


def _centre(values: Values) -> float:
    first, *others = (_sample(sample).centre for sample in values)
    return first - sum(others)


def _logs(level: Level, measure: str) -> Values:
    return level.log_us if measure == TIME else level.log_over


def _us(level: Level, measure: str) -> Values:
    if measure == OVER:
        return level.us_over
    return tuple(tuple(math.exp(value) for value in sample) for sample in level.log_us)


def _level(fit: Fit, of: Variant, base: Variant | None) -> Level:
    own = Level(of, (_by_block(fit, of),), us=fit.value(of), widening=fit.measurements.widening)
    paired = fit.measurements.paired(of, base) if base else None
    if paired is None or base is None:
        return own
    logs, us = _both(paired.log, _LOG_DIGITS), _both(paired.delta, _US_DIGITS)
    return replace(own, base_layer=base.layer, log_over=logs, us_over=us, base_us=fit.value(base))


def _by_block(fit: Fit, of: Variant) -> tuple[float, ...]:
    """One value per block. The reference of several cohorts is in each of them: its mean over them."""
    found: dict[int, list[float]] = {}
    for (_cohort, block), centre in fit.measurements.log_centres(of, fit.measure).items():
        found.setdefault(block, []).append(centre)
    return tuple(round(fmean(centres), _LOG_DIGITS) for _block, centres in sorted(found.items()))


def _both(difference: PairedDifference, digits: int) -> Values:
    return tuple(_kept(sample, digits) for sample in (difference.direct, difference.via) if sample)


def _kept(sample: Sample, digits: int) -> tuple[float, ...]:
    """One value per block; the rounds of a single block become one value."""
    values = sample.values if sample.kind == BLOCKS else [hodges_lehmann(sample.values)]
    return tuple(round(float(value), digits) for value in values)
