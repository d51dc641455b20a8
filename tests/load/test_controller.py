"""The owner's side of its load hosts, where one is awaited."""

import time
from dataclasses import replace
from typing import Any

import pytest

from pgperf.conf import get_settings
from pgperf.core import protocol
from pgperf.core.exceptions import BrokerUnreachable, LoadHostFailed, RunCancelled
from pgperf.load import controller as owners
from pgperf.load import rows
from pgperf.load.answers import HostFacts
from pgperf.load.controller import COME_S, LoadHostController, _Host
from pgperf.models import Run
from pgperf.runner.client_process import while_waiting
from pgperf.runner.cpu.placement import CpuPlacement, Sides
from pgperf.runner.host_slices import NOTHING, pack
from pgperf.runner.remote.clock_offset import ClockOffset
from pgperf.runs import broker, database_clock, state
from pgperf.runs.order_rows import Answer
from tests.database_outage import terminate_own_backend
from tests.factories import make_run
from tests.runner.builders import definition

MS = 1_000_000
AGENT, QUEUE = "load@a", "pgperf-load-a"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def host() -> _Host:
    run = make_run(Run.Status.RUNNING, attempt=1)
    row = rows.open_for(run, "a", QUEUE)
    assert row
    assert rows.claim(row, AGENT)
    return _Host("a", row, QUEUE)


def controller(*hosts: _Host) -> LoadHostController:
    found = LoadHostController(Run.objects.get(), definition())
    found._hosts.extend(hosts)
    return found


def answer(host: _Host, ahead_ns: int) -> None:
    """As a host with nothing to do, whose clock is behind ours by that."""
    lines, packed = pack([NOTHING])
    own = database_clock.offset(rows.ROWS.all().filter(pk=host.row_id))
    clock = replace(own, ns=own.ns + ahead_ns).to_json()
    rows.ROWS.answer(host.row_id, AGENT, host.number, {"slices": lines, "clock": clock}, packed)


def test_the_sites_database_may_restart_while_an_answer_is_awaited(host: _Host) -> None:
    owner = controller()
    terminate_own_backend()
    owner._wait(time.monotonic() - COME_S - 1, 10 * COME_S, [host])


@pytest.mark.parametrize("minutes", [0, 7])
def test_a_clock_that_is_minutes_away_and_stays_so_takes_part(host: _Host, minutes: int) -> None:
    own = database_clock.offset(rows.ROWS.all().filter(pk=host.row_id))
    ahead_ns = minutes * 60 * 10**9
    host.clock = replace(own, ns=own.ns + ahead_ns).then_back(own)
    owner = controller(host)
    owner.order([(0, protocol.Slice(seq=1, start_ns=10**12, window_ns=2000 * MS))])
    answer(host, ahead_ns)
    ((found,),) = owner.results(0)
    assert found.recorded == NOTHING.recorded


def test_a_host_whose_clock_drifts_within_a_round_is_refused(host: _Host) -> None:
    own = database_clock.offset(rows.ROWS.all().filter(pk=host.row_id))
    host.clock = own.then_back(own)
    owner = controller(host)
    owner.order([(0, protocol.Slice(seq=1, start_ns=10**12, window_ns=2000 * MS))])
    answer(host, 500 * MS)
    with pytest.raises(LoadHostFailed, match=r"load host a: its clock .* drifted apart by 4\d\d\.\d+ ms"):
        owner.results(0)


@pytest.mark.parametrize(
    ("window_ms", "remedy"),
    [
        (200, "allows 2.00 ms; choose a longer slice_ms or a quicker way to the site's database"),
        (5000, "allows 50.00 ms; it needs a quicker way to the site's database"),
    ],
)
def test_a_host_whose_clock_stays_too_uncertain_is_refused(
    host: _Host, window_ms: int, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "_SETTLE_S", 0.0)
    owner = controller(host)
    host.clock = ClockOffset(0, window_ms * MS // 100)
    owner.settle(window_ms * MS)
    owner.settle(0)
    host.clock = ClockOffset(0, window_ms * MS // 100 + 1)
    with pytest.raises(LoadHostFailed, match=f"load host a: its clock is known to .* {remedy}"):
        owner.settle(window_ms * MS)


@pytest.mark.parametrize(
    ("cold", "names", "expected"),
    [
        (True, "abc", [("start", "clock", "clock"), ("clock", "start", "start")]),
        (False, "abc", [("start", "start", "start")]),
        (True, "a", [("start",)]),
    ],
)
def test_nobody_else_starts_while_the_first_host_measures_cold_phases(
    cold: bool, names: str, expected: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(Run.Status.RUNNING, attempt=1)
    owner = controller(*(_Host(name, at, QUEUE) for at, name in enumerate(names)))
    ordered: list[tuple[str, ...]] = []

    def answered(orders: list[dict[str, Any]], seconds: float) -> list[Answer]:
        assert seconds == get_settings().MAX_RUN_SECONDS, "slow clients may need it"
        ordered.append(tuple(key for order in orders for key in order))
        parts = [order.get("start", {}).get("part") for order in orders]
        return [Answer({"ready": {}, "op_s": {}, "unlimited": [f"{part}"]}, b"", AGENT, "") for part in parts]

    monkeypatch.setattr(owner, "_ordered", answered)
    found = owner.start(0, 0, cold)
    assert ordered == expected
    assert [each.unlimited for each in found] == [[f"{at}"] for at in range(len(names))]


def test_a_host_may_capture_statements_for_as_long_as_it_lives(
    host: _Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner does the same before, without a limit of its own."""
    owner, waited = controller(host), iter([400.0, get_settings().MAX_RUN_SECONDS + 1.0])
    monkeypatch.setattr(owner, "_open", lambda: None)
    monkeypatch.setattr(owner, "_send", lambda: None)
    wait = owner._wait
    monkeypatch.setattr(owner, "_wait", lambda begin, *rest: wait(begin - next(waited), *rest))
    with pytest.raises(LoadHostFailed, match="load host a: it did not answer within 1800 s; see the log"):
        owner.begin([])
    assert list(waited) == []


HALVES = (frozenset({3, 1}), frozenset({0, 2}))
BEHIND_URL = Sides(frozenset({1}), frozenset({0, 2, 3}))


@pytest.mark.parametrize(
    ("machine", "placed", "cpus", "page_cpus"),
    [
        ("owner's", CpuPlacement("apart", *HALVES, BEHIND_URL), [1, 3], [1]),
        ("owner's", CpuPlacement("apart", *HALVES), [1, 3], [1, 3]),
        ("owner's", CpuPlacement("scheduler"), None, None),
        ("another", CpuPlacement("apart", *HALVES, BEHIND_URL), None, None),
    ],
)
def test_clients_are_pinned_only_beside_those_of_the_owner(
    machine: str,
    placed: CpuPlacement,
    cpus: list[int] | None,
    page_cpus: list[int] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As those are: clients that request pages have other CPUs than those of a database."""
    make_run(Run.Status.RUNNING, attempt=1)
    monkeypatch.setattr(state, "load_host", lambda: "owner's")
    owner = controller()
    owner.own_placement = placed
    host = _Host("a", 1, QUEUE, facts=HostFacts(machine, "", 4))
    assert owner._cpus_on(host) == {"cpus": cpus, "page_cpus": page_cpus}


class TestTheBrokerIsAway:
    """When the messages to the hosts are to be sent."""

    @pytest.fixture(autouse=True)
    def _at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(owners, "_SEND_AGAIN_S", 0.0, raising=False)

    @pytest.fixture
    def owner(self) -> LoadHostController:
        make_run(Run.Status.RUNNING, attempt=1)
        found = controller()
        assert found._take("a")
        assert found._take("b")
        return found

    def test_hosts_get_their_messages_when_it_is_back(
        self, owner: LoadHostController, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[str] = []
        outages = [BrokerUnreachable("Celery's broker does not answer")] * 2

        def send(_row_id: int, queue: str) -> None:
            if outages and queue == "pgperf-load-b":
                raise outages.pop()
            sent.append(queue)

        monkeypatch.setattr(broker, "send_load", send)
        owner._send()
        for _ in range(3):
            owner._wait(time.monotonic(), COME_S, owner._hosts)
        assert (sent, [host.unsent for host in owner._hosts]) == (
            ["pgperf-load-a", "pgperf-load-b"],
            ["", ""],
        )

    def test_a_cancel_ends_the_wait(self, owner: LoadHostController, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(broker, "send_load", away)
        monkeypatch.setattr(owner, "_open", lambda: None)

        def cancel() -> None:
            raise RunCancelled("cancelled on request")

        with while_waiting(cancel), pytest.raises(RunCancelled):
            owner.begin([])

    def test_a_host_without_a_message_in_time_fails_the_run_by_its_name(
        self, owner: LoadHostController, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(broker, "send_load", away)
        owner._send()
        with pytest.raises(LoadHostFailed, match="load host a: it did not come within 30 s: Celery's broker"):
            owner._wait(time.monotonic() - COME_S - 1, 10 * COME_S, owner._hosts)


def away(*_: Any) -> None:
    raise BrokerUnreachable("Celery's broker does not answer")
