"""`pgperf reconcile`: marks lost runs, sends queued runs again, summarises what lost runs measured
and ends the sessions of their pages' users.
"""

from django.core.management.base import OutputWrapper

from pgperf.access import page_sessions
from pgperf.cli.text_table import names
from pgperf.runs import state
from pgperf.worker import execution


def run(out: OutputWrapper) -> None:
    found = state.reconcile()
    summarised = execution.summarise_ended_runs()
    sessions = page_sessions.remove_left()
    out.write(f"Lost: {names(found.lost)}. Sent: {names(found.sent)}. Summarised: {names(summarised)}.")
    if sessions:
        out.write(f"Ended sessions of pages' users: {sessions}.")
