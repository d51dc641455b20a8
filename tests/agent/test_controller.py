"""Controller and agent, each in a thread: samples, and each failure that a run survives."""

import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from django.db import DatabaseError, OperationalError, connection, connections
from django.db.models import JSONField, Value
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgperf.agent import clock, controller, rows, service
from pgperf.agent.controller import AgentController
from pgperf.core.exceptions import AgentFailed, BrokerUnreachable
from pgperf.core.records import Route, SliceRecord
from pgperf.models import Database, Run, Sampling, Worker
from pgperf.runner.processes.backends import QUERY
from pgperf.runner.remote.clock_offset import ClockOffset
from pgperf.runner.remote.counters import AUXILIARIES, MAX_PACKED_BYTES, run_column
from pgperf.runner.remote.server import (
    AgentSamples,
    RemotePooler,
    RemoteProcesses,
    VariantSlices,
    WatchRequest,
    complete_slices,
)
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runs import broker, db_retry
from pgperf.runs.order_rows import Answer
from tests.database_outage import terminate_own_backend
from tests.factories import make_database, make_run, make_worker
from tests.fuzz.hostile import JSON_VALUES, forged
from tests.waiting import until

pytestmark = pytest.mark.django_db
#: The agent is another thread, with a connection of its own.
threads = pytest.mark.django_db(transaction=True)
QUEUE, AGENT = "pgperf-agent-db1", "agent@db1"


@pytest.fixture
def run(settings: Any) -> Run:
    settings.PGPERF = {**settings.PGPERF, "STALE_SECONDS": 300.0}
    make_worker(AGENT)
    Worker.objects.update(queue=QUEUE)
    return make_run(Run.Status.RUNNING, attempt=1, database=make_database(agent="db1"))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """The messages that the broker was given."""
    messages: list[tuple[int, str]] = []
    monkeypatch.setattr(broker, "send_watch", lambda row_id, queue: messages.append((row_id, queue)))
    return messages


@pytest.fixture
def delivered(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[threading.Thread]]:
    """Messages reach an agent, which is a thread here; it has gone when the test ends."""
    monkeypatch.setattr(controller, "ANSWER_S", 60.0)  # a busy machine is no reason to fail
    started: list[threading.Thread] = []

    def serve(row_id: int) -> None:
        try:
            service.serve(row_id, AGENT)
        finally:
            connections.close_all()

    def deliver(row_id: int, queue: str) -> None:
        started.append(threading.Thread(target=serve, args=(row_id,)))
        started[-1].start()

    monkeypatch.setattr(broker, "send_watch", deliver)
    yield started
    Sampling.objects.all().delete()
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "ANSWER_S", 0.1)


class FalseClock:
    """Time passes in sleeps alone, however slow the machine is."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def controller_of(run: Run) -> AgentController:
    agent = AgentController(run)
    agent.ask()
    return agent


def why(agent: AgentController) -> str:
    return str(agent.facts()["unknown"])


_WATCHING = {
    "missing": [], "poolers": [["h", 6432, 7, [1]]], "host": {"kernel": "6", "processors": 2},
    "clock": {"ns": 0, "error_ns": 1},
}  # fmt: skip
_HANDED_OVER = {"clock": {"ns": 0, "error_ns": 1}, "share": 0.01, "processes": [[1, "postgres", 10**6]]}
_SLICES = VariantSlices(
    RemoteProcesses([1], ("h", 6432)),
    [
        SliceRecord(
            round=0, position=0, ops=1, rows=1, lead_in_ops=0, window_ns=1, us_per_op=1.0, ops_per_s=1.0,
            user_ns=0, sys_ns=0, started_ns=10**12,
        )
    ],
    [10**12 + 10**9],
)  # fmt: skip
_COUNTS = st.lists(st.integers()) | JSON_VALUES
_PACKED = (
    st.fixed_dictionaries(
        {"times_ns": _COUNTS, "columns": st.dictionaries(st.sampled_from(["1.run", "host.busy", "x"]), _COUNTS)}
    ) | JSON_VALUES
).map(lambda value: zlib.compress(json.dumps(value).encode()))  # fmt: skip


@threads
class TestSamples:
    @pytest.fixture
    def monitor(self, routes: dict[str, Route]) -> Iterator[ControlConnection]:
        with ControlConnection(routes["tcp"], "pgperf-test-agent") as found:
            yield found

    @pytest.fixture
    def order(self, monitor: ControlConnection) -> WatchRequest:
        return WatchRequest(monitor.query(QUERY), [int(monitor.query("SELECT pg_backend_pid()")[0][0] or 0)])

    def watched(
        self, run: Run, order: WatchRequest, monitor: ControlConnection
    ) -> tuple[AgentController, AgentSamples, int, int]:
        """The backend works for some milliseconds while it is watched."""
        agent = controller_of(run)
        agent.watch(order)
        begin_ns = time.monotonic_ns()
        monitor.query("SELECT count(*) FROM generate_series(1, 300000)")
        waiting = psutil.Process(order.backends[0])
        until(lambda: waiting.status() == psutil.STATUS_SLEEPING, 10, "it works on after its answer")
        end_ns = time.monotonic_ns()
        seen = agent.hand_over()
        assert seen, agent.facts()
        return agent, seen, begin_ns, end_ns

    def test_backend_cpu_time_is_in_the_block_that_used_it(
        self, run: Run, delivered: Any, order: WatchRequest, monitor: ControlConnection
    ) -> None:
        agent, seen, begin_ns, end_ns = self.watched(run, order, monitor)
        times, worked = seen.samples.times_ns, seen.samples.columns[run_column(order.backends[0])]
        error_ns = seen.error_ns
        before = worked[times < begin_ns - error_ns]
        after = worked[times > end_ns + error_ns]
        assert len(before)
        assert before[-1] == before[0]
        assert after[-1] == after[0]
        assert 1_000_000 < after[0] - before[-1] <= end_ns - begin_ns
        agent.close()

    def test_clocks_on_one_machine_agree_within_the_error(
        self, run: Run, delivered: Any, order: WatchRequest, monitor: ControlConnection
    ) -> None:
        ordered_ns = time.monotonic_ns()
        _agent, seen, begin_ns, _end_ns = self.watched(run, order, monitor)
        now_ns = time.monotonic_ns()
        assert ordered_ns - seen.error_ns < seen.samples.times_ns[0] < begin_ns + seen.error_ns
        assert begin_ns < seen.samples.times_ns[-1] < now_ns + seen.error_ns
        assert seen.error_ns < (now_ns - ordered_ns) / 12  # each side asked twelve times or more, twice

    def test_the_environment_names_the_agent_and_its_precision(
        self, run: Run, delivered: Any, order: WatchRequest, monitor: ControlConnection
    ) -> None:
        agent, seen, *_ = self.watched(run, order, monitor)
        facts = agent.facts()
        assert facts["agent"] == AGENT
        assert "unknown" not in facts
        assert facts["clock_error_us"] == pytest.approx(seen.error_ns / 1000)
        assert facts["processors"] == seen.cpus > 0
        assert facts["kernel"]
        assert 0 <= facts["agent_cpu_percent"] < 100

    def test_blocks_in_sequence(
        self, run: Run, delivered: Any, order: WatchRequest, monitor: ControlConnection
    ) -> None:
        agent, first, *_ = self.watched(run, order, monitor)
        agent.watch(order)
        second = agent.hand_over()
        assert second
        assert second.samples.times_ns[0] > first.samples.times_ns[-1]
        assert AUXILIARIES in second.samples.columns
        assert second.processes[order.backends[0]].name == "postgres"
        assert second.processes[order.backends[0]].rss_bytes > 10**6
        assert len(delivered) == 1

    def test_a_pooler_on_the_agent_s_host_is_found(
        self, run: Run, delivered: Any, order: WatchRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        listening = {6432: 4711}
        monkeypatch.setattr(service.pooler_process, "is_own", lambda host, from_elsewhere: host == "db1")
        monkeypatch.setattr(service.pooler_process, "process", listening.get)
        monkeypatch.setattr(service.Sessions, "from_process", lambda self, pid: [])
        monkeypatch.setattr(service, "meters", lambda sessions, backends, poolers: [])
        agent = controller_of(run)
        agent.watch(replace(order, backends=[], poolers=[("db1", 6432), ("db1", 1), ("elsewhere", 6432)]))
        seen = agent.hand_over()
        assert seen
        assert seen.poolers == {("db1", 6432): RemotePooler(4711, [])}

    def test_the_agent_outlives_a_short_outage_while_it_asks_for_the_time(
        self,
        run: Run,
        delivered: Any,
        order: WatchRequest,
        monitor: ControlConnection,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        outages = [OperationalError("the site's database restarts")]

        def offset(row_id: int) -> ClockOffset:
            if outages:
                raise outages.pop()
            return clock.offset(row_id)

        monkeypatch.setattr(service, "clock", SimpleNamespace(offset=offset))
        self.watched(run, order, monitor)
        assert not outages

    def test_a_restart_of_the_site_s_database_before_each_order_costs_nothing(
        self, run: Run, delivered: Any, order: WatchRequest
    ) -> None:
        agent = AgentController(run)
        for step in (agent.ask, lambda: agent.watch(order)):
            terminate_own_backend()
            step()
        terminate_own_backend()
        assert agent.hand_over(), agent.facts()

    def test_the_agent_s_time_to_answer_does_not_pass_while_the_database_is_away(
        self, run: Run, sent: list[Any], impatient: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        false_clock = FalseClock()
        for module in (controller, db_retry):
            monkeypatch.setattr(module, "time", false_clock)
        monkeypatch.setattr(db_retry, "PAUSE_S", 2 * controller.ANSWER_S)
        said = [OperationalError("the site's database restarts"), None, Answer(_WATCHING, b"", AGENT, "")]

        def answered(_row_id: int, _number: int) -> Answer | None:
            found = said.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(rows, "answered", answered)
        agent = controller_of(run)
        agent.watch(TestUnknown.ORDER)
        assert "unknown" not in agent.facts()

    def test_the_agent_leaves_when_the_run_is_over(self, run: Run, delivered: list[threading.Thread]) -> None:
        agent = controller_of(run)
        agent.close()
        delivered[0].join(10)
        assert not delivered[0].is_alive()
        assert not Sampling.objects.exists()

    def test_the_agent_leaves_when_the_run_dies(self, run: Run, delivered: list[threading.Thread]) -> None:
        controller_of(run)
        Run.objects.update(heartbeat_at=timezone.now() - timedelta(hours=1))
        delivered[0].join(10)
        assert not delivered[0].is_alive()


class TestUnknown:
    """Whatever is wrong, nothing is raised, the reason is told, and nothing more is asked."""

    ORDER = WatchRequest([["1", "", "", "0", None]], [1])

    def test_a_local_server_needs_no_agent(self, run: Run) -> None:
        assert AgentController(run).facts() == {}
        assert AgentController(run).hand_over() is None

    def test_the_database_names_no_agent(self, run: Run, sent: list[Any]) -> None:
        Database.objects.update(agent="")
        run.refresh_from_db()
        assert "field agent" in why(controller_of(run))
        assert sent == []

    def test_a_deleted_database_has_no_agent(self, run: Run, sent: list[Any]) -> None:
        run.database = None
        assert "field agent" in why(controller_of(run))

    def test_no_agent_is_online(self, run: Run, sent: list[Any]) -> None:
        Worker.objects.all().delete()
        assert QUEUE in why(controller_of(run))
        assert (sent, Sampling.objects.count()) == ([], 0)

    def test_the_message_names_the_row(self, run: Run, sent: list[Any]) -> None:
        controller_of(run)
        assert sent == [(Sampling.objects.get().pk, QUEUE)]

    def test_the_broker_is_unreachable(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def away(*_: Any) -> None:
            raise BrokerUnreachable("Celery's broker does not answer")

        monkeypatch.setattr(broker, "send_watch", away)
        assert "broker" in why(controller_of(run))

    def test_no_agent_claims_the_row(self, run: Run, sent: list[Any], impatient: None) -> None:
        agent = controller_of(run)
        agent.watch(self.ORDER)
        assert "did not come" in why(agent)
        assert agent.hand_over() is None

    def test_the_agent_stops_answering(self, run: Run, sent: list[Any], impatient: None) -> None:
        agent = controller_of(run)
        rows.claim(Sampling.objects.get().pk, AGENT)
        agent.watch(self.ORDER)
        assert why(agent) == f"agent {AGENT} did not answer within 0.1 s"

    def test_the_agent_refuses(self, run: Run, sent: list[Any]) -> None:
        agent = controller_of(run)
        service.serve(Sampling.objects.get().pk, AGENT, "another version")
        agent.watch(self.ORDER)
        assert why(agent) == f"agent {AGENT}: another version"

    @threads
    def test_the_agent_is_on_another_host(self, run: Run, delivered: Any) -> None:
        agent = controller_of(run)
        agent.watch(self.ORDER)
        assert "does not see the server's processes" in why(agent)

    def test_no_order_follows_a_failure(self, run: Run, sent: list[Any], impatient: None) -> None:
        agent = controller_of(run)
        agent.watch(self.ORDER)
        before = Sampling.objects.get().order_number
        agent.watch(self.ORDER)
        assert agent.hand_over() is None
        assert Sampling.objects.get().order_number == before

    @pytest.mark.parametrize(
        ("data", "readings"),
        [
            ({}, b""),
            ({"clock": {"ns": 1, "error_ns": 1}, "share": 0.0, "processes": []}, b"broken"),
            ({"clock": None, "share": 1}, b""),
        ],
    )
    def test_unusable_samples_are_refused(
        self,
        run: Run,
        sent: list[Any],
        monkeypatch: pytest.MonkeyPatch,
        data: dict[str, Any],
        readings: bytes,
    ) -> None:
        answers = iter(
            [
                {"missing": [], "poolers": [], "host": {"processors": 1}, "clock": {"ns": 0, "error_ns": 1}},
                data,
            ]
        )
        answer: Callable[..., Answer] = lambda *_: Answer(next(answers), readings, AGENT, "")  # noqa: E731
        monkeypatch.setattr(rows, "answered", answer)
        agent = controller_of(run)
        agent.watch(self.ORDER)
        assert agent.hand_over() is None
        assert why(agent)

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def test_a_forged_row_raises_nothing(self, run: Run, sent: list[Any], data: st.DataObject) -> None:
        """Genuine answers of which some parts are replaced, and samples of any kind."""
        Worker.objects.update(last_seen=timezone.now())  # all examples together may take a minute
        genuine = iter([_WATCHING, _HANDED_OVER])
        packed = data.draw(st.binary(max_size=30) | _PACKED)

        def answered(row_id: int, number: int) -> Answer:
            return Answer(data.draw(forged(next(genuine))), packed, AGENT, "")

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(rows, "answered", answered)
            agent = controller_of(run)
            agent.watch(self.ORDER)
            seen = agent.hand_over()
        facts = agent.facts()
        assert seen is not None or "agent" in why(agent) or "samples" in why(agent)
        assert json.loads(json.dumps(facts, allow_nan=False)) == facts
        assert len(json.dumps(facts)) < 1000
        if seen:
            complete_slices([_SLICES], seen)

    def test_too_many_samples_are_not_loaded(self, run: Run, sent: list[Any]) -> None:
        controller_of(run)
        row = Sampling.objects.get()
        rows.claim(row.pk, AGENT)
        too_many = b"x" * (MAX_PACKED_BYTES + 1)
        Sampling.objects.update(answer=_WATCHING, answer_number=1, readings=too_many)
        with CaptureQueriesContext(connection) as queries, pytest.raises(AgentFailed, match="MiB of samples"):
            rows.answered(row.pk, 1)
        assert not any(query["sql"].startswith('SELECT "pgperf_sampling"."id"') for query in queries)

    @pytest.mark.parametrize(
        "more",
        [{"host": {"kernel": "x" * 2**20}}, {"missing": [7] * 2**19}, {"else": [[{}] * 1000] * 300}],
        ids=["a text", "numbers", "nested"],
    )
    def test_a_huge_answer_is_not_loaded(self, run: Run, sent: list[Any], more: dict[str, Any]) -> None:
        controller_of(run)
        row = Sampling.objects.get()
        rows.claim(row.pk, AGENT)
        Sampling.objects.update(answer={**_WATCHING, **more}, answer_number=1)
        with (
            CaptureQueriesContext(connection) as queries,
            pytest.raises(AgentFailed, match="longer than 1 MiB"),
        ):
            rows.answered(row.pk, 1)
        assert not any(query["sql"].startswith('SELECT "pgperf_sampling"."id"') for query in queries)

    def test_the_largest_honest_answer_is_loaded(self, run: Run, sent: list[Any]) -> None:
        controller_of(run)
        row = Sampling.objects.get()
        rows.claim(row.pk, AGENT)
        processes = [[4_194_304 - at, "postgres: checkpointer ", 2**40] for at in range(10_000)]
        Sampling.objects.update(answer={"processes": processes}, answer_number=1)
        found = rows.answered(row.pk, 1)
        assert found
        assert found.data["processes"] == processes

    def test_the_row_was_deleted(self, run: Run, sent: list[Any]) -> None:
        agent = controller_of(run)
        Sampling.objects.all().delete()
        agent.watch(self.ORDER)
        assert "was deleted" in why(agent)

    def test_the_site_s_database_is_unreachable(
        self, run: Run, sent: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(*_: Any) -> None:
            raise DatabaseError("password=canary")

        agent = controller_of(run)
        monkeypatch.setattr(rows, "order", away)
        agent.watch(self.ORDER)
        assert "the site's own database" in why(agent)
        assert "canary" not in why(agent)
        monkeypatch.setattr(rows, "close", away)
        agent.close()


class TestWatch:
    @pytest.mark.parametrize("order", [
        [], 1, "watch", None, {}, {"watch": None}, {"watch": []},
        {"watch": {"sessions": 1, "backends": [], "poolers": []}},
        {"watch": {"sessions": [["1", "", "", "nan", None]], "backends": [], "poolers": []}},
        {"watch": {"sessions": [["1/../2", "", "", "0", None]], "backends": [], "poolers": []}},
        {"watch": {"sessions": [["1", {}, "", "0", None]], "backends": [], "poolers": []}},
        {"watch": {"sessions": [["1", "", "", "0", {}]], "backends": [], "poolers": []}},
        {"watch": {"sessions": [], "backends": [-1], "poolers": []}},
        {"watch": {"sessions": [], "backends": ["1"], "poolers": []}},
        {"watch": {"sessions": [], "backends": [2**40], "poolers": []}},
        {"watch": {"sessions": [], "backends": [], "poolers": [["h"]]}},
        {"watch": {"sessions": [], "backends": [], "poolers": [["h", "x"]]}},
    ])  # fmt: skip
    def test_a_forged_order_is_refused_and_the_run_is_told(
        self, run: Run, sent: list[Any], monkeypatch: pytest.MonkeyPatch, order: Any
    ) -> None:
        agent = controller_of(run)
        row = Sampling.objects.get()
        Sampling.objects.update(order=Value(order, JSONField()), order_number=1)
        polls = iter([rows.poll, rows.poll])
        monkeypatch.setattr(rows, "claim", lambda *_: Sampling.objects.update(agent=AGENT))
        monkeypatch.setattr(
            service.rows, "poll", lambda *args, poll=rows.poll: poll(*args) if next(polls, None) else None
        )
        service.serve(row.pk, AGENT)
        agent.watch(TestUnknown.ORDER)
        assert why(agent).startswith(f"agent {AGENT}: the order is not valid")
        assert agent.hand_over() is None

    def test_a_repeated_or_late_message_has_no_effect(self, run: Run, sent: list[Any]) -> None:
        controller_of(run)
        row = Sampling.objects.get()
        rows.claim(row.pk, "quicker@db")
        service.serve(row.pk, AGENT)
        service.serve(row.pk + 1000, AGENT)
        row.refresh_from_db()
        assert row.agent == "quicker@db"

    @pytest.mark.parametrize(("since_s", "pause_s"), [(None, 0.1), (0.0, 0.1), (5.0, 0.5), (3600.0, 1.0)])
    def test_the_poll_interval_is_longer_while_sampling(self, since_s: float | None, pause_s: float) -> None:
        assert service.pause_s(since_s) == pytest.approx(pause_s)


def test_the_clock_error_is_the_round_trip_time(run: Run) -> None:
    row = rows.open_for(run, QUEUE)
    first, second = clock.offset(row), clock.offset(row)
    assert 0 < first.error_ns < 10**9
    assert abs(first.ns - second.ns) <= first.error_ns + second.error_ns
    assert first.ns == pytest.approx(time.time_ns() - time.monotonic_ns(), abs=first.error_ns + 10**9)
