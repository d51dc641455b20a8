"""`pgperf export`: a run's results to stdout."""

import json
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.cli.markdown import markdown
from pgperf.models import Run
from pgperf.reports.csv_results import (
    comparisons_csv,
    means_csv,
    scaling_csv,
    timeline_csv,
    top_csv,
    variants_csv,
)
from pgperf.reports.raw_slices import slices_csv
from pgperf.reports.run_json import run_json
from pgperf.reports.run_rows import read

#: What `--table` can name -> what makes its CSV.
TABLES: dict[str, Callable[[Run], str]] = {
    "variants": variants_csv,
    "comparisons": comparisons_csv,
    "scaling": scaling_csv,
    "means": means_csv,
    "timeline": timeline_csv,
    "top": top_csv,
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", type=int, help="the run's number")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--format", choices=("csv", "json", "md"), default="csv", help="md: tables to paste into a ticket"
    )
    what.add_argument(
        "--table", choices=TABLES, help="CSV of this table (default: variants, one row per variant)"
    )
    what.add_argument("--raw", action="store_true", help="CSV of every measured slice")
    parser.add_argument("--comparisons", action="store_true", help="the same as --table comparisons")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    row = find(options["run"])
    if options["raw"]:
        for lines in slices_csv(row):
            out.write(lines, ending="")
    elif options["format"] == "json":
        out.write(json.dumps(run_json(row), indent=2))
    elif options["format"] == "md":
        out.write(markdown(read(row)))
    else:
        name = options["table"] or ("comparisons" if options["comparisons"] else "variants")
        out.write(TABLES[name](row), ending="")


def find(run_id: int) -> Run:
    row = Run.objects.filter(pk=run_id).first()
    if row is None:
        raise CommandError(f"There is no run {run_id}.")
    return row
