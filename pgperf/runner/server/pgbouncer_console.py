"""PgBouncer's console: the totals of its statistics, and the state of its pools."""

from dataclasses import replace
from types import TracebackType
from typing import Self

from pgperf.core.records import Route
from pgperf.runner.server.control_connection import ControlConnection

DATABASE = "pgbouncer"
_TOTAL = "total_"


class PgBouncerConsole:
    """The console behind a pooled route, on its own port, with its login. Use as a context manager.

    The login must be in PgBouncer's `stats_users` or `admin_users`. Raises ClientFailed otherwise.
    """

    def __init__(self, route: Route, application_name: str) -> None:
        self._route = route
        self._connection = ControlConnection(
            replace(route, dbname=DATABASE, options=""), application_name, first="SHOW VERSION"
        )

    def totals(self) -> dict[str, int]:
        """The totals of the route's database since PgBouncer started, by name without `total_`; µs
        and bytes.
        """
        found = [row for row in self._show("STATS") if row["database"] == self._route.dbname]
        return {
            name.removeprefix(_TOTAL): int(value)
            for row in found for name, value in row.items() if name.startswith(_TOTAL)
        }  # fmt: skip

    def pool(self) -> dict[str, str]:
        """The pool of the route's login now: cl_active, cl_waiting, sv_idle, ...; empty while there
        is none.
        """
        wanted = (self._route.dbname, self._route.user)
        pools = (row for row in self._show("POOLS") if (row["database"], row["user"]) == wanted)
        return next(pools, {})

    def _show(self, what: str) -> list[dict[str, str]]:
        answer = self._connection.ask(f"SHOW {what}")
        return [dict(zip(answer.columns, (value or "" for value in row), strict=True)) for row in answer.rows]

    def __enter__(self) -> Self:
        self._connection.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._connection.__exit__(kind, error, tb)
