"""Control groups: what the kernel adds up for all processes in one, for those that came and went meanwhile, too.

A server's parallel workers begin and end within a slice, so whoever looks at its edges sees none of them. Where a
server has a control group of its own, as a service of systemd or a container, they are what that group used beyond
everybody who was seen.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

from pgperf.runner.cpu import schedstat
from pgperf.runner.cpu.schedstat import Spent, Times

MOUNTS, PROC = Path("/proc/self/mounts"), Path("/proc")
#: Where processes' time is added up: the kind of file system, and the controller that does it in version 1.
_ACCOUNTS = (("cgroup", "cpuacct"), ("cgroup2", ""))
#: More of them would take longer than a millisecond to read, before and after each slice.
_MOST_GUESTS = 32
#: A session with as many parallel workers as PostgreSQL lets a query have by default.
_WITH_WORKERS = 3

#: Busy nanoseconds so far; None where they cannot be read.
Busy = Callable[[], int | None]


@dataclass(frozen=True)
class ServerGroup:
    """A control group with a server in it and nobody else. `known`: those of its processes that pages account for.

    All the others that are in it at an edge of a slice are guests: sessions of other people.
    """

    directory: Path
    known: frozenset[int]
    busy: Busy

    @classmethod
    def of(cls, known: Iterable[int], mounts: Path = MOUNTS, proc: Path = PROC) -> Self | None:
        """The group of a server, by its postmaster and others of its processes; None if it has none of its own."""
        pids = frozenset(known)
        for directory in groups_of(min(pids), mounts, proc) if pids else ():
            busy = group_ns(directory)
            if _is_own(directory, pids, proc) and busy() is not None:
                return cls(directory, pids, busy)
        return None

    def guests(self) -> Times | None:
        """The times so far of everybody who is in it and not known; None if they are too many, or one is not seen."""
        try:
            pids = members(self.directory) - self.known
        except OSError:
            return None
        if len(pids) > _MOST_GUESTS:
            return None
        seen = {pid: times for pid in pids if (times := schedstat.process(pid)) is not None}
        return seen if len(seen) == len(pids) else None


def short_lived_ns(
    before_ns: int | None, after_ns: int | None, ours: Sequence[Spent | None], guests: Spent | None
) -> int | None:
    """What a server's group used beyond all who were seen; None is unknown.

    Parallel workers of guests are not told from ours: as many are left out as each guest may have had.
    """
    known = [spent for spent in ours if spent]
    if before_ns is None or after_ns is None or guests is None or len(known) < len(ours):
        return None
    seen_ns = sum(spent.run_ns for spent in known) + _WITH_WORKERS * guests.run_ns
    return max(0, after_ns - before_ns - seen_ns)


def guests_spent(before: Times | None, after: Times | None) -> Spent | None:
    """Who began in between spent all it has. None if one ended: nobody knows what it still spent."""
    if before is None or after is None:
        return None
    return schedstat.spent({pid: {} for pid in after} | dict(before), after)


def groups_of(pid: int, mounts: Path = MOUNTS, proc: Path = PROC) -> Iterator[Path]:
    """The groups that count a process's time, of version 1 first, as far as they are mounted here."""
    try:
        lines = [line.split(":", 2) for line in schedstat.read_text(f"{proc}/{pid}/cgroup").splitlines()]
    except OSError:
        return
    for kind, controller in _ACCOUNTS:
        paths = [path for _, names, path in lines if controller in names.split(",")]
        for directory, mounted_kind, options in mounted(mounts):
            if mounted_kind == kind and (not controller or controller in options):
                yield from (directory / path.lstrip("/") for path in paths)


def quota(pid: int, mounts: Path = MOUNTS, proc: Path = PROC) -> float | None:
    """How many processors' time the groups of a process let it use, the strictest of them; None: no limit is seen."""
    found = groups_of(pid, mounts, proc)
    limits = [_limit(above) for group in found for above in (group, *group.parents)]
    return min((limit for limit in limits if limit), default=None)


def group_ns(directory: Path) -> Busy:
    """Reads the time that one group's processes had so far, those that ended included; of either version."""
    if (directory / "cpuacct.usage").exists():
        return partial(_number, f"{directory}/cpuacct.usage")
    return partial(usage_ns, f"{directory}/cpu.stat")


def usage_ns(path: str) -> int | None:
    """usage_usec of a cpu.stat, in ns."""
    try:
        name, microseconds = schedstat.read_text(path).split(maxsplit=2)[:2]
        return int(microseconds) * 1000 if name == "usage_usec" else None
    except (OSError, ValueError):
        return None


def members(directory: Path) -> set[int]:
    """The processes in a group. Raises OSError."""
    return {int(line) for line in (directory / "cgroup.procs").read_text().split()}


def mounted(mounts: Path = MOUNTS) -> Iterator[tuple[Path, str, list[str]]]:
    """Directory, kind and options of each file system that is mounted."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if len(fields) > 3:
            yield Path(fields[1]), fields[2], fields[3].split(",")


def _is_own(directory: Path, known: frozenset[int], proc: Path) -> bool:
    """Are the known in it, does everybody in it descend from one of them, and is there no group below it?

    That is never the root: this process is in that or below it.
    """
    try:
        with os.scandir(directory) as entries:
            if any(entry.is_dir() for entry in entries):
                return False
        pids = members(directory)
    except OSError:
        return False
    parents = {pid: life.parent for pid in pids if (life := schedstat.life(pid, str(proc)))}
    first = {pid for pid, parent in parents.items() if parent not in parents}
    return first <= known <= parents.keys()


def _limit(directory: Path) -> float | None:
    """Of one group, of either version: time over period."""
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
