"""The CPUs of the host over the run, and its processes."""

from pgperf.reports import host, stolen_time
from pgperf.reports.answer.judged import judged
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part

#: Of more variants, the page has the processes of those that its answer is about.
_MOST_VARIANTS = 24


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
        **_processes(rows),
    }


def _processes(rows: RunRows) -> Part:
    """A table for each variant. `left`: for how many the download alone has one."""
    few = len(rows.variants) <= _MOST_VARIANTS
    tables = host.process_tables(rows.variants if few else judged(rows))
    kept = sum(bool(row.top.get("processes")) for row in rows.originals)
    return {"processes": tables, "left": 0 if few else kept - len(tables)}
