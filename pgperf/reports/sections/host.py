"""The CPUs of the host over the run, and its processes."""

from pgperf.reports import host, stolen_time
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    line = rows.timeline
    chart = host.timeline(line, rows.variants) if line else None
    topped = any(variant.top for variant in rows.variants)
    if not chart and not topped:
        return {}
    return {
        "timeline": chart,
        "timeline_table": host.timeline_table(line) if line else None,
        "stolen_time": stolen_time.note(rows.run.environment),
        "tops": [host.host_table(rows.variants), host.role_table(rows.variants)] if topped else [],
        "processes": host.process_tables(rows.variants),
    }
