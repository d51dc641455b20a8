"""Connecting, operating and closing, of variants that connect for their operations."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from pgperf.analysis.connection_throughput import ConnectionThroughput
from pgperf.models import VariantResult
from pgperf.reports import number_format, result_keys
from pgperf.reports.chart import Chart
from pgperf.reports.labels import measured, variant_lines, variant_title
from pgperf.reports.table import Column, Table, number, text_column, words


def reconnecting(variants: Sequence[VariantResult]) -> list[VariantResult]:
    """Those whose operations take a connection and give it back."""
    return [variant for variant in variants if variant.phases_us]


def phases(variants: Sequence[VariantResult]) -> Chart:
    """The mean time of an operation by phase, a bar for each variant."""
    shown = measured(variants)
    names = phase_names()
    return {
        "kind": "stack",
        "label": _("Connecting, operating and closing of each variant. The table below has the numbers."),
        "axis": _("µs per operation"),
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
        "ends": [_("%s µs") % number_format.number(variant.latency_us["mean"]) for variant in shown],
    }


def phase_table(variants: Sequence[VariantResult]) -> Table:
    """The distribution of each phase, µs."""
    names, keys = phase_names(), ("mean", "p50", "p95", "p99", "max")
    columns = (text_column(_("Variant")), text_column(_("Phase")), *(Column(key, "µs") for key in keys))
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


def throughput_table(variants: Sequence[VariantResult]) -> Table:
    """Operations per second with and without the time for connecting."""
    columns = (
        text_column(_("Variant")),
        Column(_("including connecting"), _("operations/s")),
        Column(_("excluding"), _("operations/s")),
        Column(_("excluding, by old pgbench"), _("operations/s")),
    )
    found = [(variant, ConnectionThroughput.of(variant.record)) for variant in variants]
    rows = [
        (
            words(variant_title(variant)),
            number(each.including),
            number(each.excluding),
            number(each.excluding_pgbench),
        )
        for variant, each in found
        if each
    ]
    return Table(_("Throughput with and without connecting"), columns, rows, "connection-throughput")


def phase_names() -> dict[str, str]:
    return {"connect": _("connect"), "operate": _("operate"), "close": _("close")}
