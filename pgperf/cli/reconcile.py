"""`pgperf reconcile`: puts right the runs that nobody ended or took."""

from django.core.management.base import OutputWrapper

from pgperf import perform, runs
from pgperf.cli.text import names


def run(out: OutputWrapper) -> None:
    found = runs.reconcile()
    summarised = perform.summarise_lost_runs()
    out.write(f"Lost: {names(found.lost)}. Sent: {names(found.sent)}. Summarised: {names(summarised)}.")
