"""The server's own control group and its short-lived processes: on made-up trees and a real one."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from pgperf.analysis import cpu_per_operation
from pgperf.analysis.cpu_accounting import cpu_account
from pgperf.core.records import Definition, Route, WorkloadDefinition
from pgperf.runner.cpu.accounting import SliceAccounting, VariantProcesses
from pgperf.runner.cpu.cgroups import (
    ServerCgroup,
    group_ns,
    groups_of,
    members,
    of_those_before,
    other_sessions_cpu_time,
    passing_backends,
    quota,
    quota_groups,
    short_lived_ns,
    throttled_ns,
)
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.schedstat import CpuTime, ThreadTime
from pgperf.runner.processes.backends import SESSIONS, Sessions
from pgperf.runner.server import departure
from pgperf.runner.server.control_connection import ControlConnection
from tests.runner.builders import definition

from .test_accounting import measured

pytestmark = pytest.mark.usefixtures("no_autovacuum")

#: A postmaster and two that it started; who runs the benchmark is 90.
SERVER = (10, 11, 12)
PARENTS = {1: 0, 10: 1, 11: 10, 12: 10, 90: 1}
FIRST, SECOND = "cgroup {} cgroup rw,cpu,cpuacct 0 0\n", "cgroup2 {} cgroup2 rw 0 0\n"


class Machine:
    """A made-up machine whose server is in the group /db, in cgroup v1 and v2."""

    def __init__(self, root: Path) -> None:
        self.proc, self.mounts, self.groups = root / "proc", root / "mounts", root / "cgroup"
        self.group = self.groups / "db"
        self.group.mkdir(parents=True)
        self.put(SERVER)
        self.mounts.write_text(SECOND.format(self.groups))
        (self.group / "cpu.stat").write_text("usage_usec 7\nuser_usec 3\n")
        for pid, parent in PARENTS.items():
            self.process(pid, parent)

    def process(self, pid: int, parent: int) -> None:
        task = self.proc / str(pid) / "task" / str(pid)
        task.mkdir(parents=True)
        (task / "schedstat").write_text("5 5 5\n")
        (self.proc / str(pid) / "stat").write_text(f"{pid} (post gres) S {parent} {'0 ' * 20}\n")
        (self.proc / str(pid) / "cgroup").write_text("3:cpu,cpuacct:/db\n1:name=systemd:/\n0::/db\n")

    def put(self, pids: Iterable[int], group: str = "db") -> None:
        (self.groups / group).mkdir(exist_ok=True)
        (self.groups / group / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))

    def own(self, known: Iterable[int] = SERVER) -> ServerCgroup | None:
        return ServerCgroup.of(known, self.mounts, self.proc)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_server_in_a_group_of_its_own(machine: Machine) -> None:
    found = machine.own()
    assert found
    assert (found.directory, found.known, found.read_ns()) == (machine.group, set(SERVER), 7_000)
    machine.mounts.write_text(FIRST.format(machine.groups))
    (machine.group / "cpuacct.usage").write_text("9\n")
    found = machine.own((10, 12))  # another's session may be in there
    assert found
    assert (found.directory, found.read_ns()) == (machine.group, 9)


def test_cgroup_v2_is_used_where_v1_has_one_group_for_all(machine: Machine) -> None:
    for pid in SERVER:
        (machine.proc / str(pid) / "cgroup").write_text("3:cpuacct:/all\n0::/db\n")
    machine.put(PARENTS, "all")
    machine.mounts.write_text(FIRST.format(machine.groups) + SECOND.format(machine.groups))
    found = machine.own()
    assert found
    assert found.directory == machine.group


@pytest.mark.parametrize(
    "flaw", ["not alone", "groups below", "parted", "not counted", "not mounted", "gone"]
)
def test_a_group_that_is_not_the_servers_own(machine: Machine, flaw: str) -> None:
    if flaw == "not alone":
        machine.put((*SERVER, 90))
    elif flaw == "groups below":
        (machine.group / "inner").mkdir()
    elif flaw == "parted":
        machine.put(SERVER[:2])
    elif flaw == "not counted":
        (machine.group / "cpu.stat").unlink()
    elif flaw == "not mounted":
        machine.mounts.write_text("tmpfs /run tmpfs rw 0 0\n")
    else:
        (machine.proc / "10" / "cgroup").unlink()
    assert machine.own() is None


def test_a_server_that_is_not_here_has_no_group(machine: Machine) -> None:
    assert machine.own(()) is None
    assert machine.own((11, 12)) is None  # its postmaster is not known
    machine.put((1, *SERVER))
    assert machine.own() is None  # all of them were started by a stranger


def test_a_groups_cpu_time_in_cgroup_v1_and_v2(tmp_path: Path) -> None:
    assert group_ns(tmp_path)() is None
    (tmp_path / "cpu.stat").write_text("usage_usec 7\nuser_usec 3\n")
    assert group_ns(tmp_path)() == 7_000
    (tmp_path / "cpuacct.usage").write_text("9\n")
    assert group_ns(tmp_path)() == 9


def test_the_groups_that_count_the_time_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text(
        "4:memory:/m\n3:cpu,cpuacct:/db\n1:name=systemd:/s\n0::/db.service\n"
    )
    mounts = tmp_path / "mounts"
    mounts.write_text("m /m cgroup rw,memory 0 0\ntwo /2 cgroup2 rw 0 0\none /1 cgroup rw,cpu,cpuacct 0 0\n")
    assert list(groups_of(7, mounts, tmp_path)) == [Path("/1/db"), Path("/2/db.service")]
    assert list(groups_of(8, mounts, tmp_path)) == []
    assert list(groups_of(7, tmp_path / "none", tmp_path)) == []


def test_a_mount_point_that_is_no_text_hides_none_of_the_others(machine: Machine) -> None:
    machine.mounts.write_bytes(b"disk /m\xff ext4 rw 0 0\n" + machine.mounts.read_bytes())
    assert machine.own()


def test_the_lowest_quota_of_all_parents_applies(machine: Machine) -> None:
    assert quota(10, machine.mounts, machine.proc) is None
    (machine.group / "cpu.max").write_text("max 100000\n")
    assert quota(10, machine.mounts, machine.proc) is None
    (machine.groups / "cpu.max").write_text("150000 100000\n")
    assert quota(10, machine.mounts, machine.proc) == 1.5
    (machine.group / "cpu.max").write_text("50000 100000\n")
    assert quota(10, machine.mounts, machine.proc) == 0.5


def test_a_quota_of_cgroup_v1(machine: Machine) -> None:
    machine.mounts.write_text(FIRST.format(machine.groups))
    (machine.group / "cpu.cfs_period_us").write_text("100000\n")
    (machine.group / "cpu.cfs_quota_us").write_text("-1\n")
    assert quota(10, machine.mounts, machine.proc) is None
    (machine.group / "cpu.cfs_quota_us").write_text("200000\n")
    assert quota(10, machine.mounts, machine.proc) == 2.0


def test_a_quota_is_that_of_the_hierarchy_that_limits(machine: Machine, tmp_path: Path) -> None:
    """Where the two controllers of cgroup v1 are mounted apart."""
    (machine.proc / "10" / "cgroup").write_text("4:cpu:/db\n3:cpuacct:/all\n")
    machine.mounts.write_text(
        f"a {tmp_path}/none cgroup rw,cpuacct 0 0\nb {machine.groups} cgroup rw,cpu 0 0\n"
    )
    (machine.group / "cpu.cfs_period_us").write_text("100000\n")
    (machine.group / "cpu.cfs_quota_us").write_text("50000\n")
    assert quota(10, machine.mounts, machine.proc) == 0.5


@pytest.mark.parametrize(
    ("mounts", "limit", "counter"),
    [
        (SECOND, {"cpu.max": "50000 100000"}, "throttled_usec 1500"),
        (FIRST, {"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}, "throttled_time 1500000"),
    ],
)
def test_throttled_time_is_that_of_the_groups_with_a_quota(
    machine: Machine, mounts: str, limit: dict[str, str], counter: str
) -> None:
    machine.mounts.write_text(mounts.format(machine.groups))
    for directory in (machine.group, machine.groups):
        (directory / "cpu.stat").write_text(f"usage_usec 7\nnr_periods 3\n{counter}\n")
    assert quota_groups(frozenset({10}), machine.mounts, machine.proc) == ()
    for name, text in limit.items():
        (machine.group / name).write_text(f"{text}\n")
    found = quota_groups(frozenset({10, 11}), machine.mounts, machine.proc)
    assert found == (machine.group,)
    assert throttled_ns(found) == 1_500_000
    (machine.group / "cpu.stat").unlink()
    assert throttled_ns(found) == 0


def test_a_group_that_is_mounted_twice_is_throttled_once(machine: Machine, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.symlink_to(machine.groups)  # as by a second mount: another path, the same files
    machine.mounts.write_text(SECOND.format(machine.groups) + SECOND.format(again))
    (machine.group / "cpu.max").write_text("50000 100000\n")
    (machine.groups / "cpu.max").write_text("50000 100000\n")
    found = quota_groups(frozenset({10}), machine.mounts, machine.proc)
    assert found == (machine.group, machine.groups)


def test_the_members_of_a_group(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("12\n7\n")
    assert members(tmp_path) == {7, 12}


def test_other_sessions_are_read_while_they_are_few(tmp_path: Path) -> None:
    group = ServerCgroup(tmp_path, frozenset({os.getppid()}), lambda: 0)
    assert group.other_sessions() is None
    procs = tmp_path / "cgroup.procs"
    procs.write_text(f"{os.getppid()}\n{os.getpid()}\n")
    other_sessions = group.other_sessions()
    assert other_sessions
    assert other_sessions.keys() == {os.getpid()}
    procs.write_text("".join(f"{os.getpid() + at}\n" for at in range(33)))
    assert group.other_sessions() is None
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    procs.write_text(f"{gone.pid}\n")
    assert group.other_sessions() is None


def test_a_new_session_counts_from_zero_and_an_ended_one_is_unknown() -> None:
    there, later, came = {7: ThreadTime(100, 0)}, {7: ThreadTime(130, 0)}, {8: ThreadTime(5, 0)}
    spent = other_sessions_cpu_time({7: there}, {7: later, 8: came})
    assert spent
    assert spent.run_ns == 35
    assert other_sessions_cpu_time({}, {}) == CpuTime.zero()
    assert other_sessions_cpu_time({7: there, 8: came}, {7: later}) is None
    assert other_sessions_cpu_time(None, {}) is other_sessions_cpu_time({}, None) is None


def test_short_lived_time_is_the_groups_less_the_visible_processes() -> None:
    server, auxiliary, nobody = CpuTime(300, 0, 300), CpuTime(50, 0, 50), CpuTime.zero()
    assert short_lived_ns(500, 1500, [server, auxiliary], nobody) == 650
    assert (
        short_lived_ns(500, 1500, [server, auxiliary], CpuTime(100, 0, 100)) == 350
    )  # it may have had two workers
    assert short_lived_ns(500, 1500, [server, auxiliary], CpuTime(400, 0, 400)) == 0
    assert short_lived_ns(None, 1500, [server, auxiliary], nobody) is None
    assert short_lived_ns(500, 1500, [server, None], nobody) is None
    assert short_lived_ns(500, 1500, [server, auxiliary], None) is None


#: Its plan is carried out by a parallel worker, which is there for one execution; the backend waits
#: for it.
WORK = WorkloadDefinition("heavy", "SELECT count(*) FROM generate_series(1, 100000)")
IN_PARALLEL = "-c debug_parallel_query=on"
ENDLESS = b"SELECT count(*) FROM (SELECT generate_series(1, 10000000000)) AS endless"


def connected(route: Route, application: str = "") -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=route.host, port=route.port, dbname=route.dbname, user=route.user, password=route.password,
        application_name=application, autocommit=True,
    )  # fmt: skip


@pytest.fixture
def parallel(routes: dict[str, Route]) -> dict[str, Route]:
    return {"socket": replace(routes["socket"], options=IN_PARALLEL)}


def on_psycopg(work: WorkloadDefinition = WORK) -> Definition:
    return definition(workloads=(work,), layers=("psycopg",), routes=("socket",), lead_in_ms=20, slice_ms=50)


def test_parallel_workers_are_unattributed_if_the_server_shares_its_group(
    shared_group: None, parallel: dict[str, Route]
) -> None:
    blocks = measured(on_psycopg(), parallel)
    us = asdict(cpu_per_operation.per_op_us(blocks))
    assert cpu_account(blocks).short_lived_us_per_op is None
    assert us["unattributed"] > us["server"]  # the worker does all the work
    assert us["unattributed"] > us["auxiliaries"]


def test_parallel_workers_are_the_servers_if_it_has_its_own_group(
    own_group: Path, parallel: dict[str, Route]
) -> None:
    blocks = measured(on_psycopg(), parallel)
    us, short_lived_us = (
        asdict(cpu_per_operation.per_op_us(blocks)),
        cpu_account(blocks).short_lived_us_per_op,
    )
    assert us["auxiliaries"] > short_lived_us > us["server"]
    for block in blocks:
        assert block.cpu_account["ours_ns"] > sum(other.cpu_account["short_lived_ns"] for other in blocks)


@contextmanager
def busy(route: Route) -> Iterator[None]:
    """A session of another user, busy all the time."""
    with connected(route) as connection:
        connection.pgconn.send_query(ENDLESS)
        yield
        connection.cancel_safe()
        while connection.pgconn.get_result():
            pass


def test_sessions_of_other_users_do_not_count(own_group: Path, routes: dict[str, Route]) -> None:
    with busy(routes["socket"]):
        blocks = measured(on_psycopg(WorkloadDefinition("light", "SELECT 1")), routes)
    us = asdict(cpu_per_operation.per_op_us(blocks))
    assert cpu_account(blocks).short_lived_us_per_op == 0
    assert us["other"] + us["unattributed"] > us["server"] > us["auxiliaries"]


def test_passing_backends_are_the_group_less_all_other_processes() -> None:
    auxiliary, others = CpuTime(50, 0, 50), CpuTime(100, 0, 100)
    assert passing_backends(1000, auxiliary, others) == CpuTime(850, None, None)
    assert passing_backends(100, auxiliary, others) == CpuTime(0, None, None)
    for unknown in [(None, auxiliary, others), (1000, None, others), (1000, auxiliary, None)]:
        assert passing_backends(*unknown) is None


def test_sessions_that_come_later_are_passing_backends() -> None:
    there, later, came = {7: ThreadTime(100, 0)}, {7: ThreadTime(130, 0)}, {8: ThreadTime(5, 0)}
    assert of_those_before({7: there}, {7: later, 8: came}) == CpuTime(30, 0, 30)
    assert of_those_before({}, {8: came}) == CpuTime.zero()
    assert of_those_before({7: there}, {8: came}) is None
    assert of_those_before(None, {}) is of_those_before({}, None) is None


CONNECTS, PASSING = 60, "pgperf-passing"


def reaped_ns(postmaster: psutil.Process) -> float:
    """The CPU time of all its ended children, by its own account in ticks."""
    times = postmaster.cpu_times()
    return float((times.children_user + times.children_system) * 1e9)


def passing(route: Route, postmaster: psutil.Process, *, others: bool) -> tuple[CpuTime | None, float]:
    """The server's CPU time while a client connects many times, and what the postmaster reaped."""
    with ControlConnection(route) as monitor:
        auxiliary = Sessions.of(monitor.rows(SESSIONS)).auxiliaries()
        processes = VariantProcesses(
            client=[],
            pooler=(),
            auxiliary=auxiliary,
            server_cgroup=ServerCgroup.of(auxiliary),
            backends_pass=True,
        )
        with ExitStack() as stack:
            stack.enter_context(busy(route)) if others else None
            before_ns, accounting = reaped_ns(postmaster), SliceAccounting(Host.here(), processes)
            for _ in range(CONNECTS):
                connected(route, PASSING).close()
            assert departure.of_backends(monitor.all, [PASSING], postmaster.pid, 10) == ""
            used, after_ns = accounting.close().cpu_time["server"], reaped_ns(postmaster)
    return used, after_ns - before_ns


@pytest.mark.parametrize("others", [False, True], ids=["alone", "beside a busy session"])
def test_connects_are_the_servers_where_it_has_its_own_group(
    own_group: Path, routes: dict[str, Route], postmaster: psutil.Process, others: bool
) -> None:
    """The postmaster counts its ended children too, in ticks."""
    used, reaped = passing(routes["tcp"], postmaster, others=others)
    assert used
    # The busy session works on between the reading of its group and that of itself, and a busy machine
    # may part the two by milliseconds.
    least = 0.5 if others else 0.8
    assert least * reaped < used.run_ns < 1.5 * reaped
    assert (used.wait_ns, used.busiest_ns) == (None, None)


def test_connects_are_unknown_where_the_server_shares_its_group(
    shared_group: None, routes: dict[str, Route], postmaster: psutil.Process
) -> None:
    used, reaped = passing(routes["tcp"], postmaster, others=False)
    assert used is None, "never a figure that is too small"
    assert reaped > 0
