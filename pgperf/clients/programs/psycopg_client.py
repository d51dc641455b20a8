"""The psycopg 3 layers: a new cursor for every statement, bound on the client or on the server.

The layer `psycopg` runs on the implementation that psycopg itself selects (C, then the binary one,
then Python). The other layers select theirs. psycopg reads the choice from the environment when it
is imported, so this process sets it in its own environment.
"""

import os
from collections.abc import Callable
from copy import copy
from importlib import import_module
from typing import Any, BinaryIO

from pgperf.clients import kept_connection
from pgperf.clients.loop import login, main, statements
from pgperf.clients.timed_loop import Operation, Reconnecting, in_order
from pgperf.core import protocol

_IMPLEMENTATIONS = {"psycopg_c": "c", "psycopg_binary": "binary", "psycopg_python": "python"}


class PsycopgClient:
    """One connection, in autocommit unless the spec asks for the driver's default.

    Mode simple uses ClientCursor, extended Cursor, and prepared Cursor with `prepare=True`.
    Connection mode pool takes it from a pool of one.
    """

    connection_modes = ("persistent", "per_operation", "pool")

    def __init__(self, replies: BinaryIO) -> None:
        self._connection: Any = None
        self._pool: Any = None
        self._kept: Any = None  # the pool's one connection

    def load(self, spec: protocol.Spec) -> None:
        if spec.layer in _IMPLEMENTATIONS:
            os.environ["PSYCOPG_IMPL"] = _IMPLEMENTATIONS[spec.layer]
        self._psycopg = import_module("psycopg")
        if spec.connection_mode == "pool":
            self._psycopg_pool = import_module("psycopg_pool")
        self._driver = import_module("pgperf.clients.psycopg_driver")

    def connect(self, spec: protocol.Spec) -> None:
        factory = self._psycopg.ClientCursor if spec.mode == "simple" else self._psycopg.Cursor
        self._keywords = {
            **login(spec, self._driver.libpq_version()),
            "autocommit": spec.transaction == "autocommit",
            "cursor_factory": factory,
            "row_factory": self._driver.row_factory(spec),
        }
        if spec.connection_mode == "pool":
            self._pool = self._psycopg_pool.ConnectionPool(
                kwargs=self._keywords, open=True, **self._driver.pool_of_one(spec)
            )
        self._open()

    def _open(self) -> None:
        if not self._pool:
            self._connection = self._psycopg.connect(**self._keywords)
            return
        self._connection = self._pool.getconn()
        self._kept = kept_connection.checked(self._kept, self._connection)

    def _release(self) -> None:
        if self._pool:
            self._pool.putconn(self._connection)
        else:
            self._connection.close()

    def reconnecting(self, operation: Operation) -> Reconnecting:
        return Reconnecting(self._open, operation, self._release)

    def another(self) -> "PsycopgClient":
        """One with a connection of its own, for another worker."""
        return copy(self)

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        if spec.bulk.kind and not other:
            return import_module("pgperf.clients.psycopg_bulk").insert(self._connection, spec)
        keeps = spec.connection_mode == "persistent"
        cursor = self._connection.cursor if keeps else lambda: self._connection.cursor()
        return in_order([self._run(cursor, spec.mode, *each) for each in statements(spec, other)])

    def _run(self, cursor: Callable[[], Any], mode: str, sql: str, args: list[Any] | None) -> Operation:
        prepare, no_rows = mode == "prepared", self._psycopg.ProgrammingError

        def run() -> int:
            with cursor() as opened:
                opened.execute(sql, args, prepare=prepare)
                try:
                    return len(opened.fetchall())
                except no_rows:  # a command, which has no rows to fetch
                    return 0

        return run

    def end_transaction(self) -> None:
        self._connection.commit()

    def query(self, sql: str) -> protocol.Rows:
        return self._driver.text_rows(self._connection, sql)

    def versions(self) -> dict[str, str]:
        return self._driver.versions()

    @property
    def backend_pid(self) -> int:
        return self._connection.info.backend_pid

    @property
    def server_version(self) -> str:
        return self._connection.info.parameter_status("server_version")

    def close(self) -> None:
        if self._pool:
            self._pool.close()
        elif self._connection:
            self._connection.close()


if __name__ == "__main__":
    main(PsycopgClient)
