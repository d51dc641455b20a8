"""What operations that connect spend on it."""

from pgperf.reports import connections
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    shown = connections.reconnecting(rows.variants)
    if not shown:
        return {}
    return {
        "chart": connections.phases(shown),
        "tables": [connections.phase_table(shown), connections.throughput_table(shown)],
    }
