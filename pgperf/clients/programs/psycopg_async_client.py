"""The layers psycopg_async and psycopg_async_uvloop: a new cursor for every statement, inside one
running event loop.
"""

from collections.abc import Callable
from copy import copy
from importlib import import_module
from typing import Any, BinaryIO

import psycopg

from pgperf.clients import kept_connection
from pgperf.clients import psycopg_driver as driver
from pgperf.clients.async_loop import AsyncOperation, EventLoop, LoopOperation, LoopReconnecting
from pgperf.clients.loop import login, main, statements
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol


class PsycopgAsyncClient:
    """One connection, in autocommit unless the spec asks for the driver's default.

    Mode simple: AsyncClientCursor; extended, prepared: AsyncCursor. Connection mode pool takes the
    connection from a pool of one.
    """

    connection_modes = ("persistent", "per_operation", "pool")

    def __init__(self, replies: BinaryIO) -> None:
        self._connection: Any = None
        self._pool: Any = None
        self._kept: Any = None  # the pool's one connection

    def load(self, spec: protocol.Spec) -> None:
        self.event_loop = EventLoop.of(spec.layer)
        if spec.connection_mode == "pool":
            self._psycopg_pool = import_module("psycopg_pool")

    def connect(self, spec: protocol.Spec) -> None:
        factory = psycopg.AsyncClientCursor if spec.mode == "simple" else psycopg.AsyncCursor
        self._keywords = {
            **login(spec, driver.libpq_version()),
            "autocommit": spec.transaction == "autocommit",
            "cursor_factory": factory,
            "row_factory": driver.row_factory(spec),
        }
        if spec.connection_mode == "pool":
            self._pool = self.event_loop.run(self._open_pool(spec))
        self.event_loop.run(self._open())

    async def _open_pool(self, spec: protocol.Spec) -> Any:
        pool = self._psycopg_pool.AsyncConnectionPool(
            kwargs=self._keywords, open=False, **driver.pool_of_one(spec)
        )
        await pool.open()
        return pool

    async def _open(self) -> None:
        if not self._pool:
            self._connection = await psycopg.AsyncConnection.connect(**self._keywords)
            return
        self._connection = await self._pool.getconn()
        self._kept = kept_connection.checked(self._kept, self._connection)

    async def _release(self) -> None:
        if self._pool:
            await self._pool.putconn(self._connection)
        else:
            await self._connection.close()

    def reconnecting(self, operation: Operation) -> LoopReconnecting:
        assert isinstance(operation, LoopOperation)
        return operation.reconnecting(self._open, self._release)

    def another(self) -> "PsycopgAsyncClient":
        """One with a connection of its own, for another worker."""
        return copy(self)

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        if spec.bulk.kind and not other:
            bulk = import_module("pgperf.clients.psycopg_bulk")
            return LoopOperation(self.event_loop, [bulk.insert_async(self._connection, spec)])
        keeps = spec.connection_mode == "persistent"
        cursor = self._connection.cursor if keeps else lambda: self._connection.cursor()
        steps = [self._run(cursor, spec.mode, *each) for each in statements(spec, other)]
        return LoopOperation(self.event_loop, steps)

    def _run(self, cursor: Callable[[], Any], mode: str, sql: str, args: list[Any] | None) -> AsyncOperation:
        prepare, no_rows = mode == "prepared", psycopg.ProgrammingError

        async def run() -> int:
            async with cursor() as opened:
                await opened.execute(sql, args, prepare=prepare)
                try:
                    return len(await opened.fetchall())
                except no_rows:  # a command, which has no rows to fetch
                    return 0

        return run

    def end_transaction(self) -> None:
        self.event_loop.run(self._connection.commit())

    def query(self, sql: str) -> protocol.Rows:
        return self.event_loop.run(self._text_rows(sql))

    async def _text_rows(self, sql: str) -> protocol.Rows:
        async with psycopg.AsyncClientCursor(self._connection) as cursor:
            return driver.as_text((await cursor.execute(sql)).pgresult)

    def versions(self) -> dict[str, str]:
        return {**driver.versions(), **self.event_loop.versions()}

    @property
    def backend_pid(self) -> int:
        return self._connection.info.backend_pid

    @property
    def server_version(self) -> str:
        return self._connection.info.parameter_status("server_version")

    def close(self) -> None:
        if self._pool:
            self.event_loop.run(self._pool.close())
        elif self._connection:
            self.event_loop.run(self._connection.close())


if __name__ == "__main__":
    main(PsycopgAsyncClient)
