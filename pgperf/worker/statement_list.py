"""Reads the statements of a database's server for a page that asked for them."""

from dataclasses import asdict

from pgperf.access import credentials, permissions
from pgperf.core.exceptions import PgperfError
from pgperf.core.protocol import scrub
from pgperf.models import Database, StatementList
from pgperf.runner.server import top_statements
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runs import state, statement_lists

_BUSY = "A run is being measured, which the query would disturb. Ask again when it has ended."
_PAUSED = "pgperf is paused. Ask again when the pause ends."


def read(row_id: int, refusal: str = "") -> None:
    """Answer the request of that row, or store why not.

    Without effect if it was answered already, or was deleted. `refusal`: why this process must not.
    """
    row = statement_lists.asked(row_id)
    if row is None:
        return
    if reason := refusal or _lost_permission(row) or _reason_to_wait():
        statement_lists.refuse(row_id, reason)
        return
    found = _read(row.database)
    if isinstance(found, str):
        statement_lists.refuse(row_id, found)
    else:
        statement_lists.answer(row, [asdict(each) for each in found])


def _lost_permission(row: StatementList) -> str:
    """As for a run: who asked must still have the permission, and see the database."""
    reason = permissions.statements_refusal(row)
    return f"permission: {reason}" if reason else ""


def _reason_to_wait() -> str:
    if state.pause():
        return _PAUSED
    return _BUSY if state.running_count() else ""


def _read(database: Database) -> list[top_statements.TopStatement] | str:
    """The statements, or why there are none, without secrets."""
    secrets: dict[str, str] = {}
    try:
        route = credentials.direct_route(database)
        secrets = {"password": route.password}
        with ControlConnection(route, "pgperf-statements") as connection:
            return top_statements.read(connection)
    except (PgperfError, OSError) as error:
        return scrub(str(error), secrets)
