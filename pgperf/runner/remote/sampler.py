"""Samples counters of this machine in a thread of its own, into memory only.

The sampler uses at most 1 % of one CPU: the more counters there are, the less often it reads them.
It writes and sends nothing while it runs.
"""

import os
import threading
import time
from array import array
from collections.abc import Iterable, Sequence
from typing import Protocol

from pgperf.runner.cpu import schedstat, top
from pgperf.runner.cpu.host import Host
from pgperf.runner.processes.backends import Sessions
from pgperf.runner.remote.counters import (
    AUXILIARIES,
    HOST,
    LOAD_PARTS,
    TOP,
    UNKNOWN,
    CounterSamples,
    run_column,
    wait_column,
)

#: The highest share of one CPU, and the shortest pause between two samples.
_SHARE = 0.01
SHORTEST_S = 0.005
#: The number of samples kept. When it is reached, every second one is dropped and the pause
#: doubles.
MAX_SAMPLES = 20_000
_LINE_BYTES = 128
_TOP_S = 0.03


class Meter(Protocol):
    """Reads some counters at once; UNKNOWN for those that cannot be read. Never raises."""

    @property
    def names(self) -> Sequence[str]: ...

    def read(self) -> Sequence[int]: ...

    def close(self) -> None: ...


class ProcessMeter:
    """One process: its run time, and its wait time in the run queue.

    The schedstat files stay open. That makes a sample ten times cheaper, and a later process with
    the same pid cannot be read by mistake.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.names = (run_column(pid), wait_column(pid))
        self._files = open_schedstats(pid)

    def read(self) -> Sequence[int]:
        try:
            found = [os.pread(file, _LINE_BYTES, 0).split() for file in self._files]
            return sum(int(run) for run, _, _ in found), sum(int(wait) for _, wait, _ in found)
        except (OSError, ValueError):
            return UNKNOWN, UNKNOWN

    def close(self) -> None:
        while self._files:
            os.close(self._files.pop())


class TickMeter:
    """One process on a kernel without schedstat: its CPU time in clock ticks."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.names = (run_column(pid), wait_column(pid))

    def read(self) -> Sequence[int]:
        tasks = schedstat.thread_times(self._pid)
        return (UNKNOWN, UNKNOWN) if tasks is None else (sum(task.run_ns for task in tasks.values()), UNKNOWN)

    def close(self) -> None:
        """Nothing to close."""


def process_meter(pid: int) -> Meter:
    """A ProcessMeter, or a TickMeter if the kernel has no schedstat."""
    meter = ProcessMeter(pid)
    if meter.read()[0] > 0:
        return meter
    meter.close()
    return TickMeter(pid)


def open_schedstats(pid: int) -> list[int]:
    """The open schedstat files of all threads of a process; none if one is not visible."""
    tasks = f"/proc/{pid}/task"
    files: list[int] = []
    try:
        files.extend(os.open(f"{tasks}/{tid}/schedstat", os.O_RDONLY) for tid in os.listdir(tasks))
    except OSError:
        while files:
            os.close(files.pop())
    return files


class ProcessGroupMeter:
    """The sum over several processes. An ended process counts with its last sample."""

    def __init__(self, name: str, pids: Iterable[int]) -> None:
        self.names = (name,)
        self._last = {process_meter(pid): 0 for pid in pids}

    def read(self) -> Sequence[int]:
        for meter, last in self._last.items():
            self._last[meter] = max(last, meter.read()[0])
        return (sum(self._last.values()),)

    def close(self) -> None:
        for meter in self._last:
            meter.close()


class HostMeter:
    """The machine: busy, idle, iowait and steal time; ns, summed over its CPUs."""

    names = tuple(f"{HOST}.{name}" for name in ("busy", "idle", "iowait", "steal"))

    def __init__(self) -> None:
        self._host = Host.here()

    def read(self) -> Sequence[int]:
        now = self._host.read()
        values = (now.busy_ns, now.idle_ns, now.iowait_ns, now.steal_ns)
        return tuple(UNKNOWN if value is None else value for value in values)

    def close(self) -> None:
        """Nothing to close."""


class TopMeter:
    """The machine's line in top, in clock ticks, and its load averages.

    It is read at most every 30 ms.
    """

    names = tuple(f"{TOP}.{name}" for name in (*top.HOST, *top.LOADS))

    def __init__(self) -> None:
        self._values: Sequence[int] = ()
        self._until_s = 0.0

    def read(self) -> Sequence[int]:
        if time.monotonic() >= self._until_s:
            self._until_s = time.monotonic() + _TOP_S
            ticks = top.host_ticks() or (UNKNOWN,) * len(top.HOST)
            loads = top.loads()
            parts = [round(load * LOAD_PARTS) for load in loads] if loads else [UNKNOWN] * len(top.LOADS)
            self._values = (*ticks, *parts)
        return self._values

    def close(self) -> None:
        """Nothing to close."""


def meters(sessions: Sessions, backends: Iterable[int], poolers: Iterable[int] = ()) -> list[Meter]:
    """Meters of the machine, of the backends that are here, of the auxiliary processes and of the
    poolers.
    """
    here = {session.pid for session in sessions.here}.intersection(backends)
    found: list[Meter] = [HostMeter(), TopMeter(), *map(process_meter, (*sorted(here), *poolers))]
    if sessions.here:
        found.append(ProcessGroupMeter(AUXILIARIES, sessions.auxiliaries()))
    return found


class Sampler:
    """Reads the meters from `start` to `stop`, as often as its share of a CPU permits."""

    def __init__(self, meters: Sequence[Meter], most: int = MAX_SAMPLES) -> None:
        self._meters = meters
        self._most = most
        self._times = array("q")
        self._columns = {name: array("q") for meter in meters for name in meter.names}
        self._shortest_s = SHORTEST_S
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pgperf-sampler", daemon=True)
        self.cost_s = 0.0

    def start(self) -> None:
        """Returns when the first sample has been taken."""
        self._take()
        self._thread.start()

    def stop(self) -> CounterSamples:
        """All samples, the last one taken now."""
        self._over.set()
        self._thread.join()
        self._take()
        for meter in self._meters:
            meter.close()
        return CounterSamples.of(self._times, self._columns)

    def _run(self) -> None:
        while not self._over.wait(self.pause_s):
            before = time.thread_time()
            self._take()
            self.cost_s += time.thread_time() - before

    @property
    def pause_s(self) -> float:
        """Seconds until the next sample."""
        each_s = self.cost_s / max(1, len(self._times) - 1)
        return max(each_s / _SHARE, self._shortest_s)

    def _take(self) -> None:
        """Take one sample. Times must increase, even if the clock is coarse."""
        now = time.monotonic_ns()
        if self._times and now <= self._times[-1]:
            now = self._times[-1] + 1
        values = [value for meter in self._meters for value in meter.read()]
        self._times.append(now)
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        if len(self._times) >= self._most:
            self._thin()

    def _thin(self) -> None:
        self._times = self._times[::2]
        self._columns = {name: column[::2] for name, column in self._columns.items()}
        self._shortest_s *= 2
