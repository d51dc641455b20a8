"""The time breakdown of one operation."""

from pgperf.reports import cpu_accounting, stolen_time
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    charts = cpu_accounting.spent(rows.variants)
    if not charts:
        return {}
    table = cpu_accounting.spent_table(rows.variants)
    notes = [*cpu_accounting.unknown_servers(rows.variants), stolen_time.note(rows.run.environment)]
    return {"charts": charts, "table": table, "notes": [note for note in notes if note]}
