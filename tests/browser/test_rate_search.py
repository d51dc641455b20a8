"""The latency over the rate in a real browser: the curves, the knee with its interval, the limit."""

from typing import Any

import pytest
from playwright.sync_api import Page

from pgperf.analysis.rate_search import Outcome
from pgperf.models import Run
from tests.browser.conftest import look
from tests.browser.test_run_page import INK, chart
from tests.factories import make_results, make_run
from tests.reports.test_rate_searches import search, with_searches

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: The colours of a chart at these places, each a share of 255 of opacity, at x and y of its data.
PIXELS = """([id, places]) => {
    const canvas = document.querySelector(`canvas[data-chart="${id}"]`);
    const {scales, currentDevicePixelRatio: ratio} = Chart.getChart(canvas);
    return places.map(([x, y]) => canvas.getContext("2d").getImageData(
        scales.x.getPixelForValue(x) * ratio, scales.y.getPixelForValue(y) * ratio, 1, 1).data[3]);
}"""
SCALE = """id => {
    const {x, y} = Chart.getChart(document.querySelector(`canvas[data-chart="${id}"]`)).scales;
    return {x: [x.min, x.max], y: [y.min, y.max]};
}"""


SCHEMES = ("light", "dark")


@pytest.fixture
def run(page: Page) -> Run:
    """With a rate that was found, and with one that was not."""
    run = make_results(make_run(), routes=("tcp",))
    layers = [row.layer for row in run.variants.filter(control=0)][:2]
    with_searches(run, search(layers[0]), search(layers[1], Outcome.NONE_HOLDS))
    return run


def show(page: Page, run: Run, scheme: str) -> None:
    look(page, 1280, scheme)
    page.goto("about:blank")
    page.goto(f"/admin/pgperf/run/{run.pk}/change/#topic-rate")
    page.wait_for_function(
        "(Chart.getChart(document.querySelector('[data-chart=chart-rate-2]')) || {}).width > 100"
    )


def opacities(page: Page, name: str, *places: tuple[float, float]) -> list[Any]:
    return list(page.evaluate(PIXELS, [name, [list(place) for place in places]]))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_knee_is_a_band_and_the_axes_hold_all_rates_and_the_limit(
    page: Page, run: Run, scheme: str
) -> None:
    show(page, run, scheme)
    inside, beside = (870.0, 3.3), (650.0, 3.3)
    band, empty = opacities(page, "chart-rate-1", inside, beside)
    assert 0 < band < 100
    assert empty == 0
    assert opacities(page, "chart-rate-2", inside) == [0]
    scale = page.evaluate(SCALE, "chart-rate-1")
    assert scale["x"] == [0, 1000]
    assert scale["y"][0] <= 0.4
    assert scale["y"][1] >= 10
    assert [len(values) for values in chart(page, "chart-rate-1")["data"]] == [5, 5, 5]
    assert all(canvas.evaluate(INK) > 1000 for canvas in page.locator("[data-chart^=chart-rate]").all())
