"""Wait events, pooler counters and statement counters."""

from pgperf.reports import server
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    tables = (
        server.wait_table(rows.variants),
        server.pooler_table(rows.variants),
        server.statement_table(rows.variants),
    )
    part = {
        "chart": server.wait_chart(rows.variants),
        "tables": [table for table in tables if table.rows],
        "notes": server.notes(rows.variants),
    }
    return part if any(part.values()) else {}
