"""How much was done and how long each operation took, as charts and tables."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from pgperf.analysis.latency import variation
from pgperf.models import VariantResult
from pgperf.reports import number_format, open_loops
from pgperf.reports.chart import Chart, of_times, whisker
from pgperf.reports.labels import colour, measured, variant_lines, variant_title
from pgperf.reports.table import (
    Column,
    Table,
    count,
    interval,
    interval_column,
    number,
    percent,
    text_column,
    time_column,
    words,
)

PERCENTILES = ("p50", "p90", "p95", "p99")


def throughput_note() -> str:
    """Why throughput and time per operation are not exact reciprocals, and why CPU times differ from
    the parts of the time.
    """
    return _(
        "Throughput counts every operation. In the time per operation, no operation counts as longer than"
        " the slice’s 99th percentile. So one is not exactly the reciprocal of the other. CPU per operation"
        " is a mean over every operation, too; the time breakdown scales it to the time per operation."
        " The throughput is that of a typical slice, so a few slow slices hardly change it."
    )


def latency_note() -> str:
    """Why the mean latency differs from the time per operation."""
    return _(
        "These figures are of all operations of the run together. The time per operation is the centre"
        " of the slices’ means, so that a few long operations hardly change it."
    )


def throughput(variants: Sequence[VariantResult]) -> Chart:
    """Operations per second of each variant, controls left out."""
    shown = measured(variants)
    return {
        "kind": "bars",
        "label": _("Throughput of each variant in operations per second. The table below has the numbers."),
        "axis": _("operations per second"),
        "rows": [variant_lines(variant) for variant in shown],
        "values": [variant.ops_per_s for variant in shown],
        "colours": [colour(variant.layer) for variant in shown],
        "ends": [number_format.number(variant.ops_per_s) for variant in shown],
    }


def times(variants: Sequence[VariantResult]) -> Chart:
    """Time of one operation of each variant, with its 95 % interval; each must know its time."""
    return of_times(
        {
            "kind": "bars",
            "label": _("Time of one operation of each variant, with 95 % intervals."),
            "axis": _("%s per operation"),
            "rows": [variant_lines(variant) for variant in variants],
            "values": [variant.us_per_op for variant in variants],
            "colours": [colour(variant.layer) for variant in variants],
            "whiskers": [whisker(variant.us_per_op_low, variant.us_per_op_high) for variant in variants],
            "ends": [variant.us_per_op for variant in variants],
        }
    )


def latency(variants: Sequence[VariantResult]) -> Chart:
    """Percentiles of the duration of one operation: dots on a line, logarithmic, µs. Too few
    operations leave high ones unknown.
    """
    shown = [variant for variant in measured(variants) if variant.latency_us.get("p50") is not None]
    values = {name: [variant.latency_us.get(name) for variant in shown] for name in PERCENTILES}
    return of_times(
        {
            "kind": "dots",
            "label": _(
                "Latency percentiles of each variant, logarithmic scale. The table below has the numbers."
            ),
            "axis": _("%s, logarithmic"),
            "rows": [variant_lines(variant) for variant in shown],
            "series": [
                {"name": name, "colour": name, "values": known}
                for name, known in values.items()
                if any(us is not None for us in known)
            ],
        }
    )


def throughput_table(variants: Sequence[VariantResult]) -> Table:
    """What each variant got done, controls included."""
    columns = (
        text_column(_("Variant")),
        Column(_("Operations")),
        Column(_("Operations/s")),
        Column(_("Rows/s")),
        Column(_("Errors")),
        time_column(_("Time per operation")),
        interval_column(),
    )
    rows = [
        (
            words(variant_title(variant)),
            count(variant.ops),
            number(variant.ops_per_s),
            number(variant.rows_per_s),
            count(variant.errors),
            number(variant.us_per_op),
            interval(variant.us_per_op_low, variant.us_per_op_high),
        )
        for variant in variants
    ]
    return Table(_("Throughput"), columns, rows, "throughput")


def latency_table(variants: Sequence[VariantResult]) -> Table:
    """The distribution of one operation's duration, µs; at a rate, of the time since it was due."""
    before, after = ("min", "mean", "stddev"), (*PERCENTILES, "max")
    columns = (
        text_column(_("Variant")),
        *map(time_column, before),
        Column(_("Variation"), _("of the mean")),
        *map(time_column, after),
    )
    rows = [
        (
            words(variant_title(v)),
            *(open_loops.latency(v, key) for key in before),
            percent(variation(v.latency_us)),
            *(open_loops.latency(v, key) for key in after),
        )
        for v in variants
    ]
    return Table(_latency_caption({variant.rate is None for variant in variants}), columns, rows, "latency")


def cold_table(variants: Sequence[VariantResult]) -> Table:
    """What comes before the steady state: start-up, connecting, the first operations, µs; no column
    of a phase that no variant has.
    """
    titles = {
        "startup": _("Process start-up"),
        "connect": _("Connect"),
        "first": _("First"),
        "second": _("Second"),
        "next_ten": _("Next ten"),
        "other_query_first": _("Other query, first"),
        "other_query_second": _("Other query, second"),
    }
    shown = [variant for variant in variants if any(value is not None for value in variant.cold_us.values())]
    phases = [phase for phase in titles if any(v.cold_us.get(phase) is not None for v in shown)]
    columns = (text_column(_("Variant")), *(time_column(titles[phase]) for phase in phases))
    rows = [(words(variant_title(v)), *(number(v.cold_us.get(phase)) for phase in phases)) for v in shown]
    return Table(_("Cold phases: the median of the processes started for them"), columns, rows, "cold")


def _latency_caption(closed: set[bool]) -> str:
    """What latency means in the loops that a table has: closed ones, open ones, or both."""
    if False not in closed:
        return _("Latency: duration of one operation, closed loop")
    if True not in closed:
        return _("Latency: time since an operation was due")
    return _("Latency: duration of one operation; at a rate, the time since it was due")
