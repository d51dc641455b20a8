"""CPU time of all processes of a machine over one block.

To read every process takes milliseconds, so pgperf does it only at the start and the end of a
block. The time of a process that ends in between is found with its parent, in clock ticks. A
process is missed if both it and its parent start and end within the block.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import psutil

from pgperf.runner.cpu import schedstat, top
from pgperf.runner.cpu.host import Host, HostCounters
from pgperf.runner.cpu.schedstat import ProcessStat

ProcessStats = Mapping[int, ProcessStat]


class ProcessCpu:
    """Reads all processes when it is made and again in `close`.

    `ours`: the pids of the run; this process is added. `list_pids` lists the machine's processes.
    """

    def __init__(
        self, host: Host, ours: Iterable[int], list_pids: Callable[[], Iterable[int]] = psutil.pids
    ) -> None:
        self._machine, self._ours, self._list_pids = host, {*ours, os.getpid()}, list_pids
        self._first = self._sample()

    def close(self, ours: Iterable[int] = ()) -> dict[str, Any]:
        """`cpus`, `source`, in ns `elapsed_ns`, `host_ns`, `ours_ns`, `others_ns`, and the busiest
        other `programs`, as `top` shows them.

        None is unknown. `ours`: pids that the run has found since.
        """
        self._ours.update(ours)
        before, after = self._first, self._sample()
        intervals = [self._machine.between(*pair) for pair in zip(before.hosts, after.hosts, strict=True)]
        others = after.stats.keys() - self._ours
        elapsed_ns = max(1, _mean(interval.elapsed_ns for interval in intervals) or 0)
        used = {pid: _with_children(pid, before.stats, after.stats) for pid in others}
        return {
            "cpus": self._machine.cpus,
            "source": self._machine.source,
            "programs": top.busiest_others({pid: 100 * ns / elapsed_ns for pid, ns in used.items()}),
            "elapsed_ns": elapsed_ns,
            "host_ns": _mean(interval.busy_ns for interval in intervals),
            "ours_ns": _run_ns(before.stats, after.stats, self._ours),
            "others_ns": _run_ns(before.stats, after.stats, others)
            + _ended(before.stats, after.stats, self._ours),
        }

    def _sample(self) -> "_Sample":
        first = self._machine.read()
        stats = {
            pid: process_stat for pid in self._list_pids() if (process_stat := schedstat.process_stat(pid))
        }
        return _Sample(stats, (first, self._machine.read()))


class _Sample(NamedTuple):
    """All processes, and the host before and after they were read: their mean is of the same
    moment.
    """

    stats: ProcessStats
    hosts: tuple[HostCounters, HostCounters]


def _mean(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else round(sum(value or 0 for value in known) / len(known))


def _run_ns(before: ProcessStats, after: ProcessStats, pids: Iterable[int]) -> int:
    """The CPU time of these processes in between; one that started in between counts from zero."""
    return sum(_since(before.get(pid), after[pid], "run_ns") for pid in pids if pid in after)


def _with_children(pid: int, before: ProcessStats, after: ProcessStats) -> int:
    """The CPU time of a process in between, and of children that it reaped: a compiler lives shorter
    than a block, and what starts it goes on.
    """
    reaped = _since(before.get(pid), after[pid], "reaped_ns")
    earlier = sum(
        child.run_ns + child.reaped_ns
        for number, child in before.items()
        if child.parent == pid and not _same(child, after.get(number))
    )
    return _run_ns(before, after, [pid]) + max(0, reaped - earlier)


def _ended(before: ProcessStats, after: ProcessStats, ours: set[int]) -> int:
    """The CPU time in between of processes that ended, unless their parents are `ours`.

    Their parents count all of their time, so the time from before the block is subtracted.
    """
    reaped = sum(
        _since(before.get(pid), process_stat, "reaped_ns")
        for pid, process_stat in after.items()
        if pid not in ours
    )
    gone = [
        process_stat
        for pid, process_stat in before.items()
        if not _same(process_stat, after.get(pid)) and process_stat.parent not in ours
    ]
    return max(0, reaped - sum(process_stat.run_ns + process_stat.reaped_ns for process_stat in gone))


def _since(before: ProcessStat | None, after: ProcessStat, name: str) -> int:
    total = int(getattr(after, name))
    return max(0, total - int(getattr(before, name))) if before and _same(before, after) else total


def _same(before: ProcessStat, after: ProcessStat | None) -> bool:
    """Is it the same process, not a later one with its pid?"""
    return after is not None and before.start_ticks == after.start_ticks
