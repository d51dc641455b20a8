"""The dashboard in a browser: its layout, and what it shows while a run is under way."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from pgperf.models import Run, VariantResult
from tests import factories
from tests.browser.conftest import look
from tests.catalog_runs import make_catalog_run
from tests.cpu_accounts import add_cpu_accounts
from tests.histories import make_slower

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PICTURES = os.environ.get("PGPERF_TEST_PICTURES")
FAULTS = (Path(__file__).parent / "layout_faults.js").read_text()
LOOKS = [(1280, "light"), (1280, "dark"), (800, "light"), (800, "dark")]


def filled() -> Run:
    """Runs of benchmarks, one with a history and one that got slower, and what needs attention."""
    worker = factories.make_worker()
    worker.versions |= {"pgperf": "0.0.1"}
    worker.save()
    live = factories.make_database("shop-live", production=True, agent="east")
    factories.make_database()
    make_slower(benchmark=factories.make_benchmark("nightly"))
    for at in range(12):
        run = add_cpu_accounts(factories.make_results(factories.make_run()))
        rows = run.variants.filter(layer="django_orm", route="socket")
        us = 215 + at % 3 * 4 + (30 if at > 8 else 0)
        VariantResult.objects.filter(pk__in=rows).update(
            us_per_op=us, us_per_op_low=us - 4, us_per_op_high=us + 3
        )
    make_catalog_run("driver-suite-published", live)
    factories.make_run(Run.Status.FAILED, database=live, error="connection refused by 10.0.0.7")
    running = factories.make_run(
        Run.Status.RUNNING, progress=0.42, message="Block 3 of 6: about 2 min left.", busy_host="one"
    )
    factories.make_run(Run.Status.QUEUED, database=live, message=f"Waits for run {running.pk}.")
    past = timezone.now() - timedelta(hours=7)
    Run.objects.filter(status=Run.Status.DONE).update(finished_at=past)
    return running


@pytest.mark.parametrize("kind", ["empty", "filled"])
def test_nothing_overlaps_and_nothing_is_cut(page: Page, kind: str) -> None:
    if kind == "filled":
        filled()
    found = {}
    for width, scheme in LOOKS:
        words = look(page, width, scheme)
        page.goto("/admin/pgperf/")
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/dashboard-{kind}-{width}-{scheme}.png", full_page=True)
        found[words] = page.evaluate(FAULTS)
    assert not any(found.values()), found


def test_the_progress_moves_and_the_end_brings_the_result(page: Page) -> None:
    running = filled()
    page.goto("/admin/pgperf/")
    row = page.locator(".pgperf-active .pgperf-progress").first
    expect(row.locator(".percent")).to_have_text("42 %")
    Run.objects.filter(pk=running.pk).update(progress=0.61, heartbeat_at=timezone.now())
    expect(row.locator(".percent")).to_have_text("61 %")
    add_cpu_accounts(factories.make_results(running))
    Run.objects.filter(pk=running.pk).update(
        status=Run.Status.DONE, finished_at=timezone.now(), busy_key=None, busy_host=None
    )
    expect(page.locator(".pgperf-results")).to_contain_text(f"#{running.pk} on")
    expect(page.locator(".pgperf-active .running")).to_have_count(0)


def test_a_button_leads_to_the_page_that_starts_a_run(page: Page) -> None:
    filled()
    page.goto("/admin/pgperf/")
    page.get_by_role("link", name="Run benchmark orm-overhead", exact=True).click()
    expect(page.get_by_role("button", name="Run benchmark")).to_be_visible()
    expect(page.locator("[name=database] option:checked")).to_have_text("demo")
