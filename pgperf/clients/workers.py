"""Workers: the threads or tasks of one client process, each with a connection and an operation of
its own.

`Threads` is for synchronous clients, `Tasks` for those with an event loop. Both are clients
themselves: the conversation of `pgperf.clients.loop` asks them as it asks a client with one
connection. All but slices goes to worker 0.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Protocol, TypeVar

from pgperf.clients import open_loop
from pgperf.clients.async_loop import EventLoop
from pgperf.clients.loop import Client, describe
from pgperf.clients.timed_loop import Chain, Operation, Stamps, Timing, run_chain, timing
from pgperf.core import protocol
from pgperf.core.exceptions import LayerUnavailable

T = TypeVar("T")


class Copied(Protocol):
    """A client that can have workers."""

    def another(self) -> Client:
        """A client with the same loaded modules and a connection of its own, not yet connected.

        It is called in the thread that will use the connection.
        """


def of(client: Client, spec: protocol.Spec) -> "Workers":
    """The workers of a loaded client.

    Raises LayerUnavailable if it cannot have several.
    """
    if not hasattr(client, "another"):
        raise LayerUnavailable("workers: this client has one worker")
    kind = Tasks if isinstance(getattr(client, "event_loop", None), EventLoop) else Threads
    return kind(client, spec)


class Workers:
    """Several clients of one process."""

    def __init__(self, client: Any, spec: protocol.Spec) -> None:
        self._original = client
        #: Each error, with the worker that had it; in the order of time.
        self._errors: list[tuple[BaseException, int]] = []
        self._specs = [
            spec._replace(application_name=protocol.connection_name(spec.application_name, at))
            for at in range(spec.workers)
        ]
        self._clients: list[Any] = []
        self._operations: list[Operation] = []
        self._busy = False

    def connect(self, spec: protocol.Spec) -> None:
        """Connect worker 0."""
        self._connect(0)

    def connect_others(self) -> None:
        """Connect all but worker 0, one after the other."""
        for at in range(1, len(self._specs)):
            self._connect(at)

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        """An operation that worker 0 runs when it is called, and all workers run in a slice.

        `other` is worker 0's alone.
        """
        if other:
            first = self._at(0, self._clients[0].operation, self._specs[0], True)
            return lambda: self._at(0, first)
        pairs = list(zip(self._clients, self._specs, strict=True))
        self._operations = [self._at(at, each.operation, own) for at, (each, own) in enumerate(pairs)]
        return self

    def run_others(self) -> None:
        """Run the operation of all but worker 0 once, to check that it works there too."""
        for at in range(1, len(self._operations)):
            self._at(at, self._operations[at])

    def __call__(self) -> int:
        return self._at(0, self._operations[0])

    def run_slice(self, request: protocol.Slice, stamps: Sequence[Stamps]) -> Timing:
        """One slice on all workers at the same time. The error of one ends it for all."""
        self._busy = True
        chains = self._together(request, stamps)
        self._busy = False
        return timing(chains)

    def prepare(self) -> None:
        """Before a slice by a schedule."""
        for operation in self._operations:
            if isinstance(operation, open_loop.ServesArrivals):
                operation.prepare()

    def serve(self, arrivals: open_loop.Arrivals) -> int:
        """Run the arrivals of an open loop: each goes to the first worker that is free."""
        self._busy = True
        rows = sum(self._sharing(arrivals))
        self._busy = False
        return rows

    def end_transaction(self) -> None:
        """Commit on every connection."""
        for at, client in enumerate(self._clients):
            if hasattr(client, "end_transaction"):
                self._at(at, client.end_transaction)

    def query(self, sql: str) -> protocol.Rows:
        return self._at(0, self._clients[0].query, sql)

    def versions(self) -> dict[str, str]:
        return self._at(0, self._clients[0].versions)

    def describe(self, error: Exception) -> str:
        """The message of an error, in the words of the worker that had it."""
        at = next((at for own, at in self._errors if own is error), len(self._clients))
        client = self._clients[at] if at < len(self._clients) else self._original
        return str(getattr(client, "describe", describe)(error))

    @property
    def backend_pid(self) -> int:
        return self._at(0, lambda: self._clients[0].backend_pid)

    @property
    def server_version(self) -> str:
        return self._at(0, lambda: self._clients[0].server_version)

    def close(self) -> None:
        """Close all connections that no worker uses; the end of the process closes the others."""
        if not self._busy:
            for at, client in enumerate(self._clients):
                self._at(at, client.close)

    def _connect(self, at: int) -> None:
        self._clients.append(self._at(at, self._original.another))
        self._at(at, self._clients[at].connect, self._specs[at])

    def _at(self, at: int, step: Callable[..., T], *given: Any) -> T:
        """Run a step of a worker. An error in it is that worker's."""
        try:
            return self._there(at, step, *given)
        except BaseException as error:
            self._errors.append((error, at))
            raise

    def _there(self, at: int, step: Callable[..., T], *given: Any) -> T:
        """Run a step of a worker where its connection belongs."""
        raise NotImplementedError

    def _together(self, request: protocol.Slice, stamps: Sequence[Stamps]) -> list[Chain]:
        """Run a slice of all workers; returns in the order of the workers when all have ended, or
        raises the first error at once.
        """
        raise NotImplementedError

    def _sharing(self, arrivals: open_loop.Arrivals) -> list[int]:
        """The same for arrivals that all workers share; returns the rows of each."""
        raise NotImplementedError


class Threads(Workers):
    """Each worker has a thread for as long as the client lives: Django's connections need that."""

    def __init__(self, client: Any, spec: protocol.Spec) -> None:
        super().__init__(client, spec)
        self._threads = [ThreadPoolExecutor(1) for _ in self._specs]

    def close(self) -> None:
        super().close()
        for thread in self._threads:
            thread.shutdown(wait=False)

    def _there(self, at: int, step: Callable[..., T], *given: Any) -> T:
        return self._threads[at].submit(step, *given).result()

    def _together(self, request: protocol.Slice, stamps: Sequence[Stamps]) -> list[Chain]:
        work = zip(self._operations, stamps, strict=True)
        return self._ended([partial(run_chain, run, request, own) for run, own in work])

    def _sharing(self, arrivals: open_loop.Arrivals) -> list[int]:
        return self._ended([partial(open_loop.serve, run, arrivals) for run in self._operations])

    def _ended(self, parts: Sequence[Callable[[], T]]) -> list[T]:
        """Run a part in each thread; the results of all, or the first error. This thread may be woken
        late, when others have failed too.
        """
        earlier = len(self._errors)
        running = [
            thread.submit(self._part, at, part)
            for at, (thread, part) in enumerate(zip(self._threads, parts, strict=True))
        ]
        wait(running, return_when=FIRST_EXCEPTION)
        if failed := self._errors[earlier:]:
            raise failed[0][0]
        return [each.result() for each in running]

    def _part(self, at: int, part: Callable[[], T]) -> T:
        try:
            return part()
        except BaseException as error:
            self._errors.append((error, at))
            raise


class Tasks(Workers):
    """All workers are tasks of the client's event loop."""

    def _there(self, at: int, step: Callable[..., T], *given: Any) -> T:
        return step(*given)

    def _together(self, request: protocol.Slice, stamps: Sequence[Stamps]) -> list[Chain]:
        work = zip(self._loop_operations, stamps, strict=True)
        return self._run([run.run_chain(request, own) for run, own in work])

    def _sharing(self, arrivals: open_loop.Arrivals) -> list[int]:
        return self._run([run.serve_in_loop(arrivals) for run in self._loop_operations])

    @property
    def _loop_operations(self) -> list[Any]:
        return self._operations

    def _run(self, parts: Sequence[Awaitable[T]]) -> list[T]:
        return self._original.event_loop.run(self._gathered(parts))

    async def _gathered(self, parts: Sequence[Awaitable[T]]) -> list[T]:
        return await asyncio.gather(*(self._guarded(at, part) for at, part in enumerate(parts)))

    async def _guarded(self, at: int, part: Awaitable[T]) -> T:
        try:
            return await part
        except BaseException as error:
            self._errors.append((error, at))
            raise
