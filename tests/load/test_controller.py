"""The owner's side of its load hosts, where one is awaited."""

import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

import pgperf
from pgperf.conf import get_settings
from pgperf.core import protocol
from pgperf.core.exceptions import BrokerUnreachable, LoadHostFailed, LoadHostLate, RunCancelled
from pgperf.load import controller as owners
from pgperf.load import rows
from pgperf.load.answers import HostFacts
from pgperf.load.controller import COME_S, LoadHostController, _Host
from pgperf.models import LoadShare, Run, Worker
from pgperf.runner.client_process import while_waiting
from pgperf.runner.cpu.placement import CpuPlacement, Sides
from pgperf.runner.host_slices import NOTHING, pack
from pgperf.runner.remote.clock_offset import ClockOffset
from pgperf.runs import broker, database_clock, state
from pgperf.runs.order_rows import Answer
from tests.database_outage import terminate_own_backend
from tests.factories import make_run, make_worker
from tests.runner.builders import definition

MS = 1_000_000
TELL_S = owners._TELL_S
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
    monkeypatch.setattr(owners, "_RESERVE_S", 0.0)
    owner = controller(host)
    host.clock = ClockOffset(0, window_ms * MS // 100)
    owner.settle(window_ms * MS)
    owner.settle(0)
    host.clock = ClockOffset(0, window_ms * MS // 100 + 1)
    with pytest.raises(LoadHostFailed, match=f"load host a: its clock is known to .* {remedy}"):
        owner.settle(window_ms * MS)


def test_the_error_of_the_clock_that_is_used_is_checked_too(host: _Host) -> None:
    """Each of the two measurements is good enough, and what lies between their bounds is not. The
    order is repeated once.
    """
    owner = controller(host)
    trouble = [
        (LoadHostLate, "load host a: the clock was not known well enough"),
        (LoadHostFailed, r"load host a: its clock is known to ±2\d\.\d+ ms only"),
    ]
    for kind, why in trouble:
        host.clock = ClockOffset(-15 * MS, 19 * MS)
        owner.order([(0, protocol.Slice(seq=1, start_ns=10**12, window_ns=2000 * MS))])
        answer(host, 14 * MS)
        with pytest.raises(kind, match=why):
            owner.results(0)


class Hosts:
    """Load hosts whose clocks run faster than the owner's, by a clock of the test's own. They need so
    many seconds to start, and 0.1 to tell the time.
    """

    RATE = 50e-6

    def __init__(self, start_s: float, errors_ns: Iterable[int]) -> None:
        self.now_s, self.start_s, self.errors_ns = 1000.0, start_s, iter(errors_ns)
        self.answers: dict[str, tuple[float, Answer | None]] = {}
        self.told = 0

    def offset_ns(self) -> int:
        """From each host's clock to the owner's, now."""
        return -round((self.now_s - 1000.0) * self.RATE * 1e9)

    def put(self, host: _Host, order: dict[str, Any]) -> int:
        takes_s = self.start_s if "start" in order else 0.1
        self.answers[host.name] = (self.now_s + takes_s, None)
        return 1

    def answer(self, host: _Host) -> Answer | None:
        """A host measures its clock when it has carried out the order."""
        at_s, found = self.answers[host.name]
        if self.now_s < at_s:
            return None
        if found is None:
            self.told += 1
            clock = ClockOffset(self.offset_ns(), next(self.errors_ns)).to_json()
            found = Answer({"ready": {}, "op_s": {}, "unlimited": [], "clock": clock}, b"", AGENT, "")
            self.answers[host.name] = at_s, found
        return found

    def wait(self, *_: Any) -> None:
        self.now_s += 0.05

    def owner(self, monkeypatch: pytest.MonkeyPatch, names: str = "ab") -> LoadHostController:
        make_run(Run.Status.RUNNING, attempt=1)
        found = controller(*(_Host(name, at, f"{QUEUE}{name}") for at, name in enumerate(names)))
        clock = SimpleNamespace(monotonic=lambda: self.now_s, monotonic_ns=lambda: int(self.now_s * 1e9))
        monkeypatch.setattr(owners, "time", clock)
        monkeypatch.setattr(database_clock, "offset", lambda _rows: ClockOffset(0, 1_000))
        for name, instead in (("_put", self.put), ("_answer", self.answer), ("_wait", self.wait)):
            monkeypatch.setattr(found, name, instead)
        return found


def furthest_ns(owner: LoadHostController, hosts: Hosts) -> int:
    return max(abs(host.clock.ns - hosts.offset_ns()) for host in owner._hosts)


def test_clocks_are_fresh_when_clients_have_started_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first host tells the time, and then the other one starts for 30 s, in which clocks whose
    rates differ by 50 ppm drift apart by 1.5 ms.
    """
    hosts = Hosts(30.0, repeat(10_000))
    owner = hosts.owner(monkeypatch)
    owner.start(0, 0, cold=True)
    assert furthest_ns(owner, hosts) < 20_000


def test_clocks_are_laid_again_before_slices_that_begin_much_later(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(0.1, repeat(10_000))
    owner = hosts.owner(monkeypatch)
    owner.start(0, 0, cold=False)
    hosts.now_s += 30.0
    assert furthest_ns(owner, hosts) > 1_400_000
    owner.settle(100 * MS)
    assert furthest_ns(owner, hosts) < 20_000
    told = hosts.told
    owner.settle(100 * MS)
    assert hosts.told == told, "they are fresh"


def test_of_the_answers_of_one_call_the_best_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hosts whose first good answers are not those to the same question."""
    errors_ns = [9 * MS, 9 * MS, MS // 4, 9 * MS, 9 * MS, MS // 4]
    hosts = Hosts(0.1, errors_ns)
    owner = hosts.owner(monkeypatch)
    for host in owner._hosts:
        host.clock = ClockOffset(0, 9 * MS)
    owner.settle(100 * MS)
    assert [host.clock.error_ns for host in owner._hosts] == [MS // 4 + 1_000] * 2
    assert hosts.told == len(errors_ns)


def test_a_better_answer_does_not_count_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(0.1, [10_000, 90_000])
    owner = hosts.owner(monkeypatch, "a")
    owner.settle(100 * MS)
    hosts.now_s += 30.0
    owner.settle(100 * MS)
    assert owner._hosts[0].clock.error_ns == 91_000


def test_an_answer_of_another_kind_does_not_replace_a_better_one(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Hosts(0.1, [10_000, 90_000]).owner(monkeypatch, "a")
    owner.settle(100 * MS)
    owner._ordered([{"end": True}])
    assert owner._hosts[0].clock.error_ns == 11_000


def a_round(hosts: Hosts, owner: LoadHostController, error_ns: int = 0) -> None:
    """Six seconds, in which the clocks drift apart by 0.3 ms, with windows of 50 ms. `error_ns`: of
    the clock before it; 0: as it was left.
    """
    (host,) = owner._hosts
    if error_ns:
        host.clock, host.clock_s = ClockOffset(hosts.offset_ns(), error_ns), hosts.now_s
    owner.order([(0, protocol.Slice(seq=1, start_ns=10**12, window_ns=50 * MS))])
    hosts.answers["a"] = hosts.now_s + 6.0, None
    hosts.now_s += 6.0
    owner.results(0)


UNSURE_NS, GOOD_NS = 399_000, 99_000


@pytest.fixture
def without_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoadHostController, "_slices", lambda *_: [])


@pytest.mark.usefixtures("without_slices")
def test_a_better_answer_is_sought_for_clocks_that_scatter(monkeypatch: pytest.MonkeyPatch) -> None:
    """0 ± 0.4 ms before a round and 0.3 ± 0.4 ms after it are each within the 0.5 ms that windows of
    50 ms allow, and half of the width of both is not.
    """
    hosts = Hosts(0.1, [UNSURE_NS, GOOD_NS])
    owner = hosts.owner(monkeypatch, "a")
    a_round(hosts, owner, UNSURE_NS + 1_000)
    assert 400_000 < owner._hosts[0].worst_error_ns < 500_000


@pytest.mark.usefixtures("without_slices")
def test_a_round_whose_clocks_scatter_is_repeated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(0.1, repeat(UNSURE_NS))
    owner = hosts.owner(monkeypatch, "a")
    for _ in range(2):
        with pytest.raises(LoadHostLate) as late:
            a_round(hosts, owner, UNSURE_NS)
        assert (late.value.host, late.value.needs_time) == ("a", False)
        a_round(hosts, owner, GOOD_NS)  # so the next one is the first again
    with pytest.raises(LoadHostLate):
        a_round(hosts, owner, UNSURE_NS)
    with pytest.raises(LoadHostFailed, match="load host a: its clock is known to"):
        a_round(hosts, owner, UNSURE_NS)
    assert owner.facts()["repeated"] == 3


@pytest.mark.parametrize(
    ("cold", "names", "expected"),
    [
        (True, "abc", [("start", "clock", "clock"), ("clock", "start", "start"), ("clock",) * 3]),
        (False, "abc", [("start", "start", "start"), ("clock",) * 3]),
        (True, "a", [("start",), ("clock",)]),
    ],
)
def test_nobody_else_starts_while_the_first_host_measures_cold_phases(
    cold: bool, names: str, expected: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(Run.Status.RUNNING, attempt=1)
    owner = controller(*(_Host(name, at, QUEUE) for at, name in enumerate(names)))
    ordered: list[tuple[str, ...]] = []

    def answered(orders: list[dict[str, Any]], seconds: float = TELL_S) -> list[Answer]:
        starts = any("start" in order for order in orders)
        assert seconds == (get_settings().MAX_RUN_SECONDS if starts else TELL_S), "slow clients may need it"
        ordered.append(tuple(key for order in orders for key in order))
        parts = [order.get("start", {}).get("part") for order in orders]
        return [Answer({"ready": {}, "op_s": {}, "unlimited": [f"{part}"]}, b"", AGENT, "") for part in parts]

    monkeypatch.setattr(owner, "_ordered", answered)
    monkeypatch.setattr(owners, "_IMPROVE_S", 0.0)
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


class TestFreeHosts:
    """Which of the free hosts take part, where the run names none."""

    @pytest.fixture
    def owner(self, monkeypatch: pytest.MonkeyPatch) -> LoadHostController:
        for name in "abc":
            make_worker(f"load@{name}")
            Worker.objects.filter(hostname=f"load@{name}").update(queue=f"pgperf-load-{name}")
        monkeypatch.setattr(broker, "send_load", lambda _row_id, _queue: None)
        make_run(Run.Status.RUNNING, attempt=1)
        return LoadHostController(Run.objects.get(), definition(load_hosts=(2,)))

    def test_one_that_missed_a_heartbeat_comes_last(self, owner: LoadHostController) -> None:
        Worker.objects.filter(hostname="load@a").update(last_seen=timezone.now() - timedelta(seconds=30))
        owner._open()
        assert owner.names == ["b", "c"]

    @pytest.mark.parametrize(
        ("refusing", "expected"), [("a", ["b", "c"]), ("b", ["a", "c"]), ("", ["a", "b"])]
    )
    def test_the_next_one_takes_the_place_of_one_that_refuses(
        self, refusing: str, expected: list[str], owner: LoadHostController, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wait_for_answers(owner, monkeypatch, refusing)
        owner.begin([])
        assert owner.names == expected
        assert [host.facts.machine for host in owner._hosts] == [f"of {name}" for name in expected]
        assert set(LoadShare.objects.values_list("name", flat=True)) == set(expected)

    @pytest.mark.parametrize("named", [("a", "b"), ()])
    def test_nobody_takes_the_place_of_a_named_one_and_nobody_comes_twice(
        self, named: tuple[str, ...], owner: LoadHostController, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        owner._definition = definition(load_hosts=(2,), load_host_names=named)
        wait_for_answers(owner, monkeypatch, "a" if named else "abc")
        with pytest.raises(LoadHostFailed, match="no memory"):
            owner.begin([])


def wait_for_answers(owner: LoadHostController, monkeypatch: pytest.MonkeyPatch, refusing: str) -> None:
    """Each host answers its order when the owner has looked once; those of these names refuse it."""

    def answer_all(*_: Any) -> None:
        for host in owner._hosts:
            agent = f"load@{host.name}"
            rows.claim(host.row_id, agent)
            if host.name in refusing:
                rows.ROWS.refuse(host.row_id, agent, "no memory")
            facts = {
                "pgperf": pgperf.__version__,
                "machine": f"of {host.name}",
                "kernel": "",
                "processors": 2,
            }
            clock = ClockOffset(0, 1).to_json()
            rows.ROWS.answer(host.row_id, agent, host.number, {**facts, "clock": clock})

    monkeypatch.setattr(owner, "_wait", answer_all)


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
    monkeypatch.setattr(state, "this_machine", lambda: "owner's")
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
