"""Which account of a machine is taken, and what it says; on made-up trees, then on the real machine."""

import os
import time
from pathlib import Path

import pytest

from pgperf.runner.cpu.host import Counters, Host, Stretch

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
STAT = "cpu  {user} 0 0 {idle} {iowait} 0 0 {steal} 0 0\ncpu0 1\ncpu1 1\nintr 5\n"


class Machine:
    """A made-up machine of two processors."""

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

    def first_version(self, usage: str = "5000") -> None:
        self.mounts.write_text(f"cgroup {self.groups} cgroup rw,cpu,cpuacct 0 0\n")
        (self.groups / "release_agent").touch()
        (self.groups / "cpuacct.usage").write_text(f"{usage}\n")

    def second_version(self, **usec: int) -> None:
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


def stretch(host: Host, before: Counters, after: Counters, elapsed_ns: int) -> Stretch:
    return host.between(before, Counters(before.moment_ns + elapsed_ns, *list(vars(after).values())[1:]))


def test_the_first_version_counts_everything_exactly(machine: Machine) -> None:
    machine.first_version("5000")
    host = machine.host()
    before = host.read()
    machine.first_version("905000")
    machine.ticks(user=99, idle=99, iowait=1, steal=2)
    found = stretch(host, before, host.read(), 10**6)
    assert (host.source, host.cpus) == ("cgroup", 2)
    assert found == Stretch(10**6, 900_000, TICK_NS, 2 * TICK_NS)


def test_a_containers_own_group_is_not_the_machine(machine: Machine) -> None:
    machine.first_version()
    (machine.groups / "release_agent").unlink()
    assert machine.host().source == "idle"


def test_the_second_version_adds_up_its_topmost_groups(machine: Machine) -> None:
    machine.second_version(system=1_000, user=2_000)
    host = machine.host()
    before = host.read()
    machine.second_version(system=1_500, user=2_250, later=50)
    found = stretch(host, before, host.read(), 10**6)
    assert (host.source, found.busy_ns) == ("cgroup2", 800_000)


def test_a_group_that_went_takes_its_time_along(machine: Machine) -> None:
    machine.second_version(system=100_000, user=200_000)
    host = machine.host()
    before = host.read()
    (machine.groups / "user" / "cpu.stat").unlink()
    (machine.groups / "user").rmdir()
    assert stretch(host, before, host.read(), 10**6).busy_ns is None


@pytest.mark.parametrize("flaw", ["a group's own", "processes in the root", "no groups"])
def test_the_second_version_is_taken_only_where_it_sees_all(tmp_path: Path, flaw: str) -> None:
    machine = Machine(tmp_path, "/" if flaw == "processes in the root" else "/user.slice")
    machine.second_version(**({} if flaw == "no groups" else {"system": 1_000}))
    if flaw == "a group's own":
        (machine.groups / "cgroup.type").touch()
    assert machine.host().source == "idle"


def test_without_groups_what_was_not_idle_was_busy(machine: Machine) -> None:
    host = machine.host()
    before = host.read()
    machine.ticks(user=3, idle=100, iowait=10, steal=20)
    found = stretch(host, before, host.read(), 100 * TICK_NS)
    assert (host.source, found.busy_ns) == ("idle", 70 * TICK_NS)


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
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
