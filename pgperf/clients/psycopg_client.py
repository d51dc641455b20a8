"""The psycopg 3 layer: a fresh cursor for every operation, bound on the client or prepared on the server."""

from typing import Any, BinaryIO

import psycopg

from pgperf import wire
from pgperf.clients import psycopg_driver as driver
from pgperf.clients.loop import login, main, statements
from pgperf.clients.timing import Operation, in_order


class PsycopgClient:
    """One connection in autocommit. Mode simple: ClientCursor; mode prepared: Cursor with prepare=True."""

    def __init__(self, replies: BinaryIO) -> None:
        self._connection: Any = None

    def load(self, spec: wire.Spec) -> None:
        pass

    def connect(self, spec: wire.Spec) -> None:
        factory = psycopg.ClientCursor if spec.mode == "simple" else psycopg.Cursor
        self._connection = psycopg.connect(**login(spec), autocommit=True, cursor_factory=factory)

    def operation(self, spec: wire.Spec, other: bool = False) -> Operation:
        return in_order([self._run(spec.mode, *each) for each in statements(spec, other)])

    def _run(self, mode: str, sql: str, args: list[Any] | None) -> Operation:
        prepare = True if mode == "prepared" else None
        cursor, no_rows = self._connection.cursor, psycopg.ProgrammingError

        def run() -> int:
            with cursor() as opened:
                opened.execute(sql, args, prepare=prepare)
                try:
                    return len(opened.fetchall())
                except no_rows:  # a command, which has none to fetch
                    return 0

        return run

    def query(self, sql: str) -> list[list[str | None]]:
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
    main(PsycopgClient)
