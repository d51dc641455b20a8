"""A run as plain JSON: what `pgperf run --json`, the run page's polling and scripts read."""

import logging
import os
import sys
from dataclasses import asdict
from datetime import datetime
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import DatabaseError

from pgperf.analysis.connection_throughput import ConnectionThroughput
from pgperf.analysis.latency import variation
from pgperf.analysis.scheduler_states import PARTS
from pgperf.conf import get_settings
from pgperf.models import ComparisonResult, Run, VariantResult, Worker
from pgperf.reports import result_keys
from pgperf.reports.next_steps import next_steps_json
from pgperf.reports.run_names import named
from pgperf.reports.run_rows import RunRows, read
from pgperf.reports.staircases import staircases_json
from pgperf.reports.verdicts import verdict_json
from pgperf.runs import broker, state

logger = logging.getLogger(__name__)

TERMINAL = (Run.Status.DONE, Run.Status.FAILED, Run.Status.CANCELLED, Run.Status.LOST)

_VARIANT = (
    "label", "workload", "layer", "mode", "route", "clients", "workers", "placement", "connect", "environment", "rate",
    "schedule", "hosts", "control", "ops", "rows", "errors", "ops_per_s", "rows_per_s", "us_per_op", "us_per_op_low",
    "us_per_op_high",
)  # fmt: skip
_COMPARISON = (
    "ratio", "low", "high", "delta_us", "delta_low_us", "delta_high_us", "outcome", "aa",
    "pairs", "sample", "mde",
)  # fmt: skip


def run_json(run: Run) -> dict[str, Any]:
    """The contract object: run, variants, comparisons, ladders and the rest.

    Null is "not known", never zero.
    """
    return rows_json(read(run))


def rows_json(rows: RunRows) -> dict[str, Any]:
    """The same of a run that is read already."""
    run = rows.run
    return {
        "run": _run(rows),
        "variants": [
            {**variant_json(row), "next_step": found}
            for row, found in zip(rows.variants, next_steps_json(rows.variants, rows.savings), strict=True)
        ],
        "comparisons": [_comparison(row) for row in rows.comparisons],
        "ladders": run.summary.get("ladders", []),
        "levels": run.summary.get("levels", []),
        "geometric_means": run.summary.get("geometric_means", []),
        "staircases": staircases_json(rows),
        "rate_searches": [each.to_json() for each in rows.rate_searches],
        "scaling": [asdict(curve) for curve in rows.scaling],
        "timeline": run.summary.get("timeline") or None,
        "timings": run.timings,
    }


def _run(rows: RunRows) -> dict[str, Any]:
    run = rows.run
    return {
        "id": run.pk,
        "status": str(state.effective_status(run)),
        "benchmark": run.benchmark_name,
        "database": run.database_name,
        "quick": run.quick,
        "requested": _time(run.requested_at),
        "started": _time(run.started_at),
        "finished": _time(run.finished_at),
        "error": named(run.error),
        "partial": run.partial,
        "skipped": [each.to_json() for each in rows.skipped],
        "definition": run.definition,
        "definition_hash": run.definition_hash,
        "analysis_version": run.analysis_version,
        "environment": run.environment,
        "confirms": run.confirms_id,
        "confirms_variant": run.confirms_variant or None,
        "intervention": run.intervention or None,
    }


def progress_json(run: Run, viewer: Any = None) -> dict[str, Any]:
    """What the run page polls; `viewer` as in `run_names`."""
    _put_right(run)
    workers = len(live_workers())
    return {
        "id": run.pk,
        "status": run.status,
        "status_text": run.get_status_display(),
        "progress": run.progress,
        "message": named(run.message, viewer),
        "error": named(run.error, viewer),
        "terminal": run.status in TERMINAL,
        "workers": workers,
        "needs_worker": _needs_worker(run, workers),
        "hint": _hint(run, workers),
    }


def _put_right(run: Run) -> None:
    """A run whose worker died is put right here, so that it shows even with none left, and even if
    the site's database accepts no writes.
    """
    status = state.effective_status(run)
    if status == run.status:
        return
    try:
        state.mark_lost()
        run.refresh_from_db()
    except DatabaseError as error:
        logger.warning("run %s is lost, which could not be stored (%s)", run.pk, type(error).__name__)
        run.status = status


def live_workers() -> list[Worker]:
    """The workers that are there now, by name."""
    return list(state.live_workers())


def worker_command(queue: str = "") -> str:
    """The command that starts a worker for pgperf, as one would type it beside manage.py: with options
    that every supported Celery knows.

    `queue`: an agent's or a load host's. Two workers on one machine need names of their own.
    """
    queue = queue or get_settings().QUEUE
    return f"celery -A {_project()} worker --queues {queue} --pool prefork --concurrency 1{_role(queue)}"


def _role(queue: str) -> str:
    """The options of an agent and a load host, as docs/remote.md has them."""
    agents, load_hosts = broker.agent_queue(""), broker.load_queue("")
    if queue.startswith(agents):
        return f" -n agent@{queue.removeprefix(agents)}"
    if queue.startswith(load_hosts):
        return f" -n load@{queue.removeprefix(load_hosts)}"
    return ""


def _needs_worker(run: Run, workers: int) -> bool:
    """Does it wait for a worker? The run of a command waits for another run."""
    return run.status == Run.Status.QUEUED and bool(run.queue) and not workers


def _hint(run: Run, workers: int) -> str:
    if _needs_worker(run, workers):
        return f"No worker is online. Start one: {worker_command()}"
    if run.status == Run.Status.RUNNING and run.cancel_requested:
        return "Stopping: the run ends after the slices under way."
    return ""


def _project() -> str:
    """What `celery -A` takes: the module that holds the site's Celery application, else the package
    where its settings live.
    """
    module = os.environ.get("DJANGO_SETTINGS_MODULE") or str(getattr(settings, "SETTINGS_MODULE", ""))
    return _holder() or str(current_app.main or module.partition(".")[0] or "PROJECT")


def _holder() -> str:
    """The shortest name by which Celery finds the application; "" where it would not. It looks for
    `app` or `celery` in a module, and in a package's module `celery`.
    """
    own = current_app._get_current_object()
    names = [
        name.removesuffix(".celery")
        for name, module in list(sys.modules.items())
        if any(getattr(module, "__dict__", {}).get(attribute) is own for attribute in ("app", "celery"))
    ]
    return min(names, key=len, default="")


def time_us_per_op(row: VariantResult) -> dict[str, float | None]:
    """The parts of one operation's time, µs; all null for a variant without a CPU account."""
    variant = row.record
    if variant.cpu_account is None:
        return dict.fromkeys(PARTS)
    return variant.time_parts()


def variant_json(row: VariantResult) -> dict[str, Any]:
    """One of `variants`; null for a part that was not measured."""
    throughput = ConnectionThroughput.of(row.record)
    return {
        **{name: getattr(row, name) for name in _VARIANT},
        "latency_us": _latency(row.latency_us),
        "phases_us": _phases(row) or None,
        "http": row.http or None,
        "open_loop": open_loop_json(row),
        "connection_throughput": throughput.to_json() if throughput else None,
        "cold_us": _known(row.cold_us, result_keys.COLD),
        "cpu_us_per_op": _known(row.cpu_us_per_op, result_keys.CPU),
        "time_us_per_op": time_us_per_op(row),
        "cpu_account": row.cpu_account or None,
        "top": row.top or None,
        "diagnostics": row.diagnostics or None,
        "verdict": verdict_json(row.record.verdict),
    }


def open_loop_json(row: VariantResult) -> dict[str, Any] | None:
    """What became of the rate; None for a closed loop."""
    found = row.record.open_loop
    if found is None:
        return None
    counts = {name: getattr(found, name) for name in ("due", "ended", "late", "skipped", "backlog")}
    rates = {"offered_per_s": found.offered_per_s, "achieved_per_s": found.achieved_per_s}
    return {**counts, **rates, "held": found.is_held}


def _phases(row: VariantResult) -> dict[str, Any]:
    return {name: _latency(values) for name, values in row.phases_us.items()}


def _latency(values: dict[str, Any]) -> dict[str, Any]:
    return _known({**values, "variation": variation(values)}, result_keys.LATENCY)


def _comparison(row: ComparisonResult) -> dict[str, Any]:
    numbers = {name: getattr(row, name) for name in _COMPARISON}
    return {"variant": row.variant.label, "baseline": row.baseline.label, **numbers}


def _known(values: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values.get(name) for name in names}


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
