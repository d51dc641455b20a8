"""The button that starts a run is on the first screen, 1280 by 900 pixels."""

import pytest
from playwright.sync_api import Page

from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


PATHS = (
    "{pk}/run/",
    "measure/?kind=callable&orm=books.by_isbn",
    "measure/?kind=query&model=books.Book",
    "measure/?kind=page&path=/books/",
)


def test_run_benchmark_is_on_the_first_screen(page: Page) -> None:
    factories.make_worker()
    factories.make_database()
    benchmark = factories.make_benchmark()
    for path in PATHS:
        page.goto(f"/admin/pgperf/benchmark/{path.format(pk=benchmark.pk)}")
        box = page.get_by_role("button", name="Run benchmark").bounding_box()
        assert box is not None, path
        assert box["y"] + box["height"] <= 900, path
