"""The run page in a browser, on stored results, without a worker."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from pgperf.models import Run
from tests import factories
from tests.browser.conftest import look

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: The data of a chart, read from Chart.js.
CHART = """id => {
    const chart = Chart.getChart(document.querySelector(`canvas[data-chart="${id}"]`));
    return {
        data: chart.data.datasets.map(dataset => dataset.data),
        labels: chart.data.labels,
        colours: chart.data.datasets.map(dataset => dataset.backgroundColor),
        area: chart.chartArea,
        width: chart.width,
    };
}"""
#: The number of non-empty pixels of a canvas.
INK = """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
    .filter((value, index) => index % 4 === 3 && value > 0).length"""


@pytest.fixture
def run(page: Page) -> Run:
    run = factories.make_results(factories.make_run())
    page.goto(f"/admin/pgperf/run/{run.pk}/change/#topic-all")
    return run


def chart(page: Page, name: str) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(CHART, name)
    return found


def test_charts_are_drawn_from_the_stored_numbers(page: Page, run: Run) -> None:
    canvases = page.locator("canvas[data-chart]")
    expect(canvases).to_have_count(7)
    assert all(canvas.evaluate(INK) > 1000 for canvas in canvases.all())
    steps = run.summary["ladders"][0]["steps"]
    ladder = chart(page, "chart-ladder-1")
    assert [dataset[index][1] for index, dataset in enumerate(ladder["data"])][:4] == [
        step["us"] for step in steps
    ]
    measured = run.variants.filter(control=0)
    assert chart(page, "chart-throughput")["data"] == [[variant.ops_per_s for variant in measured]]


def test_the_tables_show_the_stored_numbers(page: Page, run: Run) -> None:
    values = (
        page.locator("table.ladder")
        .first.locator("tbody tr td:nth-child(2)")
        .evaluate_all("cells => cells.map(cell => Number(cell.dataset.value))")
    )
    ladder = run.summary["ladders"][0]
    assert values == [rung["us"] for rung in (*ladder["steps"], *ladder["side"])]


def test_charts_are_redrawn_when_the_theme_changes(page: Page, run: Run) -> None:
    before = chart(page, "chart-throughput")["colours"]
    page.locator("button.theme-toggle").first.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    after = chart(page, "chart-throughput")["colours"]
    assert before != after
    page.emulate_media(color_scheme="dark")
    assert chart(page, "chart-throughput")["colours"] == after


def test_no_content_is_cut_off(page: Page, run: Run) -> None:
    for width in (1280, 800):
        look(page, width, "light")
        page.reload()
        assert_nothing_is_cut_off(page, width)


def assert_nothing_is_cut_off(page: Page, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for canvas in page.locator("canvas[data-chart]").all():
        name = canvas.get_attribute("data-chart")
        drawn = chart(page, str(name))
        widest = page.evaluate(
            "lines => { const pen = document.createElement('canvas').getContext('2d');"
            "pen.font = '12px ' + getComputedStyle(document.body).fontFamily;"
            "return Math.max(...lines.flat().map(line => pen.measureText(line).width)); }",
            drawn["labels"],
        )
        assert drawn["area"]["left"] >= widest, (name, width)
        assert drawn["area"]["right"] - drawn["area"]["left"] > 150, (name, width)


def test_wide_tables_scroll_with_the_keyboard(page: Page, run: Run) -> None:
    page.set_viewport_size({"width": 500, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    region = page.locator(".pgperf-scroll").first
    region.focus()
    expect(region).to_be_focused()
    region.evaluate(
        "region => { window.scrolled = new Promise(done => region.addEventListener('scroll', done, {once: true})); }"
    )
    page.keyboard.press("ArrowRight")
    page.evaluate("() => window.scrolled.then(() => true)")


def test_without_chart_js_the_page_shows_a_hint(page: Page, run: Run) -> None:
    page.route("**/chart.umd.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    page.reload()
    expect(page.locator(".pgperf-chart .missing").first).to_be_visible()
    expect(page.locator("table.ladder").first).to_be_visible()


def test_progress_updates_and_the_result_loads(page: Page) -> None:
    run = factories.make_run(Run.Status.RUNNING, progress=0.1, message="block 1 of 6")
    page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    expect(page.locator("[data-part=percent]")).to_have_text("10 %")
    Run.objects.filter(pk=run.pk).update(progress=0.6, message="block 4 of 6")
    expect(page.locator("[data-part=percent]")).to_have_text("60 %")
    expect(page.locator("[data-part=message]")).to_have_text("block 4 of 6")
    factories.make_results(run)
    Run.objects.filter(pk=run.pk).update(status=Run.Status.DONE, busy_key=None)
    expect(page.locator("canvas[data-chart=chart-answer-split]")).to_be_visible()


def test_a_run_that_ends_leaves_the_notes_that_somebody_types(page: Page) -> None:
    run = factories.make_run(Run.Status.RUNNING)
    page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    page.get_by_text("Add notes").click()
    page.get_by_label("Notes").fill("Not yet saved")
    factories.make_results(run)
    Run.objects.filter(pk=run.pk).update(status=Run.Status.DONE, busy_key=None)
    expect(page.get_by_text("The run has ended.")).to_be_visible()
    expect(page.get_by_label("Notes")).to_have_value("Not yet saved")
    page.get_by_role("link", name="Load the page again").click()
    expect(page.locator("canvas[data-chart=chart-answer-split]")).to_be_visible()


def test_a_run_that_ends_leaves_the_notes_that_were_refused(page: Page) -> None:
    run = factories.make_run(Run.Status.RUNNING)
    page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    Run.objects.filter(pk=run.pk).update(notes="theirs")
    page.get_by_text("Add notes").click()
    page.get_by_label("Notes").fill("mine")
    page.get_by_role("button", name="Save notes").click()
    expect(page.get_by_text("The notes were not saved.")).to_be_visible()
    Run.objects.filter(pk=run.pk).update(status=Run.Status.CANCELLED, busy_key=None)
    expect(page.get_by_text("The run has ended.")).to_be_visible()
    expect(page.get_by_label("Notes")).to_have_value("mine")


def test_a_network_failure_does_not_look_like_a_failed_run(page: Page) -> None:
    run = factories.make_run(Run.Status.RUNNING)
    page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    page.route("**/progress/", lambda route: route.fulfill(status=200, body="<html>a proxy's page</html>"))
    expect(page.locator("[data-part=trouble]")).to_be_visible()
    expect(page.locator("[data-part=status]")).to_have_text("running")
    page.unroute("**/progress/")
    expect(page.locator("[data-part=trouble]")).to_be_hidden()


def test_a_page_whose_session_has_ended_shows_the_login(page: Page) -> None:
    run = factories.make_run(Run.Status.RUNNING)
    page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    page.context.clear_cookies()
    expect(page.locator("#id_username")).to_be_visible()


def test_the_page_of_a_run_that_was_deleted_says_so(page: Page) -> None:
    run = factories.make_run(Run.Status.RUNNING)
    plain = page.context.new_page()  # a refused request is an error on the console
    plain.goto(f"/admin/pgperf/run/{run.pk}/change/")
    Run.objects.all().delete()
    expect(plain.locator(".messagelist")).to_contain_text("Perhaps it was deleted?")
    plain.close()


def test_a_page_that_a_reload_does_not_help_is_loaded_again_once(page: Page) -> None:
    run = factories.make_run(Run.Status.RUNNING)
    plain = page.context.new_page()
    plain.route("**/progress/", lambda route: route.fulfill(status=403))
    loads: list[str] = []  # as they begin: a page may be left before it is loaded
    plain.on("request", lambda asked: loads.append(asked.url) if asked.is_navigation_request() else None)
    plain.goto(f"/admin/pgperf/run/{run.pk}/change/")
    expect(plain.locator("[data-part=trouble]")).to_be_visible()
    assert len(loads) == 2
    plain.close()


def test_a_session_that_ends_leaves_the_notes_that_somebody_types(page: Page) -> None:
    run = factories.make_run(Run.Status.RUNNING)
    page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    page.get_by_text("Add notes").click()
    page.get_by_label("Notes").fill("Not yet saved")
    page.context.clear_cookies()
    expect(page.get_by_text("This page is not updated any more")).to_be_visible()
    expect(page.get_by_label("Notes")).to_have_value("Not yet saved")


def test_a_hidden_page_does_not_poll(own_page: Page) -> None:
    run = factories.make_run(Run.Status.RUNNING)
    own_page.clock.install()
    own_page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    own_page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    own_page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    asked: list[str] = []
    own_page.on("request", lambda request: asked.append(request.url) if "progress" in request.url else None)
    own_page.clock.run_for(20_000)
    assert asked == []
    own_page.evaluate("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")
    with own_page.expect_request("**/progress/"):
        own_page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_one_click_cancels_the_run(page: Page) -> None:
    run = factories.make_run(Run.Status.QUEUED)
    page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    page.get_by_role("button", name="Cancel run").click()
    expect(page.locator("[data-part=status]")).to_have_text("cancelled")
