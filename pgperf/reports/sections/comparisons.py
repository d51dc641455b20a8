"""Each variant against its baseline, and the controls."""

from pgperf.reports import comparisons, load_hosts, login_conditions, unseen_servers
from pgperf.reports.run_rows import RunRows
from pgperf.reports.sections import Part


def part(rows: RunRows) -> Part:
    controls = comparisons.control_table(rows.comparisons)
    part = {
        "tables": comparisons.comparison_tables(rows.comparisons),
        "controls": controls if controls.rows else None,
        "notes": [
            *load_hosts.comparison_notes(rows),
            *login_conditions.notes(rows),
            *unseen_servers.notes(rows),
        ],
    }
    if not any(part.values()):
        return {}
    return part | {"one_fit": rows.has_one_fit, "outcome_note": comparisons.outcome_note()}
