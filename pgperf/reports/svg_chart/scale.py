"""The scale of an axis: from values to places, with round values for its ticks."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

_ROUND = (1, 2, 5, 10)
_TICKS = 6


@dataclass(frozen=True)
class Scale:
    """From `low` at `start` to `high` at `end`, in the drawing's units."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The place of a value."""
        low, high, here = (self._linear(each) for each in (self.low, self.high, value))
        return self.start + (self.end - self.start) * (here - low) / (high - low)

    def within(self, value: float) -> float:
        """The place of a value, at the nearest end for one that lies beside the scale."""
        return self.at(min(max(value, self.low), self.high))

    def has(self, value: float) -> bool:
        return self.low <= value <= self.high

    def ticks(self) -> list[float]:
        """Round values in the scale."""
        if self.logarithmic:
            return _powers(self.low, self.high)
        step = _step(self.high - self.low)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [step * number for number in range(first, last + 1)]

    def _linear(self, value: float) -> float:
        return math.log10(value) if self.logarithmic else value


def linear(low: float, high: float, start: float, end: float) -> Scale:
    """From a round value at or below `low` to one at or above `high`; both may be equal."""
    if not high > low:
        high = low + (abs(low) or 1.0)
    step = _step(high - low)
    return Scale(step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9), start, end)


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    """From 1, 2 or 5 times a power of ten to another one; both values must be above 0."""
    low, high = _below(low), _above(high)
    return Scale(low, high if high > low else 10 * low, start, end, logarithmic=True)


def _step(span: float) -> float:
    power = 10.0 ** math.floor(math.log10(span / _TICKS))
    return next(power * each for each in _ROUND if power * each * _TICKS >= span * (1 - 1e-9))


def _below(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return max(power * each for each in _ROUND if power * each <= value * (1 + 1e-9))


def _above(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value) + 1e-9)
    return min(power * each for each in _ROUND if power * each >= value * (1 - 1e-9))


def _powers(low: float, high: float) -> list[float]:
    """1, 2 and 5 times each power of ten; the powers alone on a long scale."""
    leads = (1, 2, 5) if high / low <= 2000 else (1,)
    return [
        value for value in _candidates(low, high, leads) if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
    ]


def _candidates(low: float, high: float, leads: tuple[int, ...]) -> Iterator[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return (lead * 10.0**power for power in range(first, last + 1) for lead in leads)
