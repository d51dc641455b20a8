"""`pgperf confirm`: starts a run that tests the verdict on one variant of a run."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.analysis import verdict_kinds
from pgperf.cli.export import find
from pgperf.cli.run import add_start_arguments, carry_out, typed_name
from pgperf.models import Run, VariantResult
from pgperf.reports.verdicts import verdicts, withheld
from pgperf.runs import confirmation


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", type=int, metavar="RUN", help="the ID of the run whose verdict to test")
    parser.add_argument(
        "--variant",
        default="",
        metavar="LABEL",
        help="the variant (default: the only one whose verdict can be tested)",
    )
    add_start_arguments(parser)


def run(options: dict[str, Any], out: OutputWrapper, err: OutputWrapper) -> None:
    """Execute the test run, then print its results and the verdict.

    Succeeds if the run is done, whether it confirms the verdict or not.
    """
    row = _chosen(find(options["run"]), options["variant"])
    database = row.run.database
    test_run = confirmation.request(
        row,
        foreground=not options["queue"],
        confirmed=typed_name(database, options["database_name"], err) if database else "",
    )
    carry_out(test_run, options, out, err)
    try:
        row.refresh_from_db()
    except VariantResult.DoesNotExist:
        raise CommandError(f"{row.run} was deleted meanwhile, and its verdict with it.") from None
    (err if options["json"] else out).write(_outcome_text(row))


def _chosen(tested: Run, label: str) -> VariantResult:
    if label:
        return confirmation.find(tested, label)
    candidates = confirmation.open_verdicts(tested)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise CommandError(f"{tested} has no verdict left to test.")
    names = "\n".join(f"  {row.label} ({verdict_kinds.title(row.verdict['word'])})" for row in candidates)
    raise CommandError(f"Choose a variant with --variant LABEL:\n{names}")


def _outcome_text(row: VariantResult) -> str:
    [shown] = verdicts([row])
    said = f"\n{row.label} of run {row.run_id}: {shown.word}, {shown.certainty} – {shown.short}"
    return "\n".join(filter(None, (said, *map(str, shown.notes), withheld([row]))))
