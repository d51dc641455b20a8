"""The notes on web servers whose processes were not found."""

import pytest

from pgperf.models import Run
from pgperf.reports import run_rows, unseen_servers
from tests import factories
from tests.site_steps import make_run as site_steps_run

pytestmark = pytest.mark.django_db


def steps(placement: str = "apart", **workers: int | None) -> Run:
    """A run of the site's steps; `workers`: the processes of a step's web servers, by its route."""
    run = site_steps_run()
    for row in run.variants.all():
        row.placement = placement
        row.cpu_account = {**(row.cpu_account or {}), "web_workers": workers.get(row.route, 3)}
        row.save()
    return run


def notes(run: Run) -> list[str]:
    return unseen_servers.notes(run_rows.read(run))


def test_servers_that_were_all_found_need_no_note() -> None:
    assert notes(steps()) == []


def test_a_step_whose_servers_were_not_found_may_have_other_cpus() -> None:
    run = steps(web_tls=None)
    found = notes(run)
    assert found
    assert all("behind web_tls were not found" in note for note in found)
    assert "as those behind web_pgbouncer. A difference" in " ".join(found)


def test_servers_that_are_bound_to_no_cpus_need_no_note() -> None:
    assert notes(steps("scheduler", web_tls=None)) == []


def test_statements_need_no_note() -> None:
    assert notes(factories.make_results(factories.make_run())) == []
