"""The time of one operation by layer, for each route."""

from pgperf.reports import comparisons, ladders
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    """Of several numbers of clients the first one's: bars of all could not share a scale.

    A suite has a heat map instead.
    """
    if not rows.ladders or rows.is_suite:
        return {}
    first = [ladder for ladder in rows.ladders if ladder.clients == rows.ladders[0].clients]
    return {
        "headlines": ladders.headlines(first, rows.ladders),
        "saved": comparisons.workload_headlines(rows.comparisons),
        "chart": ladders.time_split(first, rows.ladders),
        "note": ladders.note(),
    }
