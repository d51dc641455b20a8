"""The psycopg2 layer: a new cursor for every operation, arguments bound on the client."""

from collections.abc import Callable
from copy import copy
from importlib import import_module
from typing import Any, BinaryIO

import psycopg2

from pgperf.clients import psycopg2_driver as driver
from pgperf.clients.loop import login, main, statements
from pgperf.clients.timed_loop import Operation, Reconnecting, in_order
from pgperf.core import protocol
from pgperf.core.exceptions import LayerUnavailable


class Psycopg2Client:
    """One connection, in autocommit unless the spec asks for the driver's default."""

    connection_modes = ("persistent", "per_operation")

    def __init__(self, replies: BinaryIO) -> None:
        self._connection: Any = None

    def load(self, spec: protocol.Spec) -> None:
        if spec.mode != "simple":
            raise LayerUnavailable("mode: psycopg2 always binds on the client; choose simple")
        named = spec.row_type == "named"
        self._rows = {"cursor_factory": import_module("psycopg2.extras").DictCursor} if named else {}

    def connect(self, spec: protocol.Spec) -> None:
        self._keywords = {**login(spec, driver.libpq_version()), **self._rows}
        self._autocommit = spec.transaction == "autocommit"
        self._open()

    def _open(self) -> None:
        self._connection = psycopg2.connect(**self._keywords)
        self._connection.autocommit = self._autocommit

    def another(self) -> "Psycopg2Client":
        """One with a connection of its own, for another worker."""
        return copy(self)

    def reconnecting(self, operation: Operation) -> Reconnecting:
        return Reconnecting(self._open, operation, self.close)

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        if spec.bulk.kind and not other:
            return import_module("pgperf.clients.psycopg2_bulk").insert(self._connection, spec)
        keeps = spec.connection_mode == "persistent"
        cursor = self._connection.cursor if keeps else lambda: self._connection.cursor()
        return in_order([self._run(cursor, *each) for each in statements(spec, other)])

    def _run(self, cursor: Callable[[], Any], sql: str, args: list[Any] | None) -> Operation:
        no_rows = psycopg2.ProgrammingError

        def run() -> int:
            with cursor() as opened:
                opened.execute(sql, args)
                try:
                    return len(opened.fetchall())
                except no_rows:  # a command, which has no rows to fetch
                    return 0

        return run

    def end_transaction(self) -> None:
        self._connection.commit()

    def query(self, sql: str) -> protocol.Rows:
        return driver.text_rows(self._connection, sql)

    def versions(self) -> dict[str, str]:
        return driver.versions()

    @property
    def backend_pid(self) -> int:
        return self._connection.info.backend_pid

    @property
    def server_version(self) -> str:
        return self._connection.info.parameter_status("server_version")

    def close(self) -> None:
        self._connection.close()


if __name__ == "__main__":
    main(Psycopg2Client)
