"""The bottleneck of each variant."""

from pgperf.reports import verdicts
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    table = verdicts.verdict_table(rows.variants)
    return {"table": table, "failed": verdicts.failed_checks(rows.variants)} if table.rows else {}
