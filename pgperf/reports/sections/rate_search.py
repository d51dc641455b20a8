"""The highest rate that holds a limit of the latency, and the latency over the rate."""

from pgperf.reports import rate_searches
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    if not rows.rate_searches:
        return {}
    return {
        "sentences": rate_searches.sentences(rows),
        "curves": rate_searches.curves(rows),
        "table": rate_searches.search_table(rows),
        "curve_table": rate_searches.curve_table(rows),
        "note": rate_searches.note(),
    }
