"""`pgperf compare`: a run over an earlier one or over a kept JSON export of one, or up to eight runs;
with --fail-on, the exit code says whether something got worse by more.
"""

import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.analysis.run_comparison import TIME, Change
from pgperf.cli import text_table
from pgperf.cli.export import find
from pgperf.models import Run
from pgperf.reports import number_format
from pgperf.reports.compared_run import ComparedRun, exported, previous, stored
from pgperf.reports.comparison_files import markdown, several_json
from pgperf.reports.html_report import comparison_html
from pgperf.reports.lacking import Lacking
from pgperf.reports.run_comparison import RunComparison, run_comparison_json
from pgperf.reports.several_runs import LEAST, MOST, SeveralRuns, several
from pgperf.reports.table import Table

#: Exit codes of --fail-on. 2 is the argument parser's own.
WORSE, UNDECIDED, ERROR = 1, 3, 4
#: By whether a disturbance may explain a difference.
_REMEDIES = {
    False: "A longer run narrows the interval.",
    True: "Other processes may explain it: measure again when the machine is quieter.",
}


class Judgement(CommandError):
    """What --fail-on found, unlike an error."""


@contextmanager
def errors_apart(fail_on: float | None) -> Iterator[None]:
    """Give errors under --fail-on a code of their own, so that a job can tell “slower” from “no
    baseline yet”.
    """
    try:
        yield
    except CommandError as error:
        if fail_on is not None and error.returncode == 1 and not isinstance(error, Judgement):
            error.returncode = ERROR
        raise


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "runs", type=int, nargs="+", metavar="RUN",
        help="the numbers of the earlier and of the later run, or of up to eight runs, over the oldest; with"
        " --baseline, of the later runs only",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="FILE|LAST|RUN",
        help="what to compare with: a file with the JSON export of a run; LAST, the latest done run of the"
        " same definition before the oldest of them; or a run's number",
    )  # fmt: skip
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    how.add_argument(
        "--format", choices=("md", "html"),
        help="md: tables to paste into a ticket; html: a report with charts, in one file that needs no network",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on", type=percentage, metavar="5%",
        help="exit 1 if a comparison takes longer by significantly more than this; exit 3 if one is"
        " inconclusive, or if a run or a variant could not be compared; exit 4 for an error",
    )  # fmt: skip
    parser.add_argument(
        "--relative", action="store_true",
        help="compare only times relative to the first layer of the same run (libpq where it ran), which a slower"
        " machine does not change",
    )  # fmt: skip


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    """Print the comparison. Raises Judgement when --fail-on finds something: exit 1, or WORSE, and
    exit 3, or UNDECIDED.
    """
    found = _compared(options["runs"], options["baseline"])
    fail_on: float | None = options["fail_on"]
    if options["relative"]:
        found = found.relative()
    try:
        out.write(_written(found, options, fail_on))
        out.flush()
    finally:  # the exit code is the answer, also where nothing can be written
        if fail_on is not None:
            _judge(found, fail_on)


def _compared(runs: Sequence[int], baseline: str | None) -> SeveralRuns:
    """The first of two runs is the baseline; of several, the oldest one."""
    least, most = (LEAST, MOST) if baseline is None else (LEAST - 1, MOST - 1)
    given = len({run for run in runs if str(run) != baseline})
    if not least <= given <= most:
        asked = "two to eight runs" if baseline is None else "one to seven runs beside --baseline"
        raise CommandError(f"compare takes {asked}; {given} given.", returncode=2)
    in_order = runs if baseline is None and len(runs) == LEAST else sorted(set(runs))
    sides = [stored(find(run)) for run in in_order]
    return several(sides, None if baseline is None else _baseline(baseline, sides))


def _written(found: SeveralRuns, options: dict[str, Any], fail_on: float | None) -> str:
    if options["format"]:
        return {"md": markdown, "html": comparison_html}[options["format"]](found)
    if not options["json"]:
        refused = (f"Not compared: {text}" for text in found.refusals)
        return "\n\n".join([*map(report, found.comparisons), *refused])
    pair = len(found.comparisons) == 1
    data = (
        run_comparison_json(found.comparisons[0], fail_on) if pair and not found.refused
        else several_json(found, fail_on)
    )  # fmt: skip
    return json.dumps(data, indent=2)


def _baseline(named: str, sides: Sequence[ComparedRun]) -> ComparedRun:
    if named == "LAST":
        return stored(_last(sides[0].run))
    if not (named.isascii() and named.isdigit()):
        return _from_file(Path(named))
    return next((side for side in sides if side.run.pk == int(named)), None) or stored(find(int(named)))


def _last(after: Run) -> Run:
    last = previous(Run.objects.all(), after)
    if last is None:
        raise CommandError(
            f"baseline: no run before {after} is done with the same definition on {after.database_name}."
        )
    return last


def _from_file(path: Path) -> ComparedRun:
    try:
        return exported(json.loads(path.read_text()))
    except (OSError, ValueError, RecursionError) as error:
        raise CommandError(
            f"baseline: {path} cannot be read as JSON ({type(error).__name__});"
            " name a file, LAST or the number of a run."
        ) from error


def _judge(found: SeveralRuns, fail_on: float) -> None:
    """What was not compared is not known to be as fast, so it is inconclusive."""
    if worse := [change for each in found.comparisons for change in each.worse_by(fail_on)]:
        raise Judgement(f"Worse by more than {_limit(fail_on)}: {_names(worse)}.", returncode=WORSE)
    if undecided := [*_unsure(found.comparisons, fail_on), *_lacking(found)]:
        raise Judgement("\n".join(undecided), returncode=UNDECIDED)


def _unsure(comparisons: Sequence[RunComparison], fail_on: float) -> Iterator[str]:
    if changes := [change for found in comparisons for change in found.undecided_by(fail_on)]:
        remedy = _REMEDIES[any(change.others_may_explain(fail_on) for change in changes)]
        yield f"Inconclusive, may be worse by more than {_limit(fail_on)}: {_names(changes)}. {remedy}"


def _lacking(found: SeveralRuns) -> Iterator[str]:
    """The runs and variants that could not be compared, and the variants that a later run has lost."""
    if found.refusals:
        yield f"Inconclusive, because not compared: {'; '.join(found.refusals)}."
    for each in found.comparisons:
        if each.only_before:
            lost = _listed(each.only_before)
            yield f"Inconclusive, because {each.after} lacks what {each.before} measured: {lost}."
        if each.not_compared:
            names = ", ".join(variant.label for variant in each.not_compared)
            runs = f"{each.before} and {each.after}"
            yield f"Inconclusive, because not relative to the same layer in {runs}: {names}."


def _limit(fail_on: float) -> str:
    return f"{100 * fail_on:g} %"


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
    yield from found.cautions
    yield from filter(None, [found.server_settings, found.warnings])
    if steps := found.step_table:
        yield steps
    yield from found.step_notes
    yield from found.tables
    yield found.note if found.of(TIME) else ""
    for only, run_ in ((found.only_before, found.before), (found.only_after, found.after)):
        yield f"Only in {run_}: {_listed(only)}" if only else ""


def _listed(only: Sequence[Lacking]) -> str:
    return ", ".join(map(str, only))


def _names(changes: Sequence[Change]) -> str:
    return "; ".join(map(_named, changes))


def _named(change: Change) -> str:
    over = f" over {change.base.label}" if change.base else ""
    return f"{change.variant.label}{over} {number_format.ratio(change.ratio.centre)}"
