"""Charts of rows, each a horizontal bar or a line of dots."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.safestring import SafeString

from pgperf.reports import number_format
from pgperf.reports.chart import Chart
from pgperf.reports.svg_chart import elements, scale, text_width
from pgperf.reports.svg_chart.elements import (
    SHAPES,
    Colour,
    Piece,
    bar,
    by_colour,
    faintness,
    group,
    lines,
    mark,
    words,
)
from pgperf.reports.svg_chart.scale import Scale

WIDTH = 640
_BAR, _GAP, _CAP, _DOT = 22, 8, 5, 5.5
_TOP, _BOTTOM = 4, 44
#: Of more rows, the axis at the bottom may be out of sight.
_MANY, _TOP_AXIS = 10, 18
#: Whiskers are below the bars there: the values inside segments stay legible.
_WITH_WHISKERS_BELOW = ("stack", "ladder")
_LABEL_SHARE = 0.42
_LONGEST_END = 200


@dataclass(frozen=True)
class Frame:
    """Where things are: rows of one height below each other, beside their labels."""

    chart: Chart
    labels: Sequence[Sequence[str]]
    ends: Sequence[str]
    row: float
    scale: Scale

    @property
    def has_top_axis(self) -> bool:
        return len(self.labels) > _MANY

    @property
    def top(self) -> float:
        return _TOP + (_TOP_AXIS if self.has_top_axis else 0)

    @property
    def bottom(self) -> float:
        return self.top + self.row * len(self.labels)

    def middle(self, row: int) -> float:
        return self.top + self.row * (row + 0.5)


Bounds = tuple[float, float]


def draw(chart: Chart, label: str) -> SafeString:
    frame = _frame(chart)
    inside = [
        *_axis(frame),
        *_labels(frame),
        *_line(frame),
        *KINDS[chart["kind"]].marks(frame),
        *_whiskers(frame),
        *_ends(frame),
    ]
    return elements.drawing(WIDTH, frame.bottom + _BOTTOM, label, inside)


def _frame(chart: Chart) -> Frame:
    ends = [text_width.fitted(each, _LONGEST_END) for each in chart.get("ends") or []]
    right = WIDTH - max(map(text_width.width, ends), default=0.0) - 16
    room = right * _LABEL_SHARE
    labels = [
        [part for each in row if each for part in text_width.lines(each, room)] for row in chart["rows"]
    ]
    left = max((text_width.width(each) for lines in labels for each in lines), default=0.0) + _GAP
    return Frame(chart, labels, ends, _row_height(chart, labels), _scale(chart, left, right))


def _row_height(chart: Chart, labels: Sequence[Sequence[str]]) -> float:
    most = max(map(len, labels), default=1)
    below = chart["kind"] in _WITH_WHISKERS_BELOW and any(chart.get("whiskers") or [])
    height = max(_BAR + (18 if below else 6), 10 + text_width.LINE * most)
    return max(height, 14 * len(chart["series"]) + 12) if chart["kind"] == "groups" else height


def _scale(chart: Chart, left: float, right: float) -> Scale:
    low, high = KINDS[chart["kind"]].bounds(chart)
    if chart["kind"] == "dots":
        return scale.logarithmic(low, high, left, right)
    if chart.get("max") == 100:  # a sum of percentages may be a hair more
        return Scale(low, 100, left, right)
    found = scale.linear(low, max(high, chart.get("max") or high), left, right)
    return replace(found, low=low) if low == _origin(chart) else found


def _origin(chart: Chart) -> float:
    """Where bars begin: those of ratios at the line of no change."""
    return float(chart.get("line") or 0)


def _axis(frame: Frame) -> Iterator[str]:
    values = {*frame.scale.ticks(), _origin(frame.chart)}
    ticks = [
        (frame.scale.at(value), number_format.tick(value))
        for value in sorted(values)
        if frame.scale.has(value)
    ]
    yield lines(((x, frame.top, x, frame.bottom) for x, _text in ticks), "grid")
    yield group(_axis_texts(frame, ticks), class_="quiet", text_anchor="middle")


def _axis_texts(frame: Frame, ticks: Sequence[tuple[float, str]]) -> Iterator[str]:
    """Those of the ticks, and the axis' own below them."""
    yield from _tick_texts(ticks, frame.bottom + 16)
    if frame.has_top_axis:
        yield from _tick_texts(ticks, frame.top - 5)
    yield words((frame.scale.start + frame.scale.end) / 2, frame.bottom + 36, frame.chart["axis"])


def _tick_texts(ticks: Sequence[tuple[float, str]], y: float) -> Iterator[str]:
    """As many as have room."""
    before = float("-inf")
    for x, text in ticks:
        half = text_width.width(text) / 2
        if x - half > before + 4 and x + half <= WIDTH:
            yield words(x, y, text)
            before = x + half


def _labels(frame: Frame) -> Iterator[str]:
    yield group(_label_texts(frame), text_anchor="end")


def _label_texts(frame: Frame) -> Iterator[str]:
    for row, texts in enumerate(frame.labels):
        top = frame.middle(row) - text_width.LINE * (len(texts) - 1) / 2 + 4
        for at, text in enumerate(texts):
            yield words(frame.scale.start - _GAP, top + text_width.LINE * at, text)


def _line(frame: Frame) -> Iterator[str]:
    """The value that means "no change"."""
    if (value := frame.chart.get("line")) is not None:
        x = frame.scale.within(value)
        yield lines([(x, frame.top, x, frame.bottom)], "dashed")


def _ends(frame: Frame) -> Iterator[str]:
    """The texts right of the bars and their whiskers."""
    yield group(_end_texts(frame), class_="end")


def _end_texts(frame: Frame) -> Iterator[str]:
    for row, text in enumerate(frame.ends):
        top = max(KINDS[frame.chart["kind"]].top(frame.chart, row), _whisker(frame.chart, row)[1])
        yield words(frame.scale.within(top) + _GAP, frame.middle(row) + 4, text)


def _whiskers(frame: Frame) -> Iterator[str]:
    """Intervals, below the bars or on them."""
    below = _BAR / 2 + 4 if frame.chart["kind"] in _WITH_WHISKERS_BELOW else 0
    known = [
        (ends, frame.middle(row) + below)
        for row, ends in enumerate(frame.chart.get("whiskers") or [])
        if ends
    ]
    pieces = [piece for ends, y in known for piece in _spanned(frame.scale, ends, y)]
    if frame.chart["kind"] == "bars":  # on a bar a whisker has too little contrast
        yield lines(pieces, "halo")
    yield lines(pieces, "whisker")
    heads = [
        _head(frame.scale, value, y) for ends, y in known for value in ends if not frame.scale.has(value)
    ]
    yield group(heads, class_="whisker")


def _spanned(along: Scale, ends: Sequence[float], y: float) -> Iterator[Piece]:
    """An interval, with a bar at each end that is on the scale."""
    left, right = (along.within(each) for each in ends)
    yield left, y, right, y
    for value in ends:
        if along.has(value):
            yield along.at(value), y - _CAP, along.at(value), y + _CAP


def _head(along: Scale, value: float, y: float) -> str:
    """An arrow head where an interval extends beyond the chart."""
    x = along.within(value)
    back = x + (_CAP if value < along.low else -_CAP)
    corners = elements.points([(back, y - _CAP), (x, y), (back, y + _CAP)])
    return elements.element("polyline", points=corners)


def _whisker(chart: Chart, row: int) -> Bounds:
    found = chart.get("whiskers") or []
    low, high = (found[row] if row < len(found) else None) or (0.0, 0.0)
    return low, high


# Kinds: the marks of each row


def _stack(frame: Frame) -> Iterator[str]:
    placed = list(_placed(frame))
    segments = ((series["colour"], _segment(frame, row, series, ends)) for row, series, ends in placed)
    yield from by_colour("tinted segment", segments)
    texts = ((series["colour"], _inside(frame, row, ends)) for row, series, ends in placed)
    known = ((colour, text) for colour, text in texts if text)
    yield group(by_colour("inside", known), text_anchor="middle")


def _placed(frame: Frame) -> Iterator[tuple[int, Chart, Bounds]]:
    """Row, series, begin and end of each segment: those of a sign follow each other."""
    for row in range(len(frame.labels)):
        left = right = 0.0
        for series in frame.chart["series"]:
            if value := series["values"][row]:
                begin = right if value > 0 else left
                yield row, series, (begin, begin + value)
                left, right = min(left, begin + value), max(right, begin + value)


def _segment(frame: Frame, row: int, series: Chart, ends: Bounds) -> str:
    begin, end = ends
    title = elements.element("title", f"{series['name']}: {_number(frame, end - begin)}")
    x, to = frame.scale.within(begin), frame.scale.within(end)
    return bar(x, to, frame.middle(row) - _BAR / 2, _BAR, title)


def _inside(frame: Frame, row: int, ends: Bounds) -> str:
    """The value of a segment; "" where it has no room."""
    x, to = (frame.scale.within(each) for each in ends)
    text = _number(frame, ends[1] - ends[0])
    if text_width.width(text) + 8 > abs(to - x):
        return ""
    return words((x + to) / 2, frame.middle(row) + 4, text)


def _number(frame: Frame, value: float) -> str:
    return number_format.number(value, frame.chart.get("decimals", number_format.FEW))


def _ladder(frame: Frame) -> Iterator[str]:
    colours = frame.chart["colours"]
    rungs = ((row, step) for row in range(len(frame.labels)) for step in _carried(frame.chart, row))
    yield from by_colour("tinted", ((colours[step], _rung(frame, row, step)) for row, step in rungs))


def _rung(frame: Frame, row: int, step: int) -> str:
    """A rung in a row: that of the row itself, or faintly what later ones leave of one below. A step
    that saves time is hollow: it leads from the end of the rung below back to its own.
    """
    values, below = frame.chart["values"], _below(frame.chart, step)
    top = frame.middle(row) - _BAR / 2
    if step == row:
        ends = frame.scale.within(below), frame.scale.within(values[step])
        return bar(*ends, top, _BAR, class_="saved" if values[step] < below else None)
    carried = list(_carried(frame.chart, row))
    end = min(values[each] for each in carried[: carried.index(step) + 1])
    left, right = frame.scale.within(below), frame.scale.within(max(below, end))
    return bar(left, right, top, _BAR, class_="carried")


def _below(chart: Chart, step: int) -> float:
    """Where a rung begins."""
    on = chart["stands_on"][step]
    return chart["values"][on] if on >= 0 else 0.0


def _carried(chart: Chart, row: int) -> Iterator[int]:
    """A rung and those that it stands on."""
    while row >= 0:
        yield row
        row = chart["stands_on"][row]


def _bars(frame: Frame) -> Iterator[str]:
    start = frame.scale.within(_origin(frame.chart))
    bars = (
        (colour, bar(start, frame.scale.within(value), frame.middle(row) - _BAR / 2, _BAR))
        for row, (value, colour) in enumerate(_tinted(frame))
        if value is not None
    )
    yield from by_colour("tinted", bars)


def _tinted(frame: Frame) -> Iterator[tuple[Any, Colour]]:
    """The value of each row with its colour."""
    return zip(frame.chart["values"], frame.chart["colours"], strict=True)


def _groups(frame: Frame) -> Iterator[str]:
    several = frame.chart["series"]
    height = min(_BAR, 0.85 * frame.row / len(several))
    cells = [
        (series, row, frame.middle(row) - height * (len(several) / 2 - at))
        for row in range(len(frame.labels))
        for at, series in enumerate(several)
    ]
    bars = ((series["colour"], _part(frame, series, row, top, height)) for series, row, top in cells)
    yield from by_colour("tinted", ((colour, each) for colour, each in bars if each))
    yield from _published(frame, ((series, row, top + height / 2) for series, row, top in cells))


def _part(frame: Frame, series: Chart, row: int, top: float, height: float) -> str:
    """The bar of a series in a row; "" where its value is unknown."""
    if (value := series["values"][row]) is None:
        return ""
    width = frame.scale.within(_origin(frame.chart)), frame.scale.within(value)
    return bar(*width, top, 0.9 * height, fill_opacity=faintness(series))


def _dots(frame: Frame) -> Iterator[str]:
    several = frame.chart["series"]
    yield lines(_ranges(frame), "range")
    dots = (
        (series["colour"], _dot(frame, value, row, SHAPES[at % len(SHAPES)]))
        for at, series in enumerate(several)
        for row, value in enumerate(series["values"])
        if value and value > 0
    )
    yield from by_colour("tinted dot", dots)
    rows = range(len(frame.labels))
    yield from _published(frame, ((series, row, frame.middle(row)) for series in several for row in rows))


def _ranges(frame: Frame) -> Iterator[Piece]:
    """From the lowest to the highest dot of each row."""
    for row in range(len(frame.labels)):
        values = (series["values"][row] for series in frame.chart["series"])
        known = [value for value in values if value and value > 0]
        if known:
            y = frame.middle(row)
            yield frame.scale.at(min(known)), y, frame.scale.at(max(known)), y


def _forest(frame: Frame) -> Iterator[str]:
    dots = (
        (colour, _dot(frame, value, row, SHAPES[0])) for row, (value, colour) in enumerate(_tinted(frame))
    )
    yield from by_colour("tinted dot", dots)


def _dot(frame: Frame, value: float, row: int, shape: str) -> str:
    return mark(shape, frame.scale.within(value), frame.middle(row), _DOT)


def _published(frame: Frame, places: Iterable[tuple[Chart, int, float]]) -> Iterator[str]:
    """The figures of an overlay, as diamonds: of each series and row at its y."""
    known = ((series["marks"][row], y) for series, row, y in places if row < len(series.get("marks") or []))
    marks = (mark("rectRot", frame.scale.within(value), y, 4.5) for value, y in known if value is not None)
    yield group(marks, class_="overlay")


# Kinds: the ends of the axis, and the end of a row's bar


def _sum(chart: Chart, row: int, sign: int = 1) -> float:
    values = (series["values"][row] or 0.0 for series in chart["series"])
    return sum(value for value in values if value * sign > 0)


def _stack_bounds(chart: Chart) -> Bounds:
    rows = range(len(chart["rows"]))
    lows = (_sum(chart, row, -1) for row in rows)
    return min(lows, default=0.0), max((_sum(chart, row) for row in rows), default=0.0)


def _bar_bounds(chart: Chart) -> Bounds:
    origin, known = _origin(chart), [value for value in chart["values"] if value is not None]
    ends = [end for whisker in chart.get("whiskers") or [] if whisker for end in whisker]
    lows = [*known, *ends] if origin else known
    return min([origin, *lows]), max([origin, *known, *ends])


def _ladder_bounds(chart: Chart) -> Bounds:
    return 0.0, max(chart["values"], default=0.0)


def _series_values(chart: Chart) -> list[float]:
    return [
        value
        for series in chart["series"]
        for value in (*series["values"], *(series.get("marks") or []))
        if value is not None
    ]


def _group_bounds(chart: Chart) -> Bounds:
    found = [_origin(chart), *_series_values(chart)]
    return min(found) if _origin(chart) else 0.0, max(found)


def _dot_bounds(chart: Chart) -> Bounds:
    known = [value for value in _series_values(chart) if value > 0]
    return min(known, default=1.0), max(known, default=10.0)


def _forest_bounds(chart: Chart) -> Bounds:
    """On each side of the line as far as its values and whiskers, but at most twice as far as any
    value.
    """
    centre, values = chart["line"], chart["values"]
    every = [centre, *values, *(each for whisker in chart["whiskers"] if whisker for each in whisker)]
    reach, far = (max([0.02, *(abs(each - centre) for each in some)]) for some in (every, values))
    shown = min(reach, 2 * far)
    low = max(min(every), centre - shown) - 0.1 * shown
    high = min(max(every), centre + shown) + 0.1 * shown
    return max(0.0, low) if centre else low, high  # a ratio is never negative


def _value_top(chart: Chart, row: int) -> float:
    return chart["values"][row] or 0.0


def _bar_top(chart: Chart, row: int) -> float:
    return max(_origin(chart), _value_top(chart, row))


@dataclass(frozen=True)
class _Kind:
    marks: Callable[[Frame], Iterator[str]]
    bounds: Callable[[Chart], Bounds]
    top: Callable[[Chart, int], float] = _value_top


KINDS = {
    "stack": _Kind(_stack, _stack_bounds, _sum),
    "ladder": _Kind(
        _ladder, _ladder_bounds, lambda chart, row: max(chart["values"][row], _below(chart, row))
    ),
    "bars": _Kind(_bars, _bar_bounds, _bar_top),
    "groups": _Kind(_groups, _group_bounds, lambda _chart, _row: 0.0),
    "dots": _Kind(_dots, _dot_bounds, lambda _chart, _row: 0.0),
    "forest": _Kind(_forest, _forest_bounds),
}
