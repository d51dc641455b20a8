"""CPU time of all processes of a machine over one block.

To read every process takes milliseconds, so pgperf does it only at the start and the end of a
block. The time of a process that ends in between is found with its nearest ancestor that goes on, in
clock ticks. It is missed if its parent does not wait for it.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import psutil

from pgperf.runner.cpu import release, schedstat, top
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
        self._first = self._last = self._sample()

    def close(self, ours: Iterable[int] = ()) -> dict[str, Any]:
        """`cpus`, `source`, in ns `elapsed_ns`, `host_ns`, `ours_ns`, `others_ns`, and the busiest
        other `programs`, as `top` shows them.

        None is unknown. `ours`: pids that the run has found since.
        """
        self._ours.update(ours)
        before, after = self._first, self._sample()
        self._last = after
        intervals = [self._machine.between(*pair) for pair in zip(before.hosts, after.hosts, strict=True)]
        others = after.stats.keys() - self._ours
        elapsed_ns = max(1, _mean(interval.elapsed_ns for interval in intervals) or 0)
        ended = _ended(before.stats, after.stats)
        used = {pid: _run_ns(before.stats, after.stats, [pid]) + max(0, ended[pid]) for pid in others}
        return {
            "cpus": self._machine.cpus,
            "source": self._machine.source,
            "programs": top.busiest_others({pid: 100 * ns / elapsed_ns for pid, ns in used.items()}),
            "elapsed_ns": elapsed_ns,
            "host_ns": _mean(interval.busy_ns for interval in intervals),
            "ours_ns": _run_ns(before.stats, after.stats, self._ours),
            "others_ns": _run_ns(before.stats, after.stats, others)
            + max(0, sum(ended[pid] for pid in others)),
        }

    def others_on(self, cpus: frozenset[int]) -> int | None:
        """The most that other processes ran on these CPUs until `close`, ns: their time that was used,
        without that of the run's processes that may run on no others. None is unknown.
        """
        busy_ns = _busy_ns(self._first, self._last, cpus)
        if busy_ns is None:
            return None
        bound = [pid for pid in self._ours if (own := release.cpus_of(pid)) and own <= cpus]
        return max(0, busy_ns - _run_ns(self._first.stats, self._last.stats, bound))

    def _sample(self) -> "_Sample":
        first = self._machine.read()
        unused = _Unused(time.monotonic_ns(), self._machine.unused_ns())
        stats = {
            pid: process_stat for pid in self._list_pids() if (process_stat := schedstat.process_stat(pid))
        }
        return _Sample(stats, (first, self._machine.read()), unused)


class _Unused(NamedTuple):
    """How long each CPU has not been used until a moment, ns."""

    moment_ns: int
    by_cpu: Mapping[int, int]


class _Sample(NamedTuple):
    """All processes, and the host before and after they were read: their mean is of the same
    moment.
    """

    stats: ProcessStats
    hosts: tuple[HostCounters, HostCounters]
    unused: _Unused


def _busy_ns(before: _Sample, after: _Sample, cpus: frozenset[int]) -> int | None:
    """How long these CPUs were used in between; None where that is not known of one."""
    (begin_ns, first), (end_ns, last) = before.unused, after.unused
    if not cpus <= first.keys() & last.keys():
        return None
    return len(cpus) * (end_ns - begin_ns) - sum(last[cpu] - first[cpu] for cpu in cpus)


def _mean(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else round(sum(value or 0 for value in known) / len(known))


def _run_ns(before: ProcessStats, after: ProcessStats, pids: Iterable[int]) -> int:
    """The CPU time of these processes in between; one that started in between counts from zero."""
    return sum(_since(before.get(pid), after[pid], "run_ns") for pid in pids if pid in after)


def _ended(before: ProcessStats, after: ProcessStats) -> dict[int, int]:
    """By process: the CPU time in between of the processes below it that ended, as a compiler does.

    It has reaped all of their time, so that from before the block is subtracted. That is too much
    where another one reaped them, as init does with orphans; the sum over both is right.
    """
    found = Counter({pid: _since(before.get(pid), each, "reaped_ns") for pid, each in after.items()})
    for pid, heir in _heirs(before, after).items():
        found[heir] -= before[pid].run_ns + before[pid].reaped_ns
    return found


def _heirs(before: ProcessStats, after: ProcessStats) -> dict[int, int]:
    """The nearest ancestor that goes on, of each process that has ended and has one."""
    gone = {pid for pid, each in before.items() if not _same(each, after.get(pid))}
    found: dict[int, int] = {}
    for pid in gone:
        line, at = [], pid
        while at in gone and at not in found:
            line.append(at)
            found[at] = at  # a line that goes round ends here: the system gives numbers away again
            at = before[at].parent
        found.update(dict.fromkeys(line, found.get(at, at)))
    return {pid: heir for pid, heir in found.items() if heir in before and heir not in gone}


def _since(before: ProcessStat | None, after: ProcessStat, name: str) -> int:
    total = int(getattr(after, name))
    return max(0, total - int(getattr(before, name))) if before and _same(before, after) else total


def _same(before: ProcessStat, after: ProcessStat | None) -> bool:
    """Is it the same process, not a later one with its pid?"""
    return after is not None and before.start_ticks == after.start_ticks
