"""PgBouncer's console: the totals of its statistics, and the state of its pools."""

from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from pgperf.core import protocol
from pgperf.core.answers import TEXT, WHOLE, Column, named
from pgperf.core.records import Route
from pgperf.runner.server.control_connection import ControlConnection

DATABASE = "pgbouncer"
_TOTAL = "total_"
_SECOND_US = 1_000_000


class PgBouncerConsole:
    """The console behind a pooled route, on its own port, with its login. Use as a context manager.

    The login must be in PgBouncer's `stats_users` or `admin_users`. Raises ClientFailed otherwise.
    """

    def __init__(self, route: Route, application_name: str) -> None:
        self._route = route
        self._connection = ControlConnection(
            replace(route, dbname=DATABASE, options=""), application_name, first="SHOW VERSION"
        )

    def pids(self) -> Iterator[int]:
        """Those of its connection: its client."""
        return self._connection.pids()

    def totals(self) -> dict[str, int]:
        """The totals of the route's database since PgBouncer started, by name without `total_`; µs
        and bytes.
        """
        answer = self._connection.ask("SHOW STATS")
        wanted = {name: WHOLE for name in answer.columns if name.startswith(_TOTAL)}
        rows = self._read("STATS", answer, {"database": TEXT, **wanted})
        return {
            name.removeprefix(_TOTAL): value
            for row in rows if row["database"] == self._route.dbname
            for name, value in row.items() if name in wanted
        }  # fmt: skip

    def pool(self) -> dict[str, str]:
        """The pool of the route's login now: cl_active, cl_waiting, sv_idle, ...; empty while there
        is none.
        """
        wanted = (self._route.dbname, self._route.user)
        answer = self._connection.ask("SHOW POOLS")
        columns = dict.fromkeys([*answer.columns, "database", "user"], TEXT.or_null)
        rows = self._read("POOLS", answer, columns)
        pools = (row for row in rows if (row["database"], row["user"]) == wanted)
        return with_whole_wait({name: value or "" for name, value in next(pools, {}).items()})

    def _read(self, what: str, answer: protocol.Rows, wanted: dict[str, Column]) -> list[dict[str, Any]]:
        try:
            return [named(answer.columns, row, wanted) for row in answer.rows]
        except ValueError as problem:
            raise self._connection.unexpected(f"SHOW {what}", problem) from None

    def __enter__(self) -> Self:
        self._connection.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._connection.__exit__(kind, error, tb)


def with_whole_wait(pool: dict[str, str]) -> dict[str, str]:
    """The pool with all of the longest wait in `maxwait_us`.

    PgBouncer has only the part below a second there, and whole seconds in `maxwait`. Others, as PgDog,
    have all of it.
    """
    seconds, us = pool.get("maxwait", ""), pool.get("maxwait_us", "")
    if not (seconds.isdecimal() and us.isdecimal()) or int(us) >= _SECOND_US:
        return pool
    return {**pool, "maxwait_us": str(int(seconds) * _SECOND_US + int(us))}
