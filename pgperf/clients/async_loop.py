"""Operations of asynchronous drivers, inside an event loop: asyncio's own or uvloop's.

A slice runs inside one running loop, as the requests of a server do. An operation includes its own
awaits, callbacks and the loop's polls, but not the start and stop of the loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from importlib import import_module
from time import monotonic_ns
from typing import Any, TypeVar

from pgperf.clients.open_loop import Arrivals
from pgperf.clients.timed_loop import Chain, PhaseStamps, Stamps, TimedWindow, Timing, timing
from pgperf.core.exceptions import ConnectionReplaced, ReconnectFailed
from pgperf.core.protocol import PHASES, Slice

T = TypeVar("T")
ASYNCIO, UVLOOP = "asyncio", "uvloop"

#: Does its work once and returns what `Count` takes.
AsyncOperation = Callable[[], Awaitable[Any]]
#: The number of rows in what an operation returned: `len`, or `int` if it returned the number.
Count = Callable[[Any], int]
#: Takes a connection for the next operation, or gives it back.
AsyncStep = Callable[[], Awaitable[None]]


class EventLoop:
    """The event loop of a client. `package` makes it: asyncio or uvloop."""

    def __init__(self, package: str = ASYNCIO) -> None:
        self._package = import_module(package)
        self._loop: asyncio.AbstractEventLoop = self._package.new_event_loop()
        self._error: Exception | None = None

    @classmethod
    def of(cls, layer: str) -> "EventLoop":
        """The loop that the layer's name says."""
        return cls(UVLOOP if layer.endswith(f"_{UVLOOP}") else ASYNCIO)

    def versions(self) -> dict[str, str]:
        """Which loop it is, and the version of a package that is not Python's."""
        name = self._package.__name__
        return {"loop": name, **({name: self._package.__version__} if name != ASYNCIO else {})}

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine to its end. Raises the error of `end`, if that ended the loop before."""
        try:
            return self._loop.run_until_complete(work)
        except RuntimeError:  # the loop was stopped
            if self._error:
                raise self._error from None
            raise

    def end(self, error: Exception) -> None:
        """End what runs in the loop with this error. A signal handler may call it.

        uvloop would drop an error that the handler raises.
        """
        self._error = error
        self._loop.call_soon_threadsafe(self._loop.stop)

    def timer(self) -> Any:
        """A `LoopTimer`. Only an open loop imports it: the start-up time of a client is a result."""
        return import_module("pgperf.clients.loop_timer").LoopTimer(self._loop)

    @property
    def is_running(self) -> bool:
        return self._loop.is_running()

    def close(self) -> None:
        """Close the loop; nothing can run afterwards."""
        self._loop.close()


class LoopOperation:
    """An operation inside an event loop.

    A single call starts the loop for one run. A cold phase includes that start. Rows are counted
    outside of the operation, so that it may be a driver's own coroutine: another one around it would
    take most of a microsecond.
    """

    def __init__(self, loop: EventLoop, steps: Sequence[AsyncOperation], count: Count = int) -> None:
        several = len(steps) > 1
        self._loop, self._run = loop, in_order(steps, count) if several else steps[0]
        self._count: Count = int if several else count
        self._timer: Any = None

    def __call__(self) -> int:
        return self._loop.run(self._counted())

    def run_slice(self, request: Slice, stamps: list[Stamps]) -> Timing:
        return timing([self._loop.run(self.run_chain(request, stamps[0]))])

    async def run_chain(self, request: Slice, stamps: Stamps) -> Chain:
        """One worker's part of a slice, as a task of the running loop."""
        return await run_chain(self._run, self._count, request, stamps)

    def prepare(self) -> None:
        self._timer = self._timer or self._loop.timer()

    def serve(self, arrivals: Arrivals) -> int:
        return self._loop.run(self.serve_in_loop(arrivals))

    async def serve_in_loop(self, arrivals: Arrivals) -> int:
        """Like `open_loop.serve`, as a task of the running loop."""
        run, count, clock, ended = self._run, self._count, monotonic_ns, arrivals.ended
        rows = 0
        while (number := arrivals.take()) is not None:
            await self._timer.sleep_until(arrivals.due[number])
            if arrivals.begins(number):
                rows += count(await run())
                ended[number] = clock()
        return rows

    def reconnecting(self, connect: AsyncStep, close: AsyncStep) -> "LoopReconnecting":
        """The same work over a connection for each operation."""
        return LoopReconnecting(self._loop, connect, self._counted, close)

    async def _counted(self) -> int:
        return self._count(await self._run())


class LoopReconnecting:
    """Like `timed_loop.Reconnecting`, inside an event loop."""

    def __init__(
        self, loop: EventLoop, connect: AsyncStep, operate: Callable[[], Awaitable[int]], close: AsyncStep
    ) -> None:
        self._loop, self._connect, self._operate, self._close = loop, connect, operate, close
        self._phases = PhaseStamps()
        self._timer: Any = None

    def connect(self) -> None:
        self._loop.run(self._acquire())

    def close(self) -> None:
        self._loop.run(_awaited(self._close))

    def __call__(self) -> int:
        return self._loop.run(self._run())

    def run_slice(self, request: Slice, stamps: list[Stamps]) -> Timing:
        return timing([self._loop.run(self._run_chain(request, stamps[0]))])

    def prepare(self) -> None:
        self._timer = self._timer or self._loop.timer()

    def serve(self, arrivals: Arrivals) -> int:
        return self._loop.run(self._serve(arrivals))

    async def _serve(self, arrivals: Arrivals) -> int:
        clock = monotonic_ns
        connecting, closing = arrivals.timed(PHASES)
        rows = 0
        while (number := arrivals.take()) is not None:
            await self._timer.sleep_until(arrivals.due[number])
            if not arrivals.begins(number):
                continue
            await self._acquire()
            connecting[number] = clock() - arrivals.began[number]
            rows += await self._operate()
            operated = clock()
            await self._close()
            arrivals.ended[number] = now = clock()
            closing[number] = now - operated
        return rows

    async def _acquire(self) -> None:
        try:
            await self._connect()
        except ConnectionReplaced:
            raise
        except Exception as error:
            raise ReconnectFailed("no connection for the next operation") from error

    async def _run(self) -> int:
        await self._acquire()
        rows = await self._operate()
        await self._close()
        return rows

    async def _run_chain(self, request: Slice, stamps: Stamps) -> Chain:
        window = TimedWindow(request, stamps)
        lead_in_ops, first_ns = await _lead_in(self._run, request.lead_in_ops, window.lead_in_until_ns)
        close_ns = window.close_ns(first_ns)
        ops, rows = await self._record(stamps, window.limit, close_ns) if first_ns < close_ns else (0, 0)
        return window.chain(lead_in_ops, first_ns, ops, rows)._replace(phases=self._phases)

    async def _record(self, stamps: Stamps, limit: int, close_ns: int) -> tuple[int, int]:
        connect, operate, close, clock = self._acquire, self._operate, self._close, monotonic_ns
        connected, operated = self._phases.connected, self._phases.operated
        rows = 0
        for index in range(limit):
            await connect()
            connected[index] = clock()
            rows += await operate()
            operated[index] = clock()
            await close()
            now = clock()
            stamps[index] = now
            if now >= close_ns:
                break
        return index + 1, rows


def in_order(steps: Sequence[AsyncOperation], count: Count) -> AsyncOperation:
    """One operation that runs all steps in order, and returns the number of their rows."""

    async def run() -> int:
        rows = 0
        for step in steps:
            rows += count(await step())
        return rows

    return run


async def run_chain(operation: AsyncOperation, count: Count, request: Slice, stamps: Stamps) -> Chain:
    """Like `timed_loop.run_chain`, inside the running loop."""
    window = TimedWindow(request, stamps)
    lead_in_ops, first_ns = await _lead_in(operation, request.lead_in_ops, window.lead_in_until_ns)
    close_ns = window.close_ns(first_ns)
    ops, rows = (
        await record(operation, count, stamps, window.limit, close_ns) if first_ns < close_ns else (0, 0)
    )
    return window.chain(lead_in_ops, first_ns, ops, rows)


async def record(
    operation: AsyncOperation, count: Count, stamps: Stamps, limit: int, close_ns: int
) -> tuple[int, int]:
    """Like `timed_loop.record`, inside the running loop."""
    clock = monotonic_ns
    rows = 0
    for index in range(limit):
        rows += count(await operation())
        now = clock()
        stamps[index] = now
        if now >= close_ns:
            break
    return index + 1, rows


async def _lead_in(operation: AsyncOperation, least_ops: int, until_ns: int) -> tuple[int, int]:
    ops, now = 0, monotonic_ns()
    while ops < least_ops or now < until_ns:
        await operation()
        now = monotonic_ns()
        ops += 1
    return ops, now


async def _awaited(step: AsyncStep) -> None:
    await step()
