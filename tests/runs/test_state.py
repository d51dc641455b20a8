"""The Run state machine: every transition, refusals, and concurrent attempts."""

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.utils import timezone

from pgperf import signals
from pgperf.core.exceptions import BrokerUnreachable, FenceLost, InvalidDefinition, RunConflict, RunWaits
from pgperf.models import Database, LoadShare, Run, Sampling, Worker
from pgperf.runs import pause, state
from tests.concurrency import at_once
from tests.factories import make_benchmark, make_database, make_run, make_worker

Status = Run.Status
pytestmark = pytest.mark.django_db
Commit = Callable[..., Any]


class Broker:
    """Stands in for Celery's broker: takes messages, or does not."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.away = False

    def send(self, run_id: int, queue: str) -> None:
        assert queue == "pgperf"
        if self.away:
            raise BrokerUnreachable("Celery's broker does not answer (OSError)")
        self.taken.append(run_id)


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    stand_in = Broker()
    monkeypatch.setattr(state.broker, "send", stand_in.send)
    return stand_in


@pytest.fixture
def commit(django_capture_on_commit_callbacks: Commit) -> Commit:
    """A context at whose end what waits for a commit happens."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


def ask(**options: Any) -> Run:
    return state.request(make_benchmark(), options.pop("database", None) or make_database(), **options)


def queued(**fields: Any) -> Run:
    return make_run(Status.QUEUED, busy_key=None, **{"queue": "pgperf", **fields})


def age(run: Run, seconds: float, field: str = "heartbeat_at") -> None:
    Run.objects.filter(pk=run.pk).update(**{field: timezone.now() - timedelta(seconds=seconds)})


def reread(run: Run) -> Run:
    run.refresh_from_db()
    return run


class TestRequest:
    def test_freezes_the_definition(self) -> None:
        run = ask(quick=True)
        assert (run.status, run.attempt, run.quick) == (Status.QUEUED, 0, True)
        assert run.definition["layers"] == ["libpq", "psycopg2", "psycopg", "django_cursor", "django_orm"]
        assert len(run.definition_hash) == 64
        assert (run.benchmark_name, run.database_name) == ("orm-overhead", "demo")

    def test_sends_after_the_commit_and_not_before(self, broker: Broker, commit: Commit) -> None:
        with commit():
            run = ask()
            assert broker.taken == []
        assert broker.taken == [run.pk]
        assert reread(run).sent_at is not None

    def test_an_unreachable_broker_loses_no_run(self, broker: Broker, commit: Commit) -> None:
        broker.away = True
        with commit():
            run = ask()
        assert (reread(run).status, run.sent_at) == (Status.QUEUED, None)
        assert "does not answer" in run.message

    def test_noting_the_send_does_not_overwrite_a_quick_worker(
        self, monkeypatch: pytest.MonkeyPatch, commit: Commit
    ) -> None:
        """It finds that the run has to wait while the sender is still at it."""
        holder = state.claim(queued().pk, "w@h")

        def send_and_be_taken(run_id: int, queue: str) -> None:
            with pytest.raises(RunWaits):
                state.claim(run_id, "w@h")

        monkeypatch.setattr(state.broker, "send", send_and_be_taken)
        with commit():
            run = ask(database=holder.database)
        assert (reread(run).sent_at, run.status) == (None, Status.QUEUED)
        assert f"run {holder.pk}" in run.message

    def test_the_same_token_gives_the_same_run(self, commit: Commit, broker: Broker) -> None:
        database = make_database()
        with commit():
            first = ask(database=database, token="click")
            second = ask(database=database, token="click")
        assert first.pk == second.pk
        assert broker.taken == [first.pk]

    def test_foreground_runs_send_nothing(self, broker: Broker, commit: Commit) -> None:
        with commit():
            run = ask(foreground=True)
        assert (broker.taken, run.queue) == ([], "")

    def test_a_wrong_definition_leaves_no_row(self) -> None:
        with pytest.raises(InvalidDefinition, match="clients"):
            state.request(make_benchmark(clients=[0]), make_database())
        assert not Run.objects.exists()

    def test_stores_the_requesting_user(self) -> None:
        user = get_user_model().objects.create(username="ops")
        assert ask(user=user).requested_by_id == user.pk

    @pytest.mark.django_db(transaction=True)
    def test_a_double_click_makes_one_run(self, broker: Broker) -> None:
        benchmark, database = make_benchmark(), make_database()
        got = at_once(20, lambda: state.request(benchmark, database, token="click").pk)
        assert len(set(got)) == 1
        assert Run.objects.count() == 1
        assert broker.taken == [got[0]]

    @pytest.mark.django_db(transaction=True)
    def test_a_double_click_is_audited_once(self, broker: Broker) -> None:
        benchmark, database, noted = make_benchmark(), make_database(), []
        at_once(20, lambda: state.request(benchmark, database, token="click", note=noted.append))
        assert [run.pk for run in noted] == broker.taken

    @pytest.mark.django_db(transaction=True)
    def test_a_failed_audit_entry_cancels_the_request(self, broker: Broker) -> None:
        benchmark, database = make_benchmark(), make_database()

        def note(run: Run) -> None:
            raise IntegrityError("no such user")

        with pytest.raises(IntegrityError, match="no such user"):
            state.request(benchmark, database, token="click", note=note)
        assert (broker.taken, Run.objects.exists()) == ([], False)

    @pytest.mark.django_db(transaction=True)
    def test_a_rolled_back_request_sends_nothing(self, broker: Broker) -> None:
        benchmark, database = make_benchmark(), make_database()
        with transaction.atomic():
            state.request(benchmark, database)
            transaction.set_rollback(True)
        assert broker.taken == []
        assert not Run.objects.exists()


class TestClaim:
    def test_takes_the_run(self) -> None:
        run = state.claim(queued().pk, "w@h")
        assert (run.status, run.attempt, run.worker) == (Status.RUNNING, 1, "w@h")
        assert (run.busy_key, run.busy_host) == (str(run.database_id), state.this_machine())
        assert run.started_at is not None
        assert run.heartbeat_at is not None

    @pytest.mark.parametrize("status", [s for s in Status if s != Status.QUEUED])
    def test_only_queued_runs_can_be_claimed(self, status: str) -> None:
        with pytest.raises(RunConflict, match="not queued"):
            state.claim(make_run(status).pk, "w@h")

    def test_a_deleted_run_cannot_be_claimed(self) -> None:
        with pytest.raises(RunConflict, match="gone"):
            state.claim(12345, "w@h")

    def test_waits_for_the_database(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first, second = queued(), queued()
        state.claim(first.pk, "w@h")
        monkeypatch.setattr(state, "this_machine", lambda: "another machine")
        with pytest.raises(RunWaits, match="on database demo"):
            state.claim(second.pk, "w@other")
        assert (reread(second).status, second.sent_at, second.attempt) == (Status.QUEUED, None, 0)
        assert second.message == f"Waits for run {first.pk}, which is running on database demo."

    @pytest.mark.parametrize("asked", ["before", "after"])
    def test_waits_for_the_database_that_was_renamed_meanwhile(
        self, monkeypatch: pytest.MonkeyPatch, asked: str
    ) -> None:
        first, early = queued(), queued()
        state.claim(first.pk, "w@h")
        Database.objects.update(name="renamed")
        second = early if asked == "before" else queued(database=Database.objects.get())
        monkeypatch.setattr(state, "this_machine", lambda: "another machine")
        with pytest.raises(RunWaits, match=f"run {first.pk}, which is running on database demo"):
            state.claim(second.pk, "w@other")

    def test_waits_for_the_database_that_was_deleted_and_made_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = queued()
        state.claim(first.pk, "w@h")
        Database.objects.all().delete()
        monkeypatch.setattr(state, "this_machine", lambda: "another machine")
        with pytest.raises(RunWaits, match="on database demo"):
            state.claim(queued(database=make_database("demo")).pk, "w@other")

    def test_waits_for_no_other_database_that_got_the_old_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        state.claim(queued().pk, "w@h")
        Database.objects.update(name="renamed")
        monkeypatch.setattr(state, "this_machine", lambda: "another machine")
        assert state.claim(queued(database=make_database("demo")).pk, "w@other").status == Status.RUNNING

    def test_waits_for_the_machine(self) -> None:
        first, second = queued(), queued(database=make_database("other"))
        state.claim(first.pk, "w@h")
        with pytest.raises(RunWaits, match="on this machine"):
            state.claim(second.pk, "w@h")

    def test_waits_for_load_that_another_run_makes_here(self) -> None:
        """Its owner is on another machine, so the two runs share neither database nor machine."""
        first = make_run(Status.RUNNING, attempt=2, busy_host="elsewhere", database=make_database("other"))
        second = queued()
        shared = {"run": first, "name": "a", "queue": "q", "busy_queue": "q", "machine": state.this_machine()}
        share = LoadShare.objects.create(attempt=2, **shared)
        with pytest.raises(RunWaits, match=f"run {first.pk}, which makes load on this machine"):
            state.claim(second.pk, "w@h")
        assert (reread(second).status, second.sent_at) == (Status.QUEUED, None)
        share.delete()
        assert state.claim(second.pk, "w@h").status == Status.RUNNING

    @pytest.mark.parametrize("which", ["an attempt before", "a dead run"])
    def test_load_of_nobody_keeps_no_machine(self, which: str) -> None:
        database = make_database("other")
        other = make_run(Status.RUNNING, attempt=2, busy_host="elsewhere", database=database)
        attempt = 1 if which == "an attempt before" else 2
        LoadShare.objects.create(
            run=other, attempt=attempt, name="a", queue="q", busy_queue="q", machine=state.this_machine()
        )
        if which == "a dead run":
            age(other, 31)
        assert state.claim(queued().pk, "w@h").status == Status.RUNNING

    def test_two_databases_from_two_machines_run_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        state.claim(queued().pk, "w@h")
        monkeypatch.setattr(state, "this_machine", lambda: "another machine")
        second = state.claim(queued(database=make_database("other")).pk, "w@other")
        assert second.status == Status.RUNNING

    def test_a_dead_run_releases_the_database(self) -> None:
        dead = state.claim(queued().pk, "w@h")
        age(dead, 31)
        assert state.claim(queued().pk, "w@h").status == Status.RUNNING
        assert reread(dead).status == Status.LOST

    def test_a_cancelled_request_is_not_claimed(self) -> None:
        with pytest.raises(RunConflict):
            state.claim(queued(cancel_requested=True).pk, "w@h")

    @pytest.mark.django_db(transaction=True)
    def test_one_of_twenty_claims_succeeds(self) -> None:
        run = queued()
        got = at_once(20, lambda: state.claim(run.pk, threading.current_thread().name).worker)
        winners = [name for name in got if isinstance(name, str)]
        assert len(winners) == 1
        assert all(type(other) is RunConflict for other in got if not isinstance(other, str))
        assert (reread(run).attempt, run.worker) == (1, winners[0])

    @pytest.mark.django_db(transaction=True)
    def test_of_twenty_runs_on_one_database_one_starts(self) -> None:
        waiting = [queued().pk for _ in range(20)]
        got = at_once(20, lambda: state.claim(waiting.pop(), "w@h").pk)
        assert len([pk for pk in got if isinstance(pk, int)]) == 1
        assert all(type(other) is RunWaits for other in got if not isinstance(other, int))
        assert Run.objects.filter(status=Status.RUNNING).count() == 1


class TestRunning:
    def test_heartbeat(self) -> None:
        run = state.claim(queued().pk, "w@h")
        age(run, 20)
        state.heartbeat(run, 0.25, "slice 1 of 4")
        assert (reread(run).progress, run.message) == (0.25, "slice 1 of 4")
        assert run.heartbeat_at
        assert run.heartbeat_at > timezone.now() - timedelta(seconds=10)

    @pytest.mark.parametrize(("given", "kept"), [(-1.0, 0.0), (1.5, 1.0)])
    def test_progress_stays_within_bounds(self, given: float, kept: float) -> None:
        run = state.claim(queued().pk, "w@h")
        state.heartbeat(run, given, "x" * 1000)
        assert (reread(run).progress, len(run.message)) == (kept, 300)

    @pytest.mark.parametrize(
        "write",
        [
            lambda run: state.heartbeat(run, 0.5, ""),
            state.lock_attempt,
            state.finish,
            lambda run: state.fail(run, "reason"),
            state.cancelled,
        ],
    )
    @pytest.mark.parametrize("change", [{"attempt": 2}, {"status": Status.LOST}, {"status": Status.DONE}])
    def test_only_the_current_attempt_may_write(
        self, write: Callable[[Run], None], change: dict[str, Any]
    ) -> None:
        run = state.claim(queued().pk, "w@h")
        Run.objects.filter(pk=run.pk).update(**change)
        with pytest.raises(FenceLost):
            write(run)
        assert Run.objects.filter(pk=run.pk, **change).exists()

    @pytest.mark.parametrize(
        ("end", "status", "error"),
        [
            (state.finish, Status.DONE, ""),
            (lambda run: state.fail(run, "the reason"), Status.FAILED, "the reason"),
            (state.cancelled, Status.CANCELLED, "Cancelled."),
        ],
    )
    def test_ends(self, end: Callable[[Run], None], status: str, error: str) -> None:
        run = state.claim(queued().pk, "w@h")
        end(run)
        assert (run.status, run.error, run.busy_key, run.busy_host) == (status, error, None, None)
        assert run.finished_at is not None
        assert run.message == ""

    def test_the_end_of_a_run_sends_the_waiting_runs(self, broker: Broker, commit: Commit) -> None:
        first, second = queued(), queued()
        claimed = state.claim(first.pk, "w@h")
        with pytest.raises(RunWaits):
            state.claim(second.pk, "w@h")
        with commit():
            state.finish(claimed)
        assert broker.taken == [second.pk]


class TestRefuse:
    def test_a_queued_run(self) -> None:
        run = queued()
        state.refuse(run.pk, "restart the workers")
        assert (reread(run).status, run.error) == (Status.FAILED, "restart the workers")

    def test_a_run_that_is_not_queued_cannot_be_refused(self) -> None:
        run = state.claim(queued().pk, "w@h")
        with pytest.raises(RunConflict):
            state.refuse(run.pk, "reason")


class TestCancel:
    def test_a_queued_run_ends_at_once(self) -> None:
        run = queued()
        state.request_cancel(run)
        assert (run.status, run.cancel_requested) == (Status.CANCELLED, True)
        assert run.finished_at is not None

    def test_a_running_run_is_asked_to_stop(self) -> None:
        run = state.claim(queued().pk, "w@h")
        assert not state.is_cancelling(run)
        state.request_cancel(run)
        assert (run.status, state.is_cancelling(run)) == (Status.RUNNING, True)

    @pytest.mark.parametrize("status", [Status.DONE, Status.FAILED, Status.CANCELLED, Status.LOST])
    def test_an_ended_run_cannot_be_cancelled(self, status: str) -> None:
        run = make_run(status)
        with pytest.raises(RunConflict, match=f"is {status}"):
            state.request_cancel(run)
        assert reread(run).status == status

    def test_a_dead_run_becomes_lost(self) -> None:
        run = state.claim(queued().pk, "w@h")
        age(run, 31)
        with pytest.raises(RunConflict, match="is lost"):
            state.request_cancel(run)
        assert reread(run).status == Status.LOST


class TestEndedWhileWaiting:
    def test_a_cancelled_run_waits_for_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Else a command would wait for the turn of a run that has ended."""
        state.claim(queued().pk, "w@h")
        waits = queued()
        state.request_cancel(waits)
        with pytest.raises(RunConflict, match="is cancelled, not queued") as refused:
            state.claim(waits.pk, "x@h")
        assert not isinstance(refused.value, RunWaits)

    def test_nor_for_the_end_of_a_pause(self) -> None:
        waits = queued()
        state.request_cancel(waits)
        pause.begin("ada")
        with pytest.raises(RunConflict, match="is cancelled, not queued") as refused:
            state.claim(waits.pk, "x@h")
        assert not isinstance(refused.value, RunWaits)


class TestLost:
    def test_stale_runs_are_lost(self) -> None:
        run = state.claim(queued().pk, "w@h")
        age(run, 20)
        assert (state.mark_lost(), state.effective_status(run)) == ([], Status.RUNNING)
        age(run, 31)
        assert state.effective_status(run) == Status.LOST
        assert state.mark_lost() == [run.pk]
        assert (reread(run).status, run.busy_key, run.busy_host) == (Status.LOST, None, None)
        assert "w@h" in run.error

    def test_the_state_in_the_database_counts(self) -> None:
        copy = state.claim(queued().pk, "w@h")
        state.finish(Run.objects.get())
        assert (copy.status, state.effective_status(copy)) == (Status.RUNNING, Status.DONE)

    def test_lists_show_it_before_it_is_reconciled(self) -> None:
        fresh, stale, done = state.claim(queued().pk, "w@h"), make_run(busy_host=None), make_run()
        Run.objects.filter(pk=stale.pk).update(status=Status.RUNNING)
        age(stale, 31)
        shown = {run.pk: run.effective for run in state.with_effective_status(Run.objects.all())}  # type: ignore[attr-defined]
        assert shown == {fresh.pk: Status.RUNNING, stale.pk: Status.LOST, done.pk: Status.DONE}

    def test_a_run_of_an_ended_command_is_lost(self) -> None:
        run = make_run(Status.QUEUED, queue="")
        age(run, 20)
        state.stay_queued(run)
        assert state.mark_lost() == []
        age(run, 31)
        assert state.mark_lost() == [run.pk]

    def test_a_queued_run_is_never_lost(self) -> None:
        run = queued()
        age(run, 10_000)
        assert (state.mark_lost(), state.effective_status(run)) == ([], Status.QUEUED)

    def test_it_does_not_run_again_by_itself(self, broker: Broker, commit: Commit) -> None:
        run = state.claim(queued().pk, "w@h")
        age(run, 31)
        with commit():
            state.reconcile()
            state.reconcile()
        assert broker.taken == []
        assert reread(run).status == Status.LOST


class TestReconcile:
    def test_sends_runs_that_were_never_sent(self, broker: Broker) -> None:
        run = queued()
        assert state.reconcile().sent == [run.pk]
        assert reread(run).sent_at is not None
        assert state.reconcile().sent == []

    def test_stops_at_an_unreachable_broker(self, broker: Broker) -> None:
        queued(), queued()
        broker.away = True
        assert state.reconcile().sent == []

    def test_sends_unclaimed_runs_again(self, broker: Broker) -> None:
        make_worker()
        run = queued(sent_at=timezone.now())
        assert state.reconcile().sent == []
        age(run, 61, "sent_at")
        assert state.reconcile().sent == [run.pk]

    def test_a_queue_that_no_worker_takes_gets_no_second_message(self) -> None:
        """Its worker was stopped when PGPERF["QUEUE"] changed."""
        make_worker()
        age(queued(sent_at=timezone.now(), queue="old"), 61, "sent_at")
        assert state.reconcile().sent == []

    def test_without_a_worker_the_message_waits_in_the_broker(self) -> None:
        age(queued(sent_at=timezone.now()), 61, "sent_at")
        assert state.reconcile().sent == []

    def test_while_something_runs_the_message_waits_for_its_turn(self) -> None:
        make_worker()
        state.claim(queued().pk, "w@h")
        age(queued(sent_at=timezone.now()), 61, "sent_at")
        assert state.reconcile().sent == []

    def test_a_killed_workers_messages_are_sent_again(self, broker: Broker, commit: Commit) -> None:
        dead, fetched = state.claim(queued().pk, "w@h"), queued(sent_at=timezone.now())
        age(dead, 31)
        with commit():
            state.mark_lost()
        assert broker.taken == [fetched.pk]

    def test_a_starting_worker_sends_all_queued_runs(self) -> None:
        run = queued(sent_at=timezone.now())
        assert state.reconcile(arriving=True).sent == [run.pk]

    def test_foreground_runs_are_not_sent(self) -> None:
        make_run(Status.QUEUED, queue="")
        assert state.reconcile().sent == []


class TestSignals:
    @pytest.fixture
    def heard(self) -> Any:
        heard: list[tuple[str, str]] = []
        names = {
            "started": signals.run_started,
            "finished": signals.run_finished,
            "failed": signals.run_failed,
        }
        receivers = []
        for name, signal in names.items():

            def receive(run: Run, name: str = name, **_: Any) -> None:
                heard.append((name, str(run.status)))

            signal.connect(receive)
            receivers.append((signal, receive))
        yield heard
        for signal, receive in receivers:
            signal.disconnect(receive)

    def test_of_a_run_that_is_done(self, heard: list[Any], commit: Commit) -> None:
        with commit():
            run = state.claim(queued().pk, "w@h")
        with commit():
            state.finish(run)
        assert heard == [("started", "running"), ("finished", "done")]

    def test_of_a_run_that_fails(self, heard: list[Any], commit: Commit) -> None:
        with commit():
            run = state.claim(queued().pk, "w@h")
        with commit():
            state.fail(run, "reason")
        assert heard == [("started", "running"), ("finished", "failed"), ("failed", "failed")]

    def test_of_a_run_that_is_lost(self, heard: list[Any], commit: Commit) -> None:
        with commit():
            age(state.claim(queued().pk, "w@h"), 31)
            state.mark_lost()
        assert heard == [("started", "running"), ("finished", "lost"), ("failed", "lost")]

    def test_a_failing_receiver_has_no_effect(self, commit: Commit) -> None:
        def careless(**_: Any) -> None:
            raise ValueError

        signals.run_finished.connect(careless)
        try:
            with commit():
                run = state.claim(queued().pk, "w@h")
                state.finish(run)
        finally:
            signals.run_finished.disconnect(careless)
        assert reread(run).status == Status.DONE


class TestLiveWorkers:
    def test_workers_with_a_recent_heartbeat_are_live(self) -> None:
        make_worker("a@h")
        gone = make_worker("b@h")
        type(gone).objects.filter(pk=gone.pk).update(last_seen=timezone.now() - timedelta(minutes=2))
        assert [worker.hostname for worker in state.live_workers()] == ["a@h"]

    def test_workers_of_live_runs_are_live(self) -> None:
        silent = make_worker("b@h")
        type(silent).objects.filter(pk=silent.pk).update(last_seen=timezone.now() - timedelta(minutes=2))
        run = state.claim(queued().pk, "b@h")
        assert [worker.hostname for worker in state.live_workers()] == ["b@h"]
        age(run, 31)
        assert not state.live_workers()

    @pytest.mark.parametrize("end", [state.finish, partial(state.fail, reason="x"), state.cancelled])
    def test_workers_whose_run_has_just_ended_are_live(self, end: Callable[[Run], None]) -> None:
        """Their own heartbeat pauses during a run, and resumes some seconds after its end."""
        silent = make_worker("b@h")
        type(silent).objects.filter(pk=silent.pk).update(last_seen=timezone.now() - timedelta(minutes=2))
        run = state.claim(queued().pk, "b@h")
        age(run, 31)
        end(run)
        assert [worker.hostname for worker in state.live_workers()] == ["b@h"]
        age(run, 31)
        assert not state.live_workers()


class TestLiveAgents:
    QUEUE = "pgperf-agent-db1"

    @pytest.fixture
    def agent(self) -> Worker:
        Worker.objects.filter(pk=make_worker("a@db").pk).update(queue=self.QUEUE)
        return Worker.objects.get()

    def age(self) -> None:
        Worker.objects.update(last_seen=timezone.now() - timedelta(minutes=2))

    def test_agents_of_the_queue_are_live(self, agent: Worker) -> None:
        assert list(state.live_agents("db1")) == list(state.live_agents()) == [agent]
        assert not state.live_agents("db")
        self.age()
        assert not state.live_agents("db1")

    def test_agents_are_not_counted_as_workers(self, agent: Worker) -> None:
        assert not state.live_workers()

    def test_agents_of_live_runs_are_live(self, agent: Worker) -> None:
        self.age()
        run = state.claim(queued().pk, "b@h")
        Sampling.objects.create(run=run, attempt=run.attempt, queue=self.QUEUE, agent=agent.hostname)
        assert list(state.live_agents("db1")) == [agent]
        age(run, 31)
        assert not state.live_agents("db1")
