"""The layout of lists and forms in a browser."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from pgperf.models import Target
from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FITS = "each => each.scrollWidth <= each.clientWidth"
#: The fields that exceed the right edge of their form.
BEYOND = """form => {
    const edge = form.getBoundingClientRect().right;
    const shown = [...form.querySelectorAll("input, select, textarea, .help")];
    return shown.filter(each => each.getBoundingClientRect().right > edge).map(each => each.id);
}"""


def test_lists_fit_beside_their_filters(page: Page) -> None:
    factories.make_worker()
    notes = "before the pooler was given a second processor"
    factories.make_run(quick=True, requested_by=User.objects.get(), notes=notes, pinned=True)
    found = {}
    for model in ("benchmark", "database", "run", "worker", "workload"):
        page.goto(f"/admin/pgperf/{model}/")
        is_shown = page.locator("#changelist-filter").is_visible()
        found[model] = is_shown and page.locator("#changelist .results").evaluate(FITS)
    assert found == dict.fromkeys(found, True)


def test_narrow_forms_contain_their_fields(page: Page) -> None:
    run = factories.make_run()
    assert run.benchmark is not None
    rows = {"benchmark": run.benchmark, "database": run.database, "workload": run.benchmark.workloads[0]}
    page.set_viewport_size({"width": 800, "height": 900})
    found = {}
    for model, row in rows.items():
        assert row
        page.goto(f"/admin/pgperf/{model}/{row.pk}/change/")
        found[model] = page.locator(f"#{model}_form").evaluate(BEYOND)
    assert not any(found.values()), found


def test_routes_wrap_beside_the_name_of_their_database(page: Page) -> None:
    database = factories.make_database("a-database-with-a-long-name")
    for at in range(9):
        Target.objects.create(database=database, route=f"web_nginx_twin_{at}", host="127.0.0.1")
    page.goto(f"/admin/pgperf/benchmark/add/?database={database.pk}")
    boxes = page.locator(".pgperf-routes .of-database label:visible")
    lefts = boxes.evaluate_all("all => all.map(each => Math.round(each.getBoundingClientRect().left))")
    tops = boxes.evaluate_all("all => all.map(each => Math.round(each.getBoundingClientRect().top))")
    assert len({*tops}) > 1
    assert min(lefts) == lefts[0]


def test_a_table_that_scrolls_fades_at_its_edge_until_its_end_is_shown(page: Page) -> None:
    run = factories.make_results(factories.make_run())
    page.set_viewport_size({"width": 800, "height": 900})
    page.goto(f"/admin/pgperf/run/{run.pk}/change/#topic-all")
    fades = "each => getComputedStyle(each).getPropertyValue('--pgperf-fade')"
    until_it_fades = "([each, by]) => getComputedStyle(each).getPropertyValue('--pgperf-fade') === by"
    shown = page.locator(".pgperf-scroll:visible")
    wide = shown.evaluate_all("all => all.findIndex(each => each.scrollWidth > each.clientWidth)")
    fitting = shown.evaluate_all("all => all.findIndex(each => each.scrollWidth <= each.clientWidth)")
    # A frame after the layout or the scrolling has it.
    page.wait_for_function(until_it_fades, arg=[shown.nth(wide).element_handle(), "32px"])
    assert shown.nth(fitting).evaluate(fades) == "0px"
    shown.nth(wide).evaluate("each => each.scrollTo(each.scrollWidth, 0)")
    page.wait_for_function(until_it_fades, arg=[shown.nth(wide).element_handle(), "0px"])
