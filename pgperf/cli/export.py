"""`pgperf export`: the results of a run to stdout; as OpenMetrics also those of all benchmarks."""

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.management.base import CommandError, OutputWrapper
from django.db.models import QuerySet

from pgperf.cli.markdown import markdown
from pgperf.models import Run
from pgperf.reports import openmetrics
from pgperf.reports.csv_results import (
    comparisons_csv,
    load_hosts_csv,
    means_csv,
    rate_searches_csv,
    rate_steps_csv,
    scaling_csv,
    steps_csv,
    timeline_csv,
    top_csv,
    variants_csv,
)
from pgperf.reports.html_report import run_html
from pgperf.reports.raw_slices import slices_csv
from pgperf.reports.run_json import run_json
from pgperf.reports.run_rows import read

#: Of a primary key.
_DIGITS = 18
#: What `--table` can name -> what makes its CSV.
TABLES: dict[str, Callable[[Run], str]] = {
    "variants": variants_csv,
    "comparisons": comparisons_csv,
    "scaling": scaling_csv,
    "rate-searches": rate_searches_csv,
    "rate-steps": rate_steps_csv,
    "load-hosts": load_hosts_csv,
    "means": means_csv,
    "steps": steps_csv,
    "timeline": timeline_csv,
    "top": top_csv,
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "run",
        nargs="?",
        default="",
        metavar="RUN|BENCHMARK",
        help="the number of a run, or a benchmark for its newest done run; "
        "without it, openmetrics has the newest done run of each benchmark that no group hides",
    )
    parser.add_argument(
        "--user", default="", metavar="NAME", help="openmetrics: only what this user's groups may see"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--format",
        choices=("csv", "json", "md", "html", "openmetrics"),
        default="csv",
        help="md: tables to paste into a ticket; html: a report with charts, in one file that needs no"
        " network; openmetrics: gauges for Prometheus",
    )
    what.add_argument(
        "--table", choices=TABLES, help="CSV of this table (default: variants, one row per variant)"
    )
    what.add_argument("--raw", action="store_true", help="CSV of every measured slice")
    what.add_argument("--comparisons", action="store_true", help="the same as --table comparisons")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    if options["format"] == "openmetrics":
        out.write(openmetrics.text(_shown(options)), ending="")
        return
    if options["user"]:
        raise CommandError("--user goes with --format openmetrics.")
    row = _row(options["run"], Run.objects.all())
    if options["raw"]:
        _write_slices(row, out)
    elif options["format"] == "json":
        out.write(json.dumps(run_json(row), indent=2))
    elif options["format"] == "md":
        out.write(markdown(read(row)))
    elif options["format"] == "html":
        out.write(run_html(row), ending="")
    else:
        name = options["table"] or ("comparisons" if options["comparisons"] else "variants")
        out.write(TABLES[name](row), ending="")


def _write_slices(row: Run, out: OutputWrapper) -> None:
    """Until the reader leaves, as `head` does."""
    for lines in slices_csv(row):
        out.write(lines, ending="")
        if getattr(out, "reader_left", False):
            return


def _shown(options: dict[str, Any]) -> Iterable[Run]:
    """The runs for OpenMetrics. A run or benchmark that is named is shown as in the other formats."""
    if not options["run"]:
        return openmetrics.newest_done(openmetrics.seen_by(_user(options["user"])))
    runs = openmetrics.seen_by(_user(options["user"])) if options["user"] else Run.objects.all()
    if _is_number(options["run"]):
        return [find(int(options["run"]), runs)]
    return _newest(options["run"], runs)


def _row(name: str, runs: QuerySet[Run]) -> Run:
    """The run of that number, or the newest done one of the benchmark."""
    if not name:
        raise CommandError("Give the number of a run or the name of a benchmark.")
    if _is_number(name):
        return find(int(name), runs)
    return max(_newest(name, runs), key=attrgetter("pk"))


def _is_number(name: str) -> bool:
    return name.isdecimal() and len(name) <= _DIGITS


def _newest(benchmark: str, runs: QuerySet[Run]) -> Iterable[Run]:
    """Its newest done run on each database."""
    found = openmetrics.newest_done(runs.filter(benchmark__name=benchmark))
    if not found:
        raise CommandError(f"There is no done run of a benchmark {benchmark!r}.")
    return found


def _user(name: str) -> Any:
    """An active user by the name that they log in with; without a name one who is in no group."""
    if not name:
        return AnonymousUser()
    model = get_user_model()
    user = model._default_manager.filter(**{model.USERNAME_FIELD: name}).first()
    if user is None or not user.is_active:
        raise CommandError(f"There is no active user {name!r}.")
    return user


def find(run_id: int, runs: QuerySet[Run] | None = None) -> Run:
    """The run of that number, of all or of these. Raises CommandError."""
    row = (Run.objects.all() if runs is None else runs).filter(pk=run_id).first()
    if row is None:
        raise CommandError(f"There is no run {run_id}.")
    return row
