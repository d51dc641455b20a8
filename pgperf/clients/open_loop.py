"""The open loop: operations begin by a schedule, and each is timed from its intended start.

The workers of a client share the arrivals of a slice. They sleep until the next one is due, by the
kernel's timer, and never spin: the CPU time of a client is a result.
"""

import gc
from array import array
from collections.abc import Iterator, Sequence
from operator import sub
from time import monotonic_ns, sleep
from typing import Any, Protocol, runtime_checkable

from pgperf.clients.timed_loop import NEVER_NS, CpuTime, Operation, Reconnecting, Timing, little_endian
from pgperf.core.protocol import LAG, MAX_PHASED_SAMPLES, PHASES, Slice
from pgperf.core.schedule import due_in


class Arrivals:
    """The operations of one slice, in the order of the schedule, and what was measured of each.

    `due`, `began` and `ended` are times, ns. Operations may add `phases`, the parts of their
    service times by name, and `counts`, more fields of a Timing.
    """

    def __init__(self, request: Slice) -> None:
        self._request = request
        self._offsets = due_in(request, MAX_PHASED_SAMPLES + 1)
        self._capped = len(self._offsets) > MAX_PHASED_SAMPLES
        self.phases: dict[str, array[int]] = {}
        self.counts: dict[str, Any] = {}

    def begin(self) -> None:
        """Wait for the start of the slice."""
        self._start_ns = self._request.start_ns or monotonic_ns()
        length_ns = self._request.lead_in_ns + self._request.window_ns
        self.close_ns = NEVER_NS if self._request.count else self._start_ns + length_ns
        self.due = array("Q", [self._start_ns + offset for offset in self._offsets])
        self.began, self.ended = self._zeros(), self._zeros()
        self._numbers = iter(range(min(len(self.due), MAX_PHASED_SAMPLES)))
        self._skipped = array("Q")
        _sleep_until(self._start_ns)

    def timed(self, phases: Sequence[str]) -> "list[array[int]]":
        """For each of these phases, a number for each operation: the part of its service time, ns."""
        self.phases = {name: self._zeros() for name in phases}
        return list(self.phases.values())

    def _zeros(self) -> "array[int]":
        return array("Q", bytes(8 * len(self._offsets)))

    def taken(self) -> Iterator[int]:
        """The numbers of the operations that one worker runs, each when it is due."""
        while (number := self.take()) is not None:
            _sleep_until(self.due[number])
            if self.begins(number):
                yield number

    def take(self) -> int | None:
        """The number of the next operation for a free worker; None if there is none in the window."""
        return next(self._numbers, None) if monotonic_ns() < self.close_ns else None

    def begins(self, number: int) -> bool:
        """Note that the operation begins now; False if it is skipped."""
        self.began[number] = now = monotonic_ns()
        limit_ns = self._request.latency_limit_ns
        if limit_ns and now - self.due[number] > limit_ns:
            self._skipped.append(number)
            return False
        return True

    def end(self) -> None:
        """Wait for the end of the window. All workers have ended."""
        if not self._request.count:
            _sleep_until(self.close_ns)

    def timing(self, rows: int, began: CpuTime, ended: CpuTime) -> Timing:
        """The timing of the slice; call it when all workers have ended."""
        left = sum(1 for _ in self._numbers)
        taken = min(len(self.due), MAX_PHASED_SAMPLES) - left
        for number in self._skipped:
            self.ended[number] = self.due[number]
        due, starts, ends = self.due[:taken], self.began[:taken], self.ended[:taken]
        parts = [_differences(ends, due), _differences(starts, due)]
        parts += [little_endian(part[:taken]) for part in self.phases.values()]
        return Timing(
            ops=taken - len(self._skipped),
            rows=rows,
            lead_in_ops=0,
            first_ns=self._start_ns,
            user_ns=ended.user_ns - began.user_ns,
            sys_ns=ended.sys_ns - began.sys_ns,
            capped=self._capped and not left,
            durations=b"".join(parts),
            phases=[LAG, *self.phases],
            skipped=len(self._skipped),
            backlog=0 if self._request.count else left + self._capped,
        )._replace(**self.counts)


@runtime_checkable
class ServesArrivals(Protocol):
    """An operation with a loop of its own for arrivals."""

    def prepare(self) -> None:
        """Called before the start of each slice."""

    def serve(self, arrivals: Arrivals) -> int:
        """Run the arrivals until none is left in the window; returns the rows."""


def run_slice(operation: Operation, arrivals: Arrivals) -> Timing:
    """Run one slice by its schedule, on all workers."""
    gc.collect()
    if isinstance(operation, ServesArrivals):
        operation.prepare()
    arrivals.begin()
    began = CpuTime.now()
    rows = serve(operation, arrivals)
    arrivals.end()
    return arrivals.timing(rows, began, CpuTime.now())


def serve(operation: Operation, arrivals: Arrivals) -> int:
    """One worker's part of a slice, in its own thread; returns the rows."""
    if isinstance(operation, ServesArrivals):
        return operation.serve(arrivals)
    if isinstance(operation, Reconnecting):
        return _serve_connected(operation, arrivals)
    clock, ended = monotonic_ns, arrivals.ended
    rows = 0
    for number in arrivals.taken():
        rows += operation()
        ended[number] = clock()
    return rows


def _serve_connected(operation: Reconnecting, arrivals: Arrivals) -> int:
    connect, operate, close, clock = operation.connect, operation.operate, operation.close, monotonic_ns
    connecting, closing = arrivals.timed(PHASES)
    rows = 0
    for number in arrivals.taken():
        connect()
        connecting[number] = clock() - arrivals.began[number]
        rows += operate()
        operated = clock()
        close()
        arrivals.ended[number] = now = clock()
        closing[number] = now - operated
    return rows


def _sleep_until(due_ns: int) -> None:
    while (left_ns := due_ns - monotonic_ns()) > 0:
        sleep(left_ns / 1e9)


def _differences(later: "array[int]", earlier: "array[int]") -> bytes:
    return little_endian(array("Q", map(sub, later, earlier)))
