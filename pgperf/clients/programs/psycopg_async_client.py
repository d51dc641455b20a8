"""The asynchronous psycopg 3 layer: a new cursor for every statement, inside one running event
loop.
"""

from copy import copy
from typing import Any, BinaryIO

import psycopg

from pgperf.clients import psycopg_driver as driver
from pgperf.clients.async_loop import AsyncOperation, EventLoop, LoopOperation
from pgperf.clients.loop import login, main, statements
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol


class PsycopgAsyncClient:
    """One connection in autocommit.

    Mode simple: AsyncClientCursor; extended, prepared: AsyncCursor.
    """

    def __init__(self, replies: BinaryIO) -> None:
        self._connection: Any = None

    def load(self, spec: protocol.Spec) -> None:
        self.event_loop = EventLoop()

    def connect(self, spec: protocol.Spec) -> None:
        factory = psycopg.AsyncClientCursor if spec.mode == "simple" else psycopg.AsyncCursor
        connect = psycopg.AsyncConnection.connect
        self._connection = self.event_loop.run(
            connect(**login(spec, driver.libpq_version()), autocommit=True, cursor_factory=factory)
        )

    def another(self) -> "PsycopgAsyncClient":
        """One with a connection of its own, for another worker."""
        return copy(self)

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        return LoopOperation(
            self.event_loop, [self._run(spec.mode, *each) for each in statements(spec, other)]
        )

    def _run(self, mode: str, sql: str, args: list[Any] | None) -> AsyncOperation:
        prepare = mode == "prepared"
        cursor, no_rows = self._connection.cursor, psycopg.ProgrammingError

        async def run() -> int:
            async with cursor() as opened:
                await opened.execute(sql, args, prepare=prepare)
                try:
                    return len(await opened.fetchall())
                except no_rows:  # a command, which has no rows to fetch
                    return 0

        return run

    def query(self, sql: str) -> protocol.Rows:
        return self.event_loop.run(self._text_rows(sql))

    async def _text_rows(self, sql: str) -> protocol.Rows:
        async with psycopg.AsyncClientCursor(self._connection) as cursor:
            return driver.as_text((await cursor.execute(sql)).pgresult)

    def versions(self) -> dict[str, str]:
        return {**driver.versions(), "loop": "asyncio"}

    @property
    def backend_pid(self) -> int:
        return self._connection.info.backend_pid

    @property
    def server_version(self) -> str:
        return self._connection.info.parameter_status("server_version")

    def close(self) -> None:
        self.event_loop.run(self._connection.close())


if __name__ == "__main__":
    main(PsycopgAsyncClient)
