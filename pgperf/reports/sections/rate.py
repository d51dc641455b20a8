"""What became of the rates of open loops."""

from pgperf.reports import open_loops
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    shown = open_loops.with_rate(rows.variants)
    if not shown:
        return {}
    return {
        "sentences": open_loops.sentences(shown),
        "table": open_loops.rate_table(shown),
        "note": open_loops.note(),
    }
