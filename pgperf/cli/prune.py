"""`pgperf prune`: applies retention; with --fixtures drops what pgperf made in the databases."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.access import credentials, fixtures
from pgperf.conf import get_settings
from pgperf.core.exceptions import PgperfError
from pgperf.core.records import Route, most_direct
from pgperf.models import Database, Run
from pgperf.runs import retention


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only say what would go")
    parser.add_argument(
        "--fixtures", action="store_true", help="drop the tables that pgperf made, instead of old runs"
    )
    parser.add_argument("--database", default="", metavar="DB", help="with --fixtures: only there")
    parser.add_argument("--yes", action="store_true", help="with --fixtures: do not ask")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    if options["fixtures"]:
        _drop_fixtures(options, out)
    elif options["database"]:
        raise CommandError("--database goes with --fixtures.")
    else:
        _prune(out, dry_run=options["dry_run"])


def _prune(out: OutputWrapper, *, dry_run: bool) -> None:
    settings = get_settings()
    pruned = retention.prune(dry_run=dry_run)
    for what, key in (("runs", settings.KEEP_RUNS_DAYS), ("raw blocks", settings.KEEP_RAW_DAYS)):
        out.write(f"Keeps {what} {f'for {key} days' if key > 0 else 'for ever'}, pinned ones always.")
    verb = "Would delete" if dry_run else "Deleted"
    out.write(f"{verb} {_counted(len(pruned.runs), 'run')}{_listed(pruned.runs)}.")
    raw = f"{_counted(pruned.blocks, 'raw block')} of {_counted(len(pruned.raw), 'more run')}"
    out.write(f"{verb} {raw}{_listed(pruned.raw)}.")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _listed(ids: list[int], most: int = 20) -> str:
    """The first of them, for a terminal."""
    shown = ", ".join(str(run_id) for run_id in ids[:most])
    return f" ({shown}{', ..' if len(ids) > most else ''})" if ids else ""


# Fixtures


def _drop_fixtures(options: dict[str, Any], out: OutputWrapper) -> None:
    databases = _chosen(options["database"])
    names = ", ".join(database.name for database in databases)
    if options["dry_run"]:
        out.write(f"Would drop pgperf's own tables in: {names}.")
        return
    if not options["yes"] and not _agreed(names, out):
        raise CommandError("Nothing was dropped; --yes drops without asking.")
    failed = [database.name for database in databases if not _drop(database, out)]
    if failed:
        raise CommandError(f"Not dropped in {', '.join(failed)}.")


def _chosen(name: str) -> list[Database]:
    """Those that allow fixtures; a production one only when it is named."""
    allowing = Database.objects.filter(allow_fixtures=True)
    found = list(allowing.filter(name=name) if name else allowing.filter(production=False))
    if not found:
        where = f"{name!r} is no database that allows fixtures" if name else "No database allows fixtures"
        raise CommandError(
            f"{where}, so pgperf has made none. Production ones must be named with --database."
        )
    return found


def _agreed(names: str, out: OutputWrapper) -> bool:
    if not sys.stdin.isatty():
        return False
    out.write(f"Drop pgperf's own tables in {names}? [yes/no] ", ending="")
    out.flush()
    return sys.stdin.readline().strip().lower() == "yes"


def _drop(database: Database, out: OutputWrapper) -> bool:
    """Drop there, and say what went or why not."""
    try:
        if Run.objects.filter(database=database, status=Run.Status.RUNNING).exists():
            raise PgperfError("a run is under way there")
        gone = fixtures.drop(database, _route(database))
    except PgperfError as error:
        out.write(f"{database}: {error}")
        return False
    dropped = ", ".join(gone)
    out.write(f"{database}: dropped {dropped}." if gone else f"{database}: nothing of ours is there.")
    return True


def _route(database: Database) -> Route:
    """A direct route if there is one: dropping goes through no pooler where it need not."""
    targets = list(database.targets.filter(enabled=True))
    if not targets:
        raise PgperfError("it has no enabled target")
    route = most_direct(targets).route
    return credentials.resolve(database, [route])[route]
