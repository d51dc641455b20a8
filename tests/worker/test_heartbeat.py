"""A worker's registration and heartbeat, and its reconciliation of abandoned runs."""

import threading
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import django
import pytest
from celery.exceptions import TimeLimitExceeded, WorkerLostError
from celery.worker import state
from django.db import DatabaseError
from django.utils import timezone

from benchmarks.twin import twin
from pgperf.core.layers import LAYERS
from pgperf.install import launch
from pgperf.models import LoadShare, Run, Worker
from pgperf.runs import broker
from pgperf.runs import state as run_state
from pgperf.worker import heartbeat
from tests.factories import make_run

pytestmark = pytest.mark.django_db


class Heartbeat(heartbeat.Heartbeat):
    """Its steps, one at a time and in the test's own thread and connection."""

    def guarded(self, step: Any) -> None:
        step()


@pytest.fixture
def beat() -> Heartbeat:
    return Heartbeat("w@h", "pgperf")


def test_a_new_worker_registers_its_layers(beat: Heartbeat) -> None:
    beat.register()
    row = Worker.objects.get()
    assert (row.hostname, row.queue, set(row.layers)) == ("w@h", "pgperf", set(LAYERS))
    assert row.layers["fake"] == ""
    assert {"pgperf", "python", "django"} <= set(row.versions)
    assert list(run_state.live_workers()) == [row]


def test_the_start_of_a_worker_ends_the_sessions_that_lost_runs_left(
    beat: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    monkeypatch.setattr(heartbeat.page_sessions, "remove_left", lambda: ended.append("all"))
    beat.register()
    assert ended == ["all"]
    beat.refresh()
    assert ended == ["all"]


def test_a_worker_registers_its_environments(beat: Heartbeat, settings: Any, tmp_path: Path) -> None:
    named = {"twin": twin(tmp_path).python, "gone": "/no/such/python"}
    settings.PGPERF = {**settings.PGPERF, "ENVIRONMENTS": named}
    beat.register()
    found = Worker.objects.get().versions["environments"]
    assert found["twin"]["packages"]["Django"] == django.get_version()
    assert "is not an executable file" in found["gone"]["refusal"]
    assert str(tmp_path) not in str(found), "no path leaves the settings"


def test_a_pool_without_its_package_is_named_beside_its_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [name for name in heartbeat.available_layers() if name.endswith(" · pool")]
    monkeypatch.setattr(launch, "_has_module", lambda python, module: module != "psycopg_pool")
    found = heartbeat.available_layers()
    assert found["psycopg"] == ""
    assert found["psycopg · pool"] == "psycopg_pool is not installed here: pip install 'psycopg[pool]'"
    assert "libpq · pool" not in found  # it has none anywhere


def test_registering_again_keeps_one_row(beat: Heartbeat) -> None:
    beat.register()
    beat.register()
    assert Worker.objects.count() == 1


def test_a_beat_updates_the_row(beat: Heartbeat) -> None:
    beat.register()
    Worker.objects.update(last_seen=timezone.now() - timedelta(hours=1))
    assert not run_state.live_workers()
    beat.refresh()
    assert run_state.live_workers().count() == 1


def test_a_beat_restores_a_deleted_row(beat: Heartbeat) -> None:
    beat.refresh()
    assert Worker.objects.count() == 1


def test_a_worker_that_leaves_deletes_its_row(beat: Heartbeat) -> None:
    beat.register()
    beat.unregister()
    assert not Worker.objects.exists()


def test_an_agent_performs_and_reconciles_no_runs() -> None:
    run = make_run(Run.Status.RUNNING)
    Run.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    agent = heartbeat.AgentHeartbeat("a@db", "pgperf-agent-db1")
    agent.register()
    agent.refresh()
    run.refresh_from_db()
    assert run.status == Run.Status.RUNNING
    assert not run_state.live_workers()
    assert [row.layers for row in run_state.live_agents("db1")] == [{}]


def test_a_load_host_has_layers_and_reconciles_no_runs() -> None:
    run = make_run(Run.Status.RUNNING)
    Run.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    host = heartbeat.LoadHostHeartbeat("load@a", "pgperf-load-a")
    host.register()
    host.refresh()
    run.refresh_from_db()
    assert run.status == Run.Status.RUNNING
    assert not run_state.live_workers()
    assert run_state.live_load_hosts() == ["a"]
    assert all("libpq" in row.layers for row in run_state.live_load_workers())


def test_a_load_host_whose_process_is_gone_says_so_in_its_row() -> None:
    run = make_run(Run.Status.RUNNING, attempt=1)
    share = LoadShare.objects.create(
        run=run, attempt=1, name="a", queue="pgperf-load-a", busy_queue="pgperf-load-a", agent="load@a"
    )
    host = heartbeat.LoadHostHeartbeat("load@a", "pgperf-load-a")
    host._mark_lost(share.pk, "The worker's process is gone.")
    share.refresh_from_db()
    assert share.refusal == "The worker's process is gone."


def test_a_beat_reconciles_abandoned_runs(beat: Heartbeat) -> None:
    run = make_run(Run.Status.RUNNING)
    Run.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    beat.register()
    run.refresh_from_db()
    assert run.status == Run.Status.LOST


@pytest.mark.django_db(transaction=True)
def test_the_thread_registers_beats_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.02)
    stayed = threading.Event()
    thread = heartbeat.Heartbeat("w@h", "pgperf")
    monkeypatch.setattr(thread, "refresh", stayed.set)
    thread.start()
    assert stayed.wait(10)
    assert Worker.objects.filter(hostname="w@h").exists()
    thread.stop()
    thread.join(10)
    assert not Worker.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_thread_survives_an_unreachable_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.02)
    tried = threading.Semaphore(0)

    def away() -> None:
        tried.release()
        raise DatabaseError

    thread = heartbeat.Heartbeat("w@h", "pgperf")
    monkeypatch.setattr(thread, "refresh", away)
    thread.start()
    assert tried.acquire(timeout=10)
    assert tried.acquire(timeout=10)
    thread.stop()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.django_db(transaction=True)
def test_a_run_whose_process_was_killed_is_lost_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    thread, said = heartbeat.Heartbeat("w@h", "pgperf"), threading.Event()
    monkeypatch.setattr(thread, "refresh", said.set)
    monkeypatch.setattr(heartbeat, "current", thread)
    run, others = make_run(Run.Status.RUNNING, worker="w@h"), make_run(Run.Status.DONE, worker="w@h")
    thread.start()
    for one in (run, others):
        killed = WorkerLostError("Worker exited prematurely: signal 9 (SIGKILL) Job: 3.")
        heartbeat.on_task_failure(SimpleNamespace(name=broker.TASK), exception=killed, args=(one.pk, 1))
    assert said.wait(10)
    thread.stop()
    thread.join(10)
    run.refresh_from_db()
    others.refresh_from_db()
    assert (run.status, others.status) == (Run.Status.LOST, Run.Status.DONE)
    assert "signal 9 (SIGKILL)" in run.error


@pytest.mark.parametrize(
    ("task", "error"), [("site.tasks.mail", WorkerLostError("gone")), (broker.TASK, ValueError("ours"))]
)
def test_only_killed_processes_lose_runs(
    beat: Heartbeat, monkeypatch: pytest.MonkeyPatch, task: str, error: Exception
) -> None:
    monkeypatch.setattr(heartbeat, "current", beat)
    heartbeat.on_task_failure(SimpleNamespace(name=task), exception=error, args=(1, 1))
    assert not beat.losses


def test_the_reason_for_a_process_s_end() -> None:
    assert "(exitcode 155)" in heartbeat.reason_of(
        WorkerLostError("Worker exited prematurely: exitcode 155.")
    )
    assert "or by itself because this database" in heartbeat.reason_of(WorkerLostError("signal 9 (SIGKILL)"))
    assert "(it ended)" in heartbeat.reason_of(WorkerLostError("gone"))
    assert "time limit" in heartbeat.reason_of(TimeLimitExceeded(10))


@pytest.mark.parametrize(
    ("name", "measuring"),
    [(broker.TASK, True), (broker.WATCH, True), (broker.LOOK, True), ("site.tasks.mail", False)],
)
def test_beats_pause_only_during_measuring(
    monkeypatch: pytest.MonkeyPatch, name: str, measuring: bool
) -> None:
    monkeypatch.setattr(state, "active_requests", [SimpleNamespace(name=name)])
    assert heartbeat.is_measuring() is measuring


def test_an_unsuitable_pool_is_refused() -> None:
    assert "gevent" in heartbeat.refusal_of("celery.concurrency.gevent")
    assert "--pool prefork" in heartbeat.refusal_of("celery.concurrency.eventlet")
    assert heartbeat.refusal_of("celery.concurrency.prefork") == ""


def test_a_refused_worker_is_listed_with_the_reason(beat: Heartbeat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "pool_refusal", "no green threads")
    beat.register()
    assert set(Worker.objects.get().layers.values()) == {"no green threads"}


@pytest.mark.parametrize(
    ("queues", "starts"),
    [
        (["celery", "pgperf"], ["Heartbeat pgperf"]),
        (["celery"], []),
        (["pgperf-agent-db1"], ["AgentHeartbeat pgperf-agent-db1"]),
        (["pgperf-load-a"], ["LoadHostHeartbeat pgperf-load-a"]),
        (["pgperf-agent-db1", "pgperf"], ["Heartbeat pgperf"]),
        (["pgperf-mail"], []),
    ],
)
def test_only_workers_of_pgperf_s_queues_register(
    monkeypatch: pytest.MonkeyPatch, queues: list[str], starts: list[str]
) -> None:
    started: list[str] = []
    note = lambda self: started.append(f"{type(self).__name__} {self.queue}")  # noqa: E731
    monkeypatch.setattr(heartbeat.Heartbeat, "start", note)
    monkeypatch.setattr(heartbeat, "current", None)
    monkeypatch.setattr(heartbeat.atexit, "register", lambda act: None)
    amqp = SimpleNamespace(queues=SimpleNamespace(consume_from=dict.fromkeys(queues)))
    heartbeat.on_worker_ready(SimpleNamespace(hostname="w@h", pool=object(), app=SimpleNamespace(amqp=amqp)))
    assert started == starts
