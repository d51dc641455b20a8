"""`pgperf cancel`."""

import io

import pytest
from django.core.management import CommandError, call_command

from pgperf.models import Run
from pgperf.reports.run_json import TERMINAL
from tests.factories import make_run

pytestmark = pytest.mark.django_db


def cancel(number: int) -> str:
    out = io.StringIO()
    call_command("pgperf", "cancel", str(number), stdout=out)
    return out.getvalue()


def test_a_queued_run_ends_at_once() -> None:
    run = make_run(Run.Status.QUEUED)
    assert cancel(run.pk) == f"{run} is cancelled.\n"
    run.refresh_from_db()
    assert run.status == Run.Status.CANCELLED


def test_a_running_run_is_asked_to_stop() -> None:
    run = make_run(Run.Status.RUNNING)
    assert cancel(run.pk) == f"{run} stops within seconds.\n"
    run.refresh_from_db()
    assert (run.status, run.cancel_requested) == (Run.Status.RUNNING, True)


@pytest.mark.parametrize("status", TERMINAL)
def test_a_run_that_has_ended_stays_as_it_is(status: str) -> None:
    run = make_run(status)
    with pytest.raises(CommandError, match=f"run {run.pk} is {status}"):
        cancel(run.pk)
    run.refresh_from_db()
    assert (run.status, run.cancel_requested) == (status, False)


def test_there_is_no_such_run() -> None:
    with pytest.raises(CommandError, match="There is no run 12345"):
        cancel(12345)
