"""The distribution of the duration of one operation."""

from pgperf.reports import throughput
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    if not rows.variants:
        return {}
    chart = throughput.latency(rows.variants)
    return {
        "chart": chart if chart["rows"] else None,
        "table": throughput.latency_table(rows.variants),
        "note": throughput.latency_note(),
    }
