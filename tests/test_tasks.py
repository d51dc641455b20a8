"""The Celery task: thin, deaf to repeated messages, and honest about a version or a pool that does
not fit.
"""

import json
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from billiard.exceptions import WorkerLostError
from celery import current_app
from django.utils import timezone

from pgperf import tasks
from pgperf.core.exceptions import FenceLost, RunConflict
from pgperf.models import Run
from pgperf.runs import broker, state
from pgperf.worker import heartbeat, load_share, machine_look, statement_list
from tests.factories import make_run, make_worker

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


#: Arguments of messages that pgperf of this version does not send, for the id of a row.
FOREIGN: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "a later version": lambda pk: ([pk, broker.SCHEMA + 1], {}),
    "an earlier version": lambda pk: ([pk, broker.SCHEMA - 1], {}),
    "no version": lambda pk: ([pk], {}),
    "a version as text": lambda pk: ([pk, str(broker.SCHEMA)], {}),
    "a version as a fraction": lambda pk: ([pk, float(broker.SCHEMA)], {}),
    "no arguments": lambda pk: ([], {}),
    "one more argument": lambda pk: ([pk, broker.SCHEMA, 0], {}),
    "arguments by name": lambda pk: ([], {"run_id": pk, "schema": broker.SCHEMA}),
    "one more name": lambda pk: ([pk, broker.SCHEMA], {"queue": "x"}),
    "an id as text": lambda pk: ([str(pk), broker.SCHEMA], {}),
    "an id as a fraction": lambda pk: ([float(pk), broker.SCHEMA], {}),
    "a true id": lambda pk: ([True, broker.SCHEMA], {}),
    "no id": lambda pk: ([None, broker.SCHEMA], {}),
    "a list": lambda pk: ([[pk], broker.SCHEMA], {}),
    "an object": lambda pk: ([{"pk": pk}, broker.SCHEMA], {}),
    "a negative id": lambda pk: ([-pk, broker.SCHEMA], {}),
    "zero": lambda pk: ([0, broker.SCHEMA], {}),
    "a huge id": lambda pk: ([2**63, broker.SCHEMA], {}),
    "a long text": lambda pk: (["x" * 10**6, "\n" * 10**6], {}),
    "deep lists": lambda pk: ([json.loads("[" * 900 + "]" * 900), broker.SCHEMA], {}),
}


@pytest.mark.parametrize("shape", FOREIGN)
def test_a_message_that_is_not_ours_is_logged_and_ignored(
    performed: list[Any], shape: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[int] = []
    monkeypatch.setattr(tasks, "serve", lambda row_id, *_: watched.append(row_id))
    for module in (machine_look, load_share):
        monkeypatch.setattr(module, "serve", lambda row_id, *_: watched.append(row_id))
    monkeypatch.setattr(statement_list, "read", lambda row_id, *_: watched.append(row_id))
    run = queued()
    args, kwargs = FOREIGN[shape](run.pk)
    for name in (broker.TASK, broker.WATCH, broker.LOAD, broker.STATEMENTS, broker.LOOK):
        current_app.tasks[name].apply(args, kwargs, throw=True)
        assert f"ignored a message for {name}" in caplog.text
    run.refresh_from_db()
    assert (performed, watched) == ([], [])
    assert (run.status, run.error, run.attempt) == (Status.QUEUED, "", 0)
    assert all(len(line) < 500 for line in caplog.text.splitlines())


def test_a_run_whose_message_was_ignored_is_sent_again(
    performed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(broker, "send", lambda run_id, queue: sent.append(run_id))
    run = queued()
    make_worker()
    Run.objects.update(sent_at=timezone.now() - timedelta(seconds=state.RESEND_SECONDS + 1))
    deliver(run, schema=2)
    state.reconcile()
    assert sent == [run.pk]
    deliver(run)
    assert performed == [run.pk]


@pytest.mark.parametrize("number", [10**6, 2**63 - 1])
def test_an_id_without_a_run_does_nothing(number: int) -> None:
    tasks.run_benchmark(number, broker.SCHEMA)
    tasks.watch_host(number, broker.SCHEMA)


def test_a_killed_process_with_a_forged_message_loses_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[int] = []
    monkeypatch.setattr(heartbeat, "current", SimpleNamespace(lose=lambda run_id, _: lost.append(run_id)))
    for name in (broker.TASK, broker.LOAD):
        for args in (["x", 1], [], None, [[1]], [3, broker.SCHEMA]):
            heartbeat.on_task_failure(current_app.tasks[name], WorkerLostError("signal 9 (SIGKILL)"), args)
    assert lost == [3, 3]


def test_a_late_message_of_another_version_changes_nothing(performed: list[Any]) -> None:
    run = make_run(Status.DONE)
    assert deliver(run, schema=2).status == Status.DONE


def test_a_pool_of_green_threads(performed: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "pool_refusal", heartbeat.refusal_of("celery.concurrency.gevent"))
    run = deliver(queued())
    assert performed == []
    assert (run.status, "--pool prefork" in run.error) == (Status.FAILED, True)
