"""What pgperf asks of psycopg 3 outside the timed operation; for its own layer and for Django on top of it."""

from typing import Any

import psycopg
from psycopg import pq


def versions() -> dict[str, str]:
    """The driver, its version and implementation, and the libpq it has loaded."""
    major, minor = divmod(pq.version(), 10000)
    return {
        "driver": "psycopg",
        "driver_version": psycopg.__version__,
        "implementation": pq.__impl__,
        "libpq": f"{major}.{minor}",
    }


def text_rows(connection: Any, sql: str) -> list[list[str | None]]:
    """Run one SQL text; its rows with every value as PostgreSQL writes it."""
    with psycopg.ClientCursor(connection) as cursor:
        return as_text(cursor.execute(sql).pgresult)


def as_text(result: pq.abc.PGresult | None) -> list[list[str | None]]:
    """The rows of a result with every value as PostgreSQL writes it."""
    assert result
    return [[_text(result.get_value(r, c)) for c in range(result.nfields)] for r in range(result.ntuples)]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
