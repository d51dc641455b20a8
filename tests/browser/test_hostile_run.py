"""Runs whose server chose names, versions and wait events, opened in a browser: their texts are shown
as text, also by charts, and no script runs.
"""

import json

import pytest
from playwright.sync_api import Page

from pgperf.models import Database, Run
from tests import factories
from tests.admin import hostile_texts
from tests.cpu_accounts import add_cpu_accounts
from tests.security.test_hostile_server import build, forging, performed  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SCRIPTS = (
    "<script>window.hostile = 1</script>",
    '<img src="x" onerror="window.hostile = 1">',
    "javascript:window.hostile=1",
    "</canvas><svg onload='window.hostile = 1'></script>",
)
ROUTE = "<img src=x onerror=hostile=1>"
#: What a hostile text would have made.
MADE = "window.hostile !== undefined || document.querySelector('pgperf-hostile, [pgperf-hostile]') !== null"
DRAWN = "[...document.querySelectorAll('canvas[data-chart]')].every(each => Chart.getChart(each))"


def legend(page: Page, name: str) -> list[str]:
    return page.locator(f"[data-legend='{name}'] li").all_text_contents()


def open_page(page: Page, run: Run) -> None:
    """The page fixture fails the test on any error in the console."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    page.goto(f"/admin/pgperf/run/{run.pk}/change/#topic-all", wait_until="load")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    page.locator("canvas[data-chart]").last.hover()
    assert page.evaluate(DRAWN)
    assert not page.evaluate(MADE)
    own = page.url.split("/admin")[0]
    assert [address for address in asked if not address.startswith(own)] == []


def test_the_charts_of_a_run_on_a_hostile_server_are_harmless(page: Page, forging: Database) -> None:  # noqa: F811
    run = performed(forging, ["libpq", "psycopg"], orm="tests.hostile")
    assert run.status == Run.Status.DONE
    sampled = [row.diagnostics["wait_events"] or {} for row in run.variants.all()]
    events = {name for each in sampled for name in each}
    assert any(text in name for name in events for text in hostile_texts.TEXTS)
    open_page(page, run)
    assert set(legend(page, "chart-waits")) & events


def test_stored_texts_that_carry_scripts_do_not_run(page: Page) -> None:
    text = "".join(SCRIPTS)
    run = add_cpu_accounts(factories.make_results(factories.make_run()))
    hostile_texts.make_hostile(run, text)
    run.variants.filter(route="socket").update(route=ROUTE, verdict=factories.stored_verdict())
    run.summary = json.loads(json.dumps(run.summary).replace("socket", ROUTE))
    run.save()
    open_page(page, run)
    assert text.strip() in [each.strip() for each in legend(page, "chart-waits")]
