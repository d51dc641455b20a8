"""Heartbeats: by a thread in long rounds, and while the site's own database is away."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, OperationalError
from django.utils import timezone

from pgperf.models import Database, Run
from pgperf.runs import state
from pgperf.worker.recorder import Recorder
from tests.factories import make_database, make_run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def database() -> Database:
    return make_database(credential="alias:default")


def queued(database: Database) -> Run:
    return make_run(Run.Status.QUEUED, database=database, busy_key=None)


def test_a_thread_sends_heartbeats_during_long_rounds(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = state.claim(queued(database).pk, "w@h")
    Run.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
    recorder, beaten = Recorder(run, None, 5.0), threading.Event()
    write = state.heartbeat

    def heartbeat(*words: Any) -> None:
        write(*words)
        beaten.set()

    monkeypatch.setattr(state, "heartbeat", heartbeat)
    with recorder.background_heartbeat(0.05):
        assert beaten.wait(10)
    assert state.effective_status(run) == Run.Status.RUNNING


def test_the_thread_survives_an_unreachable_database(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = state.claim(queued(database).pk, "w@h")
    tried = threading.Semaphore(0)

    def away(*_: Any) -> None:
        tried.release()
        raise DatabaseError

    monkeypatch.setattr(state, "heartbeat", away)
    with Recorder(run, None, 5.0).background_heartbeat(0.05):
        assert tried.acquire(timeout=10)
        assert tried.acquire(timeout=10)


def test_a_restart_that_takes_too_long_stops_a_run_that_waits_for_its_clients(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise OperationalError("the server is gone")

    monkeypatch.setattr(state, "heartbeat", away)
    recorder = Recorder(state.claim(queued(database).pk, "w@h"), None, 5.0, retry_s=20.0)
    recorder.poll_cancel()
    recorder._written_at -= 20.0
    with pytest.raises(OperationalError):
        recorder.poll_cancel()
