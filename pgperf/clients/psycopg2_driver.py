"""Calls of psycopg2 outside the timed operation, for its own layer and for Django on top of it."""

from typing import Any

import psycopg2
from psycopg2.extensions import libpq_version, new_type, register_type, string_types

from pgperf.core import protocol


def versions() -> dict[str, str]:
    """The driver, its version, and the libpq it has loaded."""
    major, minor = divmod(libpq_version(), 10000)
    return {
        "driver": "psycopg2",
        "driver_version": psycopg2.__version__.split()[0],
        "libpq": f"{major}.{minor}",
    }


def text_rows(connection: Any, sql: str) -> protocol.Rows:
    """Run one SQL text and return its rows, every value in PostgreSQL's text format."""
    with connection.cursor() as cursor:
        register_type(new_type(tuple(string_types), "TEXT", lambda value, _: value), cursor)
        cursor.execute(sql)
        if not cursor.description:
            return protocol.Rows([])
        return protocol.Rows(
            [list(row) for row in cursor.fetchall()], [each.name for each in cursor.description]
        )
