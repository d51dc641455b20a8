"""Small drawings that the server makes as SVG: their geometry, as the attributes of SVG elements.

All numbers are strings, because templates would write them as the reader's language does.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 150, 32
#: The least height of a sparkline's scale, as a share of the median: noise stays flat.
LEAST_RANGE = 0.2
_MARGIN = 4


@dataclass(frozen=True)
class Sparkline:
    """A line over values of equal distance. `middle` is the y of the median, `last` the final point,
    and `changes` are the x of the marks.
    """

    points: str
    last: tuple[str, str]
    middle: str
    changes: tuple[str, ...] = ()
    width: str = str(WIDTH)
    height: str = str(HEIGHT)


@dataclass(frozen=True)
class Segment:
    """A part of a bar that is 100 wide."""

    x: str
    width: str


def sparkline(values: Sequence[float], changes: Sequence[int] = ()) -> Sparkline | None:
    """The line of the values; None of fewer than two. `changes`: places at which to put a mark."""
    if len(values) < 2:
        return None
    step = (WIDTH - 2 * _MARGIN) / (len(values) - 1)
    middle = statistics.median(values)
    xs = [_text(_MARGIN + step * at) for at in range(len(values))]
    ys = [_text(y) for y in _heights([*values, middle], middle)]
    return Sparkline(
        points=" ".join(f"{x},{y}" for x, y in zip(xs, ys, strict=False)),
        last=(xs[-1], ys[-2]),
        middle=ys[-1],
        changes=tuple(_text(_MARGIN + step * (at - 0.5)) for at in changes),
    )


def bar(shares: Sequence[float]) -> list[Segment]:
    """Segments beside each other, whose widths are shares of 1."""
    segments, x = [], 0.0
    for share in shares:
        segments.append(Segment(_text(x), _text(100 * share)))
        x += 100 * share
    return segments


def _heights(values: Sequence[float], middle: float) -> list[float]:
    """y of each value, from the top, on a scale around them that is not too fine."""
    low, high = min(values), max(values)
    missing = max(0.0, LEAST_RANGE * abs(middle) - (high - low)) / 2
    low, high = low - missing, high + missing
    scale = (HEIGHT - 2 * _MARGIN) / (high - low) if high > low else 0.0
    return [HEIGHT - _MARGIN - (value - low) * scale for value in values]


def _text(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
