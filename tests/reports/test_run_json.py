"""A run as JSON: the contract of `run --json`, and what the run page polls."""

import json
import types
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.db import connection, transaction
from django.utils import timezone

from pgperf.models import Run
from pgperf.reports import run_json as run_json_module
from pgperf.reports.run_json import progress_json, run_json, worker_command
from pgperf.runs import broker
from tests.cpu_accounts import add_cpu_accounts
from tests.factories import make_results, make_run, make_worker

Status = Run.Status
pytestmark = pytest.mark.django_db

RUN = {"id", "status", "benchmark", "started", "finished", "error", "environment"}
VARIANT = {
    "label", "workload", "layer", "mode", "route", "clients", "placement", "connect", "ops", "rows", "errors",
    "ops_per_s", "rows_per_s", "latency_us", "cold_us", "cpu_us_per_op", "time_us_per_op", "cpu_account", "top",
    "diagnostics",
    "verdict",
}  # fmt: skip
NESTED = {
    "latency_us": {"min", "mean", "stddev", "variation", "p50", "p90", "p95", "p99", "max"},
    "cold_us": {
        "startup",
        "connect",
        "first",
        "second",
        "next_ten",
        "other_query_first",
        "other_query_second",
    },
    "cpu_us_per_op": {
        "client_user",
        "client_sys",
        "proxy",
        "web",
        "pooler",
        "server",
        "auxiliaries",
        "other",
        "unattributed",
    },
    "time_us_per_op": {
        "client",
        "proxy",
        "web",
        "pooler",
        "server",
        "run_queue",
        "interpreter",
        "waiting",
        "unseen",
    },
    "verdict": {
        "word",
        "certainty",
        "evidence",
        "grade",
        "lead",
        "finding",
        "numbers",
        "checks",
        "missing",
        "intervention",
        "confirmation",
    },
}
COMPARISON = {
    "variant", "baseline", "ratio", "low", "high", "delta_us", "delta_low_us", "delta_high_us", "outcome", "aa",
}  # fmt: skip


@pytest.fixture
def result() -> dict[str, Any]:
    return json.loads(json.dumps(run_json(make_results(make_run()))))


def test_the_contract(result: dict[str, Any]) -> None:
    assert set(result) >= {"run", "variants", "comparisons", "ladders", "timings", "scaling", "timeline"}
    assert set(result["run"]) >= RUN
    for variant in result["variants"]:
        assert set(variant) >= VARIANT
        assert all(set(variant[name]) == keys for name, keys in NESTED.items())
    assert all(set(comparison) >= COMPARISON for comparison in result["comparisons"])


def test_values_are_those_of_the_rows(result: dict[str, Any]) -> None:
    rows = Run.objects.get().variants.all()
    assert [v["label"] for v in result["variants"]] == [row.label for row in rows]
    assert [v["us_per_op"] for v in result["variants"]] == [row.us_per_op for row in rows]
    assert [v["latency_us"]["p99"] for v in result["variants"]] == [row.latency_us["p99"] for row in rows]
    assert result["variants"][0]["latency_us"]["variation"] == pytest.approx(0.31)
    assert sum(comparison["aa"] for comparison in result["comparisons"]) == 2


def test_unknown_is_null(result: dict[str, Any]) -> None:
    control = next(variant for variant in result["variants"] if variant["control"])
    assert set(control["cold_us"].values()) == {None}
    first = result["variants"][0]
    assert first["next_step"] is None
    assert set(first["verdict"].values()) == set(first["time_us_per_op"].values()) == {None}
    assert (first["cpu_account"], first["top"], first["diagnostics"], result["timeline"]) == (
        None,
        None,
        None,
        None,
    )


def test_the_cpu_account_and_its_details() -> None:
    run = add_cpu_accounts(
        make_results(make_run(), routes=("tcp",), layers=("libpq", "django_orm"), clients=(1, 8))
    )
    found = json.loads(json.dumps(run_json(run)))
    row = run.variants.all()[0]
    first = found["variants"][0]
    assert (first["cpu_account"], first["top"], first["diagnostics"]) == (
        row.cpu_account,
        row.top,
        row.diagnostics,
    )
    parts = first["time_us_per_op"]
    assert sum(us for us in parts.values() if us is not None) == pytest.approx(row.us_per_op)
    assert parts["unseen"] is None
    assert {name: first["verdict"][name] for name in ("word", "numbers", "intervention")} == {
        name: row.verdict[name] for name in ("word", "numbers", "intervention")
    }
    assert first["verdict"]["evidence"]
    assert first["verdict"]["confirmation"] is None
    advice = first["next_step"]
    assert set(advice) == {"advice", "text", "changes", "us", "of_us", "measured", "benchmark", "distances"}
    assert isinstance(advice["text"], str)
    assert advice["text"].endswith(".")
    assert found["timeline"] == run.summary["timeline"]
    assert [point["clients"] for point in found["scaling"][0]["points"]] == [1, 8]
    assert found["scaling"][0]["points"][0]["share"] == row.cpu_account["share"]


def test_a_confirming_run_names_the_other() -> None:
    first = make_run()
    run = make_run(confirms=first, confirms_variant="libpq · tcp", intervention="add_distance")
    said = run_json(run)["run"]
    assert (said["confirms"], said["confirms_variant"], said["intervention"]) == (
        first.pk, "libpq · tcp", "add_distance",
    )  # fmt: skip
    assert run_json(first)["run"]["confirms"] is None


def test_a_run_without_results() -> None:
    result = run_json(make_run(Status.QUEUED))
    assert (result["variants"], result["comparisons"], result["ladders"]) == ([], [], [])
    assert (result["run"]["status"], result["run"]["started"]) == ("queued", None)


def test_a_stale_run_is_lost() -> None:
    run = make_run(Status.RUNNING)
    stale(run)
    assert run_json(run)["run"]["status"] == "lost"


class TestProgress:
    @pytest.mark.parametrize(
        ("status", "terminal"),
        [(status, status not in (Status.QUEUED, Status.RUNNING)) for status in Status],
    )
    def test_of_every_state(self, status: str, terminal: bool) -> None:
        progress = progress_json(make_run(status, progress=0.5, message="slice 1 of 2", queue="pgperf"))
        assert (progress["status"], progress["terminal"]) == (status, terminal)
        assert set(progress) == {
            "id", "status", "status_text", "progress", "message", "error", "terminal", "workers", "needs_worker", "hint"
        }  # fmt: skip

    def test_without_a_worker_it_says_how_to_start_one(self) -> None:
        run = make_run(Status.QUEUED, queue="pgperf")
        assert worker_command() in progress_json(run)["hint"]
        make_worker()
        assert (progress_json(run)["hint"], progress_json(run)["workers"]) == ("", 1)

    def test_a_command_that_waits_needs_no_worker(self) -> None:
        progress = progress_json(make_run(Status.QUEUED, queue=""))
        assert (progress["hint"], progress["needs_worker"]) == ("", False)

    def test_cancelling(self) -> None:
        assert progress_json(make_run(Status.RUNNING, cancel_requested=True))["hint"].startswith("Stopping")

    def test_a_run_whose_worker_died_is_reconciled(self) -> None:
        run = make_run(Status.RUNNING, worker="w@h")
        stale(run)
        progress = progress_json(run)
        assert (progress["status"], progress["terminal"]) == ("lost", True)
        assert "w@h" in progress["error"]
        assert Run.objects.get().busy_key is None

    def test_a_lost_run_is_shown_while_the_database_accepts_no_writes(self) -> None:
        run = make_run(Status.RUNNING, worker="w@h")
        stale(run)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            progress = progress_json(run)
        assert (progress["status"], progress["terminal"]) == ("lost", True)
        assert Run.objects.get().status == Status.RUNNING


def test_the_command_that_starts_a_worker(settings: Any) -> None:
    assert worker_command() == "celery -A example worker --queues pgperf --pool prefork --concurrency 1"
    settings.PGPERF = {"QUEUE": "bench"}
    assert "--queues bench" in worker_command()


def test_an_agent_and_a_load_host_have_names_of_their_own() -> None:
    """Two workers of one name on a machine would be one."""
    common = "--pool prefork --concurrency 1"
    assert worker_command(broker.agent_queue("db1")).endswith(
        f" --queues pgperf-agent-db1 {common} -n agent@db1"
    )
    assert worker_command(broker.load_queue("app1")).endswith(
        f" --queues pgperf-load-app1 {common} -n load@app1"
    )


def test_the_command_names_the_module_of_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name, as in Celery("shop"), may be another."""
    module = types.ModuleType("shop.background.tasks")
    module.app = current_app._get_current_object()  # type: ignore[attr-defined]
    modules = {"shop": types.ModuleType("shop"), module.__name__: module}
    monkeypatch.setattr(run_json_module, "sys", types.SimpleNamespace(modules=modules))
    assert worker_command().startswith("celery -A shop.background.tasks worker ")
    modules["shop.celery"] = module
    assert worker_command().startswith("celery -A shop worker ")
    modules.clear()
    assert worker_command().startswith("celery -A example worker ")


def stale(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=1))
