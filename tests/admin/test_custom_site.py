"""pgperf in an AdminSite of the site's own."""

import pytest
from django.test import Client

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
