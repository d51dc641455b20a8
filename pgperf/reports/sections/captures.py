"""The statements that one operation of a workload of the site sends."""

from pgperf.reports import environment
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    tables = environment.capture_tables(rows.run.environment)
    return {"tables": tables} if tables else {}
