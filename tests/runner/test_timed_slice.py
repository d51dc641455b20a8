"""A timed slice: its start, its record, and who is looked for again."""

import os
import signal
import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest

from pgperf.core import protocol
from pgperf.core.records import SliceRecord
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu.accounting import ROLES, SliceAccount
from pgperf.runner.cpu.host import Host, HostInterval
from pgperf.runner.cpu.schedstat import CpuTime
from pgperf.runner.plan import make_plan
from pgperf.runner.processes.web_processes import WebProcesses
from pgperf.runner.slice_window import Recorded
from pgperf.runner.timed_slice import SlicePlace, armed, measure, slice_record
from tests.core.builders import variant
from tests.runner.builders import definition
from tests.runner.client_groups import groups_of
from tests.runner.slice_replies import reply

MS = 1_000_000


@pytest.mark.parametrize(
    ("clients", "hosts", "starts"), [(1, 0, False), (2, 0, True), (1, 1, True), (2, 2, True)]
)
def test_one_connection_on_this_machine_alone_begins_at_once(clients: int, hosts: int, starts: bool) -> None:
    (variant, *_) = make_plan(definition(clients=(clients,))).variants
    group = ClientGroup(replace(variant, hosts=hosts), "app")
    before_ns = time.monotonic_ns()
    found = armed(group, protocol.Slice(seq=1, window_ns=MS))
    assert (found.start_ns > before_ns) is starts


class TestNoTimeOfTheServer:
    """A page without queries gives its server nothing to do."""

    @pytest.mark.parametrize("layer", ["http", "django_view"])
    def test_a_server_that_did_nothing_is_the_right_one(self, layer: str) -> None:
        group, record = self.measured(layer, pooled=False)
        assert (record.server_ns, group.look_again) == (0, False)

    def test_a_pooler_may_have_used_another_connection(self) -> None:
        group, record = self.measured("http", pooled=True)
        assert (record.server_ns, group.look_again) == (None, True)

    @pytest.mark.parametrize(("wait_ns", "expected"), [(0, (None, True)), (None, (0, False))])
    def test_a_short_slice_may_have_no_clock_tick(
        self, wait_ns: int | None, expected: tuple[int | None, bool]
    ) -> None:
        """A kernel that counts in ticks counts no waits."""
        group, record = self.measured("libpq", pooled=False, server=CpuTime(0, wait_ns, 0))
        assert (record.server_ns, group.look_again) == expected

    def measured(
        self, layer: str, pooled: bool, server: CpuTime | None = None
    ) -> tuple[ClientGroup, SliceRecord]:
        """A slice of five operations. `server`: its CPU time, else none."""
        group = ClientGroup(variant(layer=layer), "app", server_pids=[1], pooled=pooled)
        request = protocol.Slice(seq=1, lead_in_ops=10, count=5)
        found = Recorded([reply(0, 5)], [np.ones(5, dtype=np.uint64)], [np.zeros((0, 5), dtype=np.uint64)])
        nothing: dict[str, CpuTime | None] = dict.fromkeys(ROLES, CpuTime.zero())
        nothing |= {"server": server or CpuTime.zero()}
        host = HostInterval(elapsed_ns=1, busy_ns=0, iowait_ns=0, steal_ns=0)
        account = SliceAccount(host=host, runner_ns=0, cpu_time=nothing, ticks_and_switches={})
        record, _window = slice_record(group, request, found, SlicePlace(0, 0, 0), account)
        return group, record


def test_a_server_that_did_nothing_is_the_wrong_one() -> None:
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


def test_a_process_of_the_server_that_ends_is_looked_for_again() -> None:
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
def test_whoever_ends_is_looked_for_again(role: str) -> None:
    """As a pooler replaces its connections to the server, and a web server its workers."""
    with groups_of(1) as (one, _control), subprocess.Popen(["true"]) as gone:
        gone.wait()
        one.server_pids = [gone.pid] if role == "server" else []
        one.pooled, one.pooler_pid = role == "pooler", gone.pid if role == "pooler" else None
        one.web = WebProcesses(**{each: [gone.pid] if role == each else [] for each in ("web", "proxy")})
        measure(one, protocol.Slice(seq=1, lead_in_ops=1, count=5), 0, 0, Host.here())
    assert one.look_again


def test_the_workers_of_one_client_share_a_window() -> None:
    with groups_of(1, workers=3) as (one, _control):
        request = protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=MS, window_ns=20 * MS)
        record, window = measure(one, request, 0, 0)
        assert record.window_ns == 20 * MS
        assert record.ops == len(window.durations)
        assert record.rows == record.ops


def test_the_phases_of_operations_that_connect_add_up_in_the_common_window() -> None:
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
