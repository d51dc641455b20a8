"""The source of a machine's CPU time and its values: on made-up trees, then on this machine."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pgperf.runner.cpu.host import Host, HostCounters, HostInterval

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
STAT = "cpu  {user} 0 0 {idle} {iowait} 0 0 {steal} 0 0\ncpu0 1\ncpu1 1\nintr 5\n"


class Machine:
    """A made-up machine with two CPUs."""

    def __init__(self, root: Path, in_group: str = "/user.slice") -> None:
        self.proc, self.mounts, self.groups = root / "proc", root / "mounts", root / "cgroup"
        for directory in (self.proc / "1", self.proc / "self", self.groups):
            directory.mkdir(parents=True)
        for pid in ("1", "self"):
            (self.proc / pid / "cgroup").write_text(f"4:cpuacct:/\n0::{in_group}\n")
        self.mounts.write_text("tmpfs /run tmpfs rw 0 0\nbroken line\n")
        self.ticks()

    def ticks(self, user: int = 0, idle: int = 0, iowait: int = 0, steal: int = 0) -> None:
        (self.proc / "stat").write_text(STAT.format(user=user, idle=idle, iowait=iowait, steal=steal))

    def cgroup_v1(self, usage: str = "5000") -> None:
        self.mounts.write_text(f"cgroup {self.groups} cgroup rw,cpu,cpuacct 0 0\n")
        (self.groups / "release_agent").touch()
        (self.groups / "cpuacct.usage").write_text(f"{usage}\n")

    def cgroup_v2(self, **usec: int) -> None:
        self.mounts.write_text(f"cgroup2 {self.groups} cgroup2 rw 0 0\n")
        (self.groups / "cpu.stat").write_text("usage_usec 1\n")  # the root's own counts ticks
        for name, value in usec.items():
            (self.groups / name).mkdir(exist_ok=True)
            (self.groups / name / "cpu.stat").write_text(f"usage_usec {value}\nuser_usec 1\n")

    def host(self) -> Host:
        return Host.here(self.mounts, self.proc)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def stretch(host: Host, before: HostCounters, after: HostCounters, elapsed_ns: int) -> HostInterval:
    return host.between(before, replace(after, moment_ns=before.moment_ns + elapsed_ns))


def test_cgroup_v1_counts_everything_exactly(machine: Machine) -> None:
    machine.cgroup_v1("5000")
    host = machine.host()
    before = host.read()
    machine.cgroup_v1("905000")
    machine.ticks(user=99, idle=99, iowait=1, steal=2)
    found = stretch(host, before, host.read(), 10**6)
    assert (host.source, host.cpus) == ("cgroup", 2)
    assert found == HostInterval(elapsed_ns=10**6, busy_ns=900_000, iowait_ns=TICK_NS, steal_ns=2 * TICK_NS)


def test_a_containers_own_group_is_not_the_host(machine: Machine) -> None:
    machine.cgroup_v1()
    (machine.groups / "release_agent").unlink()
    assert machine.host().source == "idle"


def test_cgroup_v2_adds_up_its_topmost_groups(machine: Machine) -> None:
    machine.cgroup_v2(system=1_000, user=2_000)
    host = machine.host()
    before = host.read()
    machine.cgroup_v2(system=1_500, user=2_250, later=50)
    found = stretch(host, before, host.read(), 10**6)
    assert (host.source, found.busy_ns) == ("cgroup2", 800_000)


def test_a_removed_group_makes_the_busy_time_unknown(machine: Machine) -> None:
    machine.cgroup_v2(system=100_000, user=200_000)
    host = machine.host()
    before = host.read()
    (machine.groups / "user" / "cpu.stat").unlink()
    (machine.groups / "user").rmdir()
    assert stretch(host, before, host.read(), 10**6).busy_ns is None


@pytest.mark.parametrize("flaw", ["a group's own", "processes in the root", "no groups"])
def test_cgroup_v2_is_used_only_if_it_covers_the_host(tmp_path: Path, flaw: str) -> None:
    machine = Machine(tmp_path, "/" if flaw == "processes in the root" else "/user.slice")
    machine.cgroup_v2(**({} if flaw == "no groups" else {"system": 1_000}))
    if flaw == "a group's own":
        (machine.groups / "cgroup.type").touch()
    assert machine.host().source == "idle"


def test_without_groups_busy_time_is_elapsed_less_idle(machine: Machine) -> None:
    host = machine.host()
    before = host.read()
    machine.ticks(user=3, idle=100, iowait=10, steal=20)
    found = stretch(host, before, host.read(), 100 * TICK_NS)
    assert (host.source, found.busy_ns) == ("idle", 70 * TICK_NS)


def test_unreadable_values_are_unknown(tmp_path: Path) -> None:
    host = Host.here(tmp_path / "no mounts", tmp_path / "no proc")
    found = host.between(host.read(), host.read())
    assert host.cpus == os.cpu_count()
    assert (found.busy_ns, found.iowait_ns, found.steal_ns) == (None, None, None)


def test_this_machine_is_busy_while_it_works() -> None:
    host = Host.here()
    before, worked = host.read(), time.process_time_ns()
    while time.process_time_ns() - worked < 100_000_000:  # ten ticks
        sum(range(10_000))
    found = host.between(before, host.read())
    assert found.busy_ns is not None
    assert 50_000_000 < found.busy_ns <= 1.1 * host.cpus * found.elapsed_ns
