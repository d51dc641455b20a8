"""The ladder of a page and its web servers in a real browser, on stored results."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from pgperf.models import Run
from tests import page_run
from tests.browser.conftest import look
from tests.browser.test_layout import CHARTS_STAND, CUT_LABELS, FAULTS
from tests.browser.test_run_page import CHART, chart

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PICTURES = os.environ.get("PGPERF_TEST_PICTURES", "")


@pytest.fixture
def run(page: Page) -> Run:
    run = page_run.make_run()
    page.goto(f"/admin/pgperf/run/{run.pk}/change/#topic-all")
    return run


def test_later_rungs_stand_on_what_a_step_that_saves_time_leaves(page: Page, run: Run) -> None:
    times = [step["us"] / 1000 for step in run.summary["ladders"][0]["steps"]]
    data = chart(page, "chart-ladder-1")["data"]
    view, gunicorn, nginx, kept = 3, 4, 5, 6
    assert data[nginx][nginx] == [times[gunicorn], times[nginx]]
    assert data[gunicorn][nginx] == [times[view], times[gunicorn]]
    assert data[kept][kept] == [times[nginx], times[kept]]
    assert data[gunicorn][kept] == [times[view], times[kept]]
    assert data[nginx][kept] is None


def test_labels_are_broken_again_in_a_narrower_window(page: Page, run: Run) -> None:
    run.variants.filter(layer="http").update(connect="per_operation", clients=20)
    page.reload(wait_until="load")
    page.evaluate(CHARTS_STAND)
    wide = chart(page, "chart-latency")["labels"]
    look(page, 500, "light")
    page.wait_for_function(
        f"wide => JSON.stringify(({CHART})('chart-latency').labels) !== JSON.stringify(wide)", arg=wide
    )
    page.evaluate(CHARTS_STAND)
    assert page.evaluate(CUT_LABELS) == []


@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_label_is_cut(page: Page, run: Run, width: int, scheme: str) -> None:
    look(page, width, scheme)
    page.reload(wait_until="load")
    page.evaluate(CHARTS_STAND)
    for section in ("answer", "ladder") if PICTURES else ():
        path = Path(PICTURES) / f"page-{section}-{width}-{scheme}.png"
        page.locator(f"#run-{section}").screenshot(path=path)
    assert page.evaluate(FAULTS) == []
    assert page.evaluate(CUT_LABELS) == []
