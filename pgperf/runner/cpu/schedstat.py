"""CPU time of processes, as the kernel's scheduler counts it (/proc/PID/task/*/schedstat,
nanoseconds).

Functions that read are separate from functions that subtract, so that the latter can be tested
without processes. A value that cannot be read is None, never 0.
"""

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

_PROC = "/proc"
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_READ_BYTES = 8192
_ENDED_MOST = 0.1  # of a process's time, if its waits are to be known: ended threads take theirs along


class ThreadTime(NamedTuple):
    """A thread's time so far: running, and waiting in the run queue (None: the kernel does not
    count it).
    """

    run_ns: int
    wait_ns: int | None


#: By process, then by thread.
Times = Mapping[int, Mapping[int, ThreadTime]]
#: No thread has this number. What the process's clock has beyond its threads: those that have ended,
#: as a web server's do after each request, and what the scheduler has not yet counted of the others.
ENDED = 0


@dataclass(frozen=True)
class CpuTime:
    """CPU time that a set of processes used between two readings; `busiest_ns`: that of the busiest
    process, None if it is unknown.
    """

    run_ns: int
    wait_ns: int | None
    busiest_ns: int | None

    @classmethod
    def zero(cls) -> "CpuTime":
        """The CPU time of an empty set of processes."""
        return cls(0, 0, 0)


def read(pids: Iterable[int], proc: str = _PROC) -> Times | None:
    """The times so far of all threads of the processes, and of those that have ended; None without
    pids or if one is not visible.
    """
    times: dict[int, Mapping[int, ThreadTime]] = {}
    for pid in pids:
        own = thread_times(pid, proc)
        if own is None:
            return None
        total_ns = process_clock_ns(pid) if proc == _PROC else None
        times[pid] = own if total_ns is None else with_ended(own, total_ns)
    return times or None


def process_clock_ns(pid: int) -> int | None:
    """The CPU time so far of a process, ended threads included; None if it is not visible."""
    try:
        return time.clock_gettime_ns(~pid << 3 | 2)  # the kernel's number of that clock
    except OSError:
        return None


def with_ended(threads: Mapping[int, ThreadTime], total_ns: int) -> Mapping[int, ThreadTime]:
    """The times of a process's threads, and what is left of its total."""
    return {**threads, ENDED: ThreadTime(total_ns - sum(each.run_ns for each in threads.values()), 0)}


def thread_times(pid: int, proc: str = _PROC) -> Mapping[int, ThreadTime] | None:
    """The times so far of a process's threads; None if the process is not visible.

    /proc/PID/schedstat covers the main thread only, so each thread is read. On a kernel without
    schedstat, the process's total in clock ticks is returned as the main thread's.
    """
    times = _of_each_thread(f"{proc}/{pid}/task")
    if any(task.run_ns for task in times.values()):
        return times
    ticks = _ticks(pid, proc)
    if ticks is None or (times and not any(ticks)):
        return times or None
    return {pid: ThreadTime(sum(ticks) * TICK_NS, None)}


def _of_each_thread(tasks: str) -> dict[int, ThreadTime]:
    """Those that can be read: a thread may end meanwhile."""
    times = {}
    try:
        for tid in os.listdir(tasks):
            with suppress(FileNotFoundError, ProcessLookupError):
                times[int(tid)] = _task(f"{tasks}/{tid}/schedstat")
    except (OSError, ValueError):
        return {}
    return times


def cpu_time_between(before: Times | None, after: Times | None) -> CpuTime | None:
    """The CPU time used in between; None if either is unknown, if a process of `before` is gone, or a
    thread whose process has no clock. Waits are unknown where ended threads have much of the time.
    """
    if before is None or after is None or before.keys() != after.keys():
        return None
    each = [_process_time(times, after[pid]) for pid, times in before.items()]
    known = [one for one in each if one is not None]
    if len(known) < len(each):
        return None
    run_ns, waits = [run for run, _ in known], [wait for _, wait in known]
    wait_ns = None if None in waits else sum(wait or 0 for wait in waits)
    return CpuTime(sum(run_ns), wait_ns, max(run_ns, default=0))


class ProcessStat(NamedTuple):
    """A process so far: its CPU time with that of ended threads, and the CPU time of children that
    it reaped.
    """

    start_ticks: int  # ticks since boot
    parent: int
    run_ns: int
    reaped_ns: int


def process_stat(pid: int, proc: str = _PROC) -> ProcessStat | None:
    """None if the process is not visible.

    The time of ended threads and children has the precision of a tick.
    """
    try:
        fields = read_text(f"{proc}/{pid}/stat").rpartition(")")[2].split()
        ticks, reaped = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        now_ns = sum(task.run_ns for task in (thread_times(pid, proc) or {}).values())
        return ProcessStat(
            start_ticks=int(fields[19]),
            parent=int(fields[1]),
            run_ns=max(ticks * TICK_NS, now_ns),
            reaped_ns=reaped * TICK_NS,
        )
    except (OSError, ValueError, IndexError):
        return None


def started(pid: int) -> int:
    """When a process began, in ticks since boot; 0 if it has ended or is not visible."""
    found = process_stat(pid)
    return found.start_ticks if found else 0


class TicksAndSwitches(NamedTuple):
    """Clock ticks in user and system mode, and context switches, summed over processes.

    The kernel assigns a whole tick to the mode that it interrupts: use the split over seconds, not
    for a single slice.
    """

    user: int
    system: int
    voluntary: int
    involuntary: int

    @classmethod
    def zero(cls) -> "TicksAndSwitches":
        return cls(0, 0, 0, 0)

    def plus(self, other: "TicksAndSwitches") -> "TicksAndSwitches":
        return TicksAndSwitches(*map(sum, zip(self, other, strict=True)))


def ticks_and_switches(pids: Iterable[int], proc: str = _PROC) -> TicksAndSwitches | None:
    """The sum over the processes; None without pids or if one is not visible."""
    each = [(_ticks(pid, proc), _switches(pid, proc)) for pid in pids]
    rows = [(*ticks, *switches) for ticks, switches in each if ticks and switches]
    return TicksAndSwitches(*map(sum, zip(*rows, strict=True))) if rows and len(rows) == len(each) else None


def ticks_and_switches_between(
    before: TicksAndSwitches | None, after: TicksAndSwitches | None
) -> TicksAndSwitches | None:
    """The increase; None if either is unknown or a process was replaced in between."""
    if before is None or after is None:
        return None
    steps = [later - earlier for earlier, later in zip(before, after, strict=True)]
    return None if min(steps) < 0 else TicksAndSwitches(*steps)


def backend_is_here(pid: int) -> bool:
    """Is this pid, as a server reports it, a PostgreSQL backend on this machine?"""
    try:
        return Path(_PROC, str(pid), "cmdline").read_bytes().startswith(b"postgres:")
    except OSError:
        return False


def parent(pid: int) -> int | None:
    """The parent of a process: for a backend, the postmaster. None if it is not visible."""
    found = process_stat(pid)
    return found.parent or None if found else None


def children(pid: int) -> list[int]:
    """The children of a process; none if they are not visible."""
    try:  # to the end: the kernel gives a page at a time
        return [int(child) for child in Path(_PROC, f"{pid}/task/{pid}/children").read_bytes().split()]
    except (OSError, ValueError):
        pass  # a kernel without CONFIG_PROC_CHILDREN
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.Error:
        return []


def siblings(pid: int) -> list[int]:
    """The parent of a process and its visible children: for a backend, all processes of its server."""
    try:
        parent = psutil.Process(pid).parent()
        return [parent.pid, *(child.pid for child in parent.children())] if parent else []
    except psutil.Error:
        return []


def _process_time(
    before: Mapping[int, ThreadTime], after: Mapping[int, ThreadTime]
) -> tuple[int, int | None] | None:
    """Run and wait time of one process; a thread that started in between counts from zero."""
    zero = ThreadTime(0, 0)
    steps = [(before.get(tid, zero), task) for tid, task in after.items() if tid != ENDED]
    gone = before.keys() - after.keys()
    if (gone and ENDED not in after) or ENDED in gone:
        return None
    ended = after.get(ENDED, zero).run_ns - before.get(ENDED, zero).run_ns
    run = sum(task.run_ns for task in after.values()) - sum(task.run_ns for task in before.values())
    if run < 0 or any(task.run_ns < start.run_ns for start, task in steps):
        return None
    known = not gone and ended <= max(TICK_NS, run * _ENDED_MOST)
    if not known or any(task.wait_ns is None for _start, task in steps):
        return run, None
    return run, sum(max(0, (task.wait_ns or 0) - (start.wait_ns or 0)) for start, task in steps)


def _task(path: str) -> ThreadTime:
    run, wait, _slices = read_text(path).split()
    return ThreadTime(int(run), int(wait))


def _ticks(pid: int, proc: str) -> tuple[int, int] | None:
    """User and system time so far in clock ticks, ended threads included; None if not visible."""
    try:
        fields = read_text(f"{proc}/{pid}/stat").rpartition(")")[2].split()
        return int(fields[11]), int(fields[12])
    except (OSError, ValueError, IndexError):
        return None


def _switches(pid: int, proc: str) -> tuple[int, int] | None:
    """Voluntary and involuntary context switches so far of all threads; None if not visible."""
    tasks = f"{proc}/{pid}/task"
    try:
        texts = [read_text(f"{tasks}/{tid}/status") for tid in os.listdir(tasks)]
        return _sum_of(texts, "voluntary_ctxt_switches"), _sum_of(texts, "nonvoluntary_ctxt_switches")
    except (OSError, ValueError):
        return None


def _sum_of(texts: Iterable[str], name: str) -> int:
    """The sum of the numbers on the lines `name:`. Raises ValueError if a text lacks the line."""
    return sum(int(text[text.index(f"\n{name}:") :].split(maxsplit=2)[1]) for text in texts)


def read_text(path: str, most_bytes: int = _READ_BYTES) -> str:
    """A small file of /proc in one read: microseconds faster than a buffered file.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, most_bytes).decode(errors="replace")
    finally:
        os.close(descriptor)
