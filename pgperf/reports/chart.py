"""A chart as data: what a page draws is JSON-able and holds no HTML.

It has `kind` (how static/pgperf/ draws it), `label` (what a screen reader says), `axis`, and what
its kind needs: kinds of rows (`stack`, `ladder`, `bars`, `dots`, `forest`) have `rows`, one list of
text lines per bar; kinds of curves (`lines`, `area`) have `x`. A colour is {"light": "#rrggbb",
"dark": "#rrggbb"}, or the name of a CSS variable of static/pgperf/pgperf.css. A chart of times
has their `unit`, and `decimals`, the most that they need. `interval_title` says what its `whiskers`
are, if not the intervals of the parts beside them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pgperf.core.time_units import TimeUnit, unit_of
from pgperf.reports import number_format

Chart = dict[str, Any]
#: What a chart and its series have in the unit of the axis.
_SCALED = ("values", "intervals", "whiskers", "max", "limit")


def of_times(chart: Chart) -> Chart:
    """A chart of times, given in µs, in the unit that fits the longest.

    `axis` has %s in place of the unit; `ends`, the times at the ends of the bars, become texts.
    """
    unit = unit_of(_times(chart))
    symbol = number_format.unit_title(unit)
    made = _scaled(chart, unit) | {
        "axis": chart["axis"] % symbol, "unit": symbol, "decimals": unit.decimals,
    }  # fmt: skip
    if "series" in chart:
        made["series"] = [_scaled(series, unit) for series in chart["series"]]
    if "ends" in chart:
        made["ends"] = [number_format.time(us, unit) for us in chart["ends"]]
    return made


def whisker(low: float | None, high: float | None) -> list[float] | None:
    """An interval that a chart draws; none unless both of its ends are known."""
    return None if low is None or high is None else [low, high]


def _times(chart: Chart) -> Iterator[float | None]:
    """What decides the unit, in µs: no interval, which may be wide."""
    yield from chart.get("values", ())
    yield from chart.get("ends", ())
    yield from (us for series in chart.get("series", ()) for us in series["values"])
    yield chart.get("max")
    yield chart.get("limit")


def _scaled(found: Mapping[str, Any], unit: TimeUnit) -> dict[str, Any]:
    return {key: _divided(value, unit.us) if key in _SCALED else value for key, value in found.items()}


def _divided(value: Any, us: float) -> Any:
    """A number, or those of a list; None is not known."""
    if isinstance(value, list | tuple):
        return [_divided(each, us) for each in value]
    return None if value is None else value / us
