"""`pgperf add`: adds a Database with one Target from an alias of DATABASES."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import OutputWrapper
from django.db import connections, router, transaction

from pgperf.access import credentials
from pgperf.core.exceptions import CredentialError, InvalidDefinition
from pgperf.models import Database, Target


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("alias", help="the alias of a PostgreSQL database in DATABASES")
    parser.add_argument("--name", default="", help="the name of the database in pgperf (default: the alias)")
    parser.add_argument(
        "--allow-fixtures", action="store_true", help="permit pgperf to create its schema `pgperf` there"
    )
    parser.add_argument("--production", action="store_true", help="each run must confirm the database name")
    parser.add_argument("--agent", default="", metavar="NAME", help="the pgperf agent on the database's host")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    alias = options["alias"]
    database = Database(
        name=options["name"] or alias,
        dbname=str(_alias(alias)["NAME"]),
        credential=f"alias:{alias}",
        production=options["production"],
        allow_fixtures=options["allow_fixtures"],
        agent=options["agent"],
    )
    target = _target(alias)
    using = router.db_for_write(Database)
    try:
        with transaction.atomic(using=using):
            database.full_clean()
            database.save(using=using)
            target.database = database
            target.full_clean()
            target.save(using=using)
    except ValidationError as error:
        raise InvalidDefinition(_as_text(error)) from None
    out.write(f"{database.name}: {database.dbname}, route {target.route} ({target.host}:{target.port})")
    try:
        credentials.resolve(database, [target.route])
    except CredentialError as error:
        out.write(f"Not usable yet. {error}")


def _alias(name: str) -> dict[str, Any]:
    if name not in connections.databases:
        raise InvalidDefinition(
            f"alias: DATABASES has no {name!r}. Use one of {', '.join(connections.databases)}."
        )
    found = connections.databases[name]
    if not any(kind in found["ENGINE"] for kind in ("postgresql", "postgis")):
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
    sslmode = found["OPTIONS"].get("sslmode", Target.SSLMode.PREFER)
    return Target(route=route, host=host, port=int(found["PORT"] or 5432), sslmode=sslmode)


def _as_text(error: ValidationError) -> str:
    return "; ".join(f"{field}: {' '.join(texts)}" for field, texts in error.message_dict.items())
