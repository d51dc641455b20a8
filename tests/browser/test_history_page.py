"""The page of a benchmark's results over its runs, in a browser, on stored results."""

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from pgperf.models import Run
from pgperf.runs import changes
from tests import factories
from tests.browser.test_layout import CHARTS_STAND, FAULTS
from tests.browser.test_run_page import INK
from tests.histories import make_history

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PICTURES = os.environ.get("PGPERF_TEST_PICTURES")
LAYERS = ("libpq", "psycopg", "django_cursor", "django_orm")
#: The places of the points and of the marks, which are all inside the chart.
PLACES = """canvas => {
    const chart = Chart.getChart(canvas), area = chart.chartArea;
    const xs = chart.getDatasetMeta(0).data.map(point => point.x);
    const marks = chart.options.plugins.happened.marks.map(mark => mark.kinds.join(" "));
    const scale = chart.scales.x, labels = scale.ticks.map(tick => tick.label);
    const [ends, pen] = [[], canvas.getContext("2d")];
    pen.font = Chart.defaults.font.size + "px " + Chart.defaults.font.family;
    scale.ticks.forEach(({value, label}) => {
        const [x, half] = [scale.getPixelForValue(value), pen.measureText(label).width / 2];
        ends.push(x - half, x + half);
    });
    const apart = ends.every((end, at) => !at || ends[at - 1] < end) && ends.at(-1) <= canvas.clientWidth;
    const levels = chart.data.datasets.length - 1;
    return {inside: xs.every(x => x > area.left && x < area.right), count: xs.length, marks, labels, apart, levels};
}"""
#: How much of a line through all marks at the bottom is ink, by their kinds.
CROWDS = """canvas => {
    const {left, right, bottom} = Chart.getChart(canvas).chartArea, ratio = canvas.width / canvas.clientWidth;
    const ink = (above) => {
        const y = Math.round((bottom - above) * ratio), width = Math.round((right - left) * ratio);
        const alphas = canvas.getContext("2d").getImageData(Math.round(left * ratio), y, width, 1).data;
        return alphas.filter((_value, at) => at % 4 === 3).reduce((sum, alpha) => sum + alpha / 255, 0) / width;
    };
    return {environment: ink(6), note: ink(19)};
}"""


def _environment(at: int) -> dict[str, Any]:
    machine = {**factories.ENVIRONMENT["machine"], "kernel": "6.18.0" if at < 12 else "6.19.0"}
    server = {**factories.ENVIRONMENT["server"], "jit": "on" if at < 20 else "off"}
    return {**factories.ENVIRONMENT, "machine": machine, "server": server}


def make_runs(count: int) -> list[Run]:
    """With a slower step, two changes of the environment, and notes, as far as there are runs."""
    many = count > 100
    slow = count - 100 if many else 20
    layers = LAYERS[:2] if many else LAYERS
    runs = make_history(count, lambda at: 10.0 if at < slow else 14.0, _environment, layers)
    Run.objects.filter(pk__in=[run.pk for run in runs[::11]]).update(
        notes="After the vacuum of all tables. " * 3
    )
    changes.record(runs[-1])
    return runs


@pytest.mark.parametrize("count", [1, 2, 30, 1_000])
def test_the_chart_shows_each_run_and_its_marks(page: Page, count: int) -> None:
    runs = make_runs(count)
    faults = _faults(page, runs)
    assert faults == []
    canvases = page.locator("canvas[data-chart]")
    expect(canvases).to_have_count(2)
    both = [canvas.evaluate(PLACES)["labels"] for canvas in canvases.all()]
    assert both[0] == both[1]
    assert_the_step_is_regular(both[0], runs)
    for canvas in canvases.all():
        assert canvas.evaluate(INK) > 200
        found = canvas.evaluate(PLACES)
        assert found["inside"]
        assert found["count"] == count
        assert found["labels"][-1] == f"#{runs[-1].pk}"
        assert len(found["labels"]) >= min(count, 5)
        assert found["apart"]
        assert ("change environment" in found["marks"]) == (count == 30)
        assert any("change" in mark for mark in found["marks"]) == (count >= 30)
        assert found["levels"] == (1 if count >= 30 else 0)
        assert "note" in found["marks"]


def assert_the_step_is_regular(labels: Sequence[str], runs: Sequence[Run]) -> None:
    names = [f"#{run.pk}" for run in runs]
    places = [names.index(label) for label in labels]
    steps = {right - left for left, right in pairwise(places)}
    assert len(steps) == min(len(runs) - 1, 1)
    assert places[0] < max(steps, default=1)


def test_crowded_marks_are_told_apart(page: Page) -> None:
    """A note and another kernel in each of 200 runs, at 800 px."""

    def environment(at: int) -> dict[str, Any]:
        machine = {**factories.ENVIRONMENT["machine"], "kernel": f"6.{at}"}
        return {**factories.ENVIRONMENT, "machine": machine}

    runs = make_history(200, lambda at: 10.0, environment, LAYERS)
    Run.objects.update(notes="Again")
    for run in runs:
        changes.record(run)
    assert _faults(page, runs) == []
    for canvas in page.locator("canvas[data-chart]").all():
        for kind, ink in canvas.evaluate(CROWDS).items():
            assert 0.2 < ink < 0.8, kind


def test_the_page_without_a_result_has_no_fault(page: Page) -> None:
    run = factories.make_run(Run.Status.FAILED)
    assert _faults(page, [run]) == []


def test_it_is_a_click_from_the_dashboard_and_from_a_run(page: Page) -> None:
    runs = make_runs(3)
    for start in ("/admin/pgperf/", f"/admin/pgperf/run/{runs[0].pk}/change/"):
        page.goto(start)
        page.locator(f"a[href*='/benchmark/{runs[0].benchmark_id}/runs/']").first.click()
        expect(page.locator("h1")).to_contain_text("Results over runs")
        expect(page.locator("canvas[data-chart]")).to_have_count(2)


def _faults(page: Page, runs: Sequence[Run]) -> list[str]:
    """Of the layout, at both widths and in both colour schemes."""
    found: list[str] = []
    for width, scheme in ((1280, "light"), (800, "dark")):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"/admin/pgperf/benchmark/{runs[0].benchmark_id}/runs/")
        page.evaluate(CHARTS_STAND)
        found += page.evaluate(FAULTS)
        if PICTURES:
            page.screenshot(
                path=f"{PICTURES}/history-{len(runs)}-{runs[0].status}-{width}-{scheme}.png", full_page=True
            )
    return found
