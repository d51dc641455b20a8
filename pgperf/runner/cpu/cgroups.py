"""Control groups: CPU time that the kernel sums over a group's processes, ended ones included.

PostgreSQL's parallel workers start and end within a slice, so they are not visible at its edges.
The same holds for the backends of clients that connect for each operation. If the server has a
control group of its own (a systemd service or a container), their CPU time is the group's total
less that of the processes that were visible.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Self

from pgperf.runner.cpu import schedstat
from pgperf.runner.cpu.schedstat import CpuTime, Times

MOUNTS, PROC = Path("/proc/self/mounts"), Path("/proc")
#: The controller of cgroup v1 that sums CPU time.
_CPU_TIME = "cpuacct"
#: The one that limits it.
_QUOTAS = "cpu"
#: Reading more of them, before and after each slice, would take over a millisecond.
_MAX_OTHER_SESSIONS = 32
#: A backend with max_parallel_workers_per_gather = 2 workers, PostgreSQL's default.
_PROCESSES_PER_SESSION = 3

#: Reads CPU time so far, ns; None if it cannot be read.
ReadNs = Callable[[], int | None]


@dataclass(frozen=True)
class ServerCgroup:
    """A control group that holds one PostgreSQL server and nothing else.

    `known`: the pids whose CPU time is accounted for anyway. All others are sessions of other
    users.
    """

    directory: Path
    known: frozenset[int]
    read_ns: ReadNs

    @classmethod
    def of(cls, known: Iterable[int], mounts: Path = MOUNTS, proc: Path = PROC) -> Self | None:
        """The group of the server with these processes (postmaster included); None if it has no
        group of its own.
        """
        pids = frozenset(known)
        for directory in groups_of(min(pids), mounts, proc) if pids else ():
            read_ns = group_ns(directory)
            if _is_own(directory, pids, proc) and read_ns() is not None:
                return cls(directory, pids, read_ns)
        return None

    def other_sessions(self) -> Times | None:
        """The times so far of its other processes; None if there are too many or one is not
        visible.
        """
        try:
            pids = members(self.directory) - self.known
        except OSError:
            return None
        if len(pids) > _MAX_OTHER_SESSIONS:
            return None
        seen = {pid: times for pid in pids if (times := schedstat.thread_times(pid)) is not None}
        return seen if len(seen) == len(pids) else None


def short_lived_ns(
    before_ns: int | None,
    after_ns: int | None,
    ours: Sequence[CpuTime | None],
    other_sessions: CpuTime | None,
) -> int | None:
    """The CPU time of a server's group less that of the processes that were visible; None is
    unknown.

    Parallel workers of other sessions cannot be told from those of the variant, so each other
    session is assumed to have as many as it may.
    """
    known = [cpu_time for cpu_time in ours if cpu_time]
    if before_ns is None or after_ns is None or other_sessions is None or len(known) < len(ours):
        return None
    seen_ns = sum(cpu_time.run_ns for cpu_time in known) + _PROCESSES_PER_SESSION * other_sessions.run_ns
    return max(0, after_ns - before_ns - seen_ns)


def passing_backends(
    group_ns: int | None, auxiliary: CpuTime | None, other_sessions: CpuTime | None
) -> CpuTime | None:
    """The CPU time of backends that come and go: the group's less that of all other processes.

    None if the time of one of these is unknown. The wait of processes that ended is unknown, and so
    is the busiest of them.
    """
    if group_ns is None or auxiliary is None or other_sessions is None:
        return None
    return CpuTime(max(0, group_ns - auxiliary.run_ns - other_sessions.run_ns), None, None)


def of_those_before(before: Times | None, after: Times | None) -> CpuTime | None:
    """The CPU time of the sessions of `before`; those that came later are left out.

    None if one ended: its last CPU time is unknown.
    """
    if before is None or after is None:
        return None
    return schedstat.cpu_time_between(before, {pid: times for pid, times in after.items() if pid in before})


def other_sessions_cpu_time(before: Times | None, after: Times | None) -> CpuTime | None:
    """A session that started in between counts from zero.

    None if one ended: its last CPU time is unknown.
    """
    if before is None or after is None:
        return None
    return schedstat.cpu_time_between({pid: {} for pid in after} | dict(before), after)


def groups_of(
    pid: int, mounts: Path = MOUNTS, proc: Path = PROC, controller: str = _CPU_TIME
) -> Iterator[Path]:
    """The mounted groups of a process, cgroup v1 first. `controller`: the one of v1."""
    try:
        lines = [line.split(":", 2) for line in schedstat.read_text(f"{proc}/{pid}/cgroup").splitlines()]
    except OSError:
        return
    for kind, needed in (("cgroup", controller), ("cgroup2", "")):
        paths = [path for _, names, path in lines if needed in names.split(",")]
        for directory, mounted_kind, options in mounted(mounts):
            if mounted_kind == kind and (not needed or needed in options):
                yield from (directory / path.lstrip("/") for path in paths)


def quota(pid: int, mounts: Path = MOUNTS, proc: Path = PROC) -> float | None:
    """The lowest CPU quota, in CPUs, of a process's groups; None if there is no visible limit."""
    found = groups_of(pid, mounts, proc, _QUOTAS)
    limits = [_limit(above) for group in found for above in (group, *group.parents)]
    return min((limit for limit in limits if limit), default=None)


@lru_cache(maxsize=512)
def quota_groups(pids: frozenset[int], mounts: Path = MOUNTS, proc: Path = PROC) -> tuple[Path, ...]:
    """The groups with a CPU quota that these processes are in, kept for the slices of a block.

    Each once, also where its hierarchy is mounted twice.
    """
    found = (group for pid in pids for group in groups_of(pid, mounts, proc, _QUOTAS))
    every = {above: None for group in found for above in (group, *group.parents)}
    limited: dict[tuple[int, int], Path] = {}
    for group in filter(_limit, every):
        limited.setdefault(_identity(group), group)
    return tuple(limited.values())


def _identity(directory: Path) -> tuple[int, int]:
    """The same by every path; (0, 0) of a group that has ended."""
    try:
        found = os.stat(directory)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def throttled_ns(groups: Iterable[Path]) -> int:
    """How long groups have been throttled so far; a group that has ended counts as 0."""
    return sum(_throttled_ns(f"{group}/cpu.stat") for group in groups)


def _throttled_ns(path: str) -> int:
    """throttled_time (cgroup v1, ns) or throttled_usec (v2) of a cpu.stat file."""
    try:
        counters = dict(line.split() for line in schedstat.read_text(path).splitlines())
        microseconds = int(counters.get("throttled_usec", 0))
        return int(counters.get("throttled_time", 1000 * microseconds))
    except (OSError, ValueError):
        return 0


def group_ns(directory: Path) -> ReadNs:
    """A function that reads a group's CPU time so far, ended processes included (cgroup v1 or v2)."""
    if (directory / "cpuacct.usage").exists():
        return partial(_number, f"{directory}/cpuacct.usage")
    return partial(usage_ns, f"{directory}/cpu.stat")


def usage_ns(path: str) -> int | None:
    """usage_usec of a cpu.stat file, in ns."""
    try:
        name, microseconds = schedstat.read_text(path).split(maxsplit=2)[:2]
        return int(microseconds) * 1000 if name == "usage_usec" else None
    except (OSError, ValueError):
        return None


def members(directory: Path) -> set[int]:
    """The processes in a group. Raises OSError."""
    return {int(line) for line in (directory / "cgroup.procs").read_text().split()}


def mounted(mounts: Path = MOUNTS) -> Iterator[tuple[Path, str, list[str]]]:
    """Mount point, type and options of each mounted file system."""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if len(fields) > 3:
            yield Path(fields[1]), fields[2], fields[3].split(",")


def _is_own(directory: Path, known: frozenset[int], proc: Path) -> bool:
    """Is it the server's own group: all known pids and their descendants, nothing else, and no
    subgroup?

    The root never is, because this process is in it or below it.
    """
    try:
        with os.scandir(directory) as entries:
            if any(entry.is_dir() for entry in entries):
                return False
        pids = members(directory)
    except OSError:
        return False
    parents = {
        pid: process_stat.parent for pid in pids if (process_stat := schedstat.process_stat(pid, str(proc)))
    }
    topmost = {pid for pid, parent in parents.items() if parent not in parents}
    return topmost <= known <= parents.keys()


def _limit(directory: Path) -> float | None:
    """The quota of one group in CPUs: time over period (cgroup v1 or v2)."""
    try:
        if (directory / "cpu.max").exists():
            allowed, period = schedstat.read_text(f"{directory}/cpu.max").split()
        else:
            allowed, period = (
                schedstat.read_text(f"{directory}/cpu.cfs_{name}_us") for name in ("quota", "period")
            )
        return int(allowed) / int(period) if int(allowed) > 0 else None
    except (OSError, ValueError):
        return None


def _number(path: str) -> int | None:
    try:
        return int(schedstat.read_text(path))
    except (OSError, ValueError):
        return None
