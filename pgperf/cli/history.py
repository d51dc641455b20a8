"""`pgperf history`: the steps of a benchmark over its runs, and where they changed."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.cli import text_table
from pgperf.models import Benchmark, Database, Run
from pgperf.reports import history
from pgperf.reports.history import Asked, History, files, page
from pgperf.reports.table import Table


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("benchmark", help="the benchmark's name")
    parser.add_argument(
        "--database", default="", metavar="NAME", help="the database (default: that of the newest run)"
    )
    parser.add_argument(
        "--definition", default="", metavar="HASH",
        help="the definition of the runs, by the first digits of its hash (default: that of the newest run)",
    )  # fmt: skip
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    form.add_argument("--csv", action="store_true", help="print a row for each step of each run")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    """Raises CommandError for an unknown name, and where no run is done."""
    found = _read(options)
    if options["csv"]:
        out.write(files.history_csv(found), ending="")
    elif options["json"]:
        out.write(json.dumps(files.history_json(found), indent=2))
    else:
        out.write(text_table.report(_parts(found)))


def _read(options: dict[str, Any]) -> History:
    benchmark = Benchmark.objects.filter(name=options["benchmark"]).first()
    if benchmark is None:
        raise CommandError(f"There is no benchmark {options['benchmark']!r}; pgperf list has their names.")
    database = _database(options["database"])
    asked = Asked(database, options["definition"], variant=None)
    found = history.read(benchmark, Run.objects.all(), asked)
    if found is None:
        where = f" on {options['database']}" if options["database"] else ""
        of = f" with the definition {options['definition']}" if options["definition"] else ""
        raise CommandError(f"No run of {benchmark} is done{where}{of}.")
    return found


def _database(name: str) -> int | None:
    if not name:
        return None
    number = Database.objects.filter(name=name).values_list("pk", flat=True).first()
    if number is None:
        names = ", ".join(Database.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"There is no database {name!r}. Databases: {names}.")
    return number


def _parts(found: History) -> Iterator[str | Table]:
    yield f"{found.benchmark} on {found.line.database_name}: {_numbers(found)}"
    changes = "\n".join(
        "\n  ".join((f"{each.text}: {each.levels}", *each.layers)) for each in page.changes(found)
    )
    yield changes or page.no_changes(found)
    yield page.step_table(found)
    if environment := page.environment_table(found, found.runs):
        yield environment


def _numbers(found: History) -> str:
    """How many runs, and the numbers of the first and of the last one."""
    first, last = found.runs[0].pk, found.runs[-1].pk
    return f"{len(found.runs)} runs, #{first} to #{last}" if first != last else f"1 run, #{first}"
