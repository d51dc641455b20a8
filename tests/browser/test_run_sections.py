"""Books, curves, host, server and verdicts in a real browser, on stored results."""

from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from pgperf.models import Run
from pgperf.runs.definitions import freeze
from tests import factories
from tests.browser.conftest import look
from tests.browser.test_run_page import INK, chart
from tests.cpu_accounts import CLIENTS, add_cpu_accounts

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: Positions and labels of the ticks on a chart's horizontal axis.
TICKS = """id => {
    const scale = Chart.getChart(document.querySelector(`canvas[data-chart="${id}"]`)).scales.x;
    return scale.ticks.map((tick, at) => [scale.getPixelForTick(at), tick.label]);
}"""
#: The legends' colours and names.
LEGEND = """id => [...document.querySelectorAll(`[data-legend="${id}"] li`)].map(
    item => [getComputedStyle(item.querySelector("span")).backgroundColor, item.textContent])"""


@pytest.fixture
def run(page: Page) -> Run:
    database = factories.make_database()
    definition = freeze(factories.make_benchmark(), database).to_json()
    run = factories.make_run(database=database, definition=definition)
    add_cpu_accounts(factories.make_results(run, layers=("libpq", "django_orm"), clients=CLIENTS))
    page.goto(f"/admin/pgperf/run/{run.pk}/change/?topics=all#topic-all")
    return run


def unfold(page: Page) -> None:
    """Open all collapsed parts, and wait until their charts have a size."""
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    page.wait_for_function(
        "[...document.querySelectorAll('canvas[data-chart]')].every(each => (Chart.getChart(each) || {}).width > 100)"
    )


def values(page: Page, name: str) -> list[list[Any]]:
    return [[point["y"] for point in dataset] for dataset in chart(page, name)["data"]]


def test_curves_are_drawn_from_the_stored_numbers(page: Page, run: Run) -> None:
    points = run.summary["scaling"][0]["points"]
    unfold(page)
    assert values(page, "chart-scaling-1")[0] == [point["ops_per_s"] for point in points]
    in_ms = [point["p99_us"] / 1000 for point in points]  # the longest p99 is over 10 ms
    assert values(page, "chart-scaling-3")[0] == in_ms
    row = run.variants.get(label="libpq · socket · 8 clients")
    assert values(page, "chart-scaling-cpu-1")[0][3] == 100 * row.cpu_account["share"]["clients"]
    timeline = run.summary["timeline"]
    assert values(page, "chart-timeline")[0] == [100 * share for share in timeline["roles"]["clients"]]
    assert_the_client_axis_is_logarithmic(page)


def assert_the_client_axis_is_logarithmic(page: Page) -> None:
    ticks = page.evaluate(TICKS, "chart-scaling-1")
    assert [label for _at, label in ticks] == [str(count) for count in CLIENTS]
    steps = [right[0] - left[0] for left, right in pairwise(ticks)]
    assert max(steps) - min(steps) < 1


def test_every_chart_is_drawn_in_distinct_colours(page: Page, run: Run) -> None:
    for scheme in ("light", "dark"):
        page.reload()
        look(page, 1280, scheme)
        unfold(page)
        canvases = page.locator("canvas[data-chart]")
        assert all(canvas.evaluate(INK) > 1000 for canvas in canvases.all()), scheme
        for name in ("chart-spent-1", "chart-cpu", "chart-scaling-cpu-1", "chart-timeline", "chart-waits"):
            legend = page.evaluate(LEGEND, name)
            assert len({colour for colour, _text in legend}) == len(legend) > 3, (name, scheme)


def test_no_content_is_wider_than_the_page(page: Page, run: Run) -> None:
    for width in (1280, 800):
        look(page, width, "light")
        page.reload()
        unfold(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for canvas in page.locator("canvas[data-chart]").all():
            name = str(canvas.get_attribute("data-chart"))
            area = chart(page, name)["area"]
            assert area["right"] - area["left"] > 150, (name, width)


def test_collapsed_charts_are_drawn_when_opened(page: Page, run: Run) -> None:
    folded = page.locator("#run-ladder details").filter(has_text="32 clients").first
    canvas = folded.locator("canvas[data-chart=chart-ladder-6-1]")
    expect(canvas).to_be_hidden()
    folded.locator("summary").first.click()
    expect(canvas).to_be_visible()
    page.wait_for_function(
        "(Chart.getChart(document.querySelector('[data-chart=chart-ladder-6-1]')) || {}).width > 100"
    )
    assert canvas.evaluate(INK) > 1000


def test_topics_link_to_their_sections_and_the_confirm_button_opens_the_preview(page: Page, run: Run) -> None:
    page.get_by_role("navigation", name="Topics of this run").get_by_role("link", name="Server").click()
    heading = page.get_by_role("heading", name="The server", exact=True)
    expect(heading).to_be_in_viewport()
    page.get_by_role("navigation", name="Topics of this run").get_by_role("link", name="Everything").click()
    page.get_by_text("All verdicts and their evidence").click()
    page.get_by_role("button", name="Confirm Django ORM · socket", exact=True).click()
    expect(page).to_have_url(f"{page.url.split('/admin')[0]}/admin/pgperf/run/{run.pk}/confirm/")
    expect(page.get_by_role("heading", name="Verdict to test")).to_be_visible()


def test_without_chart_js_the_sections_show_tables_and_a_hint(page: Page, run: Run) -> None:
    page.route("**/chart.umd.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    page.reload()
    missing = page.locator("#run-scaling .missing").first
    expect(missing).to_contain_text("Install pgperf from a wheel")
    expect(page.locator("table.scaling")).to_be_visible()
