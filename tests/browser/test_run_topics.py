"""A run's page in a browser: the answer on the first screen, and all else by topic."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from pgperf.core.records import (
    BUDGET,
    CAPTURES,
    ENDING,
    STATEMENT_TIMES,
    Ending,
    LeftOut,
    StatementTime,
    StatementTimes,
)
from pgperf.models import Run
from pgperf.reports import run_page
from pgperf.runs.definitions import freeze
from tests import factories, page_run, site_steps
from tests.browser.axe import COLOURS, serious_faults
from tests.browser.conftest import look
from tests.browser.test_layout import CHARTS_STAND
from tests.catalog_runs import make_catalog_run
from tests.cpu_accounts import CLIENTS, add_cpu_accounts

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: Its text is longer than that of most dates: a line of facts must not wrap for it.
LONG_DATE = datetime(2025, 9, 28, 22, 58, tzinfo=UTC)
#: The names of the topics that are shown.
SHOWN = """() => [...document.querySelectorAll(".pgperf-topic")].filter(each => each.checkVisibility())
    .map(each => each.id.replace("topic-", ""))"""
#: What of the answer ends below the window.
BELOW = """() => [...document.querySelectorAll("#run-answer :is(dd, h3, canvas)")].filter(each =>
    each.getBoundingClientRect().bottom > innerHeight).map(each => each.textContent || each.dataset.chart)"""


def three_routes() -> Run:
    frozen = freeze(factories.make_benchmark(), factories.make_database()).to_json()
    return add_cpu_accounts(factories.make_results(factories.make_run(definition=frozen)))


def one_route() -> Run:
    return add_cpu_accounts(factories.make_results(factories.make_run(), routes=("socket",)))


def several_clients() -> Run:
    run = factories.make_results(factories.make_run(), layers=("libpq", "django_orm"), clients=CLIENTS)
    return add_cpu_accounts(run)


RUNS: dict[str, Callable[[], Run]] = {
    "one route": one_route,
    "three routes": three_routes,
    "several clients": several_clients,
    "suite": lambda: make_catalog_run("driver-suite-published"),
    "site": lambda: add_cpu_accounts(site_steps.make_run()),
    "page": page_run.make_run,
}


def second_run() -> Run:
    before = three_routes()
    fields = {"benchmark": before.benchmark, "database": before.database, "definition": before.definition}
    slower = factories.make_results(factories.make_run(**fields), slower={"django_orm": 1.2})
    return add_cpu_accounts(slower)


def run_that_used_up_its_time() -> Run:
    """And whose role can write."""
    run = three_routes()
    ending = Ending(reason=BUDGET, blocks=9, seconds=91.0, budget_s=90.0, precision=0.04, target=0.02)
    run.environment = {**run.environment, "can_write": "shop_owner", ENDING: ending.to_json()}
    run.save()
    return run


def run_with_notes() -> Run:
    """And with a layer that was left out."""
    run = three_routes()
    skipped = [LeftOut(reason="not installed", layer="psycopg2").to_json()]
    run.summary = {**run.summary, "skipped": skipped}
    run.notes = "before the second CPU " * 9
    run.save()
    return run


def run_that_sends_again() -> Run:
    """With the columns of a Django model, as long as they are."""
    run = three_routes()
    columns = ", ".join(f'"library_book"."column_{at}"' for at in range(20))
    text = f'SELECT {columns} FROM "library_book" WHERE "library_book"."author_id" = ? LIMIT ?'
    other = text.replace("book", "review")
    each = [{"sql": sql, "rows": 1} for sql in (*[text] * 12, *[other] * 8)]
    times = StatementTimes("site-by-domain", "django_cursor", "simple", "tcp", (
        StatementTime(tuple(range(1, 13)), 92.0, 30.0), StatementTime(tuple(range(13, 21)), 81.0, 30.0),
    ))  # fmt: skip
    captured = {"site-by-domain": {"statements": 20, "rows": 20, "each": each}}
    run.environment = {**run.environment, CAPTURES: captured, STATEMENT_TIMES: [times.to_json()]}
    run.save()
    return run


#: What stands above the answer, or in it, beside what those runs have.
WITH_MORE = {
    "second run": second_run,
    "time used up": run_that_used_up_its_time,
    "notes": run_with_notes,
    "sent again": run_that_sends_again,
}


@pytest.fixture
def run(page: Page) -> Run:
    run = three_routes()
    page.goto(address(run))
    return run


def address(run: Run, fragment: str = "") -> str:
    return f"/admin/pgperf/run/{run.pk}/change/{fragment}"


def topic(page: Page, name: str) -> Any:
    return page.get_by_role("navigation", name="Topics of this run").get_by_role(
        "link", name=name, exact=True
    )


@pytest.mark.parametrize("kind", [*RUNS, *WITH_MORE])
def test_the_answer_is_on_the_first_screen(page: Page, kind: str) -> None:
    factories.make_worker()
    run = {**RUNS, **WITH_MORE}[kind]()
    Run.objects.filter(pk=run.pk).update(requested_at=LONG_DATE)
    page.goto(address(run), wait_until="load")
    page.evaluate(CHARTS_STAND)
    assert page.evaluate(SHOWN) == ["answer"]
    assert page.evaluate(BELOW) == []
    asked = page.locator(".pgperf-answer dt").all_text_contents()
    assert asked[0] == "Bottleneck"
    assert asked[-2:] == ["How sure", "What to do next"]
    assert all(text.strip() for text in page.locator(".pgperf-answer dd p").all_text_contents())


def test_one_click_shows_a_topic_alone(page: Page, run: Run) -> None:
    topic(page, "Host").click()
    expect(topic(page, "Host")).to_have_attribute("aria-current", "true")
    assert page.evaluate(SHOWN) == ["host"]
    expect(page.locator("canvas[data-chart=chart-timeline]")).to_be_in_viewport()
    page.go_back()
    expect(topic(page, "Answer")).to_have_attribute("aria-current", "true")
    assert page.evaluate(SHOWN) == ["answer"]
    topic(page, "Everything").click()
    expect(topic(page, "Everything")).to_have_attribute("aria-current", "true")
    assert len(page.evaluate(SHOWN)) > 5


def test_links_to_a_topic_and_to_a_figure_survive_a_reload(page: Page, run: Run) -> None:
    for fragment, name, anchor in (
        ("#topic-latency", "latency", "#chart-latency"),
        ("#chart-waits", "server", "#chart-waits"),
        ("#run-cold", "latency", "#run-cold"),
    ):
        page.goto("about:blank")
        page.goto(address(run, fragment), wait_until="load")
        for _again in range(2):
            assert page.evaluate(SHOWN) == [name]
            expect(page.locator(anchor)).to_be_in_viewport()
            page.reload(wait_until="load")


def test_a_link_to_a_figure_in_a_fold_opens_it(page: Page) -> None:
    page.goto(address(several_clients(), "#chart-ladder-6-1"), wait_until="load")
    expect(page.locator("canvas[data-chart=chart-ladder-6-1]")).to_be_in_viewport()


def test_the_skip_link_keeps_the_topic(page: Page, run: Run) -> None:
    topic(page, "Host").click()
    page.evaluate("location.hash = 'content-start'")
    expect(topic(page, "Host")).to_have_attribute("aria-current", "true")
    assert page.locator("#content-start .pgperf-topic").count() > 1
    assert page.evaluate(SHOWN) == ["host"]


def test_an_unknown_fragment_shows_the_answer(page: Page, run: Run) -> None:
    for fragment in ("#nothing", "#%E0%A4%A", "#content-main"):
        page.goto("about:blank")
        page.goto(address(run, fragment), wait_until="load")
        assert "answer" in page.evaluate(SHOWN), fragment


def test_charts_come_first_and_a_click_opens_their_table(page: Page, run: Run) -> None:
    topic(page, "Latency").click()
    table = page.locator("table.latency")
    expect(page.locator("canvas[data-chart=chart-latency]")).to_be_visible()
    expect(table).to_be_hidden()
    page.locator("#run-latency summary").click()
    expect(table).to_be_visible()


def test_printing_shows_everything(page: Page, run: Run) -> None:
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(page.evaluate(SHOWN)) == page.locator(".pgperf-topic").count() > 5
    expect(page.locator("table.latency")).to_be_visible()
    assert page.evaluate(
        "[...document.querySelectorAll('canvas[data-chart]')].every(each => (Chart.getChart(each) || {}).width > 100)"
    )
    expect(page.get_by_role("link", name="Run again")).to_be_hidden()
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(SHOWN) == ["answer"]
    expect(page.locator("table.latency")).to_be_hidden()


def test_printing_opens_what_was_skipped(page: Page, run: Run) -> None:
    run.summary["skipped"] = [{"layer": "asyncpg", "reason": "not installed"}]
    run.save()
    page.reload()
    reason = page.get_by_text("not installed")
    expect(reason).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(reason).to_be_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(reason).to_be_hidden()


def without_scripts(page: Page, browser: Browser, live_server: LiveServer) -> Page:
    """A page of the same user in a browser that runs no script."""
    context = browser.new_context(
        base_url=live_server.url, java_script_enabled=False, storage_state=page.context.storage_state()
    )
    return context.new_page()


def expect_all_tables(plain: Page) -> None:
    for name in ("latency", "throughput", "ladder", "verdicts", "waits", "timeline"):
        expect(plain.locator(f"table.{name}").first).to_be_visible()


def test_without_scripts_all_is_there_as_tables(
    page: Page, run: Run, browser: Browser, live_server: LiveServer
) -> None:
    plain = without_scripts(page, browser, live_server)
    plain.goto(address(run))
    expect_all_tables(plain)
    expect(plain.get_by_text("How sure")).to_be_visible()
    plain.get_by_text("More", exact=True).click()
    expect(plain.get_by_role("link", name="Download variants (CSV)")).to_be_visible()
    plain.context.close()


@pytest.fixture
def large_run(page: Page, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Every run is large, so its page comes with the answer alone."""
    monkeypatch.setattr(run_page, "AT_ONCE", 0)
    return three_routes()


def test_the_topics_of_a_large_run_follow(page: Page, large_run: Run) -> None:
    """With their charts, and with tables folded, as on a page that comes as a whole."""
    page.goto(address(large_run))
    topic(page, "Layers").click()
    expect(page.get_by_role("heading", name="The ladder", exact=True)).to_be_visible()
    assert page.evaluate(SHOWN) == ["layers"]
    drawn = "() => [...document.querySelectorAll('#topic-layers canvas')].every(each => each.width > 300)"
    page.wait_for_function(drawn)
    assert not page.locator("#topic-layers details[data-fold][open]").count()


def test_a_link_to_a_later_topic_of_a_large_run(page: Page, large_run: Run) -> None:
    page.goto(address(large_run, "#run-host"))
    expect(page.get_by_role("heading", name="The host", exact=True)).to_be_in_viewport()
    assert page.evaluate(SHOWN) == ["host"]


def test_a_large_run_stays_with_its_answer_if_the_rest_fails(page: Page, large_run: Run) -> None:
    """The link is a way to try again."""
    page.route("**/*topics=others", lambda route: route.fulfill(status=204))
    with page.expect_response("**/*topics=others"):
        page.goto(address(large_run))
    expect(page.get_by_text("How sure")).to_be_visible()
    page.unroute_all()
    page.get_by_role("link", name="Show all topics").click()
    expect(topic(page, "Everything")).to_be_visible()


def test_a_large_run_without_scripts_has_all_as_tables(
    page: Page, large_run: Run, browser: Browser, live_server: LiveServer
) -> None:
    plain = without_scripts(page, browser, live_server)
    plain.goto(address(large_run))
    expect_all_tables(plain)
    plain.context.close()


def test_rare_actions_are_in_a_menu(page: Page, run: Run) -> None:
    download = page.get_by_role("link", name="Download raw slices (CSV)")
    expect(download).to_be_hidden()
    page.get_by_text("More", exact=True).click()
    expect(download).to_be_visible()
    page.keyboard.press("Escape")
    expect(download).to_be_hidden()
    page.get_by_text("More", exact=True).click()
    page.get_by_role("heading", name="Time by layer").click()
    expect(download).to_be_hidden()


@pytest.mark.parametrize("kind", ["three routes", "suite", "site"])
def test_axe_finds_nothing_serious(page: Page, kind: str) -> None:
    run, found = RUNS[kind](), {}
    for scheme, rules in (("light", ()), ("dark", COLOURS)):
        look(page, 1280, scheme)
        page.goto("about:blank")
        page.goto(address(run, "#topic-all"), wait_until="load")
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        found[scheme] = serious_faults(page, "#content-main", rules)
    assert found == {"light": [], "dark": []}


def test_axe_finds_nothing_serious_without_a_result(page: Page) -> None:
    found = {}
    for status in (Run.Status.FAILED, Run.Status.RUNNING, Run.Status.QUEUED):
        page.goto(address(factories.make_run(status, error="connection refused")), wait_until="load")
        found[status] = serious_faults(page, "#content-main")
    assert not any(found.values()), found


def test_sql_wraps_where_the_window_is_narrow(page: Page) -> None:
    run = three_routes()
    sql = "SELECT " + ", ".join(f"book.column_{at}" for at in range(60)) + " FROM book WHERE id = %s"
    captured = {"statements": 1, "rows": 1, "each": [{"sql": sql, "rows": 1}]}
    run.environment = {**run.environment, "captures": {"site-by-domain": captured}}
    run.save()
    page.set_viewport_size({"width": 800, "height": 900})
    page.goto(address(run, "#topic-statements"), wait_until="load")
    box = page.locator("#run-captures .pgperf-scroll").first
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
