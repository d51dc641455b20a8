"""The layers django_cursor and django_orm, over the driver that Django chooses in this environment.

Django runs with minimal settings: the route as its default database, nothing installed. Mode simple is Django's own
default (bound on the client); mode prepared is its server-side binding with every statement prepared.
"""

from importlib import import_module
from typing import Any, BinaryIO

import django
from django.conf import settings
from django.db import ProgrammingError, connections
from django.db.models import QuerySet

from pgperf import registry, wire
from pgperf.clients.loop import login, main, statements
from pgperf.clients.timing import Operation, in_order
from pgperf.exceptions import InvalidDefinition, LayerUnavailable


class DjangoClient:
    """Django's default connection, kept open."""

    def __init__(self, replies: BinaryIO) -> None:
        self._connection: Any = None

    def load(self, spec: wire.Spec) -> None:
        settings.configure(**minimal_settings(spec))
        django.setup()
        self._connection = connections["default"]
        self._driver = import_module(f"pgperf.clients.{self._connection.Database.__name__}_driver")
        if spec.mode == "prepared" and self._connection.Database.__name__ == "psycopg2":
            raise LayerUnavailable("mode: Django over psycopg2 binds on the client; prepared needs psycopg 3")
        if spec.layer == "django_orm":
            import_module("pgperf.catalog.orm")

    def connect(self, spec: wire.Spec) -> None:
        self._connection.ensure_connection()

    def operation(self, spec: wire.Spec, other: bool = False) -> Operation:
        kinds = {"django_cursor": self._cursor_operations, "django_orm": orm_operation}
        if spec.layer not in kinds:
            raise InvalidDefinition(f"layer: this client runs {' and '.join(kinds)}, not {spec.layer!r}")
        return kinds[spec.layer](spec, other)

    def _cursor_operations(self, spec: wire.Spec, other: bool) -> Operation:
        return in_order([self._run(*each) for each in statements(spec, other)])

    def _run(self, sql: str, args: list[Any] | None) -> Operation:
        cursor = self._connection.cursor

        def run() -> int:
            with cursor() as opened:
                opened.execute(sql, args)
                try:
                    return len(opened.fetchall())
                except ProgrammingError:  # a command, which has no rows to fetch
                    return 0

        return run

    def query(self, sql: str) -> list[list[str | None]]:
        return self._driver.text_rows(self._connection.connection, sql)

    def versions(self) -> dict[str, str]:
        return {**self._driver.versions(), "django": django.get_version()}

    @property
    def backend_pid(self) -> int:
        return self._connection.connection.info.backend_pid

    @property
    def server_version(self) -> str:
        return self._connection.connection.info.parameter_status("server_version")

    def close(self) -> None:
        self._connection.close()


def minimal_settings(spec: wire.Spec) -> dict[str, Any]:
    """Django settings that know one database and nothing else."""
    options = login(spec)
    address = {name: options.pop(key) for name, key in _ADDRESS.items()}
    del options["client_encoding"]  # Django says UTF8 itself
    if spec.mode == "prepared":
        options |= {"server_side_binding": True, "prepare_threshold": 0}
    default = {
        "ENGINE": "django.db.backends.postgresql",
        **address,
        "OPTIONS": options,
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": False,
    }
    return {"DATABASES": {"default": default}, "DEBUG": False, "USE_TZ": True, "TIME_ZONE": "UTC"}


_ADDRESS = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}


def orm_operation(spec: wire.Spec, other: bool) -> Operation:
    """The registered callable with the workload's arguments."""
    name, args = (spec.other_orm, spec.other_orm_args) if other else (spec.orm, spec.orm_args)
    read = registry.get(name)

    def run() -> int:
        result = read(*args)
        if isinstance(result, list | QuerySet):
            return len(result)
        return 0 if result is None else 1

    return run


if __name__ == "__main__":
    main(DjangoClient)
