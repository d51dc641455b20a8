"""What `top` shows for an interval: the host's line, and a row for each process of interest.

`TopSnapshot.take` reads /proc before and after, `between` subtracts. To read every process takes
about ten milliseconds, so it must not happen while a slice is timed.
"""

import os
import pwd
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Self

from pgperf.runner.cpu.script_names import full_name

OTHER = "other"
#: How many of the busiest other processes are shown, if they used at least 1 % of a CPU.
_OTHERS_SHOWN = 5
_OTHERS_LEAST_PERCENT = 1.0

_PROC = Path("/proc")
HOST = ("us", "ni", "sy", "id", "wa", "hi", "si", "st")  # in the order of /proc/stat
LOADS = ("load1", "load5", "load15")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class TopProcess:
    """One process at one moment.

    `start_ticks` (since boot) distinguishes it from a later one with its pid. `uid`: its effective
    user.
    """

    role: str
    pid: int
    name: str
    start_ticks: int
    cpu_s: float
    rss_bytes: int
    uid: int


@dataclass(frozen=True)
class TopSnapshot:
    """What top reads: ticks of the host by state, load averages, every process.

    None: not readable here.
    """

    moment_s: float
    host: tuple[int, ...] | None
    load: tuple[float, ...] | None
    processes: Mapping[int, TopProcess] = field(default_factory=dict)

    @classmethod
    def take(cls, roles: Mapping[str, Sequence[int]], proc: Path = _PROC) -> Self:
        """The machine now. `roles`: the pids of each role; all others have the role `other`."""
        role_of = {pid: role for role, pids in roles.items() for pid in pids}
        moment_s = time.monotonic()
        host, load = host_ticks(proc), loads(proc)
        return cls(moment_s, host, load, {process.pid: process for process in _processes(role_of, proc)})


def between(before: TopSnapshot, after: TopSnapshot, proc: Path = _PROC) -> dict[str, Any]:
    """From one snapshot to the next: `seconds`, `host` (percentages, and loads at the end),
    `processes`.

    A process's `cpu_percent` is of one CPU; its `rss_bytes` and `cpu_s` (since it started) are
    those of the end. A process that started or ended in between has no row. Roles come in the order
    in which they were named, `other` last. An interpreter among the others has the name of its
    script too.
    """
    seconds = after.moment_s - before.moment_s
    rows = [
        _row(before.processes[pid], process, seconds)
        for pid, process in after.processes.items()
        if pid in before.processes and before.processes[pid].start_ticks == process.start_ticks
    ]
    return {
        "seconds": seconds,
        "host": percent(before.host, after.host) | loads_line(after.load),
        "processes": [row for row in rows if row["role"] != OTHER] + _named(_busiest(rows), proc),
    }


def busiest_others(cpu_percent: Mapping[int, float]) -> list[dict[str, Any]]:
    """The busiest of other processes, by their percentages of one CPU: rows as in `between` without
    memory and CPU time. A process that has ended has none.
    """
    busy = [pid for pid, percent in cpu_percent.items() if percent >= _OTHERS_LEAST_PERCENT]
    busiest = sorted(busy, key=lambda pid: -cpu_percent[pid])[:_OTHERS_SHOWN]
    known = [process for pid in busiest if (process := _process(pid, OTHER, _PROC))]
    rows = [
        {
            "role": OTHER, "pid": each.pid, "name": each.name, "user": _user(each.uid),
            "cpu_percent": cpu_percent[each.pid],
        }
        for each in known
    ]  # fmt: skip
    return _named(rows, _PROC)


def taken_cpus(shown: Mapping[str, Any], cpus: int) -> float:
    """How many CPUs the other processes that are shown and the hypervisor took, of so many."""
    others = [row for row in shown["processes"] if row["role"] == OTHER]
    return (sum(row["cpu_percent"] or 0.0 for row in others) + cpus * (shown["host"]["st"] or 0.0)) / 100


def _row(before: TopProcess, after: TopProcess, seconds: float) -> dict[str, Any]:
    used_s = max(0.0, after.cpu_s - before.cpu_s)
    return {
        "role": after.role,
        "pid": after.pid,
        "name": after.name,
        "user": _user(after.uid),
        "cpu_percent": 100 * used_s / seconds if seconds > 0 else None,
        "rss_bytes": after.rss_bytes,
        "cpu_s": after.cpu_s,
    }


@cache
def _user(uid: int) -> str:
    """The name of a user; the number where this machine knows no name, as in a container."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _busiest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    others = [row for row in rows if row["role"] == OTHER]
    seen = [row for row in others if (row["cpu_percent"] or 0) >= _OTHERS_LEAST_PERCENT]
    return sorted(seen, key=lambda row: -row["cpu_percent"])[:_OTHERS_SHOWN]


def _named(rows: Sequence[dict[str, Any]], proc: Path) -> list[dict[str, Any]]:
    return [{**row, "name": full_name(row["pid"], row["name"], proc)} for row in rows]


def percent(before: tuple[int, ...] | None, after: tuple[int, ...] | None) -> dict[str, float | None]:
    """Percentages of the CPU time of all CPUs; a counter that went backwards (idle and iowait may)
    counts as 0.
    """
    if before is None or after is None:
        return dict.fromkeys(HOST)
    used = [max(0, later - earlier) for earlier, later in zip(before, after, strict=True)]
    total = sum(used)
    return {name: 100 * ticks / total if total else None for name, ticks in zip(HOST, used, strict=True)}


def loads_line(load: tuple[float, ...] | None) -> dict[str, float | None]:
    return dict(zip(LOADS, load or (None,) * len(LOADS), strict=True))


def _processes(role_of: Mapping[int, str], proc: Path) -> Iterator[TopProcess]:
    """The roles' processes in their order, then all others; those that end meanwhile are left out."""
    all_pids = sorted(int(name) for name in os.listdir(proc) if name.isdecimal())
    present = set(all_pids)
    named = [pid for pid in role_of if pid in present]
    for pid in [*named, *(pid for pid in all_pids if pid not in role_of)]:
        process = _process(pid, role_of.get(pid, OTHER), proc)
        if process:
            yield process


def _process(pid: int, role: str, proc: Path) -> TopProcess | None:
    """A process from its stat file.

    Its name may contain `)`, so fields are counted from the last one (proc(5)).
    """
    try:
        with open(proc / str(pid) / "stat", errors="replace") as file:
            head, _, tail = file.read().rpartition(")")
            uid = os.fstat(file.fileno()).st_uid
        rest = tail.split()
        return TopProcess(
            role=role,
            pid=pid,
            name=head.partition("(")[2],
            start_ticks=int(rest[19]),
            cpu_s=(int(rest[11]) + int(rest[12])) * TICK_S,
            rss_bytes=int(rest[21]) * _PAGE_BYTES,
            uid=uid,
        )
    except (OSError, ValueError, IndexError):
        return None


def host_ticks(proc: Path = _PROC) -> tuple[int, ...] | None:
    """The first line of /proc/stat, without guest time, which `us` and `ni` include already."""
    try:
        ticks = (proc / "stat").read_text().partition("\n")[0].split()[1 : len(HOST) + 1]
        return tuple(int(tick) for tick in ticks) if len(ticks) == len(HOST) else None
    except (OSError, ValueError):
        return None


def loads(proc: Path = _PROC) -> tuple[float, ...] | None:
    """The load averages."""
    try:
        return tuple(float(value) for value in (proc / "loadavg").read_text().split()[: len(LOADS)])
    except (OSError, ValueError):
        return None
