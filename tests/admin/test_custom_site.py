"""pgperf in an AdminSite of the site's own."""

from typing import Any

import pytest
from django.test import Client

import pgperf.admin
from pgperf.admin import register
from pgperf.models import Run
from tests import factories
from tests.admin import custom_site

pytestmark = pytest.mark.urls("tests.admin.custom_site")


def test_every_page_stays_in_its_site(admin_page: Client, run: Run) -> None:
    running = factories.make_run(Run.Status.RUNNING)
    for address in (
        "/ops/",
        "/ops/pgperf/benchmark/",
        f"/ops/pgperf/benchmark/{run.benchmark_id}/change/",
        f"/ops/pgperf/benchmark/{run.benchmark_id}/run/",
        "/ops/pgperf/run/",
        f"/ops/pgperf/run/{run.pk}/change/",
        f"/ops/pgperf/run/{running.pk}/change/",
        "/ops/pgperf/worker/",
    ):
        response = admin_page.get(address)
        assert response.status_code == 200, address
        assert "/admin/pgperf" not in response.content.decode()


def test_registering_twice_is_harmless() -> None:
    register(custom_site.site)


@pytest.mark.parametrize("wanted", [True, False])
def test_the_default_site_is_the_settings_choice(settings: Any, wanted: bool) -> None:
    settings.PGPERF = {**settings.PGPERF, "ADMIN_AUTOREGISTER": wanted}
    assert pgperf.admin._autoregister() is wanted


def test_wrong_settings_do_not_keep_the_site_from_starting(settings: Any) -> None:
    settings.PGPERF = {"NO_SUCH_KEY": 1}
    assert pgperf.admin._autoregister()
