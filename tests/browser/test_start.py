"""From the list of benchmarks to a finished run and its CSV, with a real worker."""

import csv
from pathlib import Path

import pytest
from django.apps import apps
from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone
from playwright.sync_api import Page, expect

from example.stack.part import Part
from pgperf.catalog.sync import copy_catalog
from pgperf.models import Benchmark, Database, MachineLook, Run, StatementList
from pgperf.runs import broker
from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: Long enough for a loaded machine; a run that ends at once ends the wait at once.
RUN_MS = 120_000


@pytest.fixture
def benchmark() -> Benchmark:
    """The shortest run: two drivers over one route."""
    copy_catalog(apps=apps, using=DEFAULT_DB_ALIAS)
    workload = Benchmark.objects.get(name="orm-overhead").workloads
    return factories.new_benchmark(
        workload, name="two-drivers", title="Two drivers", layers=["psycopg2", "psycopg"], routes=["socket"],
        modes=["simple"], clients=[1], blocks=2, rounds=4, slice_ms=100, diagnostic_ms=50,
    )  # fmt: skip


def test_selecting_another_database_updates_the_preview(page: Page) -> None:
    factories.make_worker()
    benchmark = factories.make_benchmark()
    factories.make_database()
    live = factories.make_database("shop-live", production=True)
    page.goto(f"/admin/pgperf/benchmark/{benchmark.pk}/run/")
    expect(page.locator("#pgperf-update")).to_have_count(0)
    page.get_by_label("Quick").check()
    page.get_by_label("Time budget").fill("150")
    page.select_option("[name=database]", str(live.pk))
    expect(page.get_by_text("shop-live is a production database.")).to_be_visible()
    expect(page.get_by_label("Quick")).to_be_checked()
    expect(page.get_by_label("Time budget")).to_have_value("150")
    page.get_by_role("button", name="Run benchmark").click()
    expect(page.get_by_text("Type the database name exactly")).to_be_visible()
    assert not Run.objects.exists()


def test_enter_in_a_text_field_sends_what_was_typed_by_post(page: Page) -> None:
    factories.make_worker()
    benchmark = factories.make_benchmark()
    factories.make_database()
    live = factories.make_database("shop-live", production=True)
    for name in ("budget_s", "confirm_name"):
        page.goto(f"/admin/pgperf/benchmark/{benchmark.pk}/run/?database={live.pk}")
        field = page.locator(f"[name={name}]")
        field.fill("7")
        with page.expect_navigation():
            field.press("Enter")
        assert "csrfmiddlewaretoken" not in page.url
        expect(page.locator(".errornote")).to_be_visible()
        expect(field).to_have_value("7")


def test_a_page_that_the_browser_kept_starts_a_run_of_its_own(page: Page) -> None:
    """A click on Back shows the page with the token of the first run."""
    benchmark = factories.make_benchmark()
    factories.make_database()
    page.goto(f"/admin/pgperf/benchmark/{benchmark.pk}/run/")
    used = page.locator("[name=token]").input_value()
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(page.locator("[name=token]")).not_to_have_value(used)
    page.get_by_role("button", name="Run benchmark").click()
    expect(page.locator("[data-part=status]")).to_be_visible()
    assert Run.objects.get().request_token not in (None, used)


def test_a_page_whose_session_has_ended_awaits_no_look(own_page: Page) -> None:
    factories.make_worker()
    benchmark = factories.make_benchmark()
    factories.make_database()
    MachineLook.objects.create(queue="pgperf", asked_at=timezone.now())
    own_page.clock.install()
    own_page.goto(f"/admin/pgperf/benchmark/{benchmark.pk}/run/")
    expect(own_page.locator("[data-waiting]")).to_be_visible()
    own_page.context.clear_cookies()
    with own_page.expect_event("requestfinished", lambda request: "/login/" in request.url):
        own_page.clock.run_for(2_000)
    asked: list[str] = []
    own_page.on("request", lambda request: asked.append(request.url))
    own_page.clock.run_for(20_000)
    own_page.evaluate("0")  # its requests reach the handler
    assert asked == []


def test_without_a_database_the_page_has_no_script_error(page: Page) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"/admin/pgperf/benchmark/{factories.make_benchmark().pk}/run/")
    expect(page.get_by_text("There is no database to run on.")).to_be_visible()
    assert errors == []


def test_one_click_runs_a_benchmark(
    page: Page, worker: Part, database: Database, benchmark: Benchmark, tmp_path: Path
) -> None:
    seen: list[float] = []
    page.on(
        "response", lambda reply: seen.append(reply.json()["progress"]) if "/progress/" in reply.url else None
    )
    page.goto("/admin/")
    page.get_by_role("link", name="Benchmarks").first.click()
    page.get_by_role("link", name="Run benchmark two-drivers").click()
    expect(page.get_by_text("psycopg 3")).to_be_visible()
    page.get_by_role("button", name="Run benchmark").click()
    expect(page.locator("[data-part=status]")).to_be_visible()
    expect(page.locator("#run-answer canvas").first).to_be_visible(timeout=RUN_MS)
    expect(page.locator("[data-part=status]")).to_have_text("done")
    assert any(0 < share < 1 for share in seen), seen

    run = Run.objects.get()
    stored = [variant.ops_per_s for variant in run.variants.all()]
    shown = page.locator("table.throughput tbody tr td:nth-child(3)").evaluate_all(
        "cells => cells.map(cell => Number(cell.dataset.value))"
    )
    assert len(stored) == 4  # two drivers, and a control of each
    assert shown == stored

    page.get_by_text("More", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download variants (CSV)").click()
    file = tmp_path / "variants.csv"
    download.value.save_as(file)
    with file.open(newline="") as rows:
        assert [float(row["ops_per_s"]) for row in csv.DictReader(rows)] == stored


def test_four_clicks_lead_from_the_dashboard_to_a_running_benchmark(
    page: Page, worker: Part, database: Database
) -> None:
    page.goto("/admin/pgperf/")
    page.get_by_role("link", name="Measure a query of mine").click()
    page.get_by_role("link", name="books.authors_prefetched").click()
    expect(page.get_by_role("status")).to_contain_text("A run on demo takes")
    page.get_by_role("button", name="Run benchmark").click()
    expect(page.locator("[data-part=status]")).to_have_text("running", timeout=RUN_MS)
    run = Run.objects.get()
    assert run.benchmark
    assert [work.orm for work in run.benchmark.workloads] == ["books.authors_prefetched"]
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-part=status]")).to_have_text("cancelled", timeout=RUN_MS)


def test_four_clicks_lead_from_the_dashboard_to_a_run_of_a_statement(
    page: Page, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page shows the server's statements as soon as they are stored; here the test stores them."""
    factories.make_worker()
    monkeypatch.setattr(broker, "send_statements", lambda *_: None)
    page.goto("/admin/pgperf/")
    page.get_by_role("link", name="Measure a query of mine").click()
    page.get_by_role("button", name="Ask the server").click()
    expect(page.locator("[data-waiting]")).to_be_visible()
    found = {"query": "SELECT relname FROM pg_class", "calls": 3, "rows": 3, "total_ms": 4.5}
    StatementList.objects.update(asked_at=None, read_at=timezone.now(), error="", statements=[found])
    page.get_by_role("link", name=found["query"]).click()
    page.get_by_role("button", name="Run benchmark").click()
    expect(page.locator("[data-part=status]")).to_be_visible()
    (work,) = Run.objects.get().definition["workloads"]
    assert work["sql"] == found["query"]
