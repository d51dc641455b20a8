"""The bottleneck of each variant."""

from pgperf.reports import verdicts
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    table = verdicts.verdict_table(rows.variants, rows.savings)
    if not table.rows:
        return {}
    # The answer of any other run says it.
    withheld = verdicts.withheld(rows.variants) if rows.is_suite else ""
    return {"table": table, "failed": verdicts.failed_checks(rows.variants), "withheld": withheld}
