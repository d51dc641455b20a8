"""Steps of a web site at a fixed rate: the percentiles of their response times.

A closed loop waits for each answer, so its percentiles restate its throughput. At a rate that every
step holds they say what a visitor waits, timed from the moment when the request was due.
"""

import math
from collections.abc import Sequence

from django.utils.translation import gettext as _

from pgperf.reports import number_format, open_loops, staircases, throughput
from pgperf.reports.chart import Chart, of_times
from pgperf.reports.labels import rate_title
from pgperf.reports.run_rows import RunRows
from pgperf.reports.staircases import Staircase
from pgperf.reports.table import Column, Table, text_column, time_column, words
from pgperf.reports.throughput import PERCENTILES

_SHARE = 0.5  # of the throughput of the slowest step


def rate_for(staircase: Staircase) -> float | None:
    """Half the throughput of the slowest step, requests/s, in two digits; None where one is not known,
    and for steps that had a rate.
    """
    throughputs = [row.ops_per_s for row in staircase.shown]
    if _rate(staircase) is not None or not all(throughputs):
        return None
    half = _SHARE * min(per_s for per_s in throughputs if per_s)
    unit = 10.0 ** (math.floor(math.log10(half)) - 1)
    return float(f"{math.floor(half / unit) * unit:.2g}")


def advice(staircase: Staircase, benchmark: str) -> str:
    """How to measure the percentiles, after a closed loop; "" after a run at a rate."""
    rate = rate_for(staircase)
    if rate is None:
        return ""
    return _(
        "In a closed loop, percentiles restate the throughput. To see what a visitor waits, measure at half"
        " the throughput of the slowest step: pgperf run %(benchmark)s --rates %(rate)s."
    ) % {"benchmark": benchmark, "rate": f"{rate:g}"}


def percentiles(staircase: Staircase) -> Chart | None:
    """Response times of each step at the run's rate; None for a closed loop."""
    rate = _rate(staircase)
    if rate is None:
        return None
    return of_times(
        {
            "kind": "dots",
            "label": _(
                "Percentiles of the response time of each step at %s. The table below has the numbers."
            )
            % rate_title(rate),
            "axis": _("%s since a request was due"),
            "rows": [[step.variant.route] for step in staircase.steps],
            "series": [
                {
                    "name": name,
                    "colour": name,
                    "values": [row.latency_us.get(name) for row in staircase.shown],
                }
                for name in PERCENTILES
            ],
        }
    )


def percentile_table(staircase: Staircase, among: Sequence[Staircase]) -> Table:
    """The numbers of the chart, and whether each step sustained the rate; no rows for a closed
    loop.
    """
    caption = _("Response time of each step at %(rate)s, %(title)s") % {
        "rate": rate_title(_rate(staircase)),
        "title": staircases.title(staircase, [each for each in among if _rate(each) == _rate(staircase)]),
    }
    columns = (
        text_column(_("Step")),
        text_column(_("Rate sustained")),
        *(time_column(name, follows=at > 0) for at, name in enumerate((*PERCENTILES, "max"))),
        Column(_("Skipped"), _("operations")),
    )
    rows = [
        (
            words(row.route),
            words(_("yes") if found.is_held else _("no")),
            *(open_loops.latency(row, name) for name in (*PERCENTILES, "max")),
            words(number_format.whole(found.skipped)),
        )
        for row in staircase.shown
        if (found := row.record.open_loop)
    ]
    return Table(caption, columns, rows, "step-latency")


def sentences(rows: RunRows) -> list[str]:
    """The advice for each staircase of a run."""
    return list(filter(None, (advice(each, rows.run.benchmark_name) for each in staircases.found(rows))))


def tables(rows: RunRows) -> list[Table]:
    """The percentiles of all steps of a run, for a terminal; none for a closed loop."""
    shown = staircases.found(rows)
    made = (percentile_table(each, shown) for each in shown)
    return [each for each in made if each.rows]


def beside_steps(rows: RunRows) -> Table:
    """The percentiles of the variants with a rate that are no step, likewise."""
    steps = {row.pk for each in staircases.found(rows) for row in each.shown}
    return throughput.latency_table(
        [row for row in open_loops.with_rate(rows.variants) if row.pk not in steps]
    )


def _rate(staircase: Staircase) -> float | None:
    return staircase.steps[0].variant.rate
