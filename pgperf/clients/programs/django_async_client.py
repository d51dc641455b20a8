"""The layer django_orm_async: Django's ORM as an asynchronous view calls it (aget, async for).

Django runs the queries of its asynchronous methods in one thread (sync_to_async, thread-sensitive).
So all tasks of this process share one thread and its one connection, and do not overlap.
"""

from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections
from django.db.models import QuerySet

from pgperf import registry
from pgperf.clients.async_loop import AsyncOperation, EventLoop, LoopOperation
from pgperf.clients.loop import main
from pgperf.clients.programs.django_client import DjangoClient
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol
from pgperf.core.exceptions import InvalidDefinition

LAYER = "django_orm_async"
T = TypeVar("T")


class DjangoAsyncClient(DjangoClient):
    """Django's connection in the thread of sync_to_async, kept open."""

    connection_modes = ("persistent",)

    def __init__(self, replies: BinaryIO) -> None:
        super().__init__(replies)
        self.event_loop = EventLoop()

    def load(self, spec: protocol.Spec) -> None:
        super().load(spec)
        if not spec.site:
            import_module("pgperf.catalog.orm")

    def connect(self, spec: protocol.Spec) -> None:
        self._inside(self._open, spec)

    def _open(self, spec: protocol.Spec) -> None:
        """Connect, unless another worker has: they share the connection of this thread."""
        self._connection = connections[self._connection.alias]
        if self._connection.connection is None:
            super().connect(spec)

    def another(self) -> "DjangoAsyncClient":
        """One for another worker, which is another task."""
        return copy(self)

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        if spec.layer != LAYER:
            raise InvalidDefinition(f"layer: this client runs {LAYER}, not {spec.layer!r}")
        read = self._site.async_callable_of(spec) if self._site and not other else of_registry(spec, other)
        return LoopOperation(self.event_loop, [counted(read)])

    def trace(self, operation: Operation) -> list[protocol.Statement]:
        raise InvalidDefinition("trace: the statements of a workload are recorded with django_orm")

    def query(self, sql: str) -> protocol.Rows:
        return self._inside(super().query, sql)

    def close(self) -> None:
        self._inside(super().close)

    def _inside(self, step: Callable[..., T], *given: Any) -> T:
        """Run a step in the thread that has the connection."""
        return self.event_loop.run(sync_to_async(step)(*given))


def of_registry(spec: protocol.Spec, other: bool) -> Callable[[], Awaitable[Any]]:
    """The registered asynchronous callable with the workload's arguments."""
    name, args = (spec.other_orm, spec.other_orm_args) if other else (spec.orm, spec.orm_args)
    return partial(registry.get_async(name), *args)


def counted(read: Callable[[], Awaitable[Any]]) -> AsyncOperation:
    """An operation that returns the number of rows that `read` returned."""

    async def run() -> int:
        result = await read()
        if isinstance(result, QuerySet):
            return len([each async for each in result])
        if isinstance(result, list):
            return len(result)
        return 0 if result is None else 1

    return run


if __name__ == "__main__":
    main(DjangoAsyncClient)
