"""Throughput, time and CPUs over the number of clients."""

from pgperf.reports import scaling
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    series = [each for each in rows.scaling if len(each.points) > 1]
    if not series:
        return {}
    return {
        "title": scaling.section_title(series),
        "curves": scaling.curves(series),
        "cpu": scaling.cpu_curves(series),
        "table": scaling.scaling_table(series, rows),
    }
