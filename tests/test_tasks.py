"""The Celery task: thin, deaf to repeated messages, and honest about a version or a pool that does
not fit.
"""

from typing import Any

import pytest
from celery import current_app

from pgperf import tasks
from pgperf.core.exceptions import FenceLost, RunConflict
from pgperf.models import Run
from pgperf.runs import broker, state
from pgperf.worker import heartbeat
from tests.factories import make_run

Status = Run.Status
pytestmark = pytest.mark.django_db


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    calls: list[Any] = []
    monkeypatch.setattr(tasks, "perform", lambda run_id, worker: calls.append(run_id))
    return calls


def queued() -> Run:
    return make_run(Status.QUEUED, queue="pgperf", busy_key=None)


def deliver(run: Run, schema: int = broker.SCHEMA) -> Run:
    tasks.run_benchmark(run.pk, schema)
    run.refresh_from_db()
    return run


def test_it_is_registered_as_the_message_names_it() -> None:
    task = current_app.tasks[broker.TASK]
    assert (task.acks_late, task.ignore_result, task.max_retries) == (False, True, 0)


def test_performs_the_run(performed: list[Any]) -> None:
    run = queued()
    deliver(run)
    assert performed == [run.pk]


def test_a_message_that_comes_five_times_performs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    performed: list[int] = []

    def claim_and_end(run_id: int, worker: str) -> None:
        run = state.claim(run_id, worker)
        performed.append(run.attempt)
        state.finish(run)

    monkeypatch.setattr(tasks, "perform", claim_and_end)
    run = queued()
    for _ in range(5):
        deliver(run)
    assert (performed, run.status) == ([1], Status.DONE)


@pytest.mark.parametrize("error", [RunConflict("taken"), FenceLost("taken away")])
def test_a_run_that_is_not_ours_is_no_error(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr(tasks, "perform", refuse)
    run = deliver(queued())
    assert (run.status, run.error, run.attempt) == (Status.QUEUED, "", 0)


def test_a_message_of_another_version(performed: list[Any]) -> None:
    run = deliver(queued(), schema=2)
    assert performed == []
    assert (run.status, "restart the workers" in run.error) == (Status.FAILED, True)


def test_a_late_message_of_another_version_changes_nothing(performed: list[Any]) -> None:
    run = make_run(Status.DONE)
    assert deliver(run, schema=2).status == Status.DONE


def test_a_pool_of_green_threads(performed: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "pool_refusal", heartbeat.refusal_of("celery.concurrency.gevent"))
    run = deliver(queued())
    assert performed == []
    assert (run.status, "--pool prefork" in run.error) == (Status.FAILED, True)
