"""How to read the run page."""

from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    """`idle`: "awake" or "system"; "" where the run does not know."""
    return {"idle": rows.run.environment.get("idle", {}).get("idle", "")} if rows.ladders else {}
