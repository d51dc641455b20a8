"""Breaks the connection to the tests' own database on purpose."""

from typing import Any

import psycopg
from django.db import connection


def terminate_own_backend() -> None:
    """Terminate the server process of Django's connection, as a restart of the server does."""
    settings: dict[str, Any] = connection.settings_dict
    connection.ensure_connection()
    with psycopg.connect(
        host=settings["HOST"], port=settings["PORT"], dbname=settings["NAME"], user=settings["USER"],
        password=settings["PASSWORD"], autocommit=True,
    ) as other:  # fmt: skip
        pid = connection.connection.info.backend_pid
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
