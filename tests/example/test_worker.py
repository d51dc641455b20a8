"""The Celery worker as the stack and the tests start it."""

import signal

import psutil
import pytest
from django.db import connection

from example.celery import app
from example.stack.part import Part
from tests.process_ends import await_ends, open_pidfds

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_worker_answers_over_the_broker(worker: Part) -> None:
    replies = app.control.ping(timeout=10, limit=1)
    assert [reply for by_host in replies for reply in by_host.values()] == [{"ok": "pong"}]


def test_the_worker_knows_the_task_that_runs_benchmarks(worker: Part) -> None:
    registered = app.control.inspect(timeout=10, limit=1).registered()
    assert [name for names in registered.values() for name in names if name.startswith("pgperf.")]


def test_the_worker_uses_the_tests_own_database(worker: Part) -> None:
    assert worker.process is not None
    name = str(connection.settings_dict["NAME"])
    assert name.startswith("test_pgperf")
    assert f"PGPERF_DB_NAME={name}" in _environment(worker.process.pid)


def test_the_pool_of_a_killed_worker_ends(worker: Part) -> None:
    assert worker.process is not None
    family = psutil.Process(worker.process.pid).children(recursive=True)
    assert family
    pidfds = open_pidfds(family)
    worker.process.send_signal(signal.SIGKILL)
    assert await_ends(pidfds, seconds=10) == 0


def _environment(pid: int) -> list[str]:
    with open(f"/proc/{pid}/environ") as file:
        return file.read().split("\0")
