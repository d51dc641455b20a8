"""Connecting, operating and closing, of variants that connect for their operations."""

from collections.abc import Mapping, Sequence

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from pgperf.analysis.connection_throughput import ConnectionThroughput
from pgperf.catalog.published import Figure
from pgperf.models import VariantResult
from pgperf.reports import published, result_keys
from pgperf.reports.chart import Chart, of_times
from pgperf.reports.labels import measured, variant_lines, variant_title
from pgperf.reports.open_loops import service_us
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import Cell, Column, Table, number, text_column, time_column, words
from pgperf.reports.throughput import PERCENTILES

#: Published figures by the primary keys of their variants.
Figures = Mapping[int, Figure]
_COLOURS = {"including": "phase-connect", "excluding": "phase-operate", "excluding_pgbench": "p95"}


def in_closed_loop(variants: Sequence[VariantResult]) -> list[VariantResult]:
    """Those whose throughput shows what connecting costs: at a rate, it is the rate."""
    return [variant for variant in variants if variant.rate is None]


def reconnecting(variants: Sequence[VariantResult]) -> list[VariantResult]:
    """Those whose operations take a connection to the database and give it back."""
    return [variant for variant in variants if "operate" in variant.phases_us]


def tables(rows: RunRows) -> list[Table]:
    """The tables of the variants that connect, for a terminal: without rows where there are none."""
    shown = reconnecting(rows.originals)
    return [phase_table(shown), throughput_table(in_closed_loop(shown), rows.published)]


def note(variants: Sequence[VariantResult]) -> str:
    """What the operations of reconnecting variants do, and how "excluding" is made; "" without any."""
    text = _(
        "Each operation of these variants takes a connection, runs its statements, and gives the connection back."
    )
    excluding = _(
        "Throughput excluding connection time is the number of clients divided by the mean time to operate."
        " Old pgbench (before version 14) divided the operations by the wall time less the time of all"
        " connects per client. That formula counts closing as work, and it gives no figure here where less than"
        " 5 % of the wall time is left, or where closing is not known apart from connecting (pgbench)."
    )
    closed = in_closed_loop(variants)
    return " ".join([text, *([excluding] if closed else [])]) if variants else ""


def phases(variants: Sequence[VariantResult]) -> Chart:
    """The mean time of an operation by phase, a bar for each variant."""
    shown = measured(variants)
    names = phase_names()
    return of_times(
        {
            "kind": "stack",
            "label": _("Connecting, operating and closing of each variant. The table below has the numbers."),
            "axis": _("%s per operation"),
            "rows": [variant_lines(variant) for variant in shown],
            "series": [
                {
                    "name": names[phase],
                    "colour": f"phase-{phase}",
                    "values": [variant.phases_us[phase]["mean"] for variant in shown],
                }
                for phase in result_keys.PHASES
            ],
            "whiskers": [],
            "ends": [service_us(variant) for variant in shown],
        }
    )


def percentiles(variants: Sequence[VariantResult]) -> list[Chart]:
    """The distribution of each phase, in their order: dots on a line, logarithmic, µs."""
    return [_percentiles(measured(variants), phase) for phase in result_keys.PHASES]


def _percentiles(shown: Sequence[VariantResult], phase: str) -> Chart:
    known = [variant for variant in shown if variant.phases_us[phase].get("p50") is not None]
    return of_times(
        {
            "kind": "dots",
            "label": _("Percentiles of the phase %s, logarithmic scale. The table below has the numbers.")
            % phase_names()[phase],
            "axis": f"{phase_names()[phase]}, {_('%s, logarithmic')}",
            "rows": [variant_lines(variant) for variant in known],
            "series": [
                {
                    "name": name,
                    "colour": name,
                    "values": [variant.phases_us[phase].get(name) for variant in known],
                }
                for name in PERCENTILES
            ],
        }
    )


def phase_table(variants: Sequence[VariantResult]) -> Table:
    """The distribution of each phase, µs."""
    names, keys = phase_names(), ("mean", *PERCENTILES, "max")
    columns = (text_column(_("Variant")), text_column(_("Phase")), *(time_column(key) for key in keys))
    rows = [
        (
            words(variant_title(variant)),
            words(names[phase]),
            *(number(variant.phases_us[phase].get(key)) for key in keys),
        )
        for variant in variants
        for phase in result_keys.PHASES
    ]
    return Table(_("Connect, operate and close"), columns, rows, "connections")


def throughput(variants: Sequence[VariantResult], figures: Figures) -> Chart:
    """Operations per second with and without the time for connecting, and as published: dots,
    logarithmic.
    """
    shown = measured(variants)
    found = [ConnectionThroughput.of(variant.record) for variant in shown]
    own = [figures.get(variant.pk) for variant in shown]
    marks = {
        "including": [figure and figure.ops_per_s for figure in own],
        "excluding_pgbench": [figure and figure.excluding for figure in own],
    }
    return {
        "kind": "dots",
        "label": _(
            "Throughput of each variant with and without connecting, logarithmic scale."
            " The table below has the numbers."
        ),
        "axis": _("operations per second, logarithmic"),
        "rows": [variant_lines(variant) for variant in shown],
        "series": [
            {
                "name": title,
                "colour": _COLOURS[key],
                "values": [getattr(each, key) for each in found],
                "marks": marks.get(key, []),
            }
            for key, title in _throughputs().items()
        ],
        "overlay": published.overlay() if any(own) else "",
    }


def throughput_table(variants: Sequence[VariantResult], figures: Figures) -> Table:
    """Operations per second with and without the time for connecting, and as published where any
    were.
    """
    columns = (
        text_column(_("Variant")),
        *(Column(capfirst(title), _("operations/s")) for title in _throughputs().values()),
        *([Column(_("Published, including")), Column(_("Published, excluding"))] if figures else []),
    )
    found = [(variant, ConnectionThroughput.of(variant.record)) for variant in variants]
    rows = [
        (
            words(variant_title(variant)),
            number(each.including),
            number(each.excluding),
            number(each.excluding_pgbench),
            *(_as_published(figures.get(variant.pk)) if figures else ()),
        )
        for variant, each in found
        if each
    ]
    return Table(_("Throughput with and without connecting"), columns, rows, "connection-throughput")


def _throughputs() -> dict[str, str]:
    """The fields of ConnectionThroughput as people read them."""
    return {
        "including": _("including connecting"),
        "excluding": _("excluding"),
        "excluding_pgbench": _("excluding, by old pgbench"),
    }


def _as_published(figure: Figure | None) -> tuple[Cell, ...]:
    if figure is None:
        return Cell("–"), Cell("–")
    return number(figure.ops_per_s), number(figure.excluding)


def phase_names() -> dict[str, str]:
    return {"connect": _("connect"), "operate": _("operate"), "close": _("close")}
