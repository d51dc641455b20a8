"""`pgperf prune`: deletes old runs; with --fixtures, drops the fixture tables in the databases."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.access import credentials, fixtures
from pgperf.conf import get_settings
from pgperf.core.exceptions import PgperfError
from pgperf.models import Database, Run
from pgperf.runs import retention

_MOST_IDS = 20  # that are listed


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only print what would be deleted")
    parser.add_argument(
        "--fixtures",
        action="store_true",
        help="drop the fixture tables, instead of deleting old runs",
    )
    parser.add_argument("--database", default="", metavar="DB", help="with --fixtures: only in this database")
    parser.add_argument("--yes", action="store_true", help="with --fixtures: do not ask for confirmation")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    if options["fixtures"]:
        _drop_fixtures(options, out)
    elif options["database"]:
        raise CommandError("Use --database only with --fixtures.")
    else:
        _prune(out, dry_run=options["dry_run"])


def _prune(out: OutputWrapper, *, dry_run: bool) -> None:
    settings = get_settings()
    pruned = retention.prune(dry_run=dry_run)
    for what, key in (("runs", settings.KEEP_RUNS_DAYS), ("raw blocks", settings.KEEP_RAW_DAYS)):
        out.write(f"pgperf keeps {what} {_period(key)}.")
    out.write("It never deletes pinned runs or their raw blocks.")
    verb = "Would delete" if dry_run else "Deleted"
    out.write(f"{verb} {_count(len(pruned.runs), 'run')}{_id_list(pruned.runs)}.")
    raw = f"{_count(pruned.blocks, 'raw block')} of {_count(len(pruned.raw), 'more run')}"
    out.write(f"{verb} {raw}{_id_list(pruned.raw)}.")


def _period(days: int) -> str:
    return f"for {_count(days, 'day')}" if days > 0 else "forever"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _id_list(ids: list[int]) -> str:
    shown = ", ".join(str(run_id) for run_id in ids[:_MOST_IDS])
    return f" ({shown}{', ...' if len(ids) > _MOST_IDS else ''})" if ids else ""


# Fixtures


def _drop_fixtures(options: dict[str, Any], out: OutputWrapper) -> None:
    databases = _chosen(options["database"])
    names = ", ".join(database.name for database in databases)
    if options["dry_run"]:
        out.write(f"Would drop the fixture tables (schema pgperf) in: {names}.")
        return
    if not options["yes"] and not _confirmed(names, out):
        raise CommandError("Nothing was dropped. Use --yes to drop without confirmation.")
    failed = [database.name for database in databases if not _drop(database, out)]
    if failed:
        raise CommandError(f"Not dropped in {', '.join(failed)}.")


def _chosen(name: str) -> list[Database]:
    """The databases that allow fixtures; a production database only if it is named."""
    if name:
        return [_named(name)]
    found = list(Database.objects.filter(allow_fixtures=True, production=False))
    if not found:
        raise CommandError(
            "No database allows fixtures, of those that are not in production. Name a production database with"
            " --database."
        )
    return found


def _named(name: str) -> Database:
    found = Database.objects.filter(name=name).first()
    if found is None:
        names = ", ".join(Database.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"There is no database {name!r}. Databases: {names}.")
    if not found.allow_fixtures:
        raise CommandError(
            f"{found} does not allow fixtures, so pgperf drops none there. Tick 'allow fixtures', or drop them:\n"
            f"{fixtures.drop_script()}"
        )
    return found


def _confirmed(names: str, out: OutputWrapper) -> bool:
    if not sys.stdin.isatty():
        return False
    asked = f"Drop the fixture tables (schema pgperf) in {names}? Results are kept. [yes/no] "
    out.write(asked, ending="")
    out.flush()
    return sys.stdin.readline().strip().lower() == "yes"


def _drop(database: Database, out: OutputWrapper) -> bool:
    """Drop the fixtures of one database and print the result; False if that failed."""
    try:
        if Run.objects.filter(database=database, status=Run.Status.RUNNING).exists():
            raise PgperfError("a run is active; wait for its end or cancel it")
        dropped = fixtures.drop(database, credentials.direct_route(database))
    except PgperfError as error:
        out.write(f"{database}: {error}")
        return False
    out.write(
        f"{database}: dropped {', '.join(dropped)}."
        if dropped
        else f"{database}: has no fixture tables of pgperf."
    )
    return True
