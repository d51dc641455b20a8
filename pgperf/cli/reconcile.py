"""`pgperf reconcile`: puts right the runs that nobody ended or took."""

from django.core.management.base import OutputWrapper

from pgperf.cli.text_table import names
from pgperf.runs import state
from pgperf.worker import execution


def run(out: OutputWrapper) -> None:
    found = state.reconcile()
    summarised = execution.summarise_lost_runs()
    out.write(f"Lost: {names(found.lost)}. Sent: {names(found.sent)}. Summarised: {names(summarised)}.")
