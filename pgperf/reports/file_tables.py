"""The tables that only files have: all figures of each variant, the whole timeline, all processes."""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from pgperf.analysis.scheduler_states import PARTS
from pgperf.analysis.top import HostLine, Process, Top
from pgperf.models import VariantResult
from pgperf.reports import http_requests, result_keys
from pgperf.reports.next_steps import ShownStep, shown_steps
from pgperf.reports.run_json import variant_json
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import Cell, Table, exact, file_columns

Path = tuple[str, ...]

#: The columns of a variant: objects of its JSON, and the keys in each.
_VARIANT: tuple[tuple[Path, Path], ...] = (
    ((), (
        "label", "workload", "layer", "mode", "route", "clients", "workers", "placement", "connect", "environment",
        "rate", "schedule", "hosts", "control", "slices", "ops", "rows", "errors", "ops_per_s", "rows_per_s",
        "us_per_op", "us_per_op_low", "us_per_op_high",
    )),
    (("latency_us",), result_keys.LATENCY),
    *(
        (("phases_us", phase), result_keys.LATENCY)
        for phase in (*result_keys.PHASES, *result_keys.HTTP_PHASES, *result_keys.OPEN_PHASES)
    ),
    (("http",), result_keys.HTTP),
    (("open_loop",), result_keys.OPEN_LOOP),
    (("connection_throughput",), result_keys.CONNECTION_THROUGHPUT),
    (("cold_us",), result_keys.COLD),
    (("cpu_us_per_op",), result_keys.CPU),
    (("time_us_per_op",), PARTS),
    (("cpu_account",), ("cpus", "elapsed_s", "source", "web_workers")),
    (("cpu_account", "share"), result_keys.SHARE),
    (("cpu_account", "wait_us_per_op"), result_keys.WAIT),
    (("cpu_account", "switches_per_op"), result_keys.SWITCHES),
    (("cpu_account", "system_share"), result_keys.WAIT),
    (("cpu_account", "busiest"), result_keys.WAIT),
    (("cpu_account", "server_host"), ("cpus", "elapsed_s")),
    (("cpu_account", "server_host", "share"), result_keys.SHARE),
    (("diagnostics",), ("seconds", "samples")),
    (("diagnostics", "wait_events"), result_keys.WAIT_EVENTS),
    (("diagnostics", "pooler"), result_keys.POOLER),
    (("diagnostics", "statements"), result_keys.STATEMENTS),
    (("verdict",), ("word", "certainty", "evidence", "intervention")),
    (("verdict", "lead"), ("runner_up", "us", "low", "high", "is_open")),
    (("verdict", "grade"), ("word", "share", "evidence")),
    ((), ("next_step",)),
    (("verdict", "checks", "capacity"), ("withheld", "why")),
)  # fmt: skip


def variant_table(rows: RunRows) -> Table:
    """A row for each variant, the controls too: its JSON, flattened."""
    paths = [(*path, key) for path, keys in _VARIANT for key in keys]
    columns = file_columns("_".join(path) for path in paths)
    found = map(_figures, rows.variants, shown_steps(rows.variants, rows.savings))
    return Table(_("Variants"), columns, [tuple(exact(_at(each, path)) for path in paths) for each in found])


def moment_table(rows: RunRows) -> Table:
    """A row for each moment of the timeline: the variant, and the shares of the host's CPUs."""
    moments = rows.timeline.moments if rows.timeline else ()
    cells = [
        (
            exact(each.seconds),
            exact(each.variant),
            *(exact(getattr(each.share, role)) for role in result_keys.SHARE),
        )
        for each in moments
    ]
    return Table(_("Timeline"), file_columns(("seconds", "variant", *result_keys.SHARE)), cells)


def process_table(rows: RunRows) -> Table:
    """A row for each process in the diagnostic slices, with the lines of the load host and of the
    server's.
    """
    columns = file_columns((
        "label", "seconds", *(f"host_{key}" for key in result_keys.HOST), *result_keys.PROCESS,
        *(f"server_host_{key}" for key in result_keys.HOST),
    ))  # fmt: skip
    tops = ((row.label, row.record.top) for row in rows.variants)
    processes = [cells for label, top in tops if top for cells in _processes(label, top)]
    return Table(_("Processes"), columns, processes)


def _figures(row: VariantResult, step: ShownStep) -> dict[str, Any]:
    """The JSON of a variant, and what only its row in a file has."""
    own = {"slices": row.slices, "http": http_requests.file_figures(row), "next_step": step.text}
    return {**variant_json(row), **own}


def _processes(label: str, top: Top) -> Iterator[tuple[Cell, ...]]:
    """The server's line is empty where that host is the load host or was not sampled."""
    lead = exact(label), exact(top.seconds), *_host_line(top.host)
    server = _host_line(top.server_host or HostLine())
    for process in top.processes or (Process(),):
        yield *lead, *(exact(getattr(process, key)) for key in result_keys.PROCESS), *server


def _host_line(line: HostLine) -> tuple[Cell, ...]:
    return tuple(exact(getattr(line, key)) for key in result_keys.HOST)


def _at(found: Any, path: Path) -> Any:
    """The value at the end of the path; None where a part of it is missing."""
    for key in path:
        found = found.get(key) if found else None
    return found
