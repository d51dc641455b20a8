"""Charts of curves: `lines`, for example over clients, `knee` with the highest rate that a search
found, and `area` for parts of a whole.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils.safestring import SafeString

from pgperf.reports import number_format
from pgperf.reports.chart import Chart
from pgperf.reports.svg_chart import elements, scale, text_width
from pgperf.reports.svg_chart.elements import SHAPES, Piece, element, group, lines, mark, words
from pgperf.reports.svg_chart.scale import Scale

WIDTH, HEIGHT = 640, 300
_TOP, _BOTTOM, _RIGHT = 10, 48, 18
_CAP, _DOT = 5, 4.5
_DASHES = (None, "6 4", "2 3", "10 3 2 3")


@dataclass(frozen=True)
class Frame:
    """The scales of both axes."""

    chart: Chart
    x: Scale
    y: Scale

    def xs(self) -> list[float]:
        return [self.x.at(_place(self.chart, value)) for value in self.chart["x"]]


def draw(chart: Chart, label: str) -> SafeString:
    frame = _frame(chart)
    return elements.drawing(
        WIDTH, HEIGHT, label, [*_y_axis(frame), *_x_axis(frame), *KINDS[chart["kind"]](frame)]
    )


def _frame(chart: Chart) -> Frame:
    y = _y_scale(chart)
    left = max(text_width.width(number_format.tick(value)) for value in y.ticks()) + 30
    begin = chart.get("x_min", _place(chart, chart["x"][0]))
    end = _place(chart, chart["x"][-1])
    return Frame(chart, Scale(begin, end if end > begin else begin + 1, left, WIDTH - _RIGHT), y)


def _y_scale(chart: Chart) -> Scale:
    start, end = HEIGHT - _BOTTOM, _TOP
    known = [value for series in chart["series"] for value in series["values"] if value is not None]
    if chart.get("log"):
        limits = [chart["limit"]] if chart.get("limit") else []
        positive = [*(value for value in known if value > 0), *limits] or [1.0]
        return scale.logarithmic(min(positive), max(positive), start, end)
    if chart.get("max"):
        return Scale(0.0, chart["max"], start, end)
    high = _highest_sum(chart) if chart["kind"] == "area" else _reach(chart, max(known, default=1.0))
    return scale.linear(0.0, high, start, end)


def _reach(chart: Chart, highest: float) -> float:
    """The end of the longest interval, at most twice the highest point."""
    ends = [each[1] for series in chart["series"] for each in series.get("intervals") or [] if each]
    return float(max(highest, min(max(ends, default=0.0), 2 * highest)))


def _highest_sum(chart: Chart) -> float:
    columns = zip(*(series["values"] for series in chart["series"]), strict=True)
    return float(max(sum(value or 0.0 for value in column) for column in columns))


def _place(chart: Chart, x: float) -> float:
    """On a logarithmic axis each doubling has the same width."""
    return math.log2(x) if chart.get("x_log") else x


def _y_axis(frame: Frame) -> Iterator[str]:
    ticks = [(frame.y.at(value), number_format.tick(value)) for value in frame.y.ticks()]
    yield lines(((frame.x.start, y, frame.x.end, y) for y, _text in ticks), "grid")
    texts = (words(frame.x.start - 8, y + 4, text) for y, text in ticks)
    yield group(texts, class_="quiet", text_anchor="end")
    middle = (frame.y.start + frame.y.end) / 2
    turned = f"rotate(-90 12 {middle:.0f})"
    yield words(12, middle, frame.chart["axis"], class_="quiet", text_anchor="middle", transform=turned)


def _x_axis(frame: Frame) -> Iterator[str]:
    yield group(_x_texts(frame), class_="quiet", text_anchor="middle")


def _x_texts(frame: Frame) -> Iterator[str]:
    """Those of the ticks that have room, and the axis' own below them."""
    bottom, before = frame.y.start, float("-inf")
    for value in frame.chart["x"] if frame.chart.get("x_log") else frame.x.ticks():
        x, text = frame.x.at(_place(frame.chart, value)), number_format.tick(value)
        half = text_width.width(text) / 2
        if x - half > before + 4:
            yield words(x, bottom + 18, text)
            before = x + half
    yield words((frame.x.start + frame.x.end) / 2, bottom + 40, frame.chart["x_axis"])


def _lines(frame: Frame) -> Iterator[str]:
    for series in frame.chart["series"]:
        style, opacity = elements.tinted(series["colour"]), elements.faintness(series)
        yield group(_curve(frame, series), style=style, opacity=opacity)


def _curve(frame: Frame, series: Chart) -> Iterator[str]:
    """A series: its intervals, the line, and a mark at each point."""
    shape = series["shape"]
    places = [
        (x, frame.y.within(value))
        for x, value in zip(frame.xs(), series["values"], strict=True)
        if value is not None
    ]
    yield lines(_spans(frame, series), "lined span")
    dashes = _DASHES[shape % len(_DASHES)]
    yield element("polyline", points=elements.points(places), class_="lined", stroke_dasharray=dashes)
    marks = (mark(SHAPES[shape % len(SHAPES)], x, y, _DOT) for x, y in places)
    yield group(marks, class_="tinted dot")


def _knee(frame: Frame) -> Iterator[str]:
    """The found rate with its interval, and the limit, behind the curves."""
    low, found, high = frame.chart["knee"]
    top, bottom = frame.y.end, frame.y.start
    if low is not None and high is not None:
        left, right = frame.x.within(low), frame.x.within(high)
        yield element("rect", x=left, y=top, width=right - left, height=bottom - top, class_="band")
    if found is not None:
        yield lines([(frame.x.within(found), top, frame.x.within(found), bottom)], "dashed")
    y = frame.y.within(frame.chart["limit"])
    yield lines([(frame.x.start, y, frame.x.end, y)], "dashed")
    yield from _lines(frame)


def _spans(frame: Frame, series: Chart) -> Iterator[Piece]:
    """The interval of each point, with a bar at both ends."""
    for x, ends in zip(frame.xs(), series.get("intervals") or [], strict=False):
        if ends:
            low, high = (frame.y.within(each) for each in ends)
            yield x, low, x, high
            for y in (low, high):
                yield x - _CAP, y, x + _CAP, y


def _area(frame: Frame) -> Iterator[str]:
    """Layers on each other, with a gap where a moment is unknown."""
    xs, several = frame.xs(), frame.chart["series"]
    below = [0.0] * len(xs)
    for series in several:
        above = [
            None if value is None else value + under
            for value, under in zip(series["values"], below, strict=True)
        ]
        for places in _known(above):
            yield _layer(frame, series, [(xs[at], above[at] or 0.0, below[at]) for at in places])
        below = [under if value is None else value for value, under in zip(above, below, strict=True)]


def _layer(frame: Frame, series: Chart, known: Sequence[tuple[float, float, float]]) -> str:
    """A part from its lower to its upper border."""
    upper = [(x, frame.y.within(high)) for x, high, _low in known]
    lower = [(x, frame.y.within(low)) for x, _high, low in reversed(known)]
    title = element("title", series["name"])
    style = elements.tinted(series["colour"])
    return element("polygon", title, points=elements.points([*upper, *lower]), class_="tinted", style=style)


def _known(values: Sequence[float | None]) -> list[list[int]]:
    """The places of each stretch of known values."""
    stretches = groupby(range(len(values)), key=lambda at: values[at] is not None)
    return [list(places) for known, places in stretches if known]


KINDS: dict[str, Callable[[Frame], Iterator[str]]] = {"lines": _lines, "knee": _knee, "area": _area}
