"""The latency over the rate in a real browser: the curves, the knee with its interval, the limit."""

from typing import Any

import pytest
from playwright.sync_api import Page

from pgperf.analysis.rate_search import Outcome
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


@pytest.fixture(params=["light", "dark"])
def shown(request: pytest.FixtureRequest, page: Page) -> Page:
    """The page of a run with a rate that was found, and with one that was not."""
    page.emulate_media(color_scheme=request.param)
    run = make_results(make_run(), routes=("tcp",))
    layers = [row.layer for row in run.variants.filter(control=0)][:2]
    with_searches(run, search(layers[0]), search(layers[1], Outcome.NONE_HOLDS))
    page.goto(f"/admin/pgperf/run/{run.pk}/change/#topic-rate")
    page.wait_for_function(
        "(Chart.getChart(document.querySelector('[data-chart=chart-rate-2]')) || {}).width > 100"
    )
    return page


def opacities(page: Page, name: str, *places: tuple[float, float]) -> list[Any]:
    return list(page.evaluate(PIXELS, [name, [list(place) for place in places]]))


def test_the_knee_is_a_band_where_a_rate_was_found(shown: Page) -> None:
    inside, beside = (870.0, 3_300.0), (650.0, 3_300.0)
    band, empty = opacities(shown, "chart-rate-1", inside, beside)
    assert 0 < band < 100
    assert empty == 0
    assert opacities(shown, "chart-rate-2", inside) == [0]


def test_the_axes_hold_all_rates_and_the_limit(shown: Page) -> None:
    scale = shown.evaluate(SCALE, "chart-rate-1")
    assert scale["x"] == [0, 1000]
    assert scale["y"][0] <= 400
    assert scale["y"][1] >= 10_000
    assert [len(values) for values in chart(shown, "chart-rate-1")["data"]] == [5, 5, 5]
    assert all(canvas.evaluate(INK) > 1000 for canvas in shown.locator("[data-chart^=chart-rate]").all())
