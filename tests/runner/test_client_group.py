"""What counts of a slice: own stretches, and the common window of several clients."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core import protocol
from pgperf.core.layers import LAYERS
from pgperf.core.records import Route, SliceRecord
from pgperf.runner import client_group
from pgperf.runner.client_group import (
    _STARTING,
    ClientGroup,
    Recorded,
    SlicePlace,
    SliceWindow,
    _recorded_from_the_start,
    armed,
    find_server_cgroup,
    measure,
    slice_record,
    spec,
    start_most_s,
    started,
    time_per_op_us,
)
from pgperf.runner.cpu.accounting import ROLES, SliceAccount, SliceAccounting
from pgperf.runner.cpu.host import Host, HostInterval
from pgperf.runner.cpu.schedstat import CpuTime
from pgperf.runner.plan import make_plan
from pgperf.runner.processes.web_processes import WebProcesses
from pgperf.runner.server import departure
from pgperf.runner.server.probe import ServerProbe
from tests.core.builders import variant
from tests.runner.builders import definition

MS = 1_000_000


def reply(first_ns: int, count: int, capped: bool = False) -> protocol.SliceReply:
    return protocol.SliceReply(
        seq=1,
        ops=count,
        rows=count,
        lead_in_ops=10,
        first_ns=first_ns,
        user_ns=0,
        sys_ns=0,
        capped=capped,
        nbytes=8 * count,
    )


@pytest.mark.parametrize("layer", [name for name in LAYERS if not LAYERS[name].requests_pages])
def test_a_client_gets_the_second_query_in_the_form_of_its_layer(layer: str) -> None:
    what = definition(workloads=(SITE_BY_DOMAIN,), layers=(layer,), modes=LAYERS[layer].modes[:1])
    route = Route("here", "localhost", 5432, "app", "reader", "")
    found = spec(what, make_plan(what).variants[0], route, "pgperf", True, 0)
    assert (bool(found.other_orm), bool(found.other_statements)) == (
        LAYERS[layer].calls_orm, not LAYERS[layer].calls_orm
    )  # fmt: skip


def test_one_client_counts_all_it_recorded() -> None:
    durations = np.array([3, 4, 5], dtype=np.uint64)
    window = SliceWindow.of(protocol.Slice(seq=1, window_ns=10), [reply(100, 3)], [durations])
    assert (window.ops, window.length_ns) == (3, 12)


def test_several_clients_count_what_ended_inside_the_common_window() -> None:
    request = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=10 * MS)
    opens = 1050 * MS
    early = np.full(12, MS, dtype=np.uint64)  # from the opening: ten end inside, two after
    late = np.full(6, 2 * MS, dtype=np.uint64)  # from 1 ms after it: ends at 3, 5, 7, 9 | 11, 13
    window = SliceWindow.of(request, [reply(opens, 12), reply(opens + MS, 6)], [early, late])
    assert (window.ops, window.length_ns) == (14, 10 * MS)
    assert window.disturbed == ""


def test_what_was_under_way_when_the_window_opened_counts_whole() -> None:
    """So a client that never rests is busy for just as long as the window, however few operations
    end in it.
    """
    request = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=40 * MS, lead_in_ops=1)
    sent = _recorded_from_the_start(request)
    assert (sent.lead_in_ns, sent.window_ns, sent.lead_in_ops) == (0, 90 * MS, 1)
    lasting = [np.full(40, length, dtype=np.uint64) for length in (4 * MS, 10 * MS)]
    window = SliceWindow.of(request, [reply(1001 * MS, 40), reply(1001 * MS, 40)], lasting)
    assert window.ops == 40 // 4 + 40 // 10
    assert window.durations.sum() == 2 * window.length_ns


@pytest.mark.parametrize(
    "request_", [protocol.Slice(seq=1, start_ns=1, count=5), protocol.Slice(seq=1, lead_in_ns=7, window_ns=9)]
)
def test_one_client_and_a_number_of_operations_have_a_lead_in(request_: protocol.Slice) -> None:
    assert _recorded_from_the_start(request_) is request_


def test_a_client_that_began_late_is_said_so() -> None:
    request = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=10 * MS)
    durations = np.full(3, MS, dtype=np.uint64)
    window = SliceWindow.of(request, [reply(1050 * MS, 3), reply(1055 * MS, 3)], [durations, durations])
    assert "began after" in window.disturbed


@pytest.mark.parametrize("length", [{"count": 2}, {"lead_in_ns": 50 * MS, "window_ns": 10 * MS}])
def test_the_time_until_all_had_led_in_is_known(length: dict[str, int]) -> None:
    """From the common start, so it contains the time that a client waited for a CPU."""
    request = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ops=1, **{"lead_in_ns": 0, **length})
    durations = np.full(2, MS, dtype=np.uint64)
    replies = [reply(1030 * MS, 2), reply(1047 * MS, 2)]
    assert SliceWindow.of(request, replies, [durations, durations]).led_in_ns == 47 * MS


def test_one_client_waits_for_no_common_start() -> None:
    window = SliceWindow.of(
        protocol.Slice(seq=1, count=2), [reply(1030 * MS, 2)], [np.ones(2, dtype=np.uint64)]
    )
    assert window.led_in_ns == 0


class TestWorkers:
    """A client's reply has the chains of its workers one after the other."""

    REQUEST = protocol.Slice(seq=1, start_ns=1000 * MS, lead_in_ns=50 * MS, window_ns=10 * MS)

    def test_each_chain_is_cut_to_the_common_window(self) -> None:
        one = reply(1049 * MS, 7)._replace(worker_ops=[5, 2], worker_first_ns=[1049 * MS, 1050 * MS])
        durations = np.array([2 * MS, 4 * MS, 3 * MS, MS, 9 * MS, 6 * MS, 4 * MS], dtype=np.uint64)
        window = SliceWindow.of(self.REQUEST, [one], [durations])
        assert window.durations.tolist() == [2 * MS, 4 * MS, 3 * MS, MS, 6 * MS, 4 * MS]
        assert (window.ops, window.length_ns, window.disturbed) == (6, 10 * MS, "")

    def test_several_clients_with_several_workers(self) -> None:
        each = reply(1050 * MS, 4)._replace(worker_ops=[1, 3], worker_first_ns=[1050 * MS] * 2)
        durations = np.array([5 * MS, 4 * MS, 4 * MS, 4 * MS], dtype=np.uint64)
        assert SliceWindow.of(self.REQUEST, [each, each], [durations, durations]).ops == 6

    def test_by_count_waiting_for_the_slowest_is_no_part_of_the_window(self) -> None:
        one = reply(0, 4)._replace(worker_ops=[2, 2], worker_first_ns=[0, 5])
        durations = np.array([3, 4, 10, 20], dtype=np.uint64)
        window = SliceWindow.of(protocol.Slice(seq=1, count=2), [one], [durations])
        assert (window.ops, window.length_ns) == (4, (7 + 30) // 2)

    @pytest.mark.parametrize(
        ("worker_ops", "first_ms", "words"),
        [([2, 0], 1050, "completed nothing"), ([1, 1], 1055, "began after")],
    )
    def test_one_worker_disturbs_the_slice(self, worker_ops: list[int], first_ms: int, words: str) -> None:
        one = reply(0, 2)._replace(worker_ops=worker_ops, worker_first_ns=[1050 * MS, first_ms * MS])
        window = SliceWindow.of(self.REQUEST, [one], [np.full(2, MS, dtype=np.uint64)])
        assert words in window.disturbed


def test_a_full_recording_is_said_so() -> None:
    window = SliceWindow.of(
        protocol.Slice(seq=1, window_ns=10), [reply(0, 1, capped=True)], [np.ones(1, dtype=np.uint64)]
    )
    assert "full" in window.disturbed


def test_one_interruption_does_not_weigh_as_much_as_all_the_work() -> None:
    durations = np.array([20_000] * 199 + [4_000_000], dtype=np.uint64)
    assert time_per_op_us(durations) == 20.0


def test_few_operations_are_all_counted_whole() -> None:
    assert time_per_op_us(np.array([1000, 3000], dtype=np.uint64)) == 2.0
    assert time_per_op_us(np.zeros(0, dtype=np.uint64)) == 0.0


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=500))
def test_time_per_op_lies_between_the_shortest_and_the_plain_mean(lengths: list[int]) -> None:
    durations = np.array(lengths, dtype=np.uint64)
    assert (
        durations.min() / 1000 * (1 - 1e-9)
        <= time_per_op_us(durations)
        <= durations.mean() / 1000 * (1 + 1e-9)
    )


@given(st.lists(st.integers(1, 5 * MS), min_size=1, max_size=60), st.integers(0, 4 * MS))
def test_an_operation_is_inside_iff_it_ended_inside(lengths: list[int], offset: int) -> None:
    request = protocol.Slice(seq=1, start_ns=MS, lead_in_ns=MS, window_ns=20 * MS)
    first = 2 * MS + offset
    expected, end = 0, first
    for length in lengths:
        end += length
        expected += 2 * MS < end <= 22 * MS
    durations = np.array(lengths, dtype=np.uint64)
    window = SliceWindow.of(request, [reply(first, len(lengths))] * 2, [durations] * 2)
    assert window.ops == 2 * expected


@contextmanager
def groups_of(
    *clients: int, cold: bool = False, workers: int = 1, connect: str = "persistent"
) -> Iterator[list[ClientGroup]]:
    what = definition(clients=clients, workers=workers, connection_modes=(connect,))
    named = [(variant, f"run-{at}") for at, variant in enumerate(make_plan(what).variants)]
    route = Route("here", "localhost", 1, "none", "nobody", "")
    with started(what, named, {"here": route}, "", cold, None) as groups:
        yield groups


@pytest.mark.parametrize(
    ("clients", "hosts", "starts"), [(1, 0, False), (2, 0, True), (1, 1, True), (2, 2, True)]
)
def test_one_connection_on_this_machine_alone_begins_at_once(clients: int, hosts: int, starts: bool) -> None:
    (variant, *_) = make_plan(definition(clients=(clients,))).variants
    group = ClientGroup(replace(variant, hosts=hosts), "app")
    before_ns = time.monotonic_ns()
    found = armed(group, protocol.Slice(seq=1, window_ns=MS))
    assert (found.start_ns > before_ns) is starts


@pytest.mark.parametrize(
    ("cold", "workers", "most_s"), [(False, 1, 60 + 30), (True, 1, 60 + 150), (True, 3, 60 + 150 + 60)]
)
def test_a_client_has_time_to_start_with_the_slowest_operations(
    cold: bool, workers: int, most_s: float
) -> None:
    (one, *_) = make_plan(definition(workers=workers)).variants
    assert start_most_s(one, cold) == most_s


def test_slow_operations_have_time_before_and_after_their_client_is_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As there is no other time here, it is that of the operations."""
    monkeypatch.setattr(client_group, "_START_TIMEOUT_S", 0.0)
    with groups_of(2, cold=True) as (two, _control):
        trial = protocol.Slice(seq=1, lead_in_ops=1, count=2)
        two.begin(trial)
        with monkeypatch.context() as without:
            without.setattr(client_group, "_TIMEOUT_FACTOR", 0)
            two.calibrate(trial)
    assert two.op_s > 0


class TestWebServersThatKeepTheirConnections:
    """Clients reconnect to the web server, and it has one connection to the database."""

    def group(self) -> ClientGroup:
        http = variant(layer="http", route="web", connect="per_operation")
        return ClientGroup(http, "app", server_pids=[os.getpid()], auxiliary_pids=[os.getppid()])

    def test_their_backends_are_those_that_were_found(self) -> None:
        """So the server is known without a control group of its own."""
        group = self.group()
        find_server_cgroup([group])
        assert group.server_unknown == ""
        accounting = SliceAccounting(Host.here(), group.processes())
        sum(range(100_000))
        found = accounting.close().fields()
        assert found["server_ns"] == found["server_busiest_ns"] > 0

    def test_nobody_waits_until_they_leave(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[ClientGroup] = []
        monkeypatch.setattr(departure, "of_backends", lambda *words, **_: asked.append(words) or "left")
        probe = ServerProbe([], object(), "app", False)  # type: ignore[arg-type]
        assert probe.departed(self.group()) == ""
        assert probe.departed(replace(self.group(), server_pids=[])) == "left"

    def test_without_one_their_backends_pass(self) -> None:
        group = replace(self.group(), server_pids=[])
        assert group.processes().backends_pass
        assert not replace(group, variant=replace(group.variant, connect="persistent")).backends_pass


class TestPagesWithoutQueries:
    """Their server has nothing to do."""

    @pytest.mark.parametrize("layer", ["http", "django_view"])
    def test_a_server_that_did_nothing_is_the_right_one(self, layer: str) -> None:
        group, record = self.measured(layer, pooled=False)
        assert (record.server_ns, group.look_again) == (0, False)

    def test_a_pooler_may_have_used_another_connection(self) -> None:
        group, record = self.measured("http", pooled=True)
        assert (record.server_ns, group.look_again) == (None, True)

    def measured(self, layer: str, pooled: bool) -> tuple[ClientGroup, SliceRecord]:
        """A slice of five requests."""
        group = ClientGroup(variant(layer=layer), "app", server_pids=[1], pooled=pooled)
        request = protocol.Slice(seq=1, lead_in_ops=10, count=5)
        found = Recorded([reply(0, 5)], [np.ones(5, dtype=np.uint64)], [np.zeros((0, 5), dtype=np.uint64)])
        nothing = dict.fromkeys(ROLES, CpuTime.zero())
        host = HostInterval(elapsed_ns=1, busy_ns=0, iowait_ns=0, steal_ns=0)
        account = SliceAccount(host=host, runner_ns=0, cpu_time=nothing, ticks_and_switches={})
        record, _window = slice_record(group, request, found, SlicePlace(0, 0, 0), account)
        return group, record


class TestSharedClients:
    def test_fewer_clients_are_the_first_of_the_largests(self) -> None:
        with groups_of(1, 2, 4) as (one, two, four, control):
            assert len({client.pid for client in four.clients}) == 4
            assert one.clients == four.clients[:1]
            assert two.clients == four.clients[:2]
            assert [each.owner for each in (one, two, four, control)] == [four, four, None, None]
            assert control.clients[0] not in four.clients
            assert [ready.pid for ready in two.ready] == [client.pid for client in two.clients]

    def test_each_connection_is_told_apart_by_its_application_name(self) -> None:
        with groups_of(1, 4) as (one, four, control):
            assert four.applications == ["run-1", "run-1.1", "run-1.2", "run-1.3"]
            assert one.applications == ["run-1"]
            assert control.applications == ["run-2"]

    def test_a_slice_drives_its_own_clients_and_no_other(self) -> None:
        with groups_of(1, 3) as (one, three, _control):
            request = protocol.Slice(seq=1, lead_in_ops=1, count=5)
            for group, clients in ((one, 1), (three, 3), (one, 1)):
                assert len(group.run(request).replies) == clients
            record, window = measure(three, request, 0, 0)
            assert record.ops == len(window.durations) == 15
            assert record.connect_ns is None

    def test_a_server_that_did_nothing_is_the_wrong_one(self) -> None:
        """Operations ended, so another process served them: its time is unknown until it is
        found, not 0.
        """
        with groups_of(1) as (one, _control), subprocess.Popen(["sleep", "60"]) as stopped:
            os.kill(stopped.pid, signal.SIGSTOP)
            os.waitpid(stopped.pid, os.WUNTRACED)
            one.server_pids = [stopped.pid]
            record, _window = measure(one, protocol.Slice(seq=1, lead_in_ops=1, count=5), 0, 0, Host.here())
            stopped.kill()
        assert record.ops == 5
        assert (record.server_ns, record.server_wait_ns, record.server_busiest_ns) == (None, None, None)
        assert one.look_again

    def test_a_process_of_the_server_that_ends_is_looked_for_again(self) -> None:
        with groups_of(1) as (one, _control), subprocess.Popen("cat", stdin=subprocess.PIPE) as own:
            one.auxiliary_pids = [own.pid]
            request = protocol.Slice(seq=1, lead_in_ops=1, count=5)
            measure(one, request, 0, 0, Host.here())
            assert not one.look_again
            own.kill()
            own.wait()
            measure(one, request, 0, 0, Host.here())
        assert one.look_again

    @pytest.mark.parametrize("role", ["server", "pooler", "web", "proxy"])
    def test_whoever_ends_is_looked_for_again(self, role: str) -> None:
        """As a pooler replaces its connections to the server, and a web server its workers."""
        with groups_of(1) as (one, _control), subprocess.Popen(["true"]) as gone:
            gone.wait()
            one.server_pids = [gone.pid] if role == "server" else []
            one.pooled, one.pooler_pid = role == "pooler", gone.pid if role == "pooler" else None
            one.web = WebProcesses(**{each: [gone.pid] if role == each else [] for each in ("web", "proxy")})
            measure(one, protocol.Slice(seq=1, lead_in_ops=1, count=5), 0, 0, Host.here())
        assert one.look_again

    def test_only_the_first_client_of_the_largest_starts_coldly(self) -> None:
        with groups_of(1, 3, cold=True) as (_one, three, control):
            assert [ready.first_us is not None for ready in three.ready] == [True, False, False]
            assert control.ready[0].first_us is not None

    def test_more_clients_than_may_start_at_the_same_time(self) -> None:
        with groups_of(_STARTING + 2) as (many, _control):
            assert len({ready.pid for ready in many.ready}) == _STARTING + 2

    def test_each_worker_has_a_name_of_its_own(self) -> None:
        with groups_of(2, workers=3) as (two, control):
            names = ["run-0", "run-0.1", "run-0.2", "run-0.3", "run-0.3.1", "run-0.3.2"]
            assert two.applications == names
            assert len(two.clients) == len(control.clients) == 2

    def test_the_workers_of_one_client_share_a_window(self) -> None:
        with groups_of(1, workers=3) as (one, _control):
            request = protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=MS, window_ns=20 * MS)
            record, window = measure(one, request, 0, 0)
            assert record.window_ns == 20 * MS
            assert record.ops == len(window.durations)
            assert record.rows == record.ops

    def test_the_phases_of_operations_that_connect_add_up_in_the_common_window(self) -> None:
        with groups_of(2, connect="per_operation") as (two, _control):
            request = protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=MS, window_ns=200 * MS)
            record, window = measure(two, request, 0, 0)
        parts = window.by_phase()
        assert list(parts) == ["connect", "operate", "close"]
        assert {len(part) for part in parts.values()} == {record.ops}
        assert sum(part.sum() for part in parts.values()) == window.durations.sum()
        assert record.connect_ns == parts["connect"].sum() > 0
        assert record.operate_ns == parts["operate"].sum() > 0
        assert record.close_ns == parts["close"].sum() > 0
