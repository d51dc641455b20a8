"""How much of its processors' time a whole machine was busy, by the most exact account that it keeps.

- `cgroup`: the root of cgroup v1's `cpuacct` adds up what the scheduler gave to every task, in nanoseconds.
- `cgroup2`: version 2 does so for every group but the root, so its topmost groups are added up, where user processes
  are kept in them; threads of the kernel are not.
- `idle`: what was not idle, by the clock that runs while a processor idles. It is told in hundredths of a second: one
  slice says little, many say much. (User and system time of /proc/stat are no account: they count whom a tick met.)

Idle time is what is left. iowait and steal come from /proc/stat, in ticks, whatever the account.
"""

import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pgperf.runner.cpu.cgroups import MOUNTS, PROC, Busy, group_ns, mounted, usage_ns
from pgperf.runner.cpu.schedstat import read_text

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_IDLE, _IOWAIT, _STEAL = 3, 4, 7  # fields of /proc/stat's first line


@dataclass(frozen=True)
class Counters:
    """A machine so far, ns. `busy_ns` None: its account is the time that was not idle."""

    moment_ns: int
    busy_ns: int | None
    idle_ns: int | None
    iowait_ns: int | None
    steal_ns: int | None


@dataclass(frozen=True)
class Stretch:
    """A machine between two readings, ns summed over its processors; None is unknown."""

    elapsed_ns: int
    busy_ns: int | None
    iowait_ns: int | None
    steal_ns: int | None


@dataclass(frozen=True)
class Host:
    """A machine's account: `source` names it, `busy` reads it (None for `idle`)."""

    source: str
    cpus: int
    busy: Busy | None = None
    stat: str = "/proc/stat"

    @classmethod
    def here(cls, mounts: Path = MOUNTS, proc: Path = PROC) -> "Host":
        """This machine by the best account that it has."""
        stat = str(proc / "stat")
        for source, find in (("cgroup", _first_version), ("cgroup2", _second_version)):
            busy = find(mounts, proc)
            if busy and busy() is not None:
                return cls(source, _processors(stat), busy, stat)
        return cls("idle", _processors(stat), None, stat)

    def read(self) -> Counters:
        """The counters now. Takes some 30 microseconds."""
        busy = self.busy() if self.busy else None
        idle, iowait, steal = _stat(self.stat)
        return Counters(time.monotonic_ns(), busy, idle, iowait, steal)

    def between(self, before: Counters, after: Counters) -> Stretch:
        """The stretch from one reading to the other."""
        elapsed = after.moment_ns - before.moment_ns
        idle = _step(before.idle_ns, after.idle_ns)
        iowait, steal = _step(before.iowait_ns, after.iowait_ns), _step(before.steal_ns, after.steal_ns)
        if self.busy:
            return Stretch(elapsed, _step(before.busy_ns, after.busy_ns), iowait, steal)
        away = _total(idle, iowait, steal)
        busy = None if away is None else self.cpus * elapsed - away  # below 0 now and then, by its ticks
        return Stretch(elapsed, busy, iowait, steal)


def _first_version(mounts: Path, _proc: Path) -> Busy | None:
    """cpuacct's root group. A container may see a group of its own in its place; only the real root has an agent."""
    for directory, kind, options in mounted(mounts):
        if kind == "cgroup" and "cpuacct" in options and (directory / "release_agent").exists():
            return group_ns(directory)
    return None


def _second_version(mounts: Path, proc: Path) -> Busy | None:
    """The topmost groups, if this is the real root (it alone has no type) and processes are kept in groups."""
    for directory, kind, _options in mounted(mounts):
        if kind == "cgroup2" and not (directory / "cgroup.type").exists() and _in_groups(proc):
            return partial(_topmost, directory)
    return None


def _in_groups(proc: Path) -> bool:
    """Are the first process and this one in groups of version 2, not in its root?"""
    try:
        lines = [read_text(str(proc / pid / "cgroup")).splitlines() for pid in ("1", "self")]
    except OSError:
        return False
    return all(any(line.startswith("0::/") and line != "0::/" for line in own) for own in lines)


def _topmost(root: Path) -> int | None:
    """None if a group came or went while it was read, or there is none."""
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
        return tuple(int(fields[at]) * _TICK_NS for at in (_IDLE, _IOWAIT, _STEAL))  # type: ignore[return-value]
    except (OSError, ValueError, IndexError):
        return None, None, None


def _processors(stat: str) -> int:
    """The processors that /proc/stat has lines for: those of its account."""
    try:
        lines = Path(stat).read_text().splitlines()
    except OSError:
        return os.cpu_count() or 1
    return sum(line.startswith("cpu") and not line.startswith("cpu ") for line in lines) or 1


def _step(before: int | None, after: int | None) -> int | None:
    """What came on top. iowait may run backwards by a tick, which is none; a total may not: it has lost a group."""
    if before is None or after is None:
        return None
    return max(0, after - before) if after > before - 2 * _TICK_NS else None


def _total(*values: int | None) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
