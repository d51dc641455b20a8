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
#: How far each box scrolls, and how far the name of its first row is from its left edge at the end.
SCROLLED = """all => all.map(each => {
    each.scrollTo(each.scrollWidth, 0);
    const name = each.querySelector("tbody th").getBoundingClientRect();
    return [each.scrollLeft, name.left - each.getBoundingClientRect().left];
})"""


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
    page.set_viewport_size({"width": 500, "height": 900})
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


def test_the_names_of_rows_stay_while_their_table_scrolls(page: Page) -> None:
    run = factories.make_results(factories.make_run())
    page.set_viewport_size({"width": 500, "height": 900})
    page.goto(f"/admin/pgperf/run/{run.pk}/change/#topic-all")
    boxes = page.locator(".pgperf-scroll:has(> table.numbers):visible")
    moved = boxes.evaluate_all(SCROLLED)
    assert max(scrolled for scrolled, _left in moved) > 0
    assert all(abs(left) <= 1 for _scrolled, left in moved)


def test_the_admins_navigation_leaves_a_narrow_window_to_the_page(page: Page) -> None:
    navigation, found = page.locator("#nav-sidebar"), {}
    for width in (1280, 1023, 800):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto("/admin/pgperf/run/")
        content = page.locator("#content-start").evaluate("each => each.getBoundingClientRect().width")
        found[width] = navigation.is_visible(), content == width
    assert found == {1280: (True, False), 1023: (False, True), 800: (False, True)}
