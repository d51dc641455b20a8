"""pgperf through either of two admin sites of one project, one of them with an index of its own."""

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from example.stack.part import Part
from pgperf.models import Database, Run
from tests import factories
from tests.histories import make_history

pytestmark = [
    pytest.mark.browser, pytest.mark.django_db(transaction=True), pytest.mark.urls("tests.admin.two_indexes"),
]  # fmt: skip

#: Long enough for a loaded machine; a run that starts at once ends the wait at once.
RUN_MS = 120_000
SITES = ("admin", "own")
#: The paths of all links in what pgperf writes, without the site's user tools.
LINKS = """() => [...document.querySelectorAll(":is(#content, .breadcrumbs) a[href]")]
    .map(link => new URL(link.href)).filter(url => url.host === location.host).map(url => url.pathname)"""


def dashboard(page: Page, site: str) -> None:
    """As a user gets there: at the index of the app, or from the list of runs."""
    page.goto(f"/{site}/")
    if site == "admin":
        page.locator("#content").get_by_role("link", name="pgperf: where database time goes").first.click()
    else:
        page.locator("#content").get_by_role("link", name="Runs", exact=True).click()
        page.get_by_role("link", name="Dashboard", exact=True).click()
    expect(page.locator(".pgperf-dashboard")).to_be_visible()


def stays(page: Page, site: str) -> None:
    """This page is of the site, and so are those that it leads to."""
    page.wait_for_load_state()  # a click waits for the address only, not for the page
    found = [page.evaluate("location.pathname"), *page.evaluate(LINKS)]
    assert len(found) > 1
    assert [path for path in found if not path.startswith(f"/{site}/")] == [], page.url


@pytest.mark.parametrize("site", SITES)
def test_four_clicks_lead_from_the_dashboard_to_a_running_benchmark(
    page: Page, worker: Part, database: Database, site: str
) -> None:
    dashboard(page, site)
    stays(page, site)
    page.get_by_role("link", name="Measure a query of mine").click()
    stays(page, site)
    page.get_by_role("link", name="books.authors_prefetched").click()
    stays(page, site)
    page.get_by_role("button", name="Run benchmark").click()
    expect(page.locator("[data-part=status]")).to_have_text("running", timeout=RUN_MS)
    stays(page, site)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-part=status]")).to_have_text("cancelled", timeout=RUN_MS)
    stays(page, site)


@pytest.mark.parametrize("site", SITES)
def test_all_main_pages_stay_in_their_site(page: Page, site: str) -> None:
    factories.make_worker()
    before, last = (factories.make_results(factories.make_run()) for _each in range(2))
    run, benchmark, database = last.pk, last.benchmark_id, last.database_id

    def path(name: str, *args: int | None) -> str:
        return reverse(f"admin:pgperf_{name}", args=args, current_app=site)

    models = ("benchmark", "database", "workload", "run", "schedule", "worker", "pause")
    lists = [path(f"{model}_changelist") for model in models]
    pages = [
        path("run_dashboard"), path("run_change", run), path("benchmark_change", benchmark), path("benchmark_add"),
        path("benchmark_run", benchmark), path("benchmark_runs", benchmark), path("benchmark_measure"),
        path("database_change", database), path("schedule_add"), f"{path('run_compare', run)}?with={before.pk}",
    ]  # fmt: skip
    for address in (*lists, *pages):
        assert address.startswith(f"/{site}/")
        response = page.goto(address)
        assert response
        assert response.status == 200, address
        stays(page, site)


@pytest.mark.parametrize("site", SITES)
def test_a_result_leads_to_its_history_and_back(page: Page, site: str) -> None:
    runs = make_history(3)
    dashboard(page, site)
    page.locator(".pgperf-results .trend a").first.click()
    expect(page.locator("h1")).to_contain_text("Results over runs")
    expect(page.locator("canvas[data-chart]").first).to_be_visible()
    stays(page, site)
    page.locator(".breadcrumbs").get_by_role("link", name=str(runs[0].benchmark), exact=True).click()
    expect(page.locator("h1")).to_contain_text("Change benchmark")
    stays(page, site)
    assert Run.objects.count() == 3
