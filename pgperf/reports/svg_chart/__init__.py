"""Charts as SVG, drawn by the server: for files that are read without scripts.

The data is that of `reports.chart`; static/pgperf/rows.js and curves.js draw the same charts on
pages.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.utils.safestring import SafeString

from pgperf.reports.chart import Chart
from pgperf.reports.svg_chart import curves, rows
from pgperf.reports.svg_chart.elements import SHAPES, tinted

_DRAW: dict[str, Callable[[Chart, str], SafeString]] = {
    **dict.fromkeys(rows.KINDS, rows.draw),
    **dict.fromkeys(curves.KINDS, curves.draw),
}


@dataclass(frozen=True)
class Key:
    """An entry of a legend: `style` and `opacity` of its swatch, `shape` its CSS class."""

    name: str
    style: str
    shape: str = "rect"
    opacity: float = 1.0


def svg(chart: Chart, label: str) -> SafeString:
    """The chart; `label` is its text alternative. Raises KeyError for a kind of chart unknown here."""
    return _DRAW[chart["kind"]](chart, label)


def legend(chart: Chart) -> list[Key]:
    """What tells the series apart; none where there is one only."""
    several = chart.get("series") or []
    return [_key(chart, series, at) for at, series in enumerate(several)] if len(several) > 1 else []


def has_whiskers(chart: Chart) -> bool:
    """Does it show an interval?"""
    return any(chart.get("whiskers") or [])


def _key(chart: Chart, series: Chart, at: int) -> Key:
    shape = {"dots": at, "lines": series.get("shape"), "knee": series.get("shape")}.get(chart["kind"])
    return Key(
        name=series["name"],
        style=tinted(series["colour"]),
        shape="rect" if shape is None else SHAPES[shape % len(SHAPES)],
        opacity=0.5 ** series.get("tint", 0),
    )
