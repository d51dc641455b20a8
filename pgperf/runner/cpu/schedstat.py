"""Processor time of processes, from the scheduler's own books (/proc/PID/task/*/schedstat, nanoseconds).

Reading and subtracting are apart, so that the subtraction can be tested. What cannot be read is None, never 0.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

_PROC = "/proc"
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_READ_BYTES = 8192


class Task(NamedTuple):
    """A thread's time so far: on a processor, and ready but waiting for one (None: the kernel does not count it)."""

    run_ns: int
    wait_ns: int | None


#: By process, then by thread.
Times = Mapping[int, Mapping[int, Task]]


@dataclass(frozen=True)
class Spent:
    """What some processes spent between two readings, and how much of it the busiest of them did."""

    run_ns: int
    wait_ns: int | None
    busiest_ns: int

    @classmethod
    def nothing(cls) -> "Spent":
        """What processes spend that are not there."""
        return cls(0, 0, 0)


def read(pids: Iterable[int], proc: str = _PROC) -> Times | None:
    """The times so far of all threads of the processes; None if there are none or one of them is unseen."""
    times: dict[int, Mapping[int, Task]] = {}
    for pid in pids:
        own = process(pid, proc)
        if own is None:
            return None
        times[pid] = own
    return times or None


def process(pid: int, proc: str = _PROC) -> Mapping[int, Task] | None:
    """The times so far of a process's threads; None if it cannot be seen.

    schedstat of the process itself covers its leader only, hence the threads. A kernel that keeps no such books has the
    process's total in clock ticks, given here as the leader's.
    """
    tasks = f"{proc}/{pid}/task"
    try:
        times = {int(tid): _task(f"{tasks}/{tid}/schedstat") for tid in os.listdir(tasks)}
    except (OSError, ValueError):
        times = {}
    if any(task.run_ns for task in times.values()):
        return times
    ticks = sum(_ticks(pid, proc) or ())
    return {pid: Task(ticks * _TICK_NS, None)} if ticks else times or None


def spent(before: Times | None, after: Times | None) -> Spent | None:
    """What was spent in between; None when either is unknown or a process or thread of `before` is gone."""
    if before is None or after is None or before.keys() != after.keys():
        return None
    each = [_process_spent(times, after[pid]) for pid, times in before.items()]
    known = [one for one in each if one is not None]
    if len(known) < len(each):
        return None
    run_ns, waits = [run for run, _ in known], [wait for _, wait in known]
    wait_ns = None if None in waits else sum(wait or 0 for wait in waits)
    return Spent(sum(run_ns), wait_ns, max(run_ns, default=0))


class Life(NamedTuple):
    """A process so far: its time on a processor, threads that ended included, and that of children that it reaped."""

    born: int  # ticks since boot
    parent: int
    run_ns: int
    reaped_ns: int


def life(pid: int, proc: str = _PROC) -> Life | None:
    """None if the process cannot be seen. The time of what ended is told in clock ticks."""
    try:
        fields = read_text(f"{proc}/{pid}/stat").rpartition(")")[2].split()
        ticks, reaped = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        now_ns = sum(task.run_ns for task in (process(pid, proc) or {}).values())
        return Life(int(fields[19]), int(fields[1]), max(ticks * _TICK_NS, now_ns), reaped * _TICK_NS)
    except (OSError, ValueError, IndexError):
        return None


class Habits(NamedTuple):
    """How some processes came by their time so far: clock ticks in user and system mode, context switches.

    The kernel splits user from system time by what its tick happens to meet: read it over seconds, never in a slice.
    """

    user: int
    system: int
    voluntary: int
    involuntary: int


def habits(pids: Iterable[int], proc: str = _PROC) -> Habits | None:
    """The sum over the processes; None if there are none or one of them is unseen."""
    each = [(_ticks(pid, proc), _switches(pid, proc)) for pid in pids]
    rows = [(*ticks, *switches) for ticks, switches in each if ticks and switches]
    return Habits(*map(sum, zip(*rows, strict=True))) if rows and len(rows) == len(each) else None


def habits_between(before: Habits | None, after: Habits | None) -> Habits | None:
    """What came on top; None when either is unknown or a process was replaced in between."""
    if before is None or after is None:
        return None
    steps = [later - earlier for earlier, later in zip(before, after, strict=True)]
    return None if min(steps) < 0 else Habits(*steps)


def backend_is_here(pid: int) -> bool:
    """Is this pid, as a server reports it, a PostgreSQL backend of this machine?"""
    try:
        return Path(_PROC, str(pid), "cmdline").read_bytes().startswith(b"postgres:")
    except OSError:
        return False


def siblings(pid: int) -> list[int]:
    """The parent of a process and all its children that can be seen: of a backend, the whole server."""
    try:
        parent = psutil.Process(pid).parent()
        return [parent.pid, *(child.pid for child in parent.children())] if parent else []
    except psutil.Error:
        return []


def _process_spent(before: Mapping[int, Task], after: Mapping[int, Task]) -> tuple[int, int | None] | None:
    """Run and wait of one process; a thread that began in between began with nothing."""
    if not before.keys() <= after.keys():
        return None
    run, wait, waits_known = 0, 0, True
    for tid, task in after.items():
        start = before.get(tid, Task(0, 0))
        if task.run_ns < start.run_ns:
            return None
        run += task.run_ns - start.run_ns
        waits_known = waits_known and task.wait_ns is not None
        wait += max(0, (task.wait_ns or 0) - (start.wait_ns or 0))
    return run, wait if waits_known else None


def _task(path: str) -> Task:
    run, wait, _slices = read_text(path).split()
    return Task(int(run), int(wait))


def _ticks(pid: int, proc: str) -> tuple[int, int] | None:
    """User and system time so far in clock ticks, threads that ended included; None if unseen."""
    try:
        fields = read_text(f"{proc}/{pid}/stat").rpartition(")")[2].split()
        return int(fields[11]), int(fields[12])
    except (OSError, ValueError, IndexError):
        return None


def _switches(pid: int, proc: str) -> tuple[int, int] | None:
    """Context switches so far of all threads: asked for by themselves (they waited), and not. None if unseen."""
    tasks = f"{proc}/{pid}/task"
    try:
        texts = [read_text(f"{tasks}/{tid}/status") for tid in os.listdir(tasks)]
        return _counted(texts, "voluntary_ctxt_switches"), _counted(texts, "nonvoluntary_ctxt_switches")
    except (OSError, ValueError):
        return None


def _counted(texts: Iterable[str], name: str) -> int:
    """The sum of a line's numbers. Raises ValueError where a text has no such line."""
    return sum(int(text[text.index(f"\n{name}:") :].split(maxsplit=2)[1]) for text in texts)


def read_text(path: str) -> str:
    """A small file of /proc in one read, some microseconds quicker than through a buffered file. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _READ_BYTES).decode(errors="replace")
    finally:
        os.close(descriptor)
