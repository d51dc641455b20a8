"""A real Celery worker that is killed, stopped, suspended, or reads an item that is no message."""

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psutil
import pytest
from django.conf import settings
from django.db import connection
from django.db.models import F
from redis import Redis

from example.stack import web
from example.stack.part import Part
from pgperf.models import Benchmark, Database, Run, Target, Worker
from pgperf.reports.run_json import progress_json, run_json
from pgperf.runs import state, store
from pgperf.runs.definitions import Overrides
from tests import settings_impatient
from tests.process_ends import argv, await_ends, open_pidfds
from tests.shared_workers import rows_of, there_again
from tests.short_runs import request
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)
LAYERS = ["psycopg2", "psycopg"]
#: Within how many seconds a worker does something, and ends something: events on a machine that may
#: be busy. Only a failure waits so long.
WORK_S, END_S = 120.0, 60.0


@pytest.fixture
def impatient(settings: Any) -> None:
    settings.PGPERF = settings_impatient.PGPERF


@pytest.fixture(scope="module")
def shared_worker(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Part, list[Worker]]]:
    """The worker, and its row."""
    environment = {
        **os.environ,
        "PGPERF_DB_NAME": str(connection.settings_dict["NAME"]),
        "DJANGO_SETTINGS_MODULE": "tests.settings_impatient",
    }
    part = web.worker(tmp_path_factory.mktemp("worker"), environment)
    try:
        part.start()
        with django_db_blocker.unblock():
            rows = rows_of([part])
        yield part, rows
    finally:
        part.stop()


@pytest.fixture
def own_worker(shared_worker: tuple[Part, list[Worker]], impatient: None, transactional_db: None) -> Part:
    """A worker that an earlier test may have used, and that runs again if that has ended it."""
    part, rows = shared_worker
    there_again([part], rows)
    return part


@pytest.fixture
def database(routes: dict[str, Any]) -> Database:
    row = Database.objects.create(
        name="real", dbname=connection.settings_dict["NAME"], credential="alias:default", allow_fixtures=True
    )
    port = routes["tcp"].port
    Target.objects.create(database=row, route="tcp", host="127.0.0.1", port=port, sslmode="disable")
    return row


def ask(database: Database, blocks: int) -> Run:
    overrides = Overrides(
        quick=True,
        layers=LAYERS,
        routes=["tcp"],
        slice_ms=10,
        rounds=1,
        blocks=blocks,
        diagnostic_ms=0,
        precision=0.0,
    )
    return request(Benchmark.objects.get(name="orm-overhead"), database, overrides)


def status_of(run: Run) -> str:
    run.refresh_from_db()
    return run.status


def test_a_killed_worker_loses_no_finished_block(own_worker: Part, database: Database) -> None:
    doomed, next_one = ask(database, blocks=100), ask(database, blocks=1)
    until(lambda: store.load_blocks(doomed), WORK_S, "a finished block")
    kept = len(store.load_blocks(doomed))

    assert own_worker.process
    worker = psutil.Process(own_worker.process.pid)
    until(
        lambda: any("pgperf.clients" in argv(each) for each in worker.children(recursive=True)),
        WORK_S,
        "a client",
    )
    pidfds = open_pidfds(worker.children(recursive=True))
    own_worker.process.send_signal(signal.SIGKILL)
    assert await_ends(pidfds, seconds=END_S) == 0
    until(lambda: not backends(doomed), END_S, "no backend is left")

    until(lambda: progress_json(doomed)["status"] == "lost", WORK_S, "the run is lost")
    assert "No sign of life from celery@" in doomed.error
    assert len(store.load_blocks(doomed)) >= kept
    assert (doomed.busy_key, doomed.busy_host) == (None, None)

    own_worker.start()
    until(lambda: status_of(next_one) == Run.Status.DONE, WORK_S, "the next run is done")
    until(
        lambda: run_json(Run.objects.get(pk=doomed.pk))["run"]["partial"],
        WORK_S,
        "the lost run's blocks are summarised",
    )
    assert status_of(doomed) == Run.Status.LOST
    assert doomed.variants.filter(ops__gt=0).count() == len(LAYERS) + 2


def test_a_run_outlives_a_suspension_of_the_main_process(own_worker: Part, database: Database) -> None:
    running, queued = ask(database, blocks=5), ask(database, blocks=1)
    until(lambda: store.load_blocks(running), WORK_S, "a finished block")
    assert own_worker.process
    own_worker.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: progress_json(running)["terminal"], WORK_S, "the run has ended")
        assert (status_of(running), running.error) == (Run.Status.DONE, "")
        assert status_of(queued) == Run.Status.QUEUED
        Worker.objects.update(last_seen=F("last_seen") - timedelta(seconds=25))  # or we would wait for it
        until(lambda: not state.live_workers(), END_S, "no worker is listed")
    finally:
        own_worker.process.send_signal(signal.SIGCONT)
    until(lambda: status_of(queued) == Run.Status.DONE, WORK_S, "the queued run is done")
    assert (running.attempt, queued.attempt) == (1, 1)


@pytest.mark.parametrize("item", [b"no JSON", b"null"])
def test_an_item_that_is_no_json_object_ends_the_worker_after_its_run(
    own_worker: Part, database: Database, item: bytes
) -> None:
    running, queued = ask_around(item, database)
    assert own_worker.process
    assert own_worker.process.wait(WORK_S) == 1
    assert (status_of(running), running.error) == (Run.Status.DONE, "")
    assert status_of(queued) == Run.Status.QUEUED

    own_worker.start()
    until(lambda: status_of(queued) == Run.Status.DONE, WORK_S, "the queued run is done")
    assert (running.attempt, queued.attempt) == (1, 1)


def test_an_object_that_is_no_message_ends_nothing(own_worker: Part, database: Database) -> None:
    running, queued = ask_around(b"{}", database)
    until(lambda: status_of(queued) == Run.Status.DONE, WORK_S, "the queued run is done")
    assert (status_of(running), running.attempt, queued.attempt) == (Run.Status.DONE, 1, 1)
    assert not own_worker.has_ended()
    assert "KeyError('properties')" in own_worker.log_since_start()


def ask_around(item: bytes, database: Database) -> tuple[Run, Run]:
    """A running run, and a queued one whose message is behind the item."""
    running = ask(database, blocks=5)
    until(lambda: store.load_blocks(running), WORK_S, "a finished block")
    Redis.from_url(settings.CELERY_BROKER_URL).rpush("pgperf", item)  # the next item to be read
    return running, ask(database, blocks=1)


def test_cancelling_a_run_of_a_real_worker(own_worker: Part, database: Database) -> None:
    run = ask(database, blocks=100)
    until(lambda: status_of(run) == Run.Status.RUNNING, WORK_S, "it runs")
    state.request_cancel(run)
    until(lambda: status_of(run) == Run.Status.CANCELLED, END_S, "it is cancelled")
    assert Worker.objects.count() == 1


def test_a_stopped_worker_ends_its_run_and_deletes_its_row(own_worker: Part, database: Database) -> None:
    run = ask(database, blocks=100)
    until(lambda: status_of(run) == Run.Status.RUNNING and store.load_blocks(run), WORK_S, "a finished block")
    assert [worker.layers["fake"] for worker in state.live_workers()] == [""]
    own_worker.stop()
    until(lambda: progress_json(run)["terminal"], WORK_S, "the run has ended")
    assert (run.status, run.error) == (Run.Status.FAILED, "The worker was shut down.")
    assert run.summary["partial"] is True
    until(lambda: not backends(run), END_S, "no backend is left")
    assert not Worker.objects.exists()


def backends(run: Run) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name LIKE %s", [f"pgperf-{run.pk}-%"]
        )
        return cursor.fetchall()
