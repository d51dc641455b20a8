"""`pgperf cancel`: ends a queued run, or asks a running one to stop."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from pgperf.cli.export import find
from pgperf.models import Run
from pgperf.runs import state


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", type=int, metavar="RUN", help="the run's number")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    """Raises RunConflict for a run that has ended."""
    row = find(options["run"])
    state.request_cancel(row)
    ended = row.status == Run.Status.CANCELLED
    out.write(f"{row} is cancelled." if ended else f"{row} stops within seconds.")
