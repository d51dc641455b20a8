"""Charts of rows, each a horizontal bar or a line of dots."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from pgperf.reports import number_format
from pgperf.reports.chart import Chart
from pgperf.reports.svg_chart import elements, scale, text_width
from pgperf.reports.svg_chart.elements import SHAPES, bar, line, mark, words
from pgperf.reports.svg_chart.scale import Scale

WIDTH = 640
_BAR, _GAP, _CAP, _DOT = 22, 8, 5, 5.5
_TOP, _BOTTOM = 4, 44
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
    def bottom(self) -> float:
        return _TOP + self.row * len(self.labels)

    def middle(self, row: int) -> float:
        return _TOP + self.row * (row + 0.5)


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
    below = chart["kind"] == "stack" and any(chart.get("whiskers") or [])
    height = max(_BAR + (18 if below else 6), 10 + text_width.LINE * most)
    return max(height, 14 * len(chart["series"]) + 12) if chart["kind"] == "groups" else height


def _scale(chart: Chart, left: float, right: float) -> Scale:
    low, high = KINDS[chart["kind"]].bounds(chart)
    if chart["kind"] == "dots":
        return scale.logarithmic(low, high, left, right)
    if chart.get("max") == 100:  # a sum of percentages may be a hair more
        return Scale(low, 100, left, right)
    return scale.linear(low, max(high, chart.get("max") or high), left, right)


def _axis(frame: Frame) -> Iterator[str]:
    before = float("-inf")
    for value in frame.scale.ticks():
        x, text = frame.scale.at(value), number_format.tick(value)
        yield line(x, _TOP, x, frame.bottom, "grid")
        half = text_width.width(text) / 2
        if x - half > before + 4 and x + half <= WIDTH:
            yield words(x, frame.bottom + 16, text, class_="quiet", text_anchor="middle")
            before = x + half
    middle = (frame.scale.start + frame.scale.end) / 2
    yield words(middle, frame.bottom + 36, frame.chart["axis"], class_="quiet", text_anchor="middle")


def _labels(frame: Frame) -> Iterator[str]:
    for row, lines in enumerate(frame.labels):
        top = frame.middle(row) - text_width.LINE * (len(lines) - 1) / 2 + 4
        for at, text in enumerate(lines):
            y = top + text_width.LINE * at
            yield words(frame.scale.start - _GAP, y, text, text_anchor="end")


def _line(frame: Frame) -> Iterator[str]:
    """The value that means "no change"."""
    if (value := frame.chart.get("line")) is not None:
        x = frame.scale.within(value)
        yield line(x, _TOP, x, frame.bottom, "dashed")


def _ends(frame: Frame) -> Iterator[str]:
    """The texts right of the bars and their whiskers."""
    for row, text in enumerate(frame.ends):
        top = max(KINDS[frame.chart["kind"]].top(frame.chart, row), _whisker(frame.chart, row)[1])
        yield words(frame.scale.within(top) + _GAP, frame.middle(row) + 4, text)


def _whiskers(frame: Frame) -> Iterator[str]:
    """Intervals, below the bars of a stack: the values in its segments stay legible."""
    below = _BAR / 2 + 4 if frame.chart["kind"] == "stack" else 0
    for row, ends in enumerate(frame.chart.get("whiskers") or []):
        if ends:
            y = frame.middle(row) + below
            left, right = (frame.scale.within(each) for each in ends)
            yield line(left, y, right, y, "whisker")
            yield from (_cap(frame.scale, value, y) for value in ends)


def _cap(along: Scale, value: float, y: float) -> str:
    """A bar at the end of a whisker; an arrow head where the whisker extends beyond the chart."""
    x = along.within(value)
    if along.low <= value <= along.high:
        return line(x, y - _CAP, x, y + _CAP, "whisker")
    back = x + (_CAP if value < along.low else -_CAP)
    corners = elements.points([(back, y - _CAP), (x, y), (back, y + _CAP)])
    return elements.element("polyline", points=corners, class_="whisker")


def _whisker(chart: Chart, row: int) -> Bounds:
    found = chart.get("whiskers") or []
    low, high = (found[row] if row < len(found) else None) or (0.0, 0.0)
    return low, high


# Kinds: the marks of each row


def _stack(frame: Frame) -> Iterator[str]:
    for row in range(len(frame.labels)):
        left = right = 0.0
        for series in frame.chart["series"]:
            value = series["values"][row]
            if not value:
                continue
            begin = right if value > 0 else left
            yield _segment(frame, row, series, begin, begin + value)
            left, right = min(left, begin + value), max(right, begin + value)


def _segment(frame: Frame, row: int, series: Chart, begin: float, end: float) -> str:
    """A part of a bar with its value, where that has room."""
    x, to = frame.scale.within(begin), frame.scale.within(end)
    text = number_format.number(end - begin)
    title = elements.element("title", f"{series['name']}: {text}")
    shown = elements.element(
        "rect", title, x=min(x, to), y=frame.middle(row) - _BAR / 2, width=abs(to - x), height=_BAR,
        class_="tinted segment", style=elements.tinted(series["colour"]),
    )  # fmt: skip
    if text_width.width(text) + 8 > abs(to - x):
        return shown
    return elements.joined(
        [shown, words((x + to) / 2, frame.middle(row) + 4, text, class_="inside", text_anchor="middle")]
    )


def _ladder(frame: Frame) -> Iterator[str]:
    for row in range(len(frame.labels)):
        for step in _carried(frame.chart, row):
            below = frame.chart["stands_on"][step]
            begin = 0.0 if below < 0 else frame.chart["values"][below]
            left, right = (frame.scale.within(each) for each in (begin, frame.chart["values"][step]))
            faint = None if step == row else "0.35"
            top = frame.middle(row) - _BAR / 2
            yield bar(left, right, top, _BAR, frame.chart["colours"][step], fill_opacity=faint)


def _carried(chart: Chart, row: int) -> Iterator[int]:
    """A rung and those that it stands on."""
    while row >= 0:
        yield row
        row = chart["stands_on"][row]


def _bars(frame: Frame) -> Iterator[str]:
    for row, value in enumerate(frame.chart["values"]):
        if value is not None:
            left, right = frame.scale.within(0), frame.scale.within(value)
            yield bar(left, right, frame.middle(row) - _BAR / 2, _BAR, frame.chart["colours"][row])


def _groups(frame: Frame) -> Iterator[str]:
    several = frame.chart["series"]
    height = min(_BAR, 0.85 * frame.row / len(several))
    for row in range(len(frame.labels)):
        top = frame.middle(row) - height * len(several) / 2
        for at, series in enumerate(several):
            if (value := series["values"][row]) is not None:
                left, right = frame.scale.within(0), frame.scale.within(value)
                faint = str(0.5 ** series["tint"]) if series.get("tint") else None
                yield bar(left, right, top + height * at, 0.9 * height, series["colour"], fill_opacity=faint)
            yield from _published(frame, series, row, top + height * (at + 0.5))


def _dots(frame: Frame) -> Iterator[str]:
    for row in range(len(frame.labels)):
        y = frame.middle(row)
        known = [value for series in frame.chart["series"] if (value := series["values"][row]) and value > 0]
        if known:
            yield line(frame.scale.at(min(known)), y, frame.scale.at(max(known)), y, "range")
        for at, series in enumerate(frame.chart["series"]):
            if (value := series["values"][row]) and value > 0:
                yield _dot(frame, value, y, series["colour"], SHAPES[at % len(SHAPES)])
            yield from _published(frame, series, row, y)


def _forest(frame: Frame) -> Iterator[str]:
    for row, value in enumerate(frame.chart["values"]):
        yield _dot(frame, value, frame.middle(row), frame.chart["colours"][row], SHAPES[0])


def _dot(frame: Frame, value: float, y: float, colour: elements.Colour, shape: str) -> str:
    style = elements.tinted(colour)
    return mark(shape, frame.scale.within(value), y, _DOT, class_="tinted dot", style=style)


def _published(frame: Frame, series: Chart, row: int, y: float) -> Iterator[str]:
    """The figure of an overlay, as a diamond."""
    marks = series.get("marks") or []
    if row < len(marks) and marks[row] is not None:
        yield mark("rectRot", frame.scale.within(marks[row]), y, 4.5, class_="overlay")


# Kinds: the ends of the axis, and the end of a row's bar


def _sum(chart: Chart, row: int, sign: int = 1) -> float:
    values = (series["values"][row] or 0.0 for series in chart["series"])
    return sum(value for value in values if value * sign > 0)


def _stack_bounds(chart: Chart) -> Bounds:
    rows = range(len(chart["rows"]))
    lows = (_sum(chart, row, -1) for row in rows)
    return min(lows, default=0.0), max((_sum(chart, row) for row in rows), default=0.0)


def _bar_bounds(chart: Chart) -> Bounds:
    rows = range(len(chart["rows"]))
    tops = [max(_value_top(chart, row), _whisker(chart, row)[1]) for row in rows]
    return min([0.0, *(value or 0.0 for value in chart["values"])]), max(tops, default=0.0)


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
    return 0.0, max(_series_values(chart), default=0.0)


def _dot_bounds(chart: Chart) -> Bounds:
    known = [value for value in _series_values(chart) if value > 0]
    return min(known, default=1.0), max(known, default=10.0)


def _forest_bounds(chart: Chart) -> Bounds:
    """Around the line: as far as the longest whisker, but at most twice as far as any value."""
    centre, values = chart["line"], chart["values"]
    ends = [each for whisker in chart["whiskers"] if whisker for each in whisker]
    reach, far = (max([0.02, *(abs(each - centre) for each in some)]) for some in ([*values, *ends], values))
    shown = 1.1 * min(reach, 2 * far)
    return max(0.0, centre - shown), centre + shown


def _value_top(chart: Chart, row: int) -> float:
    return chart["values"][row] or 0.0


@dataclass(frozen=True)
class _Kind:
    marks: Callable[[Frame], Iterator[str]]
    bounds: Callable[[Chart], Bounds]
    top: Callable[[Chart, int], float] = _value_top


KINDS = {
    "stack": _Kind(_stack, _stack_bounds, _sum),
    "ladder": _Kind(_ladder, _ladder_bounds),
    "bars": _Kind(_bars, _bar_bounds),
    "groups": _Kind(_groups, _group_bounds, lambda _chart, _row: 0.0),
    "dots": _Kind(_dots, _dot_bounds, lambda _chart, _row: 0.0),
    "forest": _Kind(_forest, _forest_bounds),
}
