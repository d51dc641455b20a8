"""`pgperf distance`: a database as if it were further away, for as long as the command runs."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.core.exceptions import ClientFailed
from pgperf.delay.relay import HOST, Distance
from pgperf.models import Database, Target


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--to", required=True, metavar="ROUTE", help="an enabled target of the database")
    parser.add_argument(
        "--rtt-ms", required=True, type=float, metavar="MS", help="round trip to add, 0 to 10000"
    )
    parser.add_argument("--database", default="", metavar="DB", help="default: the only one")
    parser.add_argument("--port", type=int, default=0, help="where to listen (default: any free port)")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    """Until Ctrl-C. Raises CommandError for a route that is not there, InvalidDefinition for one that is a Unix socket,
    ClientFailed when the relay ends by itself.
    """
    target = _target(options["database"], options["to"])
    with Distance(target.host, target.port, options["rtt_ms"], options["port"]) as relay:
        out.write(f"{HOST}:{relay.port} is {target}, {relay.rtt_ms:g} ms further away. Ctrl-C ends it.")
        out.flush()
        try:
            relay.wait()
        except KeyboardInterrupt:
            return
    raise ClientFailed("distance: the relay ended by itself")


def _target(database: str, route: str) -> Target:
    found = Target.objects.filter(route=route, enabled=True).select_related("database")
    targets = list(found.filter(database__name=database) if database else found)
    if len(targets) == 1:
        return targets[0]
    if targets:
        names = ", ".join(sorted(target.database.name for target in targets))
        raise CommandError(f"Say which database with --database: {names} have a route {route!r}.")
    where = f"The database {database!r}" if database else "No database"
    there = ", ".join(Database.objects.values_list("name", flat=True)) or "none"
    raise CommandError(
        f"{where} has {'no ' if database else 'an '}enabled target {route!r}; databases: {there}."
    )
