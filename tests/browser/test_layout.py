"""The boxes of pgperf's pages, under the installed Django: nothing overlaps, nothing is cut."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from pgperf.models import Database, Run, Schedule, StatementList, Worker
from pgperf.reports import statement_lists
from pgperf.runs.definitions import freeze
from tests import factories
from tests.browser.axe import COLOURS, serious_faults
from tests.browser.conftest import look
from tests.catalog_runs import make_catalog_run
from tests.cpu_accounts import add_cpu_accounts

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: Where to keep a picture of each page, for a look by eye; by default nowhere.
PICTURES = os.environ.get("PGPERF_TEST_PICTURES")
FAULTS = (Path(__file__).parent / "layout_faults.js").read_text()
#: How the breadcrumbs look; the admin's own pages give the values that ours must have.
BREADCRUMBS = """() => {
    const bar = document.querySelector(".breadcrumbs");
    const style = getComputedStyle(bar), link = getComputedStyle(bar.querySelector("a"));
    return {
        background: style.backgroundColor, colour: style.color, padding: style.padding, link: link.color,
        height: Math.round(bar.getBoundingClientRect().height), markup: bar.tagName,
    };
}"""

#: Two frames, in which charts take their size.
CHARTS_STAND = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"


#: Opens what the sections of suites and of connecting fold; charts are drawn again then.
OPEN = """() => document.querySelectorAll(":is(#run-suite, #run-connections) details").forEach(
    each => { each.open = true; })"""
#: The labels of rows that are wider than their place in the chart, which would cut them.
CUT_LABELS = """() => [...document.querySelectorAll("canvas[data-chart]")].flatMap(canvas => {
    if (!canvas.clientWidth) return [];
    const scale = Chart.getChart(canvas).scales.y;
    const context = canvas.getContext("2d");
    if (scale.type !== "category") return [];
    context.font = Chart.defaults.font.size + "px " + Chart.defaults.font.family;
    return scale.getLabels().flat().filter(label => context.measureText(label).width > scale.width)
        .map(label => `the label "${label}" is cut in ${canvas.dataset.chart}`);
})"""


#: Of 30 characters, the most that a name may have: with words, and as one.
LONG_NAMES = ("the-pooler-of-the-other-centre", "ThePoolerOfTheOtherDataCentres")


@pytest.fixture
def rows() -> dict[str, Any]:
    """One of each, with long texts and a run in every state."""
    factories.make_worker()
    database = factories.make_database()
    frozen = freeze(factories.make_benchmark(), database).to_json()
    notes = "before the second CPU " * 9
    made = factories.make_run(
        definition=frozen, quick=True, requested_by=User.objects.get(), pinned=True, notes=notes
    )
    run = add_cpu_accounts(factories.make_results(made))
    run.variants.filter(label="django_orm · socket").update(verdict=factories.stored_verdict())
    earlier = factories.make_results(factories.make_run(), slower={"django_orm": 1.1})
    assert run.benchmark is not None
    return {
        "worker": Worker.objects.get(),
        "schedule": _schedule(run),
        "run": run,
        "earlier": earlier,
        "narrow": factories.make_results(factories.make_run(), routes=("tcp",)),
        "names": factories.make_results(factories.make_run(), routes=LONG_NAMES),
        "suite": make_catalog_run("driver-suite-published"),
        "connections": make_catalog_run("connection-cost"),
        "failed": factories.make_run(Run.Status.FAILED, error="connection refused " * 12),
        "queued": factories.make_run(Run.Status.QUEUED, schedule=Schedule.objects.get()),
        "benchmark": run.benchmark,
        "workload": run.benchmark.workloads[0],
        "database": run.database,
        "statement": _statement(database),
    }


def _statement(database: Database) -> str:
    """The key of a statement of the database's server."""
    query = "SELECT title FROM books_book WHERE year = $2 AND isbn = $1 AND year % $2 = $3"
    told = [{"query": query, "calls": 20, "rows": 20, "total_ms": 5.0}]
    StatementList.objects.create(database=database, read_at=timezone.now(), statements=told)
    (shown,) = statement_lists.stored(User.objects.get())
    return shown.statements[0].key


def _schedule(run: Run) -> Schedule:
    """One that has started a run."""
    times = {"due_at": timezone.now(), "last_due_at": timezone.now(), "outcome": Schedule.Outcome.STARTED}
    owner = User.objects.get()
    return factories.make_schedule(benchmark=run.benchmark, database=run.database, owner=owner, **times)


LISTS = {model: f"{model}/" for model in ("benchmark", "database", "run", "schedule", "worker", "workload")}
PAGES: dict[str, str] = {
    "dashboard": "",
    "dashboard-page": "run/dashboard/",
    **{f"{model}s": path for model, path in LISTS.items()},
    **{
        f"change-{model}": f"{model}/{{{model}.pk}}/change/"
        for model in ("benchmark", "database", "schedule", "worker", "workload")
    },
    **{f"add-{model}": f"{model}/add/" for model in ("benchmark", "database", "schedule", "workload")},
    **{
        f"delete-{model}": f"{model}/{{{model}.pk}}/delete/"
        for model in ("benchmark", "database", "schedule", "workload")
    },
    "server-settings": "database/{database.pk}/change/?memory=16GB&cpus=8&profile=desktop",
    **{
        f"{name}-run": f"run/{{{name}.pk}}/change/#topic-all"
        for name in ("run", "failed", "queued", "suite", "connections", "names")
    },
    "answer-run": "run/{run.pk}/change/",
    **{f"start-{name}": f"benchmark/{{{name}.benchmark_id}}/run/" for name in ("suite", "connections")},
    **{f"change-{name}": f"benchmark/{{{name}.benchmark_id}}/change/" for name in ("suite", "connections")},
    "start": "benchmark/{benchmark.pk}/run/",
    "measure": "benchmark/measure/",
    "measure-callable": "benchmark/measure/?kind=callable&orm=books.by_isbn",
    "measure-query": "benchmark/measure/?kind=query&model=books.Book",
    "measure-page": "benchmark/measure/?kind=page&path=/books/",
    "measure-statement": "benchmark/measure/?kind=statement&statement={statement}",
    "compare": "run/{run.pk}/compare/?with={earlier.pk}",
    "choose-runs": "run/compare/",
    "comparison": "run/compare/?runs={run.pk},{earlier.pk},{narrow.pk},{failed.pk}",
    "pauses": "pause/",
    "add-pause": "pause/add/",
    "confirm": "run/{run.pk}/confirm/?variant=django_orm%20%C2%B7%20socket",
    "import": "benchmark/import/",
    "export": "benchmark/export/",
    "history": "run/{run.pk}/history/",
    "over-runs": "benchmark/{benchmark.pk}/runs/",
}


#: Where axe-core looks for serious faults too, and in which part; tests of runs' pages do it there.
#: `measure` has the statements of servers.
AXE = {
    **dict.fromkeys(("dashboard", "dashboard-page"), ".pgperf-dashboard"),
    **dict.fromkeys(
        (
            "history", "over-runs", "compare", "comparison", "start", "start-suite", "measure",
            "measure-callable", "measure-query", "measure-page", "measure-statement", "add-benchmark",
            "change-benchmark", "add-schedule", "change-schedule", "confirm",
        ),
        "#content-main",
    ),
}  # fmt: skip
#: Charts of all pages, at least.
FEWEST_CHARTS = 45


#: The admin lets the colours of links change slowly.
COLOURS_STAND = """() => document.getAnimations().filter(each => each instanceof CSSTransition)
    .forEach(each => each.finish())"""
#: A caption that is for screen readers only is out of the flow.
POSITIONS = "all => all.map(each => getComputedStyle(each).position)"
WIDE, NARROW = (1280, "light"), (800, "dark")


def test_no_page_has_a_fault(page: Page, rows: dict[str, Any]) -> None:
    """Wide and light, then narrow and dark.

    A page with charts, which take their size and colours when they are drawn, is loaded for both;
    without any, a page follows the window by CSS alone.
    """
    page.goto("/admin/auth/user/")
    own = {}
    for window in (WIDE, NARROW):
        look(page, *window)
        page.evaluate(COLOURS_STAND)
        own[window] = page.evaluate(BREADCRUMBS)
    said = []
    for name, path in PAGES.items():
        look(page, *WIDE)
        answer = page.goto(f"/admin/pgperf/{path.format(**rows)}", wait_until="load")
        assert answer is not None
        assert answer.ok, name
        said += [f"{name}, wide: {fault}" for fault in faults(page, name, WIDE, own[WIDE])]
        look(page, *NARROW)
        if page.locator("canvas[data-chart]").count():
            page.reload(wait_until="load")
        said += [f"{name}, narrow: {fault}" for fault in faults(page, name, NARROW, own[NARROW])]
    assert not said, "\n".join(said)


def test_without_scripts_no_page_has_an_empty_place(
    page: Page, rows: dict[str, Any], browser: Browser, live_server: LiveServer
) -> None:
    """In place of each chart stands its finding; its figures are in tables."""
    context = browser.new_context(
        base_url=live_server.url, java_script_enabled=False, storage_state=page.context.storage_state()
    )
    plain, charts = context.new_page(), 0
    for name, path in PAGES.items():
        answer = plain.goto(f"/admin/pgperf/{path.format(**rows)}")
        assert answer is not None
        assert answer.ok, name
        assert not plain.locator(".pgperf-chart").filter(visible=True).count(), name
        ways = plain.locator(".pgperf-figure > figcaption").evaluate_all(POSITIONS)
        assert set(ways) <= {"static"}, name
        charts += len(ways)
    context.close()
    assert charts > FEWEST_CHARTS


def faults(page: Page, name: str, window: tuple[int, str], breadcrumbs: Any) -> list[str]:
    page.evaluate(OPEN)
    page.evaluate(CHARTS_STAND)
    page.evaluate(COLOURS_STAND)
    found: list[str] = page.evaluate(FAULTS)
    found += page.evaluate(CUT_LABELS) if name.endswith("-run") else []
    if name in AXE:
        found += serious_faults(page, AXE[name], () if window == WIDE else COLOURS)
    if page.evaluate(BREADCRUMBS) != breadcrumbs:
        found.append("the breadcrumbs do not look like those of the admin")
    if PICTURES:
        width, scheme = window
        page.screenshot(path=f"{PICTURES}/{name}-{width}-{scheme}.png", full_page=True)
    return found
