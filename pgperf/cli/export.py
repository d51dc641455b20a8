"""`pgperf export`: a run's results to stdout."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError, OutputWrapper

from pgperf.models import Run
from pgperf.reports.export import comparisons_csv, variants_csv
from pgperf.reports.run import run_json


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", type=int, help="the run's number")
    parser.add_argument("--format", choices=("csv", "json"), default="csv")
    parser.add_argument(
        "--comparisons", action="store_true", help="CSV of the comparisons instead of the variants"
    )


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    row = find(options["run"])
    if options["format"] == "json":
        out.write(json.dumps(run_json(row), indent=2))
    else:
        out.write(comparisons_csv(row) if options["comparisons"] else variants_csv(row), ending="")


def find(run_id: int) -> Run:
    row = Run.objects.filter(pk=run_id).first()
    if row is None:
        raise CommandError(f"There is no run {run_id}.")
    return row
