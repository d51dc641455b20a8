"""The site's Django inside a client: its settings, apps, registered workloads and connection
options.

pgperf replaces only the address and the login, on the one alias that the workload uses. It refuses
connections to every other alias.
"""

import math
import os
import re
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, MultipleObjectsReturned, ObjectDoesNotExist
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.db.backends.signals import connection_created

from pgperf import registry
from pgperf.clients import connection_options, django_connection, page_guards
from pgperf.clients.loop import login, sqlstate
from pgperf.core import protocol, sql_masking
from pgperf.core.exceptions import InvalidDefinition, PgperfError, UnusableOptions
from pgperf.db import usable_options
from pgperf.workloads import discovery, queries

_MODES: dict[str, dict[str, Any]] = {
    "simple": {},
    "extended": {"server_side_binding": True, "prepare_threshold": None},
    "prepared": {"server_side_binding": True, "prepare_threshold": 0},
}
_READ_ONLY = "25006"
#: What Django itself says of a query set; a site's own text may hold values.
_OF_DJANGO = re.compile(
    r"\w+ matching query does not exist\.\Z|get\(\) returned more than one \w+ -- it returned (?:more than )?\d+!\Z"
)


class SiteConnection(NamedTuple):
    """The connection of a workload, not yet open, and the names of its alias's own OPTIONS that it
    uses.
    """

    connection: Any
    own_options: tuple[Any, ...]


def set_up(spec: protocol.Spec) -> SiteConnection:
    """Set up Django as the site configures it.

    Raises InvalidDefinition if the site cannot be set up here, or does not have the workload.
    """
    if "DJANGO_SETTINGS_MODULE" not in os.environ:
        raise InvalidDefinition(
            "settings: the worker has no DJANGO_SETTINGS_MODULE in its environment, so pgperf cannot set up the site"
            " in a separate process; set it where the worker starts"
        )
    _switch_debug_off()
    django.setup()
    _switch_debug_off()
    using = _alias(spec)
    own_options = redirect(using, spec)
    close_others(using, page_guards.refuse_alias if spec.page.path else _refuse)
    return SiteConnection(connections[using], own_options)


def _switch_debug_off() -> None:
    """The hosts that Django allows for DEBUG, where the site names none, stay allowed."""
    if settings.DEBUG and not settings.ALLOWED_HOSTS:
        settings.ALLOWED_HOSTS = [".localhost", "127.0.0.1", "[::1]"]
    settings.DEBUG = False


def callable_of(spec: protocol.Spec) -> Callable[[], Any]:
    """The callable of one operation."""
    if spec.query:
        return queries.build(spec.query)
    return partial(registry.get(spec.orm), *spec.orm_args)


def async_callable_of(spec: protocol.Spec) -> Callable[[], Awaitable[Any]]:
    """The same for an event loop."""
    if spec.query:
        return queries.build_async(spec.query)
    return partial(registry.get_async(spec.orm), *spec.orm_args)


def redirect(using: str, spec: protocol.Spec) -> tuple[Any, ...]:
    """Point the alias at the route. Its ENGINE and its other settings stay.

    Returns the names of those of its OPTIONS that stay.
    """
    for connection in connections.all(initialized_only=True):
        connection.close()
    _check(using)
    driver = driver_of(connections[using])
    alias = connections.databases[using]
    keywords = login(spec, driver.libpq_version())
    alias |= {name: keywords.pop(key) for name, key in _ADDRESS.items()}
    usable_options.check_kind(using, alias["OPTIONS"])
    own = connection_options.kept(using, alias["OPTIONS"], spec.mode, spec.layer)
    session = " ".join(filter(None, (str(own.get("options", "")), keywords.pop("options"))))
    del keywords["client_encoding"]  # Django sets UTF8 itself
    if "require_auth" in own:
        keywords.pop("require_auth", None)  # the site's own demand includes this one
    session_options = {"options": session} if session else {}
    ours = {**keywords, **_MODES[spec.mode], **session_options, **django_connection.pool(spec)}
    alias["OPTIONS"] = {**own, **ours}
    alias |= django_connection.lifetime(spec)
    del connections[using]  # Django creates the next one from the new settings
    return tuple(name for name in own if name not in ours)


def _check(using: str) -> None:
    if using not in connections.databases:
        raise InvalidDefinition(
            f"using: DATABASES has no alias {using!r}; it has {', '.join(connections.databases)}"
        )
    if connections[using].vendor != "postgresql":
        raise InvalidDefinition(f"using: the alias {using!r} of DATABASES is not a PostgreSQL database")


def driver_of(connection: Any) -> Any:
    """The module for the driver of a connection."""
    return import_module(f"pgperf.clients.{connection.Database.__name__}_driver")


_ADDRESS = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}


def _refuse(alias: str, using: str) -> None:
    raise InvalidDefinition(
        f"using: this workload reached the alias {alias!r} of DATABASES, but only {using!r} is measured; let it use"
        f" that one alone, or register it with @workload(..., using={alias!r})"
    )


def close_others(using: str, refuse: Callable[[str, str], None] = _refuse) -> None:
    """Refuse connections to any other alias before they are opened, in every thread."""
    for alias in connections:
        if alias != using:
            setattr(connections[alias], "connect", partial(refuse, alias, using))  # noqa: B010
    created = partial(_refuse_created, using, refuse)
    connection_created.connect(created, weak=False, dispatch_uid="pgperf.one_alias")


def given(sql: Any, params: Any, many: bool) -> protocol.Statement:
    """A cursor's text and arguments as a statement; `args` is None if they have no JSON form."""
    if not isinstance(sql, str) or many:
        return protocol.Statement(args=None)
    if params is None:
        return protocol.Statement(sql=sql.replace("%", "%%"), args=[])
    if not isinstance(params, tuple | list) or not all(_is_scalar(param) for param in params):
        return protocol.Statement(args=None)
    return protocol.Statement(sql=sql, args=[_plain(param) for param in params])


def describe(error: Exception, used: SiteConnection | None = None) -> str:
    """The error message, without the values of the site's own queries.

    Where OPTIONS of the connection's alias make every query fail, it names them.
    """
    if isinstance(error, PgperfError | ImproperlyConfigured):
        return str(error)
    cause = error.__cause__ or error
    diag = getattr(cause, "diag", None)
    if primary := getattr(diag, "message_primary", None):
        return _of_server(str(primary), sqlstate(error), str(getattr(diag, "source_file", None) or ""))
    if isinstance(error, ObjectDoesNotExist | MultipleObjectsReturned) and _OF_DJANGO.match(str(error)):
        return sql_masking.without_values(f"{type(error).__name__}: {error}")
    try:
        if used and not isinstance(error, Error):
            usable_options.check(used.connection, used.own_options)
    except UnusableOptions as found:
        return str(found)
    return f"{type(error).__name__}{_place(error)}"


def _of_server(primary: str, code: str, source_file: str) -> str:
    text = sql_masking.of_server(primary, code, source_file)
    return (
        f"{text}; pgperf measures it in read-only sessions, so let it only read"
        if code == _READ_ONLY
        else text
    )


def _alias(spec: protocol.Spec) -> str:
    """The alias of the workload: a page's is the default one."""
    if not (spec.orm or spec.query):
        return DEFAULT_DB_ALIAS
    failures = discovery.discover()
    if spec.query:
        return queries.alias(spec.query)
    try:
        return registry.find(spec.orm).using
    except InvalidDefinition as error:
        more = "".join(f"; {failure}" for failure in failures)
        raise InvalidDefinition(f"{error}{more}") from None


def _refuse_created(using: str, refuse: Callable[[str, str], None], *, connection: Any, **_: Any) -> None:
    if connection.alias != using:
        connection.close()
        refuse(connection.alias, using)


def _is_scalar(value: Any) -> bool:
    return math.isfinite(value) if isinstance(value, float) else value is None or isinstance(value, int | str)


def _plain(value: Any) -> Any:
    """The value as a plain JSON type: Django passes subclasses, such as psycopg's Int4."""
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _place(error: Exception) -> str:
    frames = extract_tb(error.__traceback__)
    return f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
