"""Throughput, latency and CPUs over the number of clients, as curves and a table."""

from collections.abc import Iterable, Sequence

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from pgperf.analysis.cpu_account import CpuShares
from pgperf.analysis.scaling import Curve, Point
from pgperf.models import VariantResult
from pgperf.reports import open_loops, result_keys
from pgperf.reports.chart import Chart, of_times, whisker
from pgperf.reports.labels import colour, hosts_title, layer_title, rate_title, role_names, workers_title
from pgperf.reports.run_rows import RunRows
from pgperf.reports.svg_chart.elements import SHAPES
from pgperf.reports.table import (
    Cell,
    Column,
    Table,
    at_least,
    count,
    exact,
    file_columns,
    interval,
    interval_column,
    number,
    percent,
    text_column,
    time_column,
    words,
)

#: Shares that are drawn; what is left above them is idle, or not known.
SHOWN = tuple(role for role in result_keys.SHARE if role != "idle")
_COLOURS = {"clients": "cpu-client_user"}
_COLUMNS = ("clients", "pooler", "server", "idle")
#: What only files say of a curve.
_CONDITIONS = ("connect", "workers", "environment", "rate", "hosts")


def curves(scaling: Sequence[Curve]) -> list[tuple[str, Chart]]:
    """Throughput, median and 99th percentile over the number of clients: a line for each layer over
    each route.
    """
    kinds = (
        ("ops_per_s", _("Operations per second"), _("operations per second"), False),
        ("p50_us", _("Median time of an operation"), _("%s, logarithmic"), True),
        ("p99_us", _("99th percentile"), _("%s, logarithmic"), True),
    )
    drawn = [(title, _curve(scaling, key, title, axis, log=log), log) for key, title, axis, log in kinds]
    return [(title, of_times(chart) if is_time else chart) for title, chart, is_time in drawn]


def cpu_curves(scaling: Sequence[Curve]) -> list[tuple[str, Chart]]:
    """The CPU time of each role by clients: a chart for each curve with known shares."""
    found = [(series, [point.share for point in series.points if point.share]) for series in scaling]
    seen = [(series, each) for series, each in found if len(each) == len(series.points)]
    roles = [role for role in SHOWN if any(getattr(own, role) for _series, each in seen for own in each)]
    top = whole(own for _series, each in seen for own in each)
    return [(series_title(series, scaling), _cpu_curve(series, each, roles, top)) for series, each in seen]


def scaling_table(scaling: Sequence[Curve], rows: RunRows | None = None) -> Table:
    """The numbers of the curves. `rows`: the run's, which tell the percentiles that are lower bounds.

    Efficiency is throughput per client over that of the fewest clients; at a rate there is none.
    """
    names = role_names()
    shares = [point.share for series in scaling for point in series.points if point.share]
    shown = [role for role in _COLUMNS if any(getattr(share, role) for share in shares)]
    columns = (
        text_column(_("Layer and route"), "workload", "layer", "mode", "route"),
        Column(capfirst(unit(scaling)), keys=("clients",)),
        Column(_("Operations/s"), keys=("ops_per_s",)),
        interval_column("low", "high"),
        Column(_("Efficiency"), keys=("efficiency",)),
        Column(_("95 % interval"), keys=("efficiency_low", "efficiency_high"), file_only=True),
        time_column("p50", "p50_us"),
        time_column("p99", "p99_us"),
        *(
            Column(
                capfirst(_("%s, of the host") % names[role]),
                keys=(f"share_{role}",),
                file_only=role not in shown,
            )
            for role in result_keys.SHARE
        ),
        *file_columns(_CONDITIONS),
    )
    lines = [
        (
            _series_cell(series, scaling),
            *_cells(series, point, rows.variant_of(series, point) if rows else None),
            *_roles(point.share),
            *_conditions(series),
        )
        for series in scaling
        for point in series.points
    ]
    caption = _("Throughput, time and CPUs by %s") % unit(scaling)
    return Table(caption, columns, lines, "scaling")


def all_points(rows: RunRows) -> Table:
    """The points of all curves of a run, as files have them."""
    return scaling_table(rows.scaling, rows)


def series_title(series: Curve, scaling: Sequence[Curve]) -> str:
    """Layer and route, and whatever else tells this curve from the run's others."""
    parts = [layer_title(series.layer), series.route]
    parts += [series.workload] if len({other.workload for other in scaling}) > 1 else []
    parts += [series.mode] if len({other.mode for other in scaling}) > 1 else []
    parts += [series.connect.replace("_", " ")] if len({other.connect for other in scaling}) > 1 else []
    parts += [series.environment] if len({other.environment for other in scaling}) > 1 else []
    parts += [rate_title(series.rate)] if len({other.rate for other in scaling}) > 1 else []
    parts += [hosts_title(series.hosts)] if len({other.hosts for other in scaling}) > 1 else []
    alike = {other.workers for other in scaling if other.layer == series.layer}
    parts += [workers_title(series.workers)] if len(alike) > 1 else []
    return " · ".join(parts)


def unit(scaling: Sequence[Curve]) -> str:
    """What the horizontal axis counts: connections where a client has several workers."""
    return _("connections") if any(series.workers > 1 for series in scaling) else _("clients")


def section_title(scaling: Sequence[Curve]) -> str:
    """The title of the section, "" for its usual one."""
    return _("More connections") if any(series.workers > 1 for series in scaling) else ""


def _curve(scaling: Sequence[Curve], key: str, title: str, axis: str, *, log: bool) -> Chart:
    clients = sorted({point.clients for series in scaling for point in series.points})
    layers = list(dict.fromkeys(series.layer for series in scaling))
    in_order = sorted(scaling, key=lambda each: layers.index(each.layer))
    return {
        "kind": "lines",
        "label": _("%(figure)s over the number of %(unit)s. The table below has the numbers.")
        % {"figure": title, "unit": unit(scaling)},
        "axis": axis,
        "x_axis": unit(scaling),
        "x": clients,
        "x_log": True,
        "log": log,
        "series": [
            {
                "name": series_title(series, scaling),
                "colour": colour(series.layer),
                "shape": _earlier(in_order, at) % len(SHAPES),
                "tint": _earlier(in_order, at) // len(SHAPES),
                "values": _values(series, key, clients),
                "intervals": _intervals(series, clients) if key == "ops_per_s" else [],
            }
            for at, series in enumerate(in_order)
        ],
    }


def _earlier(scaling: Sequence[Curve], at: int) -> int:
    """How many curves before it have its colour: those of one layer, and of layers of one family."""
    return [colour(series.layer) for series in scaling[:at]].count(colour(scaling[at].layer))


def _values(series: Curve, key: str, clients: Sequence[int]) -> list[float | None]:
    by_count = {point.clients: getattr(point, key) for point in series.points}
    return [by_count.get(number_) for number_ in clients]


def _intervals(series: Curve, clients: Sequence[int]) -> list[list[float] | None]:
    lows, highs = (_values(series, end, clients) for end in ("low", "high"))
    return list(map(whisker, lows, highs))


def _cpu_curve(series: Curve, shares: Sequence[CpuShares], roles: Sequence[str], top: int) -> Chart:
    names, title = role_names(), series_title(series, [series])
    return {
        "kind": "area",
        "label": _("%(title)s: shares of the host's CPUs over the %(unit)s. The table below has the numbers.")
        % {"title": title, "unit": unit([series])},
        "axis": _("share of the host's CPUs, %"),
        "x_axis": unit([series]),
        "x": [point.clients for point in series.points],
        "x_log": True,
        "max": top,
        "series": [
            {
                "name": names[role],
                "colour": _COLOURS.get(role, f"cpu-{role}"),
                "values": percents(shares, role),
            }
            for role in roles
        ],
    }


def whole(moments: Iterable[CpuShares]) -> int:
    """The end of the scale, %: the whole host, or a round number above the largest use."""
    most = max((100 * sum(getattr(share, role) or 0 for role in SHOWN) for share in moments), default=0)
    return next(end for end in (1, 2, 5, 10, 20, 50, 100) if most <= end or end == 100)


def percents(shares: Iterable[CpuShares], role: str) -> list[float | None]:
    """A role's shares of 1 as percentages; null where it is not known."""
    return [None if (share := getattr(each, role)) is None else 100 * share for each in shares]


def _cells(series: Curve, point: Point, row: VariantResult | None) -> tuple[Cell, ...]:
    return (
        count(point.clients),
        number(point.ops_per_s),
        interval(point.low, point.high),
        percent(point.efficiency) if series.rate is None else Cell("–", (None,)),
        interval(point.efficiency_low, point.efficiency_high),
        _percentile(row, "p50", point.p50_us),
        _percentile(row, "p99", point.p99_us),
    )


def _percentile(row: VariantResult | None, key: str, us: float | None) -> Cell:
    """As the table of latencies has it."""
    return at_least(us) if row and open_loops.is_lower_bound(row, key) else number(us)


def _conditions(series: Curve) -> tuple[Cell, ...]:
    return tuple(exact(getattr(series, name)) for name in _CONDITIONS)


def _roles(share: CpuShares | None) -> tuple[Cell, ...]:
    return tuple(_role(role, getattr(share or CpuShares(), role)) for role in result_keys.SHARE)


def _role(role: str, share: float | None) -> Cell:
    """A dash where no pooler worked, which is not a measured zero."""
    return Cell("–", (share,)) if role == "pooler" and share == 0 else percent(share)


def _series_cell(series: Curve, scaling: Sequence[Curve]) -> Cell:
    named = series.workload, series.layer, series.mode, series.route
    return words(series_title(series, scaling), *named)
