"""Versions, settings and machine, and how long the run took."""

from pgperf.reports import environment
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    timings = [environment.timings_table(rows.run.timings)] if rows.run.timings else []
    tables = [*timings, *environment.environment_tables(rows.run.environment)]
    return {"tables": tables} if tables else {}
