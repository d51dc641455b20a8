"""A stretch of time as `top` shows one: the host's line, and a row per process that took part.

`Snapshot.take` reads /proc before and after, `between` subtracts. Reading every process takes some ten milliseconds, so
it belongs round a stretch, never into one that is timed.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

OTHER = "other"
#: Of the processes that are nobody's here, so many of the busiest are shown, if they took a hundredth of a processor.
_OTHERS_SHOWN = 5
_OTHERS_LEAST_PERCENT = 1.0

_PROC = Path("/proc")
HOST = ("us", "ni", "sy", "id", "wa", "hi", "si", "st")  # in the order of /proc/stat
LOADS = ("load1", "load5", "load15")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """One process at one moment. `born` (ticks since boot) tells it from a later one with its pid."""

    role: str
    pid: int
    name: str
    born: int
    cpu_s: float
    rss_bytes: int


@dataclass(frozen=True)
class Snapshot:
    """What top reads: ticks of the host by state, the load averages, every process. Null: not readable here."""

    moment_s: float
    host: tuple[int, ...] | None
    load: tuple[float, ...] | None
    processes: Mapping[int, Process] = field(default_factory=dict)

    @classmethod
    def take(cls, roles: Mapping[str, Sequence[int]], proc: Path = _PROC) -> Self:
        """The machine now. `roles`: the processes of each role; all the rest are `other`."""
        role_of = {pid: role for role, pids in roles.items() for pid in pids}
        moment_s = time.monotonic()
        host, load = host_ticks(proc), loads(proc)
        return cls(moment_s, host, load, {process.pid: process for process in _processes(role_of, proc)})


def between(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """The stretch from one snapshot to the other: `seconds`, `host` (per cent, and loads at its end), `processes`.

    A process's `cpu_percent` is of one processor, its `rss_bytes` and `cpu_s` (since it started) are those of the end.
    One that ended or began in between has no row. Roles in the order in which they were named, `other` last.
    """
    seconds = after.moment_s - before.moment_s
    rows = [
        _row(before.processes[pid], process, seconds)
        for pid, process in after.processes.items()
        if pid in before.processes and before.processes[pid].born == process.born
    ]
    return {
        "seconds": seconds,
        "host": percent(before.host, after.host) | loads_line(after.load),
        "processes": [row for row in rows if row["role"] != OTHER] + _busiest(rows),
    }


def _row(before: Process, after: Process, seconds: float) -> dict[str, Any]:
    spent_s = max(0.0, after.cpu_s - before.cpu_s)
    return {
        "role": after.role,
        "pid": after.pid,
        "name": after.name,
        "cpu_percent": 100 * spent_s / seconds if seconds > 0 else None,
        "rss_bytes": after.rss_bytes,
        "cpu_s": after.cpu_s,
    }


def _busiest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    others = [row for row in rows if row["role"] == OTHER]
    seen = [row for row in others if (row["cpu_percent"] or 0) >= _OTHERS_LEAST_PERCENT]
    return sorted(seen, key=lambda row: -row["cpu_percent"])[:_OTHERS_SHOWN]


def percent(before: tuple[int, ...] | None, after: tuple[int, ...] | None) -> dict[str, float | None]:
    """Shares of all processors' time in per cent; a counter that ran backwards (idle and iowait may) counts as 0."""
    if before is None or after is None:
        return dict.fromkeys(HOST)
    spent = [max(0, later - earlier) for earlier, later in zip(before, after, strict=True)]
    total = sum(spent)
    return {name: 100 * ticks / total if total else None for name, ticks in zip(HOST, spent, strict=True)}


def loads_line(load: tuple[float, ...] | None) -> dict[str, float | None]:
    return dict(zip(LOADS, load or (None,) * len(LOADS), strict=True))


def _processes(role_of: Mapping[int, str], proc: Path) -> Iterator[Process]:
    """The roles' processes in their order, then everybody else's; those that end meanwhile are left out."""
    everyone = sorted(int(name) for name in os.listdir(proc) if name.isdecimal())
    there = set(everyone)
    named = [pid for pid in role_of if pid in there]
    for pid in [*named, *(pid for pid in everyone if pid not in role_of)]:
        process = _process(pid, role_of.get(pid, OTHER), proc)
        if process:
            yield process


def _process(pid: int, role: str, proc: Path) -> Process | None:
    """proc(5): a name may hold spaces and parentheses, so fields are counted from the last one that closes."""
    try:
        head, _, tail = (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")
        rest = tail.split()
        return Process(
            role=role,
            pid=pid,
            name=head.partition("(")[2],
            born=int(rest[19]),
            cpu_s=(int(rest[11]) + int(rest[12])) * _TICK_S,
            rss_bytes=int(rest[21]) * _PAGE_BYTES,
        )
    except (OSError, ValueError, IndexError):
        return None


def host_ticks(proc: Path = _PROC) -> tuple[int, ...] | None:
    """The first line of /proc/stat without guests, whose time is in `us` and `ni` already."""
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
