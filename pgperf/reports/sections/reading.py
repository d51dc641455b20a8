"""How to read the run page."""

from pgperf.reports.comparisons import outcome_note
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    """`idle`: "awake" or "system"; "" where the run does not know."""
    if not rows.ladders:
        return {}
    return {"idle": rows.run.environment.get("idle", {}).get("idle", ""), "outcome_note": outcome_note()}
