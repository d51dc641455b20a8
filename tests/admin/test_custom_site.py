"""pgperf in a custom AdminSite."""

from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

import pgperf.admin
from pgperf.admin import downloads, register
from pgperf.analysis.verdict import Confirmation, MeasuredChange
from pgperf.models import Run
from pgperf.runs import pause
from pgperf.runs.definitions import freeze
from pgperf.transfer.files import FORMATS
from tests import factories
from tests.admin import custom_site
from tests.admin.test_matrix import PAGES, Rows
from tests.factories import label_to_test

pytestmark = pytest.mark.urls("tests.admin.custom_site")


@pytest.mark.parametrize(
    "urls", ["tests.admin.custom_site", "tests.admin.two_sites", "tests.admin.site_without_pgperf"]
)
def test_every_link_stays_in_the_custom_site(admin_page: Client, run: Run, settings: Any, urls: str) -> None:
    """Without a current app, names of URLs lead to the default site."""
    running = reverse("admin:pgperf_run_change", args=[factories.make_run(Run.Status.RUNNING).pk])
    addresses = ["/ops/", "/ops/pgperf/", running, *_addresses(run)]
    _test_the_verdict_of(run)
    settings.ROOT_URLCONF = urls
    for address in addresses:
        assert address.startswith("/ops/")
        _check(admin_page.get(address, follow=True), address)


def test_every_export_stays_in_the_custom_site(admin_page: Client, run: Run) -> None:
    for model, kind in product(("benchmark", "database", "workload"), FORMATS):
        address = reverse(f"admin:pgperf_{model}_export")
        response = admin_page.post(address, {"format": kind, "chosen": ""})
        _check(response, address)
        assert response["Content-Disposition"].startswith("attachment")


def _addresses(run: Run) -> Iterator[str]:
    """Every page of the matrix that a superuser may open, and every download."""
    assert run.benchmark
    assert run.database
    schedule = factories.make_schedule(benchmark=run.benchmark, database=run.database)
    worker = factories.make_worker()
    rows = Rows(Group(), run.benchmark, run.database, run, schedule, worker, pause.begin("ada"))
    for name in (name for name, page in PAGES.items() if "superuser" in (page.get or ())):
        if name == "pgperf_run_download":
            files = downloads.FILES
            yield from (reverse(f"admin:{name}", args=[run.pk, file]) for file in files)
        elif name == "pgperf_run_confirm":
            yield f"{rows.address(name)}?{urlencode({'variant': _label_to_test(run)})}"
        elif ":" not in name:
            yield rows.address(name)
    yield f"{rows.address('pgperf_run_compare')}?with={run.pk}"


def _label_to_test(run: Run) -> str:
    assert run.benchmark
    assert run.database
    run.definition = freeze(run.benchmark, run.database).to_json()
    run.save()
    return label_to_test(run)


def _test_the_verdict_of(run: Run) -> None:
    """So that a cell of the run's page links to the run that tested it; another has a button."""
    change = MeasuredChange(20.0, 11.0, 18.0, 9.0)
    tested = Confirmation("lower_layer", "confirmed", None, change, factories.make_run().pk)
    row = run.variants.filter(layer="libpq", control=0)[0]
    row.verdict = factories.stored_verdict(certainty="confirmed", confirmation=tested)
    row.save()


def _check(response: Any, address: str) -> None:
    content = response.getvalue()
    assert response.status_code == 200, address
    assert content, address
    assert b"/admin/pgperf" not in content, address


def test_registering_twice_changes_nothing() -> None:
    before = dict(custom_site.site._registry)
    register(custom_site.site)
    assert custom_site.site._registry == before


@pytest.mark.parametrize("wanted", [True, False])
def test_the_setting_controls_the_default_site(settings: Any, wanted: bool) -> None:
    settings.PGPERF = {**settings.PGPERF, "ADMIN_AUTOREGISTER": wanted}
    assert pgperf.admin._autoregister() is wanted


def test_wrong_settings_do_not_prevent_the_start(settings: Any) -> None:
    settings.PGPERF = {"NO_SUCH_KEY": 1}
    assert pgperf.admin._autoregister()
