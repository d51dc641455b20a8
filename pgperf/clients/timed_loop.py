"""The timed loop: runs one slice of an operation of any layer.

Recording costs each operation one clock read and one store of its end time, in a list: an array takes
longer. Durations are computed after the slice, when all workers have ended. An operation that
connects and closes costs two more of each.
"""

import gc
import sys
from array import array
from collections.abc import Callable, Sequence
from operator import sub
from resource import RUSAGE_SELF, getrusage
from time import monotonic_ns, sleep
from typing import NamedTuple, Protocol, runtime_checkable

from pgperf.core.exceptions import ConnectionReplaced, ReconnectFailed
from pgperf.core.protocol import MAX_PHASED_SAMPLES, MAX_SAMPLES, PHASES, Slice

#: Does its work once and returns the rows it read.
Operation = Callable[[], int]

#: End times, ns, with space for more.
Stamps = list[int]

#: Later than every time of the clock.
NEVER_NS = sys.maxsize


class Timing(NamedTuple):
    """The measured values of one slice, as in `protocol.SliceReply`.

    `durations` are little-endian uint64, ns, followed by as many numbers for each of `phases`.
    """

    ops: int
    rows: int | None
    lead_in_ops: int
    first_ns: int
    user_ns: int
    sys_ns: int
    capped: bool
    durations: bytes
    worker_ops: list[int] = []
    worker_first_ns: list[int] = []
    phases: list[str] = []
    window_ns: int = 0
    errors: dict[str, int] = {}
    lengths: list[int] = []
    skipped: int = 0
    backlog: int = 0
    overran_ns: int = 0


class CpuTime(NamedTuple):
    """CPU time of the process so far, ns."""

    user_ns: int
    sys_ns: int

    @classmethod
    def now(cls) -> "CpuTime":
        usage = getrusage(RUSAGE_SELF)
        return cls(round(usage.ru_utime * 1e9), round(usage.ru_stime * 1e9))


class PhaseStamps:
    """The times between the phases of each operation: when it was connected, and had operated."""

    def __init__(self) -> None:
        self.connected, self.operated = (array("Q", [0]) * MAX_PHASED_SAMPLES for _ in range(2))


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
    stamps: Stamps
    phases: PhaseStamps | None = None

    def durations(self) -> bytes:
        """ns, little-endian uint64."""
        return _differences(self._ends, self._starts)

    def connecting(self) -> bytes:
        """The part of each duration that connecting took, in the same form."""
        return _differences(self.phases.connected[: self.ops], self._starts) if self.phases else b""

    def closing(self) -> bytes:
        """Likewise for closing."""
        return _differences(self._ends, self.phases.operated[: self.ops]) if self.phases else b""

    @property
    def _ends(self) -> list[int]:
        return self.stamps[: self.ops]

    @property
    def _starts(self) -> list[int]:
        return [self.first_ns, *self._ends[:-1]]

    def forget(self) -> None:
        """Give the end times free. In the next slice, each store would free one."""
        self.stamps[: self.ops] = bytes(self.ops)


def timing(chains: Sequence[Chain]) -> Timing:
    """The timing of a slice of one process from the chains of its workers, which are over then."""
    several, phased = len(chains) > 1, all(chain.phases for chain in chains)
    parts = (Chain.durations, Chain.connecting, Chain.closing)
    measured = Timing(
        ops=sum(chain.ops for chain in chains),
        rows=sum(chain.rows for chain in chains),
        lead_in_ops=sum(chain.lead_in_ops for chain in chains),
        first_ns=min(chain.first_ns for chain in chains),
        user_ns=max(c.ended.user_ns for c in chains) - min(c.began.user_ns for c in chains),
        sys_ns=max(c.ended.sys_ns for c in chains) - min(c.began.sys_ns for c in chains),
        capped=any(chain.capped for chain in chains),
        durations=b"".join(part(chain) for part in parts for chain in chains),
        worker_ops=[chain.ops for chain in chains] if several else [],
        worker_first_ns=[chain.first_ns for chain in chains] if several else [],
        phases=list(PHASES) if phased else [],
    )
    for chain in chains:
        chain.forget()
    return measured


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


def new_stamps(workers: int = 1, phased: bool = False) -> list[Stamps]:
    """Space for the end times of each worker, MAX_SAMPLES of all together, with its memory pages
    already allocated.
    """
    samples = MAX_PHASED_SAMPLES if phased else MAX_SAMPLES
    return [[0] * (samples // workers) for _ in range(workers)]


@runtime_checkable
class SelfTimedOperation(Protocol):
    """An operation with its own timed loop, such as one inside an event loop."""

    def run_slice(self, request: Slice, stamps: list[Stamps]) -> Timing:
        """Like the function `run_slice`."""


def run_slice(operation: Operation, request: Slice, stamps: list[Stamps]) -> Timing:
    """Wait for the start, run the lead-in, and record until the window closes or the count is
    reached.
    """
    gc.collect()
    if isinstance(operation, SelfTimedOperation):
        return operation.run_slice(request, stamps)
    return timing([run_chain(operation, request, stamps[0])])


def run_chain(operation: Operation, request: Slice, stamps: Stamps) -> Chain:
    """One worker's part of a slice, in its own thread."""
    window = TimedWindow(request, stamps)
    lead_in_ops, first_ns = lead_in(operation, request.lead_in_ops, window.lead_in_until_ns)
    close_ns = window.close_ns(first_ns)
    ops, rows = record(operation, stamps, window.limit, close_ns) if first_ns < close_ns else (0, 0)
    return window.chain(lead_in_ops, first_ns, ops, rows)


class TimedWindow:
    """The window of one worker in a slice.

    It waits for the start, sets the end, and makes the chain of the recorded operations.
    """

    def __init__(self, request: Slice, stamps: Stamps) -> None:
        self._request, self._stamps = request, stamps
        self.limit = min(request.count or len(stamps), len(stamps))
        self.lead_in_until_ns = _await_start(request.start_ns) + request.lead_in_ns
        self._began = CpuTime.now()

    def close_ns(self, first_ns: int) -> int:
        """The time at which the window closes, if the lead-in ended at `first_ns`."""
        if self._request.count:
            return NEVER_NS
        return (self.lead_in_until_ns if self._request.start_ns else first_ns) + self._request.window_ns

    def chain(self, lead_in_ops: int, first_ns: int, ops: int, rows: int) -> Chain:
        """The recorded operations. Call it as soon as the last one has ended."""
        ended = CpuTime.now()
        full = ops == len(self._stamps) != self._request.count
        capped = full and self._stamps[-1] < self.close_ns(first_ns)
        return Chain(ops, rows, lead_in_ops, first_ns, capped, self._began, ended, self._stamps)


class Reconnecting:
    """An operation in three timed steps: take a connection, operate, give the connection back.

    A failure to connect raises ReconnectFailed from the driver's error, and a pool that replaced its
    connection ConnectionReplaced.
    """

    def __init__(self, connect: Callable[[], None], operate: Operation, close: Callable[[], None]) -> None:
        self._connect, self.operate, self.close = connect, operate, close
        self._phases = PhaseStamps()

    def connect(self) -> None:
        try:
            self._connect()
        except ConnectionReplaced:
            raise
        except Exception as error:
            raise ReconnectFailed("no connection for the next operation") from error

    def __call__(self) -> int:
        self.connect()
        rows = self.operate()
        self.close()
        return rows

    def run_slice(self, request: Slice, stamps: list[Stamps]) -> Timing:
        window = TimedWindow(request, stamps[0])
        lead_in_ops, first_ns = lead_in(self, request.lead_in_ops, window.lead_in_until_ns)
        close_ns = window.close_ns(first_ns)
        ops, rows = self._record(stamps[0], window.limit, close_ns) if first_ns < close_ns else (0, 0)
        return timing([window.chain(lead_in_ops, first_ns, ops, rows)._replace(phases=self._phases)])

    def _record(self, stamps: Stamps, limit: int, close_ns: int) -> tuple[int, int]:
        """Like the function `record`, with the times between the phases."""
        connect, operate, close, clock = self.connect, self.operate, self.close, monotonic_ns
        connected, operated = self._phases.connected, self._phases.operated
        rows = 0
        for index in range(limit):
            connect()
            connected[index] = clock()
            rows += operate()
            operated[index] = clock()
            close()
            now = clock()
            stamps[index] = now
            if now >= close_ns:
                break
        return index + 1, rows


def record(operation: Operation, stamps: Stamps, limit: int, close_ns: int) -> tuple[int, int]:
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


def lead_in(operation: Callable[[], object], least_ops: int, until_ns: int) -> tuple[int, int]:
    """Run until both minima are reached. Returns the number of operations and the time, ns."""
    ops, now = 0, monotonic_ns()
    while ops < least_ops or now < until_ns:
        operation()
        now = monotonic_ns()
        ops += 1
    return ops, now


def _differences(later: Sequence[int], earlier: Sequence[int]) -> bytes:
    """ns, little-endian uint64."""
    return little_endian(array("Q", map(sub, later, earlier)))


def little_endian(numbers: "array[int]") -> bytes:
    """The numbers in the byte order of the protocol. They may be swapped in place."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
