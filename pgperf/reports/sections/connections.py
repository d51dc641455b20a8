"""What operations that connect spend on it."""

from pgperf.reports import connections, published
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part
from pgperf.reports.throughput import latency_note


def part(rows: RunRows) -> Part:
    shown = connections.reconnecting(rows.variants)
    if not shown:
        return {}
    closed = connections.in_closed_loop(shown)
    return {
        "phases": connections.phases(shown),
        "percentiles": [chart for chart in connections.percentiles(shown) if chart["rows"]],
        "phase_table": connections.phase_table(shown),
        "throughput": connections.throughput(closed, rows.published) if closed else None,
        "throughput_table": connections.throughput_table(closed, rows.published),
        "source": published.source(rows),
        "note": connections.note(shown),
        "latency_note": latency_note(),
    }
