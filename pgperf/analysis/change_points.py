"""Change points of a series: the places where a figure moved to a new level and stayed there.

The series has one value for each run, the oldest first. A step in µs is a difference of two times
of the same run, so what made the whole machine slower in that run is mostly gone from it.

A place is tested by the likelihood ratio of one mean against two, as Student's t. Three things keep
it quiet on a stable series. Values far from the others are brought nearer, so one bad run is no
change. The noise of neighbouring runs may be alike: its autocorrelation is estimated, and the t is
that of the values without it. The level of the test allows for all places and for a test after
every run. `benchmarks/change_points.py` measures both errors.

E-divisive tests a place by permutations, which are right for independent noise only: on stable
series with an autocorrelation of 0.5 most of its alarms are false.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from pgperf.analysis import student_t
from pgperf.analysis.outcome import CONFIDENCE, MARGIN
from pgperf.core.limits import BLOCKS

#: Runs that are looked at, the latest ones.
WINDOW = 200
#: The fewest runs on either side of a change.
LEAST_BEFORE, LEAST_AFTER = 6, 3
#: The level of a single test, two-sided.
LEVEL = 6e-5
#: Values farther from the median than so many standard deviations are brought to that distance.
FARTHEST = 3.5
#: The autocorrelations that noise may have, and the probability of each before any run is seen. Few
#: runs tell little, so the noise counts as correlated until many runs show that it is not.
CORRELATIONS = {0.1: 0.015, 0.3: 0.05, 0.5: 0.8, 0.7: 0.135}
_MAD_TO_SD = 1.4826


@dataclass(frozen=True)
class ChangePoint:
    """`at`: the place of the first value of the new level. `before` and `after` are the medians of
    the levels beside it; `low` and `high` are the 95 % interval of their difference.
    """

    at: int
    before: float
    after: float
    low: float
    high: float


def find(
    values: Sequence[float],
    half_widths: Sequence[float | None] = (),
    least: float = 0.0,
    blocks: int = BLOCKS.high,
) -> list[ChangePoint]:
    """The changes in the latest WINDOW values, in order.

    `half_widths` are those of the values' own 95 % intervals, each of at most so many `blocks`, None
    where unknown: the noise is at least as large. A change smaller than `least` does not count. Places
    count from the first value that is given.
    """
    skipped = max(0, len(values) - WINDOW)
    series = np.asarray(values[skipped:], dtype=float)
    error = _own_error(half_widths[skipped:], blocks)
    places = sorted(_split(series, error, least, skipped))
    ends = [skipped, *places, len(values)]
    return [
        _change_point(np.asarray(values[begin:end], dtype=float), at - begin, error, begin)
        for begin, at, end in zip(ends, places, ends[2:], strict=False)
    ]


def at_place(
    values: Sequence[float],
    at: int,
    half_widths: Sequence[float | None] = (),
    blocks: int = BLOCKS.high,
    among: int = 1,
) -> ChangePoint:
    """The change at a given place of values that have one level on either side, whether it is one or
    only noise; `half_widths` and `blocks` as for `find`.

    The 95 % intervals of `among` such changes hold together. Raises ValueError with fewer than
    LEAST_AFTER values on a side.
    """
    if min(at, len(values) - at) < LEAST_AFTER:
        raise ValueError(f"{at} and {len(values) - at} values are too few for two levels")
    confidence = 1 - (1 - CONFIDENCE) / among
    error = _own_error(half_widths, blocks)
    return _change_point(np.asarray(values, dtype=float), at, error, 0, confidence)


def least_change(level: float) -> float:
    """What counts as no change of a figure, in its unit: the margin of equal times, 1 %."""
    return abs(level) * math.expm1(MARGIN)


@dataclass(frozen=True)
class _Step:
    """The step of a series at a place: its size and the standard error of that."""

    at: int
    size: float
    error: float

    @property
    def t(self) -> float:
        return abs(self.size) / self.error if self.error else math.inf if self.size else 0.0


def _split(series: np.ndarray, error: float, least: float, offset: int) -> Iterator[int]:
    """The places of changes: the most likely one, then those on either side of it."""
    if len(series) < LEAST_BEFORE + LEAST_AFTER:
        return
    found = _most_likely(_clipped(series), error)
    moved = float(np.median(series[found.at :]) - np.median(series[: found.at]))
    if found.t < student_t.quantile(1 - LEVEL, len(series) - 3) or abs(moved) < least:
        return
    yield from _split(series[: found.at], error, least, offset)
    yield offset + found.at
    yield from _split(series[found.at :], error, least, offset + found.at)


def _most_likely(values: np.ndarray, error: float) -> _Step:
    """The place is found twice: without the noise's autocorrelation, which it then gives, and with."""
    first = _Regression.of(values, 0.0).best(error)
    return _Regression.of(values, _correlation(values, first.at)).best(error)


@dataclass(frozen=True)
class _Regression:
    """A step at every place of a series, by generalised least squares.

    Noise of first-order autoregression is made white: each value less its share of the one before.
    """

    sizes: np.ndarray
    information: np.ndarray
    unexplained: np.ndarray
    correlation: float

    @classmethod
    def of(cls, values: np.ndarray, correlation: float) -> Self:
        values = values - np.median(values)  # small numbers, whose squares are exact enough
        n, rest, head = len(values), 1 - correlation, math.sqrt(1 - correlation**2)
        white = np.concatenate(([head * values[0]], values[1:] - correlation * values[:-1]))
        mean = np.concatenate(([head], np.full(n - 1, rest)))
        later = np.arange(n - 1, -1, -1)
        sums = np.cumsum(white[::-1])[::-1] - white  # of the values behind each place
        mean_mean, mean_white = float(mean @ mean), float(mean @ white)
        step_mean = mean + later * rest**2
        information = 1 + later * rest**2 - step_mean**2 / mean_mean
        information[0] = math.inf  # a step before the first value is the mean itself
        sizes = (white + rest * sums - step_mean * mean_white / mean_mean) / information
        information[0] = 0.0
        total = float(white @ white) - mean_white**2 / mean_mean
        return cls(sizes, information, total - sizes**2 * information, correlation)

    def best(self, error: float) -> _Step:
        places = slice(LEAST_BEFORE, len(self.sizes) - LEAST_AFTER + 1)
        explained = self.sizes[places] ** 2 * self.information[places]
        return self.at(LEAST_BEFORE + int(np.argmax(explained)), error)

    def at(self, place: int, error: float) -> _Step:
        """`error`: the least standard error of a value."""
        seen = math.sqrt(max(0.0, float(self.unexplained[place])) / (len(self.sizes) - 3))
        noise = max(seen, error * math.sqrt(1 - self.correlation**2))
        return _Step(place, float(self.sizes[place]), noise / math.sqrt(float(self.information[place])))


def _clipped(series: np.ndarray) -> np.ndarray:
    """The series with far values brought nearer; a level of several runs is not far for long."""
    middle = float(np.median(series))
    spread = max(_spread(series), _spread(np.diff(series)) / math.sqrt(2))
    return np.clip(series, middle - FARTHEST * spread, middle + FARTHEST * spread) if spread else series


def _spread(values: np.ndarray) -> float:
    """The standard deviation of normal values, by the median distance from the median."""
    return _MAD_TO_SD * float(np.median(np.abs(values - np.median(values))))


def _correlation(values: np.ndarray, at: int) -> float:
    """The correlation of neighbours' noise around the two means: the mean of CORRELATIONS, each by
    its probability given the values.
    """
    each, prior = np.array([*CORRELATIONS]), np.array([*CORRELATIONS.values()])
    variance = (1 - each**2) / len(values)  # of an estimate, about
    fits = np.log(prior) - (_estimated_correlation(values, at) - each) ** 2 / (2 * variance)
    weights = np.exp(fits - np.log(variance) / 2 - fits.max())
    return float(weights @ each / weights.sum())


def _estimated_correlation(values: np.ndarray, at: int) -> float:
    """Estimated means make it look smaller, which is corrected."""
    n = len(values)
    noise = np.concatenate((values[:at] - values[:at].mean(), values[at:] - values[at:].mean()))
    total = float(noise @ noise)
    plain = float(noise[1:] @ noise[:-1]) / total if total else 0.0
    return (plain + 2 / n) / (1 - 4 / n)


def _own_error(half_widths: Sequence[float | None], blocks: int) -> float:
    """The standard error that the runs themselves give, at the median; 0 where none is known."""
    known = [width for width in half_widths if width is not None]
    return float(np.median(known)) / student_t.quantile(CONFIDENCE, max(1, blocks - 1)) if known else 0.0


def _change_point(
    series: np.ndarray, at: int, error: float, offset: int, confidence: float = CONFIDENCE
) -> ChangePoint:
    """`series`: the two levels beside the place.

    The interval is that of the step around the medians, which is known better than their difference.
    """
    before, after = float(np.median(series[:at])), float(np.median(series[at:]))
    rest = _clipped(series - np.repeat((before, after), (at, len(series) - at)))
    step = _Regression.of(rest, _correlation(rest, at)).at(at, error)
    apart, reach = after - before, student_t.quantile(confidence, len(series) - 3) * step.error
    low, high = apart + step.size - reach, apart + step.size + reach
    return ChangePoint(offset + at, before, after, min(low, apart), max(high, apart))
