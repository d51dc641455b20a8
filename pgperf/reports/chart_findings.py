"""What a chart shows, in a sentence or two: its text alternative, made of the chart's own data."""

from collections.abc import Callable, Iterator, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.change_points import LEAST_AFTER, LEAST_BEFORE
from pgperf.reports import number_format
from pgperf.reports.chart import Chart

#: A bar's position with its value.
Bar = tuple[int, float]


def finding(chart: Chart) -> str:
    """The largest and the smallest of what the chart shows; "" where nothing is known."""
    make = _KINDS.get(chart["kind"])
    return make(chart) if make else ""


def _stack(chart: Chart) -> str:
    """The longest bar and its largest segment; of bars of one length, the largest segment of all. What
    a segment saves is drawn to the other side.
    """
    sums = [sum(max(0.0, each) for each in _known(_column(chart, row))) for row in range(len(chart["rows"]))]
    if not any(sums):
        return ""
    if len(sums) > 1 and len({_number(chart, whole) for whole in sums}) == 1:
        return _largest_part(chart)
    row = max(range(len(sums)), key=sums.__getitem__)
    segments = {series["name"]: series["values"][row] or 0.0 for series in chart["series"]}
    largest = max(segments, key=segments.__getitem__)
    numbers = {
        "row": _row(chart, row), "part": largest, "axis": chart["axis"],
        "value": _of_whole(chart, segments[largest], list(segments.values())),
    }  # fmt: skip
    if len(sums) > 1:
        return _("The longest bar is %(row)s. Its largest part is %(part)s: %(value)s (%(axis)s).") % numbers
    return _("%(row)s: the largest part is %(part)s, %(value)s (%(axis)s).") % numbers


def _of_whole(chart: Chart, value: float, segments: Sequence[float]) -> str:
    """A segment beside the sum of all, or beside what other segments save."""
    saved = -sum(each for each in segments if each < 0)
    words = _("%(value)s, of which other parts save %(saved)s") if saved else _("%(value)s of %(whole)s")
    return words % {
        "value": _number(chart, value), "whole": _number(chart, sum(segments)), "saved": _number(chart, saved),
    }  # fmt: skip


def _largest_part(chart: Chart) -> str:
    value, row, part = max(
        (value, row, series["name"])
        for series in chart["series"]
        for row, value in _bars_of(series["values"])
    )
    numbers = {
        "row": _row(chart, row), "part": part, "value": _number(chart, value), "axis": chart["axis"],
    }  # fmt: skip
    return _("The largest part is %(part)s of %(row)s: %(value)s (%(axis)s).") % numbers


def _bars(chart: Chart) -> str:
    return _extremes(chart, _bars_of(chart["values"]))


def _extremes(chart: Chart, bars: Sequence[Bar], of: str = "") -> str:
    if not bars:
        return ""
    most, least = max(bars, key=_value), min(bars, key=_value)
    numbers = {
        "most": _row(chart, most[0]), "high": _number(chart, most[1]), "axis": _measure(chart, of),
        "least": _row(chart, least[0]), "low": _number(chart, least[1]),
    }  # fmt: skip
    if len(bars) == 1:
        return _("%(most)s: %(high)s (%(axis)s).") % numbers
    if numbers["low"] == numbers["high"]:
        return _("All are %(high)s: %(axis)s.") % numbers
    return _("From %(low)s (%(least)s) to %(high)s (%(most)s): %(axis)s.") % numbers


def _groups(chart: Chart) -> str:
    """The extremes of each series, at most of three; not of that which the others are relative to."""
    line = chart.get("line")
    shown = [series for series in chart["series"] if set(_known(series["values"])) != {line}]
    told = (_extremes(chart, _bars_of(series["values"]), series["name"]) for series in shown[:3])
    return " ".join(filter(None, told))


def _dots(chart: Chart) -> str:
    """The extremes of the first series and of the last one: the median and the 99th percentile."""
    ends = (chart["series"][at] for at in dict.fromkeys((0, len(chart["series"]) - 1)))
    told = (_extremes(chart, _bars_of(series["values"]), series["name"]) for series in ends)
    return " ".join(filter(None, told))


def _ladder(chart: Chart) -> str:
    """The largest step."""
    values, below = chart["values"], chart["stands_on"]
    steps = {row: value - values[below[row]] for row, value in enumerate(values) if below[row] >= 0}
    if not steps:
        return ""
    row = max(steps, key=steps.__getitem__)
    words = (
        _("The largest step is %(row)s: it adds %(step)s and reaches %(value)s (%(axis)s).")
        if steps[row] >= 0
        else _("No step adds time: %(row)s saves %(step)s and reaches %(value)s (%(axis)s).")
    )
    return words % {
        "row": _row(chart, row), "step": _number(chart, abs(steps[row])), "value": _number(chart, values[row]),
        "axis": chart["axis"],
    }  # fmt: skip


def _forest(chart: Chart) -> str:
    """The intervals that lie beside the line, and the farthest value."""
    bars = _bars_of(chart["values"])
    if not bars:
        return ""
    far = max(bars, key=lambda bar: abs(bar[1] - chart["line"]))
    known = [ends for ends in chart["whiskers"] if ends]
    beside = [ends for ends in known if not ends[0] <= chart["line"] <= ends[1]]
    farthest = _("The farthest is %(row)s: %(value)s.") % {
        "row": _row(chart, far[0]),
        "value": _change(chart, far[1]),
    }
    if not known:
        return farthest
    counts = {"beside": len(beside), "count": len(known), "farthest": farthest}
    text = ngettext(
        "%(beside)d of %(count)d intervals lies entirely above or below the line of no change. %(farthest)s",
        "%(beside)d of %(count)d intervals lie entirely above or below the line of no change. %(farthest)s",
        len(beside),
    )
    return text % counts


def _change(chart: Chart, value: float) -> str:
    """A ratio, or a difference of times."""
    if "unit" not in chart:
        return number_format.ratio(value)
    return f"{number_format.signed(value, chart['decimals'])} {chart['unit']}"


def _lines(chart: Chart) -> str:
    """The highest point of all curves."""
    points = [
        (value, series["name"], x)
        for series in chart["series"]
        for x, value in zip(chart["x"], series["values"], strict=True)
        if value is not None
    ]
    if not points:
        return ""
    value, name, x = max(points)
    return _("The highest point is %(name)s at %(x)s %(unit)s: %(value)s (%(axis)s).") % {
        "name": name, "x": number_format.number(x) if isinstance(x, float) else x, "unit": chart["x_axis"],
        "value": _number(chart, value), "axis": chart["axis"],
    }  # fmt: skip


def _knee(chart: Chart) -> str:
    """What a search found."""
    return str(chart["told"])


def _history(chart: Chart) -> str:
    """The change points, or the range without one."""
    if chart["told"]:
        return ". ".join(chart["told"]) + "."
    known = _known(chart["series"][0]["values"])
    if not known:
        return ""
    enough = len(known) >= LEAST_BEFORE + LEAST_AFTER
    few = ngettext(
        "%(count)d run: %(low)s (%(axis)s).",
        "%(count)d runs: from %(low)s to %(high)s (%(axis)s).",
        len(known),
    )
    text = _("No change point in %(count)d runs: from %(low)s to %(high)s (%(axis)s).") if enough else few
    return text % {
        "count": len(known), "low": _number(chart, min(known)), "high": _number(chart, max(known)),
        "axis": chart["axis"],
    }  # fmt: skip


def _area(chart: Chart) -> str:
    """The mean of each part, the largest first."""
    means = {
        series["name"]: sum(known) / len(known)
        for series in chart["series"]
        if (known := _known(series["values"]))
    }
    if not means:
        return ""
    first = sorted(means, key=means.__getitem__, reverse=True)[:3]
    parts = ", ".join(f"{name} {_number(chart, means[name])}" for name in first)
    return _("On average: %(parts)s (%(axis)s).") % {"parts": parts, "axis": chart["axis"]}


_KINDS: dict[str, Callable[[Chart], str]] = {
    "stack": _stack, "bars": _bars, "groups": _groups, "dots": _dots, "ladder": _ladder, "forest": _forest,
    "lines": _lines, "area": _area, "history": _history,
    "knee": _knee,
}  # fmt: skip


def _number(chart: Chart, value: float) -> str:
    """A small part may be shown in the large unit of the longest."""
    return number_format.number(value, chart.get("decimals", number_format.FEW))


def _measure(chart: Chart, of: str) -> str:
    return f"{of}, {chart['axis']}" if of and of != chart["axis"] else str(chart["axis"])


def _row(chart: Chart, row: int) -> str:
    return " · ".join(filter(None, chart["rows"][row]))


def _column(chart: Chart, row: int) -> Iterator[float | None]:
    return (series["values"][row] for series in chart["series"])


def _known(values: Iterator[float | None] | Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _bars_of(values: Sequence[float | None]) -> list[Bar]:
    return [(row, value) for row, value in enumerate(values) if value is not None]


def _value(bar: Bar) -> float:
    return bar[1]
