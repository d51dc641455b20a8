"""What came of HTTP requests, and where their time went."""

from pgperf.reports import http_requests, page_lengths
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part
from pgperf.reports.throughput import latency_note


def part(rows: RunRows) -> Part:
    shown = http_requests.requesting(rows.variants)
    if not shown:
        return {}
    return {
        "cautions": page_lengths.cautions(rows),
        "chart": http_requests.phases(shown),
        "tables": [http_requests.request_table(shown), http_requests.phase_table(shown)],
        "note": latency_note(),
    }
