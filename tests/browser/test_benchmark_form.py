"""The form of a new benchmark in a browser: its length, its routes, and the estimate."""

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from pgperf.models import Benchmark, Database, Target
from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ADD = "/admin/pgperf/benchmark/add/"


def shown_routes(page: Page) -> list[str]:
    return [
        str(box.get_attribute("value"))
        for box in page.locator(".pgperf-routes input[type=checkbox]").all()
        if box.is_visible()
    ]


def ticked_routes(page: Page) -> list[str]:
    return [
        str(box.get_attribute("value"))
        for box in page.locator(".pgperf-routes input[type=checkbox]:checked:enabled").all()
    ]


def make_other() -> Database:
    """A database that shares one route with the first."""
    other = Database.objects.create(name="other", dbname="app", credential="alias:default")
    for route in ("near", "tcp"):
        Target.objects.create(database=other, route=route, host="127.0.0.1", sslmode="disable")
    return other


def test_a_usual_benchmark_is_named_and_saved_on_one_screen(page: Page) -> None:
    factories.make_worker()
    factories.make_database()
    factories.make_benchmark()
    page.goto(ADD)
    expect(page.locator("#pgperf-estimate")).to_be_visible()
    page.fill("#id_name", "own")
    page.fill("#id_title", "Own")
    page.select_option("#id_workloads", label="site-by-domain")
    expect(page.locator("#pgperf-estimate")).to_contain_text("A run on demo takes")
    save = page.get_by_role("button", name="Save", exact=True)
    box = save.bounding_box()
    assert box
    assert page.evaluate("window.scrollY") == 0
    assert box["y"] + box["height"] <= 900
    save.click()
    expect(page.locator(".messagelist .success")).to_be_visible()
    assert Benchmark.objects.get(name="own").routes == ["socket"]


def test_what_is_typed_is_in_no_address(page: Page) -> None:
    """Web servers keep addresses in their logs, and refuse long ones."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    page.goto(ADD)
    expect(page.locator("#pgperf-estimate")).to_be_visible()
    estimates = [each for each in asked if "/estimate/" in each]
    assert estimates
    assert all(each.startswith("POST ") and "?" not in each for each in estimates)


@pytest.mark.parametrize("status", [403, 413, 500])
def test_a_change_without_an_answer_hides_the_estimate_of_the_form_before(page: Page, status: int) -> None:
    plain = page.context.new_page()  # a refused request is an error on the console
    factories.make_database()
    plain.goto(ADD)
    expect(plain.locator("#pgperf-estimate")).to_be_visible()
    plain.route("**/estimate/", lambda route: route.fulfill(status=status))
    plain.fill("#id_title", "Refused")
    expect(plain.locator("#pgperf-estimate")).to_be_hidden()
    plain.unroute("**/estimate/")
    plain.fill("#id_title", "Answered")
    expect(plain.locator("#pgperf-estimate")).to_be_visible()
    plain.close()


def test_a_late_failure_does_not_hide_the_newer_estimate(page: Page) -> None:
    plain = page.context.new_page()
    factories.make_database()
    plain.goto(ADD)
    expect(plain.locator("#pgperf-estimate")).to_be_visible()
    held: list[Route] = []
    plain.route("**/estimate/", lambda route: held.append(route))
    for title in ("Older", "Newer"):
        with plain.expect_request("**/estimate/"):
            plain.fill("#id_title", title)
        plain.evaluate("0")  # the request reaches its handler
    older, newer = held
    newer.fulfill(json={"text": "The newer answer", "problem": False})
    expect(plain.locator("#pgperf-estimate")).to_have_text("The newer answer")
    with plain.expect_event("requestfailed"):
        older.abort()
    plain.evaluate("new Promise(requestAnimationFrame)")
    expect(plain.locator("#pgperf-estimate")).to_be_visible()
    plain.close()


def test_routes_and_estimate_follow_the_form(page: Page) -> None:
    factories.make_worker()
    factories.make_database()
    other = make_other()
    factories.make_benchmark()
    page.goto(ADD)
    assert shown_routes(page) == ["socket", "tcp", "pgbouncer"]
    page.select_option("#id_workloads", label="site-by-domain")
    expect(page.locator("#pgperf-estimate")).to_contain_text("over socket.")
    page.locator(".pgperf-routes").get_by_label("tcp").first.check()
    expect(page.locator("#pgperf-estimate")).to_contain_text("over socket, tcp.")
    page.select_option("#id_database", str(other.pk))
    assert shown_routes(page) == ["near", "tcp"]
    assert ticked_routes(page) == ["tcp"]
    expect(page.locator("#pgperf-estimate")).to_contain_text("A run on other takes")
    page.locator(".pgperf-routes").get_by_label("tcp").last.uncheck()
    expect(page.locator("#pgperf-estimate")).to_contain_text("Fill in Routes to see how long a run takes")


def test_rates_are_typed_beside_the_word_closed_and_the_estimate_follows(page: Page) -> None:
    factories.make_worker()
    factories.make_database()
    factories.make_benchmark()
    page.goto(ADD)
    page.fill("#id_name", "own")
    page.fill("#id_title", "Own")
    page.select_option("#id_workloads", label="site-by-domain")
    estimate = page.locator("#pgperf-estimate")
    expect(estimate).to_contain_text("A run on demo takes")
    before = estimate.inner_text()
    page.locator("details", has=page.locator("#id_rates")).locator("summary").click()
    expect(page.locator("#id_rates")).to_have_value("closed")
    page.fill("#id_rates", "closed, 100, 0.5")
    expect(estimate).not_to_have_text(before)
    page.fill("#id_rates", "closed, many")
    expect(estimate).to_contain_text("Rates (operations/s): Give rates in operations/s")
    page.fill("#id_rates", "closed, 100, 0.5")
    page.select_option("#id_schedule", "constant")
    page.fill("#id_latency_limit_ms", "12.5")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist .success")).to_be_visible()
    own = Benchmark.objects.get(name="own")
    assert (own.rates, own.schedule, own.latency_limit_ms) == ([None, 100.0, 0.5], "constant", 12.5)


def test_a_saved_route_that_the_database_lacks_stays_in_sight(page: Page) -> None:
    """Saving the form must not drop what it does not show."""
    factories.make_database()
    other = make_other()
    benchmark = factories.make_benchmark(routes=["near", "pgbouncer"], database=other)
    page.goto(f"/admin/pgperf/benchmark/{benchmark.pk}/change/")
    assert shown_routes(page) == ["pgbouncer", "near", "tcp"]
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist .success")).to_be_visible()
    benchmark.refresh_from_db()
    assert sorted(benchmark.routes) == ["near", "pgbouncer"]


def test_without_scripts_the_form_works(page: Page, browser: Browser, live_server: LiveServer) -> None:
    factories.make_database()
    make_other()
    (workload,) = factories.make_benchmark().workloads
    context = browser.new_context(
        base_url=live_server.url, java_script_enabled=False, storage_state=page.context.storage_state()
    )
    plain = context.new_page()
    plain.goto(ADD)
    assert shown_routes(plain) == ["socket", "tcp", "pgbouncer", "near", "tcp"]
    expect(plain.locator("#pgperf-estimate")).to_be_hidden()
    plain.fill("#id_name", "own")
    plain.fill("#id_title", "Own")
    plain.select_option("#id_workloads", label=workload.name)
    plain.get_by_role("button", name="Save", exact=True).click()
    expect(plain.locator(".messagelist .success")).to_be_visible()
    plain.goto("/admin/pgperf/benchmark/measure/?kind=callable&orm=books.by_isbn")
    expect(plain.get_by_role("status")).to_contain_text("A run on demo takes")
    context.close()
