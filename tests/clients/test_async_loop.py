"""Slices inside either event loop: the same stretches as outside of one, and one loop for all."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator

import pytest

from pgperf.clients import async_loop, timed_loop
from pgperf.clients.async_loop import ASYNCIO, UVLOOP, EventLoop, LoopOperation
from pgperf.core.layers import LAYERS
from pgperf.core.protocol import Slice
from tests.clients.test_timed_loop import BEGAN_NS, ROOM, Clock

REQUESTS = [
    Slice(seq=1, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=250, count=0),
    Slice(seq=2, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=5),
    Slice(seq=3, start_ns=0, lead_in_ops=10, lead_in_ns=250, window_ns=300, count=0),
    Slice(seq=4, start_ns=BEGAN_NS + 5_000, lead_in_ops=0, lead_in_ns=250, window_ns=300, count=0),
    Slice(seq=5, start_ns=BEGAN_NS, lead_in_ops=5, lead_in_ns=0, window_ns=499, count=0),
    Slice(seq=6, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=ROOM + 1),
    Slice(seq=7, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=100 * ROOM + 1, count=0),
]


@pytest.fixture(params=[ASYNCIO, UVLOOP])
def event_loop(request: pytest.FixtureRequest) -> Iterator[EventLoop]:
    loop = EventLoop(request.param)
    yield loop
    loop.close()


@pytest.fixture
def alarm() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Sets a signal handler that runs once, while the loop waits."""
    before = signal.getsignal(signal.SIGALRM)

    def set_up(handler: Callable[[], None]) -> None:
        signal.signal(signal.SIGALRM, lambda *_: handler())
        signal.setitimer(signal.ITIMER_REAL, 0.01)

    yield set_up
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(params=REQUESTS, ids=lambda request: f"slice {request.seq}")
def both(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, event_loop: EventLoop
) -> list[timed_loop.Timing]:
    """The same slice of the same operation outside and inside a loop, on clocks that only
    operations move.
    """

    def measured(make: Callable[[Clock], timed_loop.Operation]) -> timed_loop.Timing:
        clock = Clock()
        monkeypatch.setattr(timed_loop, "MAX_SAMPLES", ROOM)
        for module in (timed_loop, async_loop):
            monkeypatch.setattr(module, "monotonic_ns", clock.read)
        monkeypatch.setattr(timed_loop, "sleep", clock.sleep)
        slices = timed_loop.run_slice(make(clock), request.param, timed_loop.new_stamps())
        return slices._replace(user_ns=0, sys_ns=0)

    return [
        measured(lambda clock: clock.operation),
        measured(lambda clock: LoopOperation(event_loop, [awaited(clock.operation)])),
    ]


def awaited(operation: timed_loop.Operation) -> Callable[[], Awaitable[int]]:
    async def run() -> int:
        return operation()

    return run


def test_a_slice_is_the_same_inside_a_loop(both: list[timed_loop.Timing]) -> None:
    outside, inside = both
    assert inside == outside


def test_steps_run_in_order_and_their_rows_add_up(event_loop: EventLoop) -> None:
    ran: list[int] = []

    def step(rows: int) -> Callable[[], Awaitable[int]]:
        async def run() -> int:
            await asyncio.sleep(0)
            ran.append(rows)
            return rows

        return run

    assert LoopOperation(event_loop, [step(5), step(0), step(2)])() == 7
    assert ran == [5, 0, 2]


@pytest.mark.parametrize("steps", [1, 2])
def test_rows_that_an_operation_returns_are_counted(event_loop: EventLoop, steps: int) -> None:
    async def read() -> list[str]:
        return ["one", "two"]

    operation = LoopOperation(event_loop, [read] * steps, len)
    assert operation() == 2 * steps
    request = Slice(seq=1, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=3)
    assert timed_loop.run_slice(operation, request, timed_loop.new_stamps()).rows == 6 * steps


def test_all_slices_and_single_runs_share_one_loop(event_loop: EventLoop) -> None:
    loops: set[int] = set()

    async def run() -> int:
        loops.add(id(asyncio.get_running_loop()))
        return 1

    operation = LoopOperation(event_loop, [run])
    assert operation() == 1
    for seq in (1, 2):
        assert (
            timed_loop.run_slice(
                operation,
                Slice(seq=seq, start_ns=0, lead_in_ops=2, lead_in_ns=0, window_ns=0, count=3),
                timed_loop.new_stamps(),
            ).rows
            == 3
        )
    assert len(loops) == 1


def test_an_exception_of_an_operation_ends_the_slice(event_loop: EventLoop) -> None:
    async def run() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        timed_loop.run_slice(
            LoopOperation(event_loop, [run]),
            Slice(seq=1, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=1),
            timed_loop.new_stamps(),
        )


def test_a_signal_handler_ends_an_operation_that_waits_for_ever(
    event_loop: EventLoop, alarm: Callable[[Callable[[], None]], None]
) -> None:
    """uvloop would drop an error that the handler raises."""
    alarm(lambda: event_loop.end(MemoryError("refused")))
    with pytest.raises(MemoryError, match="refused"):
        event_loop.run(asyncio.wait_for(asyncio.Event().wait(), 30))


def test_an_error_of_an_operation_is_its_own(event_loop: EventLoop) -> None:
    async def run() -> int:
        raise RuntimeError("of the operation")

    with pytest.raises(RuntimeError, match="of the operation"):
        event_loop.run(run())


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        ("asyncpg", ASYNCIO),
        ("asyncpg_uvloop", UVLOOP),
        ("psycopg_async", ASYNCIO),
        ("psycopg_async_uvloop", UVLOOP),
    ],
)
def test_the_layer_chooses_the_loop(layer: str, name: str) -> None:
    loop = EventLoop.of(layer)
    assert loop.versions()["loop"] == name
    assert type(loop._loop).__module__.partition(".")[0] == name
    assert (LAYERS[layer].event_loop or ASYNCIO) == name
    loop.close()
