"""`pgperf due`: starts what is due by its schedule, for cron."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from pgperf import schedules
from pgperf.models import Schedule
from pgperf.reports.run_names import named


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--quiet", action="store_true", help="print only what did not start")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    handled = schedules.start_due()
    for each in handled:
        if each.outcome != Schedule.Outcome.STARTED or not options["quiet"]:
            out.write(_line(each))
    if not handled and not options["quiet"]:
        out.write("Nothing is due.")


def _line(handled: schedules.Handled) -> str:
    row = handled.schedule
    what = f"{row} ({row.benchmark} on {row.database}): {handled.outcome.label}"
    run = f" as run {handled.run.pk}" if handled.run else ""
    return " ".join(filter(None, (f"{what}{run}.", named(handled.reason))))
