"""The statements that one operation of a workload of the site sends."""

from pgperf.reports import statement_tables
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    environment = rows.run.environment
    tables = [*statement_tables.tables(environment), *statement_tables.part_tables(environment)]
    if not tables:
        return {}
    return {
        "charts": statement_tables.charts(environment),
        "tables": tables,
        "notes": statement_tables.notes(environment),
    }
