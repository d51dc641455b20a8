"""The time breakdown of one operation."""

from pgperf.reports import cpu_accounting
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    charts = cpu_accounting.spent(rows.variants)
    if not charts:
        return {}
    table = cpu_accounting.spent_table(rows.variants)
    return {"charts": charts, "table": table, "notes": cpu_accounting.unknown_servers(rows.variants)}
