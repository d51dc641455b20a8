"""`pgperf reconcile`: marks lost runs, sends queued runs again and summarises what lost runs
measured.
"""

from django.core.management.base import OutputWrapper

from pgperf.cli.text_table import names
from pgperf.runs import state
from pgperf.worker import execution


def run(out: OutputWrapper) -> None:
    found = state.reconcile()
    summarised = execution.summarise_lost_runs()
    out.write(f"Lost: {names(found.lost)}. Sent: {names(found.sent)}. Summarised: {names(summarised)}.")
