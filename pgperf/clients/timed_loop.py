"""The timed loop: runs one slice of an operation of any layer.

Recording costs each operation one clock read and one store of its end time. Durations are computed
after the slice, when all workers have ended.
"""

import gc
import sys
from array import array
from collections.abc import Callable, Sequence
from operator import sub
from resource import RUSAGE_SELF, getrusage
from time import monotonic_ns, sleep
from typing import NamedTuple, Protocol, runtime_checkable

from pgperf.core.protocol import MAX_SAMPLES, Slice

#: Does its work once and returns the rows it read.
Operation = Callable[[], int]

_NEVER_NS = sys.maxsize


class Timing(NamedTuple):
    """The measured values of one slice, as in `protocol.SliceReply`.

    `durations` are little-endian uint64, ns.
    """

    ops: int
    rows: int
    lead_in_ops: int
    first_ns: int
    user_ns: int
    sys_ns: int
    capped: bool
    durations: bytes
    worker_ops: list[int] = []
    worker_first_ns: list[int] = []


class CpuTime(NamedTuple):
    """CPU time of the process so far, ns."""

    user_ns: int
    sys_ns: int

    @classmethod
    def now(cls) -> "CpuTime":
        usage = getrusage(RUSAGE_SELF)
        return cls(round(usage.ru_utime * 1e9), round(usage.ru_stime * 1e9))


class Chain(NamedTuple):
    """The operations of one worker in a slice, chained from `first_ns`: their ends are in `stamps`.

    `began` and `ended`: the CPU time of the process when the worker began its lead-in and when it
    ended.
    """

    ops: int
    rows: int
    lead_in_ops: int
    first_ns: int
    capped: bool
    began: CpuTime
    ended: CpuTime
    stamps: "array[int]"

    def durations(self) -> bytes:
        """ns, little-endian uint64."""
        ends = self.stamps[: self.ops]
        durations = array("Q", map(sub, ends, array("Q", [self.first_ns]) + ends[:-1]))
        if sys.byteorder == "big":
            durations.byteswap()
        return durations.tobytes()


def timing(chains: Sequence[Chain]) -> Timing:
    """The timing of a slice of one process from the chains of its workers."""
    several = len(chains) > 1
    return Timing(
        ops=sum(chain.ops for chain in chains),
        rows=sum(chain.rows for chain in chains),
        lead_in_ops=sum(chain.lead_in_ops for chain in chains),
        first_ns=min(chain.first_ns for chain in chains),
        user_ns=max(c.ended.user_ns for c in chains) - min(c.began.user_ns for c in chains),
        sys_ns=max(c.ended.sys_ns for c in chains) - min(c.began.sys_ns for c in chains),
        capped=any(chain.capped for chain in chains),
        durations=b"".join(chain.durations() for chain in chains),
        worker_ops=[chain.ops for chain in chains] if several else [],
        worker_first_ns=[chain.first_ns for chain in chains] if several else [],
    )


def in_order(operations: Sequence[Operation]) -> Operation:
    """One operation that runs all steps in order.

    A single step is returned unchanged, without overhead.
    """
    if len(operations) == 1:
        return operations[0]

    def run() -> int:
        rows = 0
        for operation in operations:
            rows += operation()
        return rows

    return run


def new_stamps(workers: int = 1) -> "list[array[int]]":
    """Space for the end times of each worker, MAX_SAMPLES of all together, with its memory pages
    already allocated.
    """
    return [array("Q", [0]) * (MAX_SAMPLES // workers) for _ in range(workers)]


@runtime_checkable
class SelfTimedOperation(Protocol):
    """An operation with its own timed loop, such as one inside an event loop."""

    def run_slice(self, request: Slice, stamps: "list[array[int]]") -> Timing:
        """Like the function `run_slice`."""


def run_slice(operation: Operation, request: Slice, stamps: "list[array[int]]") -> Timing:
    """Wait for the start, run the lead-in, and record until the window closes or the count is
    reached.
    """
    gc.collect()
    if isinstance(operation, SelfTimedOperation):
        return operation.run_slice(request, stamps)
    return timing([run_chain(operation, request, stamps[0])])


def run_chain(operation: Operation, request: Slice, stamps: "array[int]") -> Chain:
    """One worker's part of a slice, in its own thread."""
    window = TimedWindow(request, stamps)
    lead_in_ops, first_ns = _lead_in(operation, request.lead_in_ops, window.lead_in_until_ns)
    close_ns = window.close_ns(first_ns)
    ops, rows = record(operation, stamps, window.limit, close_ns) if first_ns < close_ns else (0, 0)
    return window.chain(lead_in_ops, first_ns, ops, rows)


class TimedWindow:
    """The window of one worker in a slice.

    It waits for the start, sets the end, and makes the chain of the recorded operations.
    """

    def __init__(self, request: Slice, stamps: "array[int]") -> None:
        self._request, self._stamps = request, stamps
        self.limit = min(request.count or len(stamps), len(stamps))
        self.lead_in_until_ns = _await_start(request.start_ns) + request.lead_in_ns
        self._began = CpuTime.now()

    def close_ns(self, first_ns: int) -> int:
        """The time at which the window closes, if the lead-in ended at `first_ns`."""
        if self._request.count:
            return _NEVER_NS
        return (self.lead_in_until_ns if self._request.start_ns else first_ns) + self._request.window_ns

    def chain(self, lead_in_ops: int, first_ns: int, ops: int, rows: int) -> Chain:
        """The recorded operations. Call it as soon as the last one has ended."""
        ended = CpuTime.now()
        full = ops == len(self._stamps) != self._request.count
        capped = full and self._stamps[-1] < self.close_ns(first_ns)
        return Chain(ops, rows, lead_in_ops, first_ns, capped, self._began, ended, self._stamps)


def record(operation: Operation, stamps: "array[int]", limit: int, close_ns: int) -> tuple[int, int]:
    """Run until `close_ns` has passed or `limit` (at least 1) operations are recorded.

    Returns the numbers of operations and rows.
    """
    clock = monotonic_ns
    rows = 0
    for index in range(limit):
        rows += operation()
        now = clock()
        stamps[index] = now
        if now >= close_ns:
            break
    return index + 1, rows


def _await_start(start_ns: int) -> int:
    while (left_ns := start_ns - monotonic_ns()) > 0:
        sleep(min(left_ns / 1e9, 1.0))
    return start_ns or monotonic_ns()


def _lead_in(operation: Operation, least_ops: int, until_ns: int) -> tuple[int, int]:
    """Run until both minima are reached. Returns the number of operations and the time, ns."""
    ops, now = 0, monotonic_ns()
    while ops < least_ops or now < until_ns:
        operation()
        now = monotonic_ns()
        ops += 1
    return ops, now
