"""The button that starts a run is on the first screen, 1280 by 900 pixels."""

import pytest
from playwright.sync_api import Page

from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(
    "path",
    [
        "{pk}/run/",
        "measure/?kind=callable&orm=books.by_isbn",
        "measure/?kind=query&model=books.Book",
        "measure/?kind=page&path=/books/",
    ],
)
def test_run_benchmark_is_on_the_first_screen(page: Page, path: str) -> None:
    factories.make_worker()
    factories.make_database()
    page.goto(f"/admin/pgperf/benchmark/{path.format(pk=factories.make_benchmark().pk)}")
    box = page.get_by_role("button", name="Run benchmark").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 900
