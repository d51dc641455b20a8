"""The steps of a web site in a real browser, on stored results."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from pgperf.models import Run
from tests import site_steps
from tests.browser.conftest import look
from tests.browser.test_layout import CHARTS_STAND, FAULTS
from tests.browser.test_run_page import chart
from tests.cpu_accounts import add_cpu_accounts

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PICTURES = os.environ.get("PGPERF_TEST_PICTURES")


@pytest.fixture
def run(page: Page) -> Run:
    run = add_cpu_accounts(site_steps.make_run())
    page.goto(f"/admin/pgperf/run/{run.pk}/change/#topic-all")
    return run


def test_a_bar_for_each_step_from_the_stored_numbers(page: Page, run: Run) -> None:
    rows = list(run.variants.all())
    assert chart(page, "chart-steps-throughput-1")["data"][0] == [row.ops_per_s for row in rows]
    assert chart(page, "chart-steps-time-1")["data"][0] == [row.us_per_op / 1000 for row in rows]
    drawn = chart(page, "chart-steps-effects-1")["data"][0]
    assert drawn == pytest.approx([9 / 4, 10.5 / 9, 10.4 / 10.5, 11.7 / 10.5])


def test_at_a_rate_the_percentiles_are_drawn(page: Page, run: Run) -> None:
    site_steps.at_rate(run, 2)
    page.reload(wait_until="load")
    rows = list(run.variants.all())
    drawn = chart(page, "chart-steps-percentiles-1")["data"]
    assert drawn[0] == [row.latency_us["p50"] / 1000 for row in rows]
    assert drawn[3] == [row.latency_us["p99"] / 1000 for row in rows]
    if PICTURES:
        page.locator("#run-staircase").screenshot(path=Path(PICTURES) / "staircase-rate.png")
    assert page.evaluate(FAULTS) == []


def test_the_section_has_no_fault_of_layout(page: Page, run: Run) -> None:
    found = {}
    for width in (1280, 600):
        look(page, width, "light")
        page.reload(wait_until="load")
        page.evaluate(CHARTS_STAND)
        if PICTURES:
            page.locator("#run-staircase").screenshot(path=Path(PICTURES) / f"staircase-{width}.png")
        found[width] = page.evaluate(FAULTS)
    assert found == {1280: [], 600: []}
