"""The timed loop: runs one slice of an operation of any layer.

Recording costs each operation one clock read and one store of its end time. Durations are computed
after the slice.
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


def new_stamps() -> "array[int]":
    """Space for MAX_SAMPLES end times, with its memory pages already allocated."""
    return array("Q", [0]) * MAX_SAMPLES


@runtime_checkable
class SelfTimedOperation(Protocol):
    """An operation with its own timed loop, such as one inside an event loop."""

    def run_slice(self, request: Slice, stamps: "array[int]") -> Timing:
        """Like the function `run_slice`."""


def run_slice(operation: Operation, request: Slice, stamps: "array[int]") -> Timing:
    """Wait for the start, run the lead-in, and record until the window closes or the count is
    reached.
    """
    if isinstance(operation, SelfTimedOperation):
        return operation.run_slice(request, stamps)
    window = TimedWindow(request, stamps)
    lead_in_ops, first_ns = _lead_in(operation, request.lead_in_ops, window.lead_in_until_ns)
    close_ns = window.close_ns(first_ns)
    ops, rows = record(operation, stamps, window.limit, close_ns) if first_ns < close_ns else (0, 0)
    return window.timing(lead_in_ops, first_ns, ops, rows)


class TimedWindow:
    """The window of one slice.

    It waits for the start, sets the end, and computes the timing from the recorded stamps.
    """

    def __init__(self, request: Slice, stamps: "array[int]") -> None:
        gc.collect()
        self._request, self._stamps = request, stamps
        self.limit = min(request.count or MAX_SAMPLES, MAX_SAMPLES)
        self.lead_in_until_ns = _await_start(request.start_ns) + request.lead_in_ns
        self._user_ns, self._sys_ns = _cpu_ns()

    def close_ns(self, first_ns: int) -> int:
        """The time at which the window closes, if the lead-in ended at `first_ns`."""
        if self._request.count:
            return _NEVER_NS
        return (self.lead_in_until_ns if self._request.start_ns else first_ns) + self._request.window_ns

    def timing(self, lead_in_ops: int, first_ns: int, ops: int, rows: int) -> Timing:
        """The timing of the slice. Call it as soon as the last operation has ended."""
        user_ns, sys_ns = _cpu_ns()
        full = ops == MAX_SAMPLES != self._request.count
        return Timing(
            ops=ops,
            rows=rows,
            lead_in_ops=lead_in_ops,
            first_ns=first_ns,
            user_ns=user_ns - self._user_ns,
            sys_ns=sys_ns - self._sys_ns,
            capped=full and self._stamps[-1] < self.close_ns(first_ns),
            durations=_durations(self._stamps, ops, first_ns),
        )


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


def _cpu_ns() -> tuple[int, int]:
    usage = getrusage(RUSAGE_SELF)
    return round(usage.ru_utime * 1e9), round(usage.ru_stime * 1e9)


def _durations(stamps: "array[int]", ops: int, first_ns: int) -> bytes:
    ends = stamps[:ops]
    durations = array("Q", map(sub, ends, array("Q", [first_ns]) + ends[:-1]))
    if sys.byteorder == "big":
        durations.byteswap()
    return durations.tobytes()
