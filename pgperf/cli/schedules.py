"""`pgperf schedules`: when benchmarks run by themselves, and what came of the last time."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from pgperf.cli import text_table
from pgperf.models import Schedule
from pgperf.reports import schedules


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    found = Schedule.objects.select_related("benchmark", "database").prefetch_related("owner")
    if options["json"]:
        out.write(json.dumps(schedules.rows(found), indent=2))
    else:
        out.write(text_table.text(schedules.table(found)) or "Schedules: none. Add one in the admin.")
