"""`pgperf tune`: a server's settings beside the advised ones, with the statements to copy.

It reads the server's settings and sessions, and changes nothing.
"""

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import psutil
from django.core.management.base import CommandError, OutputWrapper

from pgperf.access import credentials
from pgperf.cli import text_table
from pgperf.core.exceptions import ClientFailed, InvalidDefinition
from pgperf.models import Database
from pgperf.reports import server_advice
from pgperf.reports.table import Table
from pgperf.runner import environment
from pgperf.runner.cpu.host import Host
from pgperf.runner.processes.backends import SESSIONS, Sessions
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.tuning import advice, records, sizes

Settings = dict[str, str | None]
_KNOWS_SLOTS = 9.5


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("database", metavar="DATABASE", help="the name of the database")
    parser.add_argument("--memory", metavar="SIZE", help="the memory of the server's host, such as 16GB")
    parser.add_argument("--cpus", type=int, metavar="N", help="the CPUs of the server's host")
    parser.add_argument(
        "--profile", default="web", choices=records.PROFILES, help="the use of the server (default: web)"
    )
    parser.add_argument(
        "--connections", type=int, metavar="N", help="max_connections (default: the profile's usual number)"
    )
    parser.add_argument(
        "--storage", default="ssd", choices=records.STORAGE, help="the server's storage (default: ssd)"
    )
    parser.add_argument(
        "--data-size", default="similar", choices=records.DATA_SIZES,
        help="the size of the database beside the memory (default: similar)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    """Print the advice. Raises InvalidDefinition for memory or CPUs that are not known."""
    database = _find(options["database"])
    asked = AskedServer.of(database)
    server = _server(database, asked, options)
    findings = advice.compared(server, asked.settings, asked.sources, replicates=asked.replicates)
    if options["json"]:
        out.write(json.dumps(server_advice.advice_json(database, server, findings), indent=2))
    else:
        out.write(text_table.report(_parts(database, server, findings)))


@dataclass(frozen=True)
class AskedServer:
    """What a server answered.

    `here`: it runs on this host. `sources`: where settings come from, if not from its configuration
    files. `replicates`: it is a standby, or has one or a replication slot; not asked before
    PostgreSQL 9.5, for which no advice depends on it.
    """

    settings: Settings
    here: bool
    sources: Mapping[str, str] = field(default_factory=dict)
    replicates: bool = False

    @classmethod
    def of(cls, database: Database) -> Self:
        """Ask the database's server over its most direct route."""
        with ControlConnection(credentials.direct_route(database), "pgperf-tune") as connection:
            here = bool(Sessions.of(connection.rows(SESSIONS)).here)
            sources = environment.overriding_sources(connection.all)
            settings = environment.settings(connection.all)
            version = records.version_of(settings.get("server_version") or "") or 0.0
            return cls(settings, here, sources, version >= _KNOWS_SLOTS and _replicates(connection))


def _replicates(connection: ControlConnection) -> bool:
    """Does the server say so? Ask that last: a connection does not survive a query that fails."""
    try:
        return bool(environment.replicates(connection.all))
    except ClientFailed:
        return False


def _server(database: Database, asked: AskedServer, options: dict[str, Any]) -> records.Server:
    """The options, and what they leave out of this host if the server runs here."""
    memory, cpus = options["memory"], options["cpus"]
    missing = [name for name, given in (("memory", memory), ("cpus", cpus)) if given is None]
    if missing and not asked.here:
        example = " ".join(f"--{name} {'16GB' if name == 'memory' else '8'}" for name in missing)
        raise InvalidDefinition(
            f"{', '.join(missing)}: the server of {database} is not on this host, so its {' and '.join(missing)}"
            f" must be given: {example}"
        )
    return records.Server(
        memory_kb=_host_memory_kb() if memory is None else sizes.typed_kb(memory),
        cpus=Host.here().cpus if cpus is None else cpus,
        version=_version(asked),
        **{name: options[name] for name in ("profile", "connections", "storage", "data_size")},
    )


def _version(asked: AskedServer) -> float:
    found = records.version_of(asked.settings.get("server_version") or "")
    if found is None:
        raise InvalidDefinition("server_version: the server's answer has none")
    return found


def _host_memory_kb() -> int:
    return server_advice.usable_kb(psutil.virtual_memory().total)


def _find(name: str) -> Database:
    found = Database.objects.filter(name=name).first()
    if found is None:
        names = ", ".join(Database.objects.values_list("name", flat=True)) or "none; add one in the admin"
        raise CommandError(f"There is no database {name!r}. Databases: {names}.")
    return found


def _parts(database: Database, server: records.Server, findings: Any) -> Iterator[str | Table]:
    yield f"{database}: {server_advice.server_line(server)}"
    yield server_advice.advice_table(findings)
    yield "\n".join(advice.statements(findings))
    yield "\n".join(server_advice.notes(server, findings))
