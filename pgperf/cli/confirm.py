"""`pgperf confirm`: put the verdict on one of a run's variants to the test."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.analysis.verdict import WORDS
from pgperf.cli.export import find
from pgperf.cli.run import carry_out, typed_name
from pgperf.models import Run, VariantResult
from pgperf.runs import confirmation


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", type=int, metavar="RUN", help="the number of the run whose verdict is tested")
    parser.add_argument(
        "--variant", default="", metavar="LABEL", help="of that run; default: the only one that can be tested"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--queue", action="store_true", help="through a Celery worker, waiting for it")
    parser.add_argument(
        "--database-name",
        default="",
        metavar="DB",
        help="repeats the name of a production database to allow the run",
    )


def run(options: dict[str, Any], out: OutputWrapper, err: OutputWrapper) -> None:
    """Run the test, print it and what became of the verdict. Succeeds if the run is done, whatever it says."""
    row = _chosen(find(options["run"]), options["variant"])
    database = row.run.database
    asked = confirmation.request(
        row,
        foreground=not options["queue"],
        confirmed=typed_name(database, options["database_name"], err) if database else "",
    )
    carry_out(asked, options, out, err)
    row.refresh_from_db()
    (err if options["json"] else out).write(_said(row))


def _chosen(tested: Run, label: str) -> VariantResult:
    if label:
        return confirmation.find(tested, label)
    there = confirmation.open_verdicts(tested)
    if len(there) == 1:
        return there[0]
    if not there:
        raise CommandError(f"{tested} has no verdict that could be tested and has not been.")
    names = "\n".join(f"  {row.label} ({WORDS[row.verdict['word']]})" for row in there)
    raise CommandError(f"Say which with --variant; there is\n{names}")


def _said(row: VariantResult) -> str:
    verdict, found = row.verdict, row.verdict.get("confirmation") or {}
    said = f"\n{row.label} of run {row.run_id}: {WORDS[verdict['word']]}, {verdict['certainty']}. {verdict['evidence']}"
    return f"{said}\nRun {found['run']}: {found['outcome']}. {found['evidence']}" if found else said
