"""`pgperf compare`: the second run over the first; with --fail-on, exit 1 when something got worse
by more.
"""

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.analysis.run_comparison import TIME, Change
from pgperf.cli import text_table
from pgperf.cli.export import find
from pgperf.reports import number_format
from pgperf.reports.run_comparison import RunComparison, compare_runs, run_comparison_json
from pgperf.reports.table import Table


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("before", type=int, metavar="BEFORE", help="the number of the earlier run")
    parser.add_argument("after", type=int, metavar="AFTER", help="the number of the later run")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument(
        "--fail-on", type=percentage, metavar="5%",
        help="exit 1 if a comparison differs and takes longer by more than this",
    )  # fmt: skip
    parser.add_argument(
        "--relative", action="store_true",
        help="compare only times relative to libpq of the same run, which a slower machine does not change",
    )  # fmt: skip


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    """Print the comparison. Raises CommandError, exit 1, when --fail-on finds something."""
    found = compare_runs(find(options["before"]), find(options["after"]))
    fail_on: float | None = options["fail_on"]
    if options["relative"]:
        found = found.relative()
    out.write(json.dumps(run_comparison_json(found, fail_on), indent=2) if options["json"] else report(found))
    if fail_on is not None and (worse := found.worse_by(fail_on)):
        names = "; ".join(map(_named, worse))
        raise CommandError(f"Worse by more than {100 * fail_on:g} %: {names}.", returncode=1)


def percentage(text: str) -> float:
    """5% as 0.05."""
    digits = text.removesuffix("%").strip()
    try:
        share = float(digits) / 100
    except ValueError:
        share = -1.0
    if digits == text.strip() or not 0 <= share < 100:
        raise ArgumentTypeError(f"{text!r} is not a percentage such as 5%")
    return share


def report(found: RunComparison) -> str:
    """What else differs, the tables of the page, and the variants of one run only."""
    return text_table.report(_parts(found))


def _parts(found: RunComparison) -> Iterator[str | Table]:
    yield f"{found.after} over {found.before}"
    yield from filter(None, [found.warnings])
    yield from found.tables
    yield found.note if found.of(TIME) else ""
    for labels, run_ in ((found.only_before, found.before), (found.only_after, found.after)):
        yield f"Only in {run_}: {', '.join(labels)}" if labels else ""


def _named(change: Change) -> str:
    over = f" over {change.base.label}" if change.base else ""
    return f"{change.variant.label}{over} {number_format.ratio(change.ratio.centre)}"
