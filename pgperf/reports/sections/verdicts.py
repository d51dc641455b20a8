"""The bottleneck of each variant."""

from pgperf.reports import verdicts
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    found = verdicts.verdicts(rows.variants)
    if not found:
        return {}
    return {"table": verdicts.verdict_table(rows.variants), "failed": verdicts.failed_checks(rows.variants)}
