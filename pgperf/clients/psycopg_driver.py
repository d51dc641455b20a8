"""Calls of psycopg 3 outside the timed operation, for its own layer and for Django on top of it."""

from typing import Any

import psycopg
from psycopg import pq, rows

from pgperf.clients.kept_connection import MAX_LIFETIME_S
from pgperf.core import protocol


def libpq_version() -> int:
    """The version of the libpq that psycopg has loaded, such as 180006."""
    return pq.version()


def pool_of_one(spec: protocol.Spec) -> dict[str, Any]:
    """The arguments of a psycopg_pool for a client of one connection."""
    timeout_s = float(spec.connect_timeout_s)
    return {"min_size": 1, "max_size": 1, "timeout": timeout_s, "max_lifetime": MAX_LIFETIME_S}


def versions() -> dict[str, str]:
    """The driver, its version and implementation, and the libpq it has loaded."""
    major, minor = divmod(libpq_version(), 10000)
    return {
        "driver": "psycopg",
        "driver_version": psycopg.__version__,
        "implementation": pq.__impl__,
        "libpq": f"{major}.{minor}",
    }


def row_factory(spec: protocol.Spec) -> Any:
    """What makes rows of the spec's row type."""
    return rows.dict_row if spec.row_type == "named" else rows.tuple_row


def text_rows(connection: Any, sql: str) -> protocol.Rows:
    """Run one SQL text and return its rows, every value in PostgreSQL's text format."""
    with psycopg.ClientCursor(connection) as cursor:
        return as_text(cursor.execute(sql).pgresult)


def as_text(result: pq.abc.PGresult | None) -> protocol.Rows:
    """The rows of a result, every value in PostgreSQL's text format."""
    assert result
    columns = range(result.nfields)
    found = [[_text(result.get_value(row, column)) for column in columns] for row in range(result.ntuples)]
    return protocol.Rows(found, [_text(result.fname(column)) or "" for column in columns])


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
