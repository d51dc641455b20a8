"""What operations that connect spend on it."""

from pgperf.reports import connections, published
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    shown = connections.reconnecting(rows.variants)
    if not shown:
        return {}
    return {
        "phases": connections.phases(shown),
        "percentiles": [chart for chart in connections.percentiles(shown) if chart["rows"]],
        "phase_table": connections.phase_table(shown),
        "throughput": connections.throughput(shown, rows.published),
        "throughput_table": connections.throughput_table(shown, rows.published),
        "source": published.source(rows),
    }
