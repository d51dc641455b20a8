"""`pgperf add`: adds a Database with its Targets, direct and pooled, from an alias of DATABASES."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import OutputWrapper
from django.db import connections, router, transaction

from pgperf.access import credentials
from pgperf.core.exceptions import CredentialError, InvalidDefinition
from pgperf.db.site_aliases import is_postgresql
from pgperf.models import Database, Target

_POOLER_PORT = 6432
#: Options that describe a new database.
_OF_DATABASE = ("production", "allow_fixtures", "agent")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("alias", help="the alias of a PostgreSQL database in DATABASES")
    parser.add_argument("--name", default="", help="the name of the database in pgperf (default: the alias)")
    parser.add_argument(
        "--allow-fixtures", action="store_true", help="permit pgperf to create its schema `pgperf` there"
    )
    parser.add_argument("--production", action="store_true", help="each run must confirm the database name")
    parser.add_argument("--agent", default="", metavar="NAME", help="the pgperf agent on the database's host")
    parser.add_argument(
        "--pooler",
        choices=[mode for mode in Target.Pooler.values if mode],
        default="",
        help="add a pooler in this mode as a target, to the database if it exists already",
    )
    parser.add_argument("--host", default="", help="the pooler's host (default: the alias's)")
    parser.add_argument("--port", type=int, help=f"the pooler's port (default: {_POOLER_PORT})")
    parser.add_argument("--route", default="", help="the name of the pooler's route (default: pgbouncer)")
    parser.add_argument(
        "--user", default="", help="a login for the pooler's route alone; needs --credential too"
    )
    parser.add_argument(
        "--credential",
        default="",
        metavar="REFERENCE",
        help="alias:NAME, env:PGPERF_SECRET_NAME or file:NAME of that login",
    )


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    alias, name = options["alias"], options["name"] or options["alias"]
    pooler = _pooler(options)
    known = Database.objects.filter(name=name).first() if pooler else None
    if known and known.credential != f"alias:{alias}":
        raise InvalidDefinition(f"name: {name!r} is a database of {known.credential}, not of alias {alias!r}")
    if known and (given := [option for option in _OF_DATABASE if options[option]]):
        raise InvalidDefinition(f"{given[0]}: {name!r} exists already; change its settings in the admin")
    database = known or _database(options, name)
    added = [*([] if known else [_target(alias)]), *([pooler] if pooler else [])]
    _save(database, added)
    routes = ", ".join(f"route {each.route} ({each.host}:{each.port})" for each in added)
    out.write(f"{database.name}: {database.dbname}, {routes}")
    try:
        credentials.resolve(database, [target.route for target in added])
    except CredentialError as error:
        out.write(f"Not usable yet. {error}")


def _save(database: Database, targets: list[Target]) -> None:
    """Save the targets, and the database if it is new; raises InvalidDefinition by field."""
    using = router.db_for_write(Database)
    try:
        with transaction.atomic(using=using):
            if database.pk is None:
                database.full_clean()
                database.save(using=using)
            for target in targets:
                target.database = database
                target.full_clean()
                target.save(using=using)
    except ValidationError as error:
        raise InvalidDefinition(_as_text(error)) from None


def _database(options: dict[str, Any], name: str) -> Database:
    alias = options["alias"]
    return Database(
        name=name,
        dbname=str(_alias(alias)["NAME"]),
        credential=f"alias:{alias}",
        production=options["production"],
        allow_fixtures=options["allow_fixtures"],
        agent=options["agent"],
    )


def _pooler(options: dict[str, Any]) -> Target | None:
    """The pooler's route; None without --pooler."""
    if not options["pooler"]:
        _check_without_pooler(options)
        return None
    found = _alias(options["alias"])
    host = options["host"] or str(found["HOST"] or "")
    if not host:
        raise InvalidDefinition(f"host: alias {options['alias']!r} has no HOST. Add the pooler's by --host.")
    return Target(
        route=options["route"] or "pgbouncer",
        host=host,
        port=_POOLER_PORT if options["port"] is None else options["port"],
        sslmode=_sslmode(found),
        pooler=options["pooler"],
        user=options["user"],
        credential=options["credential"],
    )


def _check_without_pooler(options: dict[str, Any]) -> None:
    for name in ("host", "port", "route", "user", "credential"):
        if options[name] not in (None, ""):
            raise InvalidDefinition(f"{name}: --{name} describes a pooler's route; add --pooler")


def _alias(name: str) -> dict[str, Any]:
    if name not in connections.databases:
        raise InvalidDefinition(
            f"alias: DATABASES has no {name!r}. Use one of {', '.join(connections.databases)}."
        )
    found = connections.databases[name]
    if not is_postgresql(found):
        raise InvalidDefinition(f"alias: {name!r} is not a PostgreSQL database ({found['ENGINE']}).")
    return found


def _target(alias: str) -> Target:
    """The address of the alias. A directory is a Unix socket."""
    found = _alias(alias)
    host = str(found["HOST"] or "")
    if not host:
        raise InvalidDefinition(
            f"alias: {alias!r} has no HOST. Add the database and its targets in the admin."
        )
    route = "socket" if host.startswith("/") else "tcp"
    return Target(route=route, host=host, port=_port(alias, found), sslmode=_sslmode(found))


def _port(alias: str, found: dict[str, Any]) -> int:
    """Raises InvalidDefinition for several addresses, as libpq takes them."""
    port = str(found["PORT"] or 5432)
    if "," in str(found["HOST"]) or not (port.isascii() and port.isdigit()):
        raise InvalidDefinition(
            f"alias: {alias!r} has not one address (HOST {found['HOST']!r}, PORT {port!r}). Add the database in"
            " the admin, with a target for each address."
        )
    return int(port)


def _sslmode(found: dict[str, Any]) -> str:
    return str(found["OPTIONS"].get("sslmode", Target.SSLMode.PREFER))


def _as_text(error: ValidationError) -> str:
    return "; ".join(f"{field}: {' '.join(texts)}" for field, texts in error.message_dict.items())
