"""`pgperf distance`: relays a route to a database and adds a round-trip time, until Ctrl-C."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.core.exceptions import ClientFailed
from pgperf.delay.relay import HOST, DelayRelay
from pgperf.models import Database, Target


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--to", required=True, metavar="ROUTE", help="the route of an enabled target")
    parser.add_argument(
        "--rtt-ms",
        required=True,
        type=float,
        metavar="MS",
        help="the round-trip time to add, in ms, 0 to 10000",
    )
    parser.add_argument(
        "--database", default="", metavar="DB", help="the database (default: the only one with that route)"
    )
    parser.add_argument("--port", type=int, default=0, help="the port to listen on (default: a free port)")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    """Run the relay until Ctrl-C.

    Raises CommandError for an unknown route, InvalidDefinition for a Unix socket, ClientFailed if
    the relay ends by itself.
    """
    target = _target(options["database"], options["to"])
    with DelayRelay(target.host, target.port, options["rtt_ms"], options["port"]) as relay:
        out.write(
            f"{HOST}:{relay.port} relays to {target} and adds {relay.rtt_ms:g} ms per round trip. Press Ctrl-C to stop."
        )
        out.flush()
        try:
            relay.wait()
        except KeyboardInterrupt:
            return
    raise ClientFailed("distance: the relay ended unexpectedly. Start the command again.")


def _target(database: str, route: str) -> Target:
    found = Target.objects.filter(route=route, enabled=True).select_related("database")
    targets = list(found.filter(database__name=database) if database else found)
    if any(target.url for target in targets):
        raise CommandError(
            f"to: route {route!r} leads to a web server. Name the route of a database over TCP."
        )
    if len(targets) == 1:
        return targets[0]
    if targets:
        names = ", ".join(sorted(target.database.name for target in targets))
        raise CommandError(f"Choose a database with --database: {names} have a route {route!r}.")
    where = f"The database {database!r}" if database else "No database"
    names = ", ".join(Database.objects.values_list("name", flat=True)) or "none"
    raise CommandError(
        f"{where} has {'no ' if database else 'an '}enabled target {route!r}. Databases: {names}."
    )
