"""The layers asyncpg and asyncpg_uvloop, inside one running event loop. asyncpg binds on the server,
so it has no mode simple.

Mode extended turns asyncpg's statement cache off (`statement_cache_size=0`). asyncpg then describes
each statement in a separate round trip before it runs it. Mode prepared keeps one prepared
statement.
"""

import gc
import os
import signal
import ssl
import sys
from copy import copy
from functools import partial
from typing import Any, BinaryIO

import asyncpg

from pgperf.clients import kept_connection, memory_limit
from pgperf.clients.async_loop import AsyncOperation, EventLoop, LoopOperation, LoopReconnecting
from pgperf.clients.bulk_rows import records
from pgperf.clients.loop import describe, given, login, main
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol, server_certificate
from pgperf.core.exceptions import LayerUnavailable

_CLOSE_S = 2.0
#: How often it looks for a refused allocation. A look takes a few microseconds.
_LOOK_S = 0.5
_CACHE_SIZE = 100  # asyncpg's default; without a cache, its prepared statements have no name either
_WRONG_TYPE = (
    "args: asyncpg takes a value only if it has the type that the server expects; cast the placeholder in the SQL,"
    " for example %s::int, or leave this layer out"
)


class AsyncpgClient:
    """One connection. Each statement commits by itself, outside of a transaction.

    Connection mode pool takes it from asyncpg's own pool of one, which resets the session each time
    that it gets the connection back.
    """

    connection_modes = ("persistent", "per_operation", "pool")

    def __init__(self, replies: BinaryIO) -> None:
        self._connection: Any = None
        self._looked_at: list[Any] = []  # the clients of all workers
        self._pool: Any = None
        self._kept: Any = None  # the pool's one connection

    def load(self, spec: protocol.Spec) -> None:
        if spec.mode == "simple":
            raise LayerUnavailable(
                "mode: asyncpg reads rows through the extended protocol only; choose extended or prepared"
            )
        self.event_loop = EventLoop.of(spec.layer)

    def connect(self, spec: protocol.Spec) -> None:
        self._keywords = keywords(spec)
        if spec.connection_mode == "pool":
            self._pool = self.event_loop.run(self._open_pool())
        self.event_loop.run(self._open())
        if spec.memory_bytes:
            self._look_for_refusals()

    def another(self) -> "AsyncpgClient":
        """One with a connection of its own, for another worker."""
        return copy(self)

    def _look_for_refusals(self) -> None:
        """End an operation that would wait for ever because asyncpg was refused memory.

        asyncpg keeps the MemoryError until the server is ready for a query, but it has lost its
        place in the server's messages. A timer of the loop would add to each operation's time.
        """
        self._looked_at.append(self)
        looked_at, loop = self._looked_at, self.event_loop

        def look(*_: object) -> None:
            held = gc.get_referents(*(each._own._protocol for each in looked_at if each._own))
            if loop.is_running and any(isinstance(each, MemoryError) for each in held):
                memory_limit.lift()
                loop.end(MemoryError())

        signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, _LOOK_S, _LOOK_S)

    @property
    def _own(self) -> Any:
        """The connection itself: a pool lends a proxy of it, of None once it was given back."""
        return getattr(self._connection, "_con", self._connection)

    async def _open_pool(self) -> Any:
        """One connection for a whole block, not replaced after many queries or idle time."""
        return await asyncpg.create_pool(
            min_size=1,
            max_size=1,
            max_queries=sys.maxsize,
            max_inactive_connection_lifetime=0,
            **self._keywords,
        )

    async def _open(self) -> None:
        if self._pool:
            self._connection = await self._pool.acquire(timeout=self._keywords["timeout"])
            self._kept = kept_connection.checked(self._kept, self._own)
        else:
            self._connection = await asyncpg.connect(**self._keywords)

    async def _release(self) -> None:
        if self._pool:
            await self._pool.release(self._connection)
        else:
            await self._connection.close(timeout=_CLOSE_S)

    def reconnecting(self, operation: Operation) -> LoopReconnecting:
        assert isinstance(operation, LoopOperation)
        return operation.reconnecting(self._open, self._release)

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        if spec.bulk.kind and not other:
            return LoopOperation(self.event_loop, [self._insert(spec)], len)
        kind = self._prepared if spec.mode == "prepared" else self._extended
        kind = kind if spec.connection_mode == "persistent" else self._on_current
        return LoopOperation(self.event_loop, [kind(*numbered(each)) for each in given(spec, other)], len)

    def _extended(self, sql: str, args: list[Any]) -> AsyncOperation:
        return partial(self._connection.fetch, sql, *args)

    def _prepared(self, sql: str, args: list[Any]) -> AsyncOperation:
        prepare, fetch = self._connection.prepare, None

        async def first() -> Any:
            nonlocal fetch
            fetch = (await prepare(sql)).fetch
            return await fetch(*args)

        return lambda: fetch(*args) if fetch else first()

    def _on_current(self, sql: str, args: list[Any]) -> AsyncOperation:
        """On the connection that is open now. asyncpg prepares the statement if its cache is on."""

        return lambda: self._connection.fetch(sql, *args)

    def _insert(self, spec: protocol.Spec) -> AsyncOperation:
        """COPY of binary rows, or executemany: asyncpg's calls for many rows."""
        bulk, rows, sql = spec.bulk, records(spec), spec.statements[0].numbered
        schema, _, table = bulk.table.partition(".")
        connection = self._connection

        async def copy() -> Any:
            await connection.copy_records_to_table(
                table, schema_name=schema, columns=bulk.columns, records=rows
            )
            return rows

        async def batch() -> Any:
            await connection.executemany(sql, rows)
            return rows

        return copy if bulk.kind == "copy" else batch

    def query(self, sql: str) -> protocol.Rows:
        rows = self.event_loop.run(self._connection.fetch(sql))
        if not all(isinstance(value, str | None) for row in rows for value in row):
            raise LayerUnavailable("asyncpg returns no values as text; cast them to text in the SQL")
        return protocol.Rows([list(row) for row in rows], list(rows[0].keys()) if rows else [])

    def describe(self, error: Exception) -> str:
        """The error message without the detail, and without the values that asyncpg could not send."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"the server's certificate is not accepted: {error.verify_message}"
        if self._pool and isinstance(error, TimeoutError):
            return "asyncpg's pool gave no connection in time"
        if isinstance(error, OSError):
            return f"connection failed: {os.strerror(error.errno) if error.errno else error or 'no answer in time'}"
        if isinstance(error, asyncpg.PostgresError) and error.message:
            return str(error.message)
        if self._own is not None and self._own.is_closed():
            return "the connection was closed in the middle of an operation"
        return _WRONG_TYPE if isinstance(error, asyncpg.DataError) else describe(error)

    def versions(self) -> dict[str, str]:
        return {"driver": "asyncpg", "driver_version": asyncpg.__version__, **self.event_loop.versions()}

    @property
    def backend_pid(self) -> int:
        return int(self._connection.get_server_pid())

    @property
    def server_version(self) -> str:
        return str(self._connection.get_settings().server_version)

    def close(self) -> None:
        if self._pool:
            self._pool.terminate()
        elif self._connection:
            self.event_loop.run(self._connection.close(timeout=_CLOSE_S))


def keywords(spec: protocol.Spec) -> dict[str, Any]:
    """The connection keywords that asyncpg takes."""
    libpq = login(spec, 0)  # asyncpg has no keyword against a password in clear text
    options = {"options": libpq["options"]} if libpq.get("options") else {}
    return {
        **{key: libpq[key] for key in ("port", "user", "password", "passfile")},
        "host": spec.host,
        "database": libpq["dbname"],
        "ssl": encryption(spec),
        "timeout": libpq["connect_timeout"],
        "statement_cache_size": 0 if spec.mode == "extended" else _CACHE_SIZE,
        "server_settings": {
            "application_name": libpq["application_name"], "TimeZone": "UTC", **options,
        },
    }  # fmt: skip


def encryption(spec: protocol.Spec) -> str | ssl.SSLContext:
    """asyncpg's `ssl` argument for libpq's sslmode.

    With the route's own authorities, or a name that is not the address's, asyncpg takes a context. It
    reads libpq's default files by itself, if there is none.
    """
    if not (spec.sslrootcert or spec.certificate_name):
        return spec.sslmode
    context = server_certificate.context(spec.sslmode, spec.sslrootcert, spec.certificate_name)
    context.check_hostname = spec.sslmode == "verify-full"
    return context


def numbered(statement: protocol.Statement) -> tuple[str, list[Any]]:
    """The text and arguments for asyncpg. Without arguments, the text is unchanged."""
    if statement.args is None:
        return statement.literal, []
    return statement.numbered, statement.args


if __name__ == "__main__":
    main(AsyncpgClient)
