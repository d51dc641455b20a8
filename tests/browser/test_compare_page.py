"""The page that compares two runs, in a browser, on stored results."""

import re
from itertools import product

import pytest
from playwright.sync_api import Page, expect

from pgperf.models import Run
from tests import factories
from tests.browser.conftest import look
from tests.browser.test_run_page import INK, chart

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: Both ends of the axis of the first chart whose name begins so.
SCALE = """(name) => {
    const scale = Chart.getChart(document.querySelector(`canvas[data-chart^="${name}"]`)).scales.x;
    return [scale.min, scale.max];
}"""


@pytest.fixture
def runs(page: Page) -> tuple[Run, Run]:
    """Two runs; the page that compares the second with the first is open."""
    first = factories.make_results(factories.make_run())
    second = factories.make_results(factories.make_run(), slower={"django_orm": 1.1, "psycopg2": 0.97})
    page.goto(f"/admin/pgperf/run/{second.pk}/compare/")
    return first, second


def test_dots_show_the_ratios_of_the_table(page: Page, runs: tuple[Run, Run]) -> None:
    canvases = page.locator("canvas[data-chart]")
    expect(canvases).to_have_count(3)
    assert all(canvas.evaluate(INK) > 1000 for canvas in canvases.all())
    for number, table in enumerate(page.locator("table.comparisons").all(), 1):
        shown = table.locator("tbody tr td:nth-child(5)")
        values = shown.evaluate_all("cells => cells.map(cell => Number(cell.dataset.value))")
        assert chart(page, f"chart-compare-{runs[1].pk}-{number}")["data"] == [values]


def test_a_line_marks_the_ratio_of_one(page: Page, runs: tuple[Run, Run]) -> None:
    scale = page.evaluate(SCALE, "chart-compare")
    assert scale[0] < 0.97
    assert scale[1] > 1.1


def test_the_axis_has_no_negative_ratios(page: Page) -> None:
    first = factories.make_results(factories.make_run())
    second = factories.make_results(factories.make_run(), slower={"django_orm": 4.0})
    page.goto(f"/admin/pgperf/run/{second.pk}/compare/?with={first.pk}")
    low, high = page.evaluate(SCALE, "chart-compare")
    assert 0 <= low < 1
    assert high > 4


def test_the_axis_ends_near_the_values_of_each_side(page: Page) -> None:
    first = factories.make_results(factories.make_run())
    second = factories.make_results(factories.make_run(), slower={"django_orm": 4.0})
    page.goto(f"/admin/pgperf/run/{second.pk}/compare/?with={first.pk}")
    low, high = page.evaluate(SCALE, f"chart-steps-{second.pk}")
    assert low < 0 < high
    assert -low < high / 2


def test_steps_grow_and_shrink_on_both_sides_of_no_change(page: Page, runs: tuple[Run, Run]) -> None:
    name = f"chart-steps-{runs[1].pk}"
    shown = page.locator("table.steps tbody tr td:nth-child(6)")
    values = shown.evaluate_all("cells => cells.map(cell => Number(cell.dataset.value))")
    assert chart(page, name)["data"] == [values]
    low, high = page.evaluate(SCALE, name)
    assert low < min(values) < 0 < max(values) < high


def test_no_content_is_cut_off(page: Page, runs: tuple[Run, Run]) -> None:
    for width, scheme in product((1280, 800), ("light", "dark")):
        words = look(page, width, scheme)
        page.reload()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, words
        for name in (
            f"chart-compare-{runs[1].pk}-1",
            f"chart-compare-{runs[1].pk}-2",
            f"chart-steps-{runs[1].pk}",
        ):
            area = chart(page, name)["area"]
            assert area["right"] - area["left"] > 100, (words, name)


def test_numbers_at_axes_have_the_minus_of_the_tables(page: Page) -> None:
    first, second = (factories.make_results(factories.make_run()) for _ in range(2))
    page.goto(f"/admin/pgperf/run/{second.pk}/compare/?with={first.pk}")
    assert page.evaluate("[-0.5, 2, -150].map(window.pgperf.format)") == ["−0.5", "2", "−150"]


def test_the_widest_table_shows_its_last_column(page: Page) -> None:
    """Beside the navigation, with intervals that are as long as those of a noisy machine."""
    first, second = (factories.make_results(factories.make_run()) for _ in range(2))
    page.goto(f"/admin/pgperf/run/{second.pk}/compare/?with={first.pk}")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    wide = [
        "-",
        "~ inconclusive",
        "×1.100",
        "×2.22",
        "×2.02",
        "0.522 … 1.898",
        "+23.7",
        "−5,665 … 4,413",
        "1,595 %",
    ]
    fits = page.locator("table.comparisons").first.evaluate(
        """(table, wide) => {
            for (const row of table.tBodies[0].rows) {
                wide.forEach((text, at) => { if (at > 1) { row.cells[at].textContent = text; } });
            }
            const box = table.closest(".pgperf-scroll");
            return [box.scrollWidth, box.clientWidth];
        }""",
        wide,
    )
    assert fits[0] <= fits[1], fits


def test_the_form_selects_another_run(page: Page, runs: tuple[Run, Run]) -> None:
    second = runs[1]
    third = factories.make_results(factories.make_run())
    page.reload()
    page.get_by_label("Compare with").select_option(str(third.pk))
    page.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(re.compile(rf"/{second.pk}/compare/\?with={third.pk}$"))
    for first in (second, third, second):
        expect(page.locator(".pgperf-head dd").first).to_contain_text(str(first))
        page.get_by_role("link", name="Swap the runs").click()


def test_the_action_compares_the_selected_runs(page: Page, runs: tuple[Run, Run]) -> None:
    third = factories.make_results(factories.make_run())
    page.goto("/admin/pgperf/run/")
    for run in (*runs, third):
        page.locator(f"input.action-select[value='{run.pk}']").check()
    page.get_by_label("Action:").select_option("compare_runs")
    page.get_by_role("button", name="Go", exact=True).click()
    shown = page.locator("canvas[data-chart]")
    expect(shown).to_have_count(3 + 3)
    assert all(canvas.evaluate(INK) > 500 for canvas in shown.all())
    bars = chart(page, "chart-ladders-1")["data"]
    assert [len(values) for values in bars] == [5, 5, 5]
    page.get_by_text("Choose runs").click()
    page.get_by_label(f"{third} as baseline").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".pgperf-head dt")).to_have_text(["run", "run", "baseline"])
    page.locator("#comparison-each").get_by_role("link", name=str(runs[0]), exact=True).click()
    expect(page.locator(".pgperf-head dd")).to_contain_text([str(runs[0]), str(third)])
    expect(page.locator(".pgperf-head dt")).to_have_text(["run", "baseline"])


def test_a_comparison_of_eight_runs_fits(page: Page) -> None:
    runs = [factories.make_results(factories.make_run()) for _ in range(8)]
    for width in (1280, 800):
        look(page, width, "light")
        page.goto(f"/admin/pgperf/run/compare/?runs={','.join(str(run.pk) for run in runs)}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
