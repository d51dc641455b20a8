"""Runs from claim to each kind of end, with real client processes of the fake layer."""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import OperationalError, connection
from django.utils import timezone

from benchmarks.twin import twin
from pgperf import signals
from pgperf.core import site_start
from pgperf.core.exceptions import ClientFailed, FenceLost, RunCancelled, RunConflict, RunWaits
from pgperf.core.records import Definition, LeftOut, Plan, Route, WorkloadDefinition
from pgperf.install import launch
from pgperf.models import Benchmark, Database, Run, Target
from pgperf.reports.csv_results import variants_csv
from pgperf.reports.run_json import rows_json
from pgperf.reports.run_rows import read
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server.probe import ServerProbe
from pgperf.runs import state, store
from pgperf.runs.definitions import Overrides
from pgperf.worker import execution, recorder
from pgperf.worker.lifeline import Lifeline
from pgperf.worker.recorder import Recorder
from tests import factories
from tests.client_environments import with_other_pgperf
from tests.database_outage import terminate_own_backend
from tests.factories import make_database, make_run
from tests.runner.builders import definition
from tests.runner.forked_clients import Nursery, of_no_site
from tests.short_runs import request

Status = Run.Status
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_heartbeat")]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with of_no_site("fake", "psycopg") as found:
        yield found


@pytest.fixture
def started() -> None:
    """Clients start by themselves: their own processes are looked at."""


@pytest.fixture(autouse=True)
def forked(request: pytest.FixtureRequest, nursery: Nursery) -> Iterator[None]:
    """Other clients, and control connections, are forked."""
    with nullcontext() if "started" in request.fixturenames else nursery.raising():
        yield


@pytest.fixture(autouse=True)
def patient_lifeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may be silent for longer than a test's STALE_SECONDS, which would end the tests'
    own process.
    """
    monkeypatch.setattr(execution, "Lifeline", lambda seconds: Lifeline(3600.0))


@pytest.fixture
def database(settings: Any) -> Database:
    """One that the fake layer never connects to."""
    row = make_database(credential="alias:default")
    Target.objects.filter(route="tcp").update(route="here")
    return row


def ask(database: Database, frozen: Definition | None = None, **fields: Any) -> Run:
    frozen = frozen or definition(blocks=3, rounds=2)
    return make_run(Status.QUEUED, database=database, busy_key=None, definition=frozen.to_json(), **fields)


class Watch:
    def __init__(self, act: Callable[[float], None] | None = None) -> None:
        self.shares: list[float] = []
        self._act = act

    def progress(self, share: float, message: str) -> None:
        self.shares.append(share)
        if self._act:
            self._act(share)


class FailsAt:
    """An observer that raises at the first message with these words."""

    def __init__(self, words: str, error: BaseException) -> None:
        self._words, self._error = words, error

    def progress(self, share: float, message: str) -> None:
        if self._words in message:
            raise self._error


class TestDone:
    def test_the_run_has_its_results(self, database: Database) -> None:
        watch = Watch()
        run = execution.perform(ask(database).pk, "w@h", watch)
        assert (run.status, run.error, run.progress, run.busy_key) == (Status.DONE, "", 1.0, None)
        assert watch.shares[-1] == 1.0
        assert watch.shares == sorted(watch.shares)
        assert len(store.load_blocks(run)) == 3 * 2
        assert [row.control for row in run.variants.all()] == [0, 1]
        assert all(row.ops > 0 and row.us_per_op > 0 for row in run.variants.all())
        assert [row.aa for row in run.comparisons.all()] == [True]
        assert run.analysis_version > 0
        assert run.summary["partial"] is False
        assert run.environment["python"]
        assert run.timings["wall_s"] > 0

    def test_a_search_has_no_row_and_its_steps_are_stored(self, database: Database) -> None:
        frozen = definition(
            blocks=2,
            rounds=2,
            slice_ms=50,
            nominal_us={"fake": 2000.0},
            rate_search_ms=20.0,
            diagnostic_ms=50,
        )
        run = execution.perform(ask(database, frozen).pk, "w@h")
        assert run.status == Status.DONE, run.error
        assert [row.label for row in run.variants.all()] == ["fake · here", "fake · here · control 1"]
        (found,) = read(run).rate_searches
        assert (found.reference, found.limit_ms) == ("fake · here", 20.0)
        assert [(step.block, step.round) for step in found.steps] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert all(step.capacity > 0 and step.due > 0 for step in found.steps)
        assert (found.rate is None) == (found.outcome != "found")

    def test_no_client_is_left(self, database: Database, started: None) -> None:
        execution.perform(ask(database).pk, "w@h")
        assert not [child for child in psutil.Process().children(recursive=True) if _is_client(child)]

    def test_an_unavailable_layer_is_skipped_with_the_reason(
        self, database: Database, settings: Any, tmp_path: Any
    ) -> None:
        settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": tmp_path}
        run = execution.perform(ask(database, definition(layers=("libpq", "fake"))).pk, "w@h")
        assert run.status == Status.DONE
        (left,) = run.summary["skipped"]
        assert left["layer"] == "libpq"
        assert "pgperf build" in left["reason"]


def test_a_receiver_of_the_end_sees_the_results(
    database: Database, django_capture_on_commit_callbacks: Any
) -> None:
    seen: list[Run] = []

    def receive(run: Run, **_: Any) -> None:
        seen.append(run)

    signals.run_finished.connect(receive)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            execution.perform(ask(database).pk, "w@h", Watch())
    finally:
        signals.run_finished.disconnect(receive)
    (run,) = seen
    assert run.summary["levels"]
    assert run.environment
    assert run.timings


class TestEnvironments:
    @pytest.fixture
    def named(self, settings: Any, tmp_path: Path, started: None) -> None:
        """A twin of this Python, one with another pgperf, and one that is none."""
        usable, stub = twin(tmp_path), with_other_pgperf(tmp_path, "0.0.9")
        settings.PGPERF = {
            **settings.PGPERF,
            "ENVIRONMENTS": {"twin": usable.python, "stub": stub.python, "gone": "/no/such/python"},
        }

    def test_the_sides_that_can_run_are_compared_and_the_others_named(
        self, database: Database, named: None
    ) -> None:
        frozen = definition(blocks=3, rounds=2, environments=("default", "twin", "stub", "gone", "unnamed"))
        run = execution.perform(ask(database, frozen).pk, "w@h")
        assert run.status == Status.DONE, run.error
        assert [(row.label, row.environment) for row in run.variants.all()] == [
            ("fake · here", "default"),
            ("fake · here · twin", "twin"),
            ("fake · here · control 1", "default"),
            ("fake · here · twin · control 1", "twin"),
        ]
        left = {each["environment"]: each["reason"] for each in run.summary["skipped"]}
        assert left["stub"].startswith("pgperf 0.0.9 is installed there")
        assert left["gone"] == "/no/such/python is not an executable file"
        assert left["unnamed"] == "PGPERF['ENVIRONMENTS'] of this worker has no 'unnamed'"
        assert list(run.environment["environments"]) == ["twin"]
        found = rows_json(read(run))
        assert {each["environment"] for each in found["variants"]} == {"default", "twin"}
        (compared,) = [each for each in found["comparisons"] if not each["aa"]]
        assert (compared["variant"], compared["baseline"]) == ("fake · here · twin", "fake · here")
        assert compared["low"] <= compared["ratio"] <= compared["high"]
        assert compared["outcome"]
        assert "fake,simple,here,1,1,scheduler,persistent,twin" in variants_csv(run)

    def test_no_link_is_left(self, database: Database, named: None, monkeypatch: Any, tmp_path: Path) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "links"))
        (tmp_path / "links").mkdir()
        run = execution.perform(ask(database, definition(environments=("default", "twin"))).pk, "w@h")
        assert run.status == Status.DONE, run.error
        assert not list((tmp_path / "links").iterdir())


def test_skipped_modes() -> None:
    skipped = execution.skipped_layers(
        definition(layers=("psycopg2", "fake"), modes=("simple", "prepared")), ""
    )
    assert [(each.layer, each.mode) for each in skipped] == [("psycopg2", "prepared")]


class TestClaimed:
    def test_a_run_claimed_by_another_worker_is_left_alone(self, database: Database) -> None:
        run = ask(database)
        state.claim(run.pk, "other")
        with pytest.raises(RunConflict):
            execution.perform(run.pk, "w@h")

    def test_a_run_waits_while_another_runs(self, database: Database) -> None:
        state.claim(ask(database).pk, "other")
        with pytest.raises(RunWaits):
            execution.perform(ask(database).pk, "w@h")


class TestFailed:
    def test_no_layer_can_run(self, database: Database, settings: Any, tmp_path: Any) -> None:
        settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": tmp_path}
        run = execution.perform(ask(database, definition(layers=("libpq",))).pk, "w@h")
        assert run.status == Status.FAILED
        assert run.error.startswith("layers: none of them can run here")

    def test_the_database_was_deleted(self, database: Database) -> None:
        run = ask(database)
        database.delete()
        assert execution.perform(run.pk, "w@h").error == "database: demo was deleted"

    def test_the_credential_does_not_resolve(self, database: Database) -> None:
        Database.objects.update(credential="alias:gone")
        assert "no alias 'gone'" in execution.perform(ask(database).pk, "w@h").error

    def test_a_guardrail_refuses_the_run(self, database: Database, settings: Any) -> None:
        settings.PGPERF = {**settings.PGPERF, "MAX_RUN_SECONDS": 1}
        error = execution.perform(ask(database).pk, "w@h").error
        assert "MAX_RUN_SECONDS" in error

    def test_a_client_fails(self, database: Database, started: None) -> None:
        def kill_one(share: float) -> None:
            clients = [child for child in psutil.Process().children(recursive=True) if _is_client(child)]
            for client in clients[:1]:  # a run has none before it has checked its routes
                client.kill()

        run = execution.perform(ask(database).pk, "w@h", Watch(kill_one))
        assert run.status == Status.FAILED
        assert "SIGKILL" in run.error

    def test_finished_blocks_are_kept_and_summarised(self, database: Database) -> None:
        run = execution.perform(ask(database).pk, "w@h", FailsAt("Block 2 of 3", ClientFailed("died")))
        assert (run.status, run.error) == (Status.FAILED, "died")
        assert {block.block for block in store.load_blocks(run)} == {0}
        assert run.summary["partial"] is True
        assert all(row.ops > 0 for row in run.variants.all())
        assert run.finished_at is not None

    @pytest.mark.parametrize("trouble", [ClientFailed("died"), RunCancelled("enough"), ValueError("odd")])
    def test_the_environment_is_kept(self, database: Database, trouble: Exception) -> None:
        run = execution.perform(ask(database).pk, "w@h", Watch(_raise_after(0.1, trouble)))
        assert run.status in (Status.FAILED, Status.CANCELLED)
        run.refresh_from_db()
        assert {"python", "packages", "machine", "placement"} <= run.environment.keys()

    def test_neither_the_error_nor_the_log_contains_a_secret(
        self,
        database: Database,
        settings: Any,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        monkeypatch.setenv("PGPERF_SECRET_T", "hunter2-canary")
        Database.objects.update(credential="env:PGPERF_SECRET_T", user="bench")
        trouble = ValueError("connection string was host=x password=hunter2-canary")
        with caplog.at_level(logging.DEBUG):
            run = execution.perform(ask(database).pk, "w@h", Watch(_raise_after(0.1, trouble)))
        assert run.error.startswith("Unexpected ValueError: connection string was host=x password=<password>")
        assert "Traceback" in caplog.text
        assert "hunter2-canary" not in caplog.text
        assert "hunter2-canary" not in json.dumps(list(Run.objects.values()), default=str)

    def test_a_long_error_is_truncated(self, database: Database) -> None:
        run = execution.perform(ask(database).pk, "w@h", Watch(_raise_after(0.1, ValueError("x" * 5000))))
        assert len(run.error) == 500

    def test_celery_s_time_limit_ends_the_run(self, database: Database) -> None:
        run = execution.perform(ask(database).pk, "w@h", Watch(_raise_after(0.1, SoftTimeLimitExceeded())))
        assert (run.status, "MAX_RUN_SECONDS" in run.error) == (Status.FAILED, True)

    def test_the_worker_is_shut_down(self, database: Database) -> None:
        asked = ask(database)
        with pytest.raises(SystemExit):
            execution.perform(asked.pk, "w@h", Watch(_raise_after(0.1, SystemExit())))
        asked.refresh_from_db()
        assert (asked.status, asked.error) == (Status.FAILED, "The worker was shut down.")

    def test_blocks_that_cannot_be_summarised_are_kept(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any) -> Any:
            raise ArithmeticError

        monkeypatch.setattr(execution, "summarise", refuse)
        run = execution.perform(ask(database).pk, "w@h")
        assert (run.status, run.summary) == (Status.FAILED, {"skipped": []})
        assert len(store.load_blocks(run)) == 6


def test_a_run_of_the_site_s_call_knows_how_long_the_site_takes_to_start(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[Plan] = []
    monkeypatch.setattr(site_start, "seconds", lambda: 2.5)
    monkeypatch.setattr(execution, "make_plan", lambda *each: planned.append(make_plan(*each)) or planned[-1])
    own = WorkloadDefinition("own", "", orm="site.call")
    execution.perform(ask(database, definition(workloads=(own,))).pk, "w@h")
    assert planned
    assert {plan.definition.work("own").start_s for plan in planned} == {2.5}


class TestPermission:
    @pytest.fixture
    def user(self) -> Any:
        user = get_user_model().objects.create(username="ops")
        user.user_permissions.add(Permission.objects.get(codename="start_run"))
        return user

    def test_a_user_with_permission(self, database: Database, user: Any) -> None:
        assert execution.perform(ask(database, requested_by=user).pk, "w@h").status == Status.DONE

    def test_a_user_whose_permission_was_withdrawn(self, database: Database, user: Any) -> None:
        user.user_permissions.clear()
        run = execution.perform(ask(database, requested_by=user).pk, "w@h")
        assert (run.status, run.error.partition(":")[0]) == (Status.FAILED, "permission")

    def test_a_deactivated_user(self, database: Database, user: Any) -> None:
        get_user_model().objects.update(is_active=False)
        assert execution.perform(ask(database, requested_by=user).pk, "w@h").status == Status.FAILED


class TestCancelled:
    @pytest.fixture(autouse=True)
    def look_each_round(self, settings: Any) -> None:
        settings.PGPERF = {**settings.PGPERF, "HEARTBEAT_SECONDS": 0.0}

    def test_a_cancel_request_stops_the_run(self, database: Database) -> None:
        asked = ask(database)
        run = execution.perform(asked.pk, "w@h", Watch(_act_after(0.5, lambda: state.request_cancel(asked))))
        assert (run.status, run.error) == (Status.CANCELLED, "cancelled on request")
        assert run.summary["partial"] is True

    def test_ctrl_c_cancels_the_run(self, database: Database) -> None:
        asked = ask(database)
        with pytest.raises(KeyboardInterrupt):
            execution.perform(asked.pk, "w@h", Watch(_raise_after(0.1, KeyboardInterrupt())))
        asked.refresh_from_db()
        assert asked.status == Status.CANCELLED

    def test_a_run_lost_to_another_attempt_stops_and_writes_nothing(
        self, database: Database, started: None
    ) -> None:
        asked = ask(database)

        def take_away() -> None:
            Run.objects.filter(pk=asked.pk).update(status=Status.LOST, error="stale")

        with pytest.raises(FenceLost):
            execution.perform(asked.pk, "w@h", Watch(_act_after(0.1, take_away)))
        asked.refresh_from_db()
        assert (asked.status, asked.error) == (Status.LOST, "stale")
        assert not [child for child in psutil.Process().children(recursive=True) if _is_client(child)]


class TestHeartbeat:
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("slow", ["starting_here", "summarise"])
    def test_a_run_that_prepares_or_summarises_for_long_lives(
        self, database: Database, settings: Any, monkeypatch: pytest.MonkeyPatch, slow: str
    ) -> None:
        settings.PGPERF = {**settings.PGPERF, "HEARTBEAT_SECONDS": 3600.0, "STALE_SECONDS": 0.3}
        beaten, write, do = threading.Event(), state.heartbeat, getattr(execution, slow)

        def heartbeat(*words: Any) -> None:
            write(*words)
            beaten.set()

        def slowly(*words: Any) -> Any:
            beaten.clear()
            assert beaten.wait(10)
            return do(*words)

        monkeypatch.setattr(state, "heartbeat", heartbeat)
        monkeypatch.setattr(execution, slow, slowly)
        assert execution.perform(ask(database).pk, "w@h").status == Status.DONE

    def test_the_heartbeat_interval_is_a_setting(self, database: Database, settings: Any) -> None:
        settings.PGPERF = {**settings.PGPERF, "HEARTBEAT_SECONDS": 0.0}
        asked, seen = ask(database), []
        execution.perform(
            asked.pk, "w@h", Watch(lambda _: seen.append(Run.objects.get(pk=asked.pk).progress))
        )
        assert seen[-1] > 0

    def test_a_quiet_round_writes_nothing(
        self, database: Database, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.PGPERF = {**settings.PGPERF, "HEARTBEAT_SECONDS": 3600.0}
        beats: list[float] = []
        monkeypatch.setattr(state, "heartbeat", lambda run, share, message: beats.append(share))
        execution.perform(ask(database, definition(rounds=5)).pk, "w@h")
        assert len(beats) == 1  # the end of the block


class TestARestartOfTheSitesDatabase:
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
    def test_a_restart_does_not_stop_a_run(self, database: Database, settings: Any, share: float) -> None:
        settings.PGPERF = {**settings.PGPERF, "HEARTBEAT_SECONDS": 0.0}
        run = execution.perform(ask(database).pk, "w@h", Watch(_act_after(share, terminate_own_backend)))
        assert (run.status, run.error) == (Status.DONE, "")
        assert len(store.load_blocks(run)) == 3 * 2

    @pytest.mark.django_db(transaction=True)
    def test_a_restart_does_not_hide_the_error_of_a_run(self, database: Database) -> None:
        def cut_and_fail() -> None:
            terminate_own_backend()
            raise ClientFailed("died")

        run = execution.perform(ask(database).pk, "w@h", Watch(_act_after(0.6, cut_and_fail)))
        assert (run.status, run.error, run.summary["partial"]) == (Status.FAILED, "died", True)

    @pytest.mark.django_db(transaction=True)
    def test_a_restart_that_takes_too_long_stops_the_run(
        self, database: Database, settings: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*_: Any) -> None:
            raise OperationalError("the server is gone")

        settings.PGPERF = {**settings.PGPERF, "HEARTBEAT_SECONDS": 0.0, "STALE_SECONDS": 0.3}
        monkeypatch.setattr(state, "heartbeat", away)
        run = execution.perform(ask(database, definition(blocks=3, rounds=100)).pk, "w@h")
        assert run.status == Status.FAILED
        assert run.error.startswith("The site's own database, which holds the runs, failed or did not answer")

    @pytest.mark.django_db(transaction=True)
    def test_an_unacknowledged_commit_of_the_end_counts(self, database: Database) -> None:
        run = state.claim(ask(database).pk, "w@h")

        def lose_the_answer() -> None:
            state.finish(run)
            raise OperationalError("the connection was lost")

        execution._end_once(run, Status.DONE, lose_the_answer)
        assert Run.objects.get().status == Status.DONE

    @pytest.mark.django_db(transaction=True)
    def test_an_unacknowledged_commit_of_the_claim_counts(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim, tries = state.claim, []

        def lose_the_answer(run_id: int, worker: str) -> Run:
            run = claim(run_id, worker)
            tries.append(run_id)
            if len(tries) == 1:
                raise OperationalError("the connection was lost")
            return run

        monkeypatch.setattr(state, "claim", lose_the_answer)
        run = execution.perform(ask(database).pk, "w@h")
        assert (run.status, run.attempt) == (Status.DONE, 1)

    @pytest.mark.django_db(transaction=True)
    def test_a_run_that_another_process_claimed_meanwhile_is_left_alone(
        self, database: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim = state.claim

        def others_are_faster(run_id: int, worker: str) -> Run:
            claim(run_id, worker)
            Run.objects.update(message="Starting in process 1.")
            monkeypatch.setattr(state, "claim", claim)
            raise OperationalError("the connection was lost")

        monkeypatch.setattr(state, "claim", others_are_faster)
        with pytest.raises(RunConflict):
            execution.perform(ask(database).pk, "w@h")

    @pytest.mark.django_db(transaction=True)
    def test_a_restart_while_a_run_is_cancelled(self, database: Database, settings: Any) -> None:
        settings.PGPERF = {**settings.PGPERF, "HEARTBEAT_SECONDS": 3600.0}

        def cut_and_cancel() -> None:
            terminate_own_backend()
            raise RunCancelled("cancelled on request")

        run = execution.perform(ask(database).pk, "w@h", Watch(_act_after(0.6, cut_and_cancel)))
        assert (run.status, run.error) == (Status.CANCELLED, "cancelled on request")

    @pytest.mark.django_db(transaction=True)
    def test_an_end_by_another_process_is_recognized(self, database: Database) -> None:
        run = state.claim(ask(database).pk, "w@h")

        def lose_the_run() -> None:
            state.fail(run, "by somebody else")
            raise OperationalError("the connection was lost")

        with pytest.raises(FenceLost):
            execution._end_once(run, Status.DONE, lose_the_run)


@pytest.mark.parametrize("word", ["hang at connect", "hang at ready", "hang"])
def test_a_hanging_client_does_not_delay_a_cancel(
    database: Database, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setattr(recorder, "LONG_ROUND_S", 0.0)
    monkeypatch.setattr(state, "is_cancelling", lambda run: True)
    frozen = definition(warm_up_ops=100)
    run = execution.perform(
        ask(database, replace(frozen, workloads=(replace(frozen.workloads[0], sql=word),))).pk, "w@h"
    )
    assert (run.status, run.error) == (Status.CANCELLED, "cancelled on request")


def test_a_run_that_was_taken_away_ends_while_it_waits_for_a_client(
    database: Database, started: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its heartbeat finds out; the clients must not load the server beside the next run."""
    frozen = definition(warm_up_ops=100)
    run = ask(database, replace(frozen, workloads=(replace(frozen.workloads[0], sql="hang at ready"),)))
    monkeypatch.setattr(execution, "_retry_s", lambda: 1.0)
    settings = replace(execution.get_settings(), STALE_SECONDS=0.3)
    monkeypatch.setattr(execution, "get_settings", lambda: settings)

    def taken_away(own: Run, *_words: Any) -> None:
        raise FenceLost(f"run {own.pk} is lost")

    monkeypatch.setattr(state, "heartbeat", taken_away)
    began = time.monotonic()
    with pytest.raises(FenceLost):
        execution.perform(run.pk, "w@h")
    assert time.monotonic() - began < 20
    assert not [child for child in psutil.Process().children(recursive=True) if _is_client(child)]


def test_without_a_thread_for_its_heartbeat_a_run_fails_with_the_limit(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        run = execution.perform(ask(database).pk, "w@h")
    assert (run.status, run.busy_key, run.busy_host) == (Status.FAILED, None, None)
    assert run.error.startswith("processes: the system let the worker start no more processes or threads")


@pytest.mark.parametrize("text", ["a\0b", "half a character \udcff"])
def test_a_reason_that_no_database_stores_is_made_printable(database: Database, text: str) -> None:
    run = execution.perform(ask(database).pk, "w@h", Watch(_raise_after(0.1, ClientFailed(text))))
    assert run.status == Status.FAILED
    assert "\ufffd" in run.error


def test_runs_of_the_same_number_in_two_installations_name_their_sessions_differently() -> None:
    """Each ends the sessions of its clients by their names. PostgreSQL keeps 63 bytes of a name."""
    runs = [Run(pk=2**63 - 1, definition=definition(seed=seed).to_json()) for seed in (1, 2**31 - 1)]
    keys = [execution._machine(run, {}, 0.0).run_id for run in runs]
    names = [ServerProbe([], None, key, may_pin=False).application for key in keys]
    assert names == [f"pgperf-{run.session_key}" for run in runs]
    assert names[0] != names[1]
    assert all(len(f"{names[1]}-{more}") <= 63 for more in ("statements", "9999.99999"))


class TestLostRuns:
    @pytest.fixture(autouse=True)
    def new_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(execution, "_not_summarisable", set())

    def test_a_lost_run_gets_a_summary_of_its_finished_blocks(self, database: Database) -> None:
        run = state.claim(ask(database).pk, "w@h")
        measure_without_end(run)
        Run.objects.update(status=Status.LOST, busy_key=None, busy_host=None)
        assert execution.summarise_ended_runs() == [run.pk]
        run.refresh_from_db()
        assert run.summary["partial"] is True
        assert run.variants.count() == 2
        assert execution.summarise_ended_runs() == []

    def test_its_summary_has_what_was_left_out_where_it_was_measured(
        self, database: Database, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not what the machine lacks that makes the summary: here that is the measured layer."""
        settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": tmp_path}
        run = state.claim(ask(database, definition(layers=("libpq", "fake"))).pk, "w@h")
        execution._ClaimedRun(run, Recorder(run, None, 5.0)).measure()
        Run.objects.update(status=Status.LOST, busy_key=None, busy_host=None)
        monkeypatch.setattr(execution, "skipped_layers", lambda *_: [LeftOut("not here", layer="fake")])
        assert execution.summarise_ended_runs() == [run.pk]
        run.refresh_from_db()
        assert [each["layer"] for each in run.summary["skipped"]] == ["libpq"]
        assert {row.layer for row in run.variants.all()} == {"fake"}

    def test_a_run_of_a_later_version_is_tried_once_and_stops_no_other(
        self, database: Database, caplog: pytest.LogCaptureFixture
    ) -> None:
        runs = [state.claim(ask(database).pk, "w@h") for _ in range(1)]
        measure_without_end(runs[0])
        Run.objects.update(
            status=Status.LOST, busy_key=None, busy_host=None, definition={**runs[0].definition, "later": 1}
        )
        runs.append(state.claim(ask(database).pk, "w@h"))
        measure_without_end(runs[1])
        Run.objects.update(status=Status.LOST, busy_key=None, busy_host=None)
        for summarised in ([runs[1].pk], []):
            assert execution.summarise_ended_runs() == summarised
        (told,) = [each for each in caplog.messages if each.startswith(f"run {runs[0].pk}: ")]
        assert "another version of pgperf stored it" in told

    @pytest.mark.parametrize("status", [Status.FAILED, Status.CANCELLED])
    def test_a_run_whose_process_died_before_its_summary_gets_one_later(
        self, database: Database, status: str
    ) -> None:
        run = state.claim(ask(database).pk, "w@h")
        measure_without_end(run)
        Run.objects.update(status=status, busy_key=None, busy_host=None, finished_at=timezone.now())
        assert execution.summarise_ended_runs() == []
        Run.objects.update(finished_at=timezone.now() - timedelta(hours=1))
        assert execution.summarise_ended_runs() == [run.pk]

    def test_a_lost_run_without_blocks_gets_no_summary(self, database: Database) -> None:
        run = state.claim(ask(database).pk, "w@h")
        Run.objects.update(status=Status.LOST)
        assert execution.summarise_ended_runs() == []
        assert not run.variants.exists()


#: What only a run through a pooler stores.
_OF_A_POOLER = {"pooler.name", "pooler.version"}


def names_in(environment: dict[str, Any]) -> set[str]:
    """Of the facts, and of the parts of each."""
    parts = {f"{name}.{own}" for name, part in environment.items() if isinstance(part, dict) for own in part}
    return {*environment, *parts}


def real_database(routes: dict[str, Any], **fields: Any) -> Database:
    """The tests' own, over TCP."""
    database = Database.objects.create(
        name="real",
        dbname=connection.settings_dict["NAME"],
        credential="alias:default",
        allow_fixtures=True,
        **fields,
    )
    Target.objects.create(
        database=database, route="tcp", host="127.0.0.1", port=routes["tcp"].port, sslmode="disable"
    )
    return database


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("production", [True, False])
def test_only_a_production_database_has_limits_of_load(
    settings: Any, routes: dict[str, Any], production: bool
) -> None:
    """One that every server passes: the run's own connections use more of it."""
    settings.PGPERF = {**settings.PGPERF, "PRODUCTION_CONNECTIONS": 0.001}
    asked = request(
        Benchmark.objects.get(name="orm-overhead"),
        real_database(routes, production=production),
        Overrides(quick=True, layers=["psycopg2"], rounds=1, blocks=1, slice_ms=10, diagnostic_ms=0),
        foreground=True,
        confirmed="real",
    )
    run = execution.perform(asked.pk, "w@h")
    assert run.status == (Status.FAILED if production else Status.DONE), run.error
    assert ("PGPERF['PRODUCTION_CONNECTIONS']" in run.error) is production


@pytest.mark.django_db(transaction=True)
def test_a_run_on_a_real_database(c_client: Any, settings: Any, routes: dict[str, Any]) -> None:
    """Every layer over the tests' own server: fixture, environment, ladder."""
    settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": c_client.parent}
    asked = request(
        Benchmark.objects.get(name="orm-overhead"),
        real_database(routes),
        Overrides(quick=True, rounds=1, blocks=1, slice_ms=10, diagnostic_ms=50),
        foreground=True,
    )
    run = execution.perform(asked.pk, "w@h")
    assert (run.status, run.error) == (Status.DONE, "")
    (ladder,) = run.summary["ladders"]
    assert [step["layer"] for step in ladder["steps"]] == [
        "libpq",
        launch.django_driver(),
        "django_cursor",
        "django_orm",
    ]
    assert names_in(factories.ENVIRONMENT) <= names_in(run.environment) | _OF_A_POOLER
    assert run.timings["diagnostics_s"] > 0
    rows = list(run.variants.all())
    assert {row.diagnostics["notes"]["statements"] for row in rows} == {
        "this database lacks the extension: CREATE EXTENSION pg_stat_statements"
    }
    assert all(row.diagnostics["seconds"] > 0.05 and row.top["processes"] for row in rows)


def measure_without_end(run: Run) -> None:
    """What a worker that is killed after its blocks leaves behind."""
    plan = make_plan(definition(blocks=2))
    nowhere = {"here": Route("here", "", 0, "", "", "")}
    execute(plan, nowhere, RunSettings("", str(run.pk)), Recorder(run, None, 5.0))


def _raise_after(share: float, error: BaseException) -> Callable[[float], None]:
    def act() -> None:
        raise error

    return _act_after(share, act)


def _act_after(share: float, act: Callable[[], None]) -> Callable[[float], None]:
    """Acts once, at the first progress past that share."""
    done: list[bool] = []

    def look(now: float) -> None:
        if now >= share and not done:
            done.append(True)
            act()

    return look


def _is_client(process: psutil.Process) -> bool:
    """The process that others are forked from has imported modules of clients, and is none."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    return any(word.startswith("pgperf.clients") for word in words) and process.pid != os.getpid()
