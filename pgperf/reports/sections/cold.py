"""Start-up, connecting and the first operations."""

from pgperf.reports import throughput
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    table = throughput.cold_table(rows.variants)
    return {"table": table} if table.rows else {}
