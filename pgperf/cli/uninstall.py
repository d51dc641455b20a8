"""`pgperf uninstall`: removes what pgperf has made in the site's databases, and prints the rest."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, OutputWrapper
from django.db import DatabaseError, connections, router

from pgperf.access import credentials, fixtures, readonly_role, removal
from pgperf.access.removal import Traces
from pgperf.conf import get_settings
from pgperf.core.exceptions import PgperfError
from pgperf.core.printable import first_line, one_line
from pgperf.core.records import Route
from pgperf.db import first_release
from pgperf.models import Database


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="remove it; without this option, only print it")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    """Print what would be removed, or remove it. Raises CommandError if something stays."""
    if active := removal.active_runs():
        raise CommandError(f"Nothing was removed. {_busy(active)}")
    databases, found = _databases(), list(removal.traces())
    logins = list(_logins(databases))
    kept: list[str] = []
    if not (planned := [*_planned_drops(databases), *_planned_removals(found)]):
        out.write("There is nothing to remove.")
    elif options["yes"]:
        kept = _remove_all(databases, found, out)
    else:
        out.write("\n".join(["This would be removed:", *planned]))
    _print_rest(logins, out)
    if kept:
        raise CommandError(f"Not removed: {', '.join(kept)}. The reasons are above.")
    if planned and not options["yes"]:
        out.write("\nNothing was removed. To remove it, add --yes.")


def _busy(active: list[int]) -> str:
    if len(active) == 1:
        return f"Run {active[0]} is queued or running. Cancel it, or wait until it ends."
    ids = ", ".join(map(str, active))
    return f"Runs {ids} are queued or running. Cancel them, or wait until they end."


def _databases() -> list[Database]:
    alias = router.db_for_read(Database)
    if Database._meta.db_table not in first_release.tables(connections[alias]):
        return []
    return list(Database.objects.prefetch_related("targets"))


def _planned_drops(databases: list[Database]) -> Iterator[str]:
    """A line for every database that has fixtures, or cannot be asked."""
    for database in databases:
        try:
            there = fixtures.present(credentials.direct_route(database))
        except PgperfError as error:
            yield f"database {database}: {_unreachable(error)}"
            continue
        if there and database.allow_fixtures:
            fixture = "the fixture" if len(there) == 1 else "the fixtures"
            yield f"database {database}: {fixture} {', '.join(there)}, and the schema pgperf if it is empty"
        elif there:
            yield f"database {database}: nothing. {_forbidden()}"


def _planned_removals(found: list[Traces]) -> Iterator[str]:
    for traces in found:
        if traces.unreachable:
            yield f"alias {traces.alias}: not reachable ({traces.unreachable})"
        else:
            yield f"alias {traces.alias}: {', '.join(traces.counted)}"
            yield from (f"  {name}" for name in traces.tables)


def _remove_all(databases: list[Database], found: list[Traces], out: OutputWrapper) -> list[str]:
    """Remove everything that can be removed, and return the rest.

    The schema pgperf goes last: for a role named pgperf, pgperf's own tables may stand in it.
    """
    routes = list(_droppable(databases))
    kept = [*_drop_fixtures(databases, out), *_remove(found, out)]
    return [*kept, *_drop_schemas(routes, out)]


def _droppable(databases: list[Database]) -> Iterator[tuple[Database, Route]]:
    """The databases where fixtures are to be dropped, with routes that need no table of pgperf."""
    for database in databases:
        try:
            route = credentials.direct_route(database)
            if database.allow_fixtures and fixtures.present(route):
                yield database, route
        except PgperfError:  # _drop_fixtures reports it
            continue


def _drop_fixtures(databases: list[Database], out: OutputWrapper) -> Iterator[str]:
    """Drop them everywhere, and yield the databases where they stay."""
    for database in databases:
        try:
            route = credentials.direct_route(database)
            there = fixtures.present(route)
            if there and not database.allow_fixtures:
                out.write(f"database {database}: nothing was dropped. {_forbidden()}")
                yield f"the fixtures in {database}"
            elif there:
                out.write(f"database {database}: dropped {', '.join(fixtures.drop(database, route))}")
        except PgperfError as error:
            out.write(f"database {database}: {_unreachable(error)}")
            yield f"the fixtures in {database}"


def _drop_schemas(routes: list[tuple[Database, Route]], out: OutputWrapper) -> Iterator[str]:
    """Drop the schemas that are empty only now, and yield those that stay for an error."""
    for database, route in routes:
        try:
            if fixtures.drop_empty_schema(route):
                out.write(f"database {database}: dropped schema pgperf")
        except PgperfError as error:
            out.write(f"database {database}: {one_line(str(error))}")
            yield f"the schema pgperf in {database}"


def _remove(found: list[Traces], out: OutputWrapper) -> Iterator[str]:
    """Remove the traces of every alias, and yield the aliases where they stay."""
    for traces in found:
        if traces.unreachable:
            reason = traces.unreachable
        else:
            try:
                removal.remove(traces.alias)
            except DatabaseError as error:
                reason = first_line(error)
            else:
                out.write(f"alias {traces.alias}: removed {', '.join(traces.counted)}")
                continue
        out.write(f"alias {traces.alias}: nothing was removed ({reason})")
        yield f"alias {traces.alias}"


def _unreachable(error: PgperfError) -> str:
    drop = f"If pgperf has created tables there, drop them:\n{fixtures.drop_script()}"
    return f"not reachable ({one_line(str(error))}). {drop}"


def _forbidden() -> str:
    return f"It does not allow fixtures, and has some. Tick 'allow fixtures', or drop them:\n{fixtures.drop_script()}"


def _logins(databases: list[Database]) -> Iterator[str]:
    """The SQL that removes the logins of each server that answers."""
    for database in databases:
        try:
            script = readonly_role.removal_script(credentials.direct_route(database))
        except PgperfError as error:
            yield f"-- The logins on the server of {database} are not known: {one_line(str(error))}"
        else:
            if script:
                yield f"-- The logins on the server of {database}. Paste into psql as a superuser.\n{script}"


def _print_rest(logins: list[str], out: OutputWrapper) -> None:
    out.write("\nThese steps remain for you:")
    for script in dict.fromkeys(logins):
        out.write(script)
    for number, step in enumerate(_STEPS, 1):
        out.write(f"{number}. {step.format(queue=get_settings().QUEUE, build_dir=get_settings().BUILD_DIR)}")


_STEPS = (
    "Stop all workers of pgperf: those of the queue {queue}, agents and load hosts. Remove pgperf's lines from cron"
    " and from the settings of Celery beat.",
    'Remove "pgperf" from INSTALLED_APPS before the next migrate, which would create the tables again. Remove '
    '"import_export" and PGPERF too, if nothing else uses them.',
    "Run pip uninstall pgperf, and delete {build_dir}.",
)
