"""Published figures in charts: an overlay that the reader switches off."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_run_page import INK
from tests.catalog_runs import make_catalog_run

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: The marks of a chart, as Chart.js has them, and the ends of its axis.
SHOWN = """id => {
    const chart = Chart.getChart(document.querySelector(`canvas[data-chart="${id}"]`));
    return {marks: chart.data.datasets.flatMap(each => each.marks || []).filter(each => each !== null),
            max: chart.scales.x.max};
}"""


@pytest.mark.parametrize(
    ("benchmark", "name", "marks"),
    [("driver-suite-published", "chart-suite-1", 14), ("connection-cost", "chart-connection-throughput", 4)],
)
def test_the_reader_switches_the_published_figures_off(
    page: Page, benchmark: str, name: str, marks: int
) -> None:
    run = make_catalog_run(benchmark)
    page.goto(f"/admin/pgperf/run/{run.pk}/change/?topics=all#topic-all")
    canvas, switch = page.locator(f"canvas[data-chart={name}]"), page.locator(f"[data-overlay={name}]")
    shown: Any = page.evaluate(SHOWN, name)
    assert len(shown["marks"]) == marks
    assert shown["max"] >= max(shown["marks"])
    ink = canvas.evaluate(INK)
    expect(switch).to_be_checked()
    page.get_by_label("published figures").first.uncheck()
    assert page.evaluate(SHOWN, name)["marks"] == []
    assert canvas.evaluate(INK) != ink
    page.get_by_label("published figures").first.check()
    assert len(page.evaluate(SHOWN, name)["marks"]) == marks


def test_without_scripts_a_table_has_them_and_no_switch_shows(page: Page) -> None:
    run = make_catalog_run("driver-suite-published")
    content = page.request.get(f"/admin/pgperf/run/{run.pk}/change/?topics=all").text()
    assert '<label class="pgperf-overlay" hidden>' in content
    table = content.split('class="pgperf-table numbers published"')[1].split("</table>")[0]
    assert 'data-value="246.18"' in table
