"""Conditions, versions, settings and machine, and how long the run took."""

from pgperf.reports import conditions, environment
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    if not (rows.run.timings or rows.run.environment):
        return {}
    timings = [environment.timings_table(rows.run.timings)] if rows.run.timings else []
    chosen = conditions.conditions_table(rows.run.definition)
    return {"tables": [chosen, *timings, *environment.environment_tables(rows.run.environment)]}
