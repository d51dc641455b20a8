"""Throughput and CPU time of each variant."""

from pgperf.reports import cpu_accounting, load_hosts, stolen_time, throughput
from pgperf.reports.labels import layer_notes
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part
from pgperf.reports.table import Table


def part(rows: RunRows) -> Part:
    if not rows.variants:
        return {}
    return {
        "throughput": throughput.throughput(rows.variants),
        "cpu": cpu_accounting.cpu(rows.variants),
        "tables": [throughput.throughput_table(rows.variants), cpu_accounting.cpu_table(rows.variants)],
        "note": throughput.throughput_note(),
        "layer_notes": layer_notes(rows.variants),
        "cpu_account": [table for table in _account_tables(rows) if table.rows],
        "stolen_time": stolen_time.note(rows.run.environment),
        "has_load_hosts": any(row.hosts for row in rows.variants),
    }


def _account_tables(rows: RunRows) -> list[Table]:
    return [
        cpu_accounting.share_table(rows.variants),
        cpu_accounting.server_share_table(rows.variants),
        load_hosts.use_table(rows.variants),
        cpu_accounting.queue_table(rows.variants),
    ]
