"""The layers django_cursor and django_orm, over the driver that Django chooses in this environment.

For the catalog, Django runs with minimal settings: the route is its default database, and no apps
are installed. A site workload runs with the site's settings (`pgperf.clients.site_django`). Mode
simple is Django's default, which binds on the client. Mode extended is its server-side binding.
Mode prepared is the same, with every statement prepared.

Connection mode per_operation connects and closes Django's connection. In request and pool, each
operation is one request with Django's signals, and CONN_MAX_AGE is 0: Django closes the connection
at the end, or puts it back into its pool.

If both drivers are installed, Django prefers psycopg 3. The layers django_cursor_psycopg2 and
django_orm_psycopg2 hide psycopg 3 from their own process before Django imports it.
"""

import sys
from collections.abc import Callable
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO, cast

import django
from django.conf import settings
from django.core.signals import request_finished, request_started
from django.db import ProgrammingError, connections
from django.db.models import QuerySet

from pgperf import registry
from pgperf.clients import kept_connection
from pgperf.clients.django_connection import OF_REQUESTS, lifetime, pool
from pgperf.clients.loop import describe, is_of_driver, login, main, statements
from pgperf.clients.timed_loop import Operation, Reconnecting, in_order
from pgperf.core import protocol
from pgperf.core.exceptions import InvalidDefinition, LayerUnavailable
from pgperf.core.layers import DJANGO_BULK as NO_BULK

CURSOR = ("django_cursor", "django_cursor_psycopg2")
ORM = ("django_orm", "django_orm_psycopg2")


class DjangoClient:
    """Django's default connection."""

    connection_modes: tuple[str, ...] = ("persistent", "per_operation", "pool", "request")

    def __init__(self, replies: BinaryIO) -> None:
        self._connection: Any = None
        self._pooled = False
        self._kept: Any = None  # the one connection of Django's pool
        self._site: Any = None  # the module pgperf.clients.site_django, for site workloads
        self._used: Any = None  # its SiteConnection

    def load(self, spec: protocol.Spec) -> None:
        if spec.bulk.kind and not _can_insert(spec):
            raise LayerUnavailable(f"bulk: {NO_BULK}")
        if spec.row_type != "tuple":
            raise LayerUnavailable("row_type: Django's cursor gives tuples; choose tuple")
        if spec.layer.endswith("_psycopg2"):
            hide("psycopg")
        if spec.site:
            self._site = import_module("pgperf.clients.site_django")
            self._used = self._site.set_up(spec)
            self._connection = self._used.connection
        else:
            settings.configure(**minimal_settings(spec))
            django.setup()
            self._connection = connections["default"]
        self._driver = import_module(f"pgperf.clients.{self._connection.Database.__name__}_driver")
        if spec.mode != "simple" and self._connection.Database.__name__ == "psycopg2":
            raise LayerUnavailable(
                f"mode: Django over psycopg2 binds on the client; {spec.mode} needs psycopg 3"
            )
        if spec.connection_mode == "pool":
            self._load_pool()
        if spec.layer in ORM and not spec.site:
            import_module("pgperf.catalog.orm")

    def _load_pool(self) -> None:
        if self._connection.Database.__name__ == "psycopg2":
            raise LayerUnavailable("connection_mode: Django has a pool over psycopg 3 only")
        import_module("psycopg_pool")

    def connect(self, spec: protocol.Spec) -> None:
        self._connection.settings_dict["OPTIONS"]["application_name"] = spec.application_name
        self._requests = spec.connection_mode in OF_REQUESTS
        self._pooled = spec.connection_mode == "pool"
        self._take()

    def _take(self) -> None:
        self._connection.ensure_connection()
        if self._pooled:
            self._kept = kept_connection.checked(self._kept, self._connection.connection)

    def another(self) -> "DjangoClient":
        """One for another worker: Django has a connection of its own in each thread."""
        client, alias = copy(self), self._connection.alias
        if self._site:
            self._site.close_others(alias)
        client._connection = connections[alias]
        shared = client._connection.settings_dict
        client._connection.settings_dict = {**shared, "OPTIONS": dict(shared["OPTIONS"])}
        return client

    def reconnecting(self, operation: Operation) -> Reconnecting:
        if self._requests:
            return Reconnecting(self._begin_request, operation, self._end_request)
        return Reconnecting(self._connection.connect, operation, self._connection.close)

    def _begin_request(self) -> None:
        """As a handler does. Django connects at the first query; here it connects before it."""
        request_started.send(sender=type(self), environ=_ENVIRON)
        self._take()

    def _end_request(self) -> None:
        request_finished.send(sender=type(self))

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        if spec.layer not in (*CURSOR, *ORM):
            raise InvalidDefinition(
                f"layer: this client runs {', '.join((*CURSOR, *ORM))}, not {spec.layer!r}"
            )
        return self._orm_operation(spec, other) if spec.layer in ORM else self._cursor_operations(spec, other)

    def _cursor_operations(self, spec: protocol.Spec, other: bool) -> Operation:
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

    def _orm_operation(self, spec: protocol.Spec, other: bool) -> Operation:
        if spec.bulk.kind:
            return cast(
                Operation, import_module("pgperf.clients.django_bulk").insert(self._connection.alias, spec)
            )
        if self._site and not other:
            return counted(self._site.callable_of(spec))
        return orm_operation(spec, other)

    def trace(self, operation: Operation) -> list[protocol.Statement]:
        """The statements that the cursor gets in one operation, with the values that have a JSON
        form.
        """
        if not self._site:
            raise InvalidDefinition("trace: only site workloads are captured")
        statements: list[protocol.Statement] = []

        def record(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
            statements.append(self._site.given(sql, params, many))
            return execute(sql, params, many, context)

        with self._connection.execute_wrapper(record):
            operation()
        return statements

    def describe(self, error: Exception) -> str:
        """The error message; for a site workload, without its values."""
        connecting = self._connection is not None and self._connection.connection is None
        if self._site and not (connecting and is_of_driver(error)):
            return str(self._site.describe(error, self._used))
        return describe(error)

    def query(self, sql: str) -> protocol.Rows:
        return self._driver.text_rows(self._connection.connection, sql)

    def versions(self) -> dict[str, str]:
        own = {**self._driver.versions(), "django": django.get_version()}
        if not self._site:
            return own
        instrumentation = import_module("pgperf.clients.instrumentation")
        engine = type(self._connection).__module__.removesuffix(".base")
        return {**own, "engine": engine, "instrumentation": instrumentation.found(self._connection)}

    @property
    def backend_pid(self) -> int:
        return self._connection.connection.info.backend_pid

    @property
    def server_version(self) -> str:
        return self._connection.connection.info.parameter_status("server_version")

    def close(self) -> None:
        self._connection.close()
        if hasattr(self._connection, "close_pool"):
            self._connection.close_pool()


def _can_insert(spec: protocol.Spec) -> bool:
    """The ORM has bulk_create for a batch, and neither COPY nor executemany."""
    return spec.layer in ORM and (spec.bulk.kind, spec.bulk.api) == ("batch", "best")


def hide(module: str) -> None:
    """Make an installed module unimportable in this process.

    Call it before anything imports the module.
    """
    hidden: dict[str, Any] = {module: None}
    sys.modules.update(hidden)


def driver() -> Any:
    """The module for the driver that Django will choose: psycopg 3 if it can be imported."""
    try:
        return import_module("pgperf.clients.psycopg_driver")
    except ImportError:
        return import_module("pgperf.clients.psycopg2_driver")


def minimal_settings(spec: protocol.Spec) -> dict[str, Any]:
    """Django settings with one database and nothing else."""
    options = login(spec, driver().libpq_version())
    address = {name: options.pop(key) for name, key in _ADDRESS.items()}
    del options["client_encoding"]  # Django sets UTF8 itself
    if spec.mode != "simple":
        threshold = 0 if spec.mode == "prepared" else None
        options |= {"server_side_binding": True, "prepare_threshold": threshold}
    default = {
        "ENGINE": "django.db.backends.postgresql",
        **address,
        "OPTIONS": {**options, **pool(spec)},
        **lifetime(spec),
    }
    return {"DATABASES": {"default": default}, "DEBUG": False, "USE_TZ": True, "TIME_ZONE": "UTC"}


#: The environ of the requests, for receivers of the signal that read it.
_ENVIRON = {
    "REQUEST_METHOD": "GET", "PATH_INFO": "/", "SERVER_NAME": "localhost", "SERVER_PORT": "80",
    "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http",
}  # fmt: skip
_ADDRESS = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}


def orm_operation(spec: protocol.Spec, other: bool) -> Operation:
    """The registered callable with the workload's arguments."""
    name, args = (spec.other_orm, spec.other_orm_args) if other else (spec.orm, spec.orm_args)
    return counted(partial(registry.get(name), *args))


def counted(read: Callable[[], Any]) -> Operation:
    """An operation that returns the number of rows that `read` returned."""

    def run() -> int:
        result = read()
        if isinstance(result, list | QuerySet):
            return len(result)
        return 0 if result is None else 1

    return run


if __name__ == "__main__":
    main(DjangoClient)
