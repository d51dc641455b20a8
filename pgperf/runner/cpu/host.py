"""The CPU time that a whole machine used, from the most exact source that it has.

- `cgroup`: the root of cgroup v1's `cpuacct` sums the run time of every task, in nanoseconds.
- `cgroup2`: cgroup v2 does so for every group but the root, so pgperf adds up the topmost groups,
  if user processes are kept in groups. Kernel threads are not included.
- `idle`: elapsed time less idle time. The kernel reports idle time in hundredths of a second, so
  one slice says little and many say much. (User and system time of /proc/stat cannot be used: a
  whole tick counts for the process that it interrupts.)

Idle time is the rest. iowait and steal come from /proc/stat, in ticks, for every source.
"""

import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pgperf.runner.cpu.cgroups import MOUNTS, PROC, ReadNs, group_ns, mounted, usage_ns
from pgperf.runner.cpu.schedstat import TICK_NS, read_text

_IDLE, _IOWAIT, _STEAL = 3, 4, 7  # fields of /proc/stat's first line
_ALL_CPUS_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class HostCounters:
    """A machine's counters at one moment, ns. `busy_ns` is None if the source is `idle`."""

    moment_ns: int
    busy_ns: int | None
    idle_ns: int | None
    iowait_ns: int | None
    steal_ns: int | None


@dataclass(frozen=True, kw_only=True)
class HostInterval:
    """A machine between two readings, ns summed over its CPUs; None is unknown."""

    elapsed_ns: int
    busy_ns: int | None
    iowait_ns: int | None
    steal_ns: int | None


@dataclass(frozen=True)
class Host:
    """A machine's source of CPU time, and the function that reads it (None for the source `idle`)."""

    source: str
    cpus: int
    read_busy_ns: ReadNs | None = None
    stat: str = "/proc/stat"

    @classmethod
    def here(cls, mounts: Path = MOUNTS, proc: Path = PROC) -> "Host":
        """This machine with the best source that it has."""
        stat = str(proc / "stat")
        for source, find in (("cgroup", _cgroup_v1), ("cgroup2", _cgroup_v2)):
            read_ns = find(mounts, proc)
            if read_ns and read_ns() is not None:
                return cls(source, _cpu_count(stat), read_ns, stat)
        return cls("idle", _cpu_count(stat), None, stat)

    def read(self) -> HostCounters:
        """The counters now. Takes some 30 microseconds."""
        busy = self.read_busy_ns() if self.read_busy_ns else None
        idle, iowait, steal = _stat(self.stat)
        return HostCounters(
            moment_ns=time.monotonic_ns(), busy_ns=busy, idle_ns=idle, iowait_ns=iowait, steal_ns=steal
        )

    def between(self, before: HostCounters, after: HostCounters) -> HostInterval:
        """The increase from one reading to the other."""
        elapsed = after.moment_ns - before.moment_ns
        idle = _increase(before.idle_ns, after.idle_ns)
        iowait = _increase(before.iowait_ns, after.iowait_ns)
        steal = _increase(before.steal_ns, after.steal_ns)
        if self.read_busy_ns:
            return HostInterval(
                elapsed_ns=elapsed,
                busy_ns=_increase(before.busy_ns, after.busy_ns),
                iowait_ns=iowait,
                steal_ns=steal,
            )
        unused = _total(idle, iowait, steal)
        busy = None if unused is None else self.cpus * elapsed - unused  # ticks may make it negative
        return HostInterval(elapsed_ns=elapsed, busy_ns=busy, iowait_ns=iowait, steal_ns=steal)

    def unused_ns(self) -> dict[int, int]:
        """How long each CPU has been idle, waited for disks or was stolen so far, ns; empty where that
        cannot be read.
        """
        try:
            lines = [line.split() for line in read_text(self.stat, _ALL_CPUS_BYTES).splitlines()]
            return {
                int(name[3:]): TICK_NS * sum(int(ticks[at]) for at in (_IDLE, _IOWAIT, _STEAL))
                for name, *ticks in lines
                if name.startswith("cpu") and name != "cpu"
            }
        except (OSError, ValueError, IndexError):
            return {}


def _cgroup_v1(mounts: Path, _proc: Path) -> ReadNs | None:
    """cpuacct's root group.

    A container may see its own group instead; only the real root has `release_agent`.
    """
    for directory, kind, options in mounted(mounts):
        if kind == "cgroup" and "cpuacct" in options and (directory / "release_agent").exists():
            return group_ns(directory)
    return None


def _cgroup_v2(mounts: Path, proc: Path) -> ReadNs | None:
    """The topmost groups, if this is the real root (it alone has no `cgroup.type`) and processes
    are in groups.
    """
    for directory, kind, _options in mounted(mounts):
        if kind == "cgroup2" and not (directory / "cgroup.type").exists() and _in_groups(proc):
            return partial(_topmost, directory)
    return None


def _in_groups(proc: Path) -> bool:
    """Are process 1 and this process in cgroup v2 groups below the root?"""
    try:
        lines = [read_text(str(proc / pid / "cgroup")).splitlines() for pid in ("1", "self")]
    except OSError:
        return False
    return all(any(line.startswith("0::/") and line != "0::/" for line in own) for own in lines)


def _topmost(root: Path) -> int | None:
    """The sum over the topmost groups; None if there are none or one vanished during the reading."""
    try:
        with os.scandir(root) as entries:
            groups = [entry.path for entry in entries if entry.is_dir()]
    except OSError:
        return None
    return _total(*(usage_ns(f"{group}/cpu.stat") for group in groups)) if groups else None


def _stat(path: str) -> tuple[int | None, int | None, int | None]:
    """Idle, iowait and steal so far, ns."""
    try:
        fields = read_text(path).partition("\n")[0].split()[1:]
        return tuple(int(fields[at]) * TICK_NS for at in (_IDLE, _IOWAIT, _STEAL))  # type: ignore[return-value]
    except (OSError, ValueError, IndexError):
        return None, None, None


def _cpu_count(stat: str) -> int:
    """The number of CPUs that /proc/stat has lines for."""
    try:
        lines = Path(stat).read_text().splitlines()
    except OSError:
        return os.cpu_count() or 1
    return sum(line.startswith("cpu") and not line.startswith("cpu ") for line in lines) or 1


def _increase(before: int | None, after: int | None) -> int | None:
    """A decrease by up to two ticks counts as 0 (iowait may do that); a larger one is unknown (a
    group vanished).
    """
    if before is None or after is None:
        return None
    return max(0, after - before) if after > before - 2 * TICK_NS else None


def _total(*values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
