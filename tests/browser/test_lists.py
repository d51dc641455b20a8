"""The layout of lists and forms in a browser."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FITS = "each => each.scrollWidth <= each.clientWidth"
#: The fields that exceed the right edge of their form.
BEYOND = """form => {
    const edge = form.getBoundingClientRect().right;
    const shown = [...form.querySelectorAll("input, select, textarea, .help")];
    return shown.filter(each => each.getBoundingClientRect().right > edge).map(each => each.id);
}"""


@pytest.mark.parametrize("model", ["benchmark", "database", "run", "worker", "workload"])
def test_the_list_fits_beside_the_filter(page: Page, model: str) -> None:
    factories.make_worker()
    notes = "before the pooler was given a second processor"
    factories.make_run(quick=True, requested_by=User.objects.get(), notes=notes, pinned=True)
    page.goto(f"/admin/pgperf/{model}/")
    assert page.locator("#changelist-filter").is_visible()
    assert page.locator("#changelist .results").evaluate(FITS)


@pytest.mark.parametrize("model", ["benchmark", "database", "workload"])
def test_a_narrow_form_contains_its_fields(page: Page, model: str) -> None:
    run = factories.make_run()
    assert run.benchmark is not None
    numbers = {"database": run.database_id, "workload": run.benchmark.workloads[0].pk}
    page.set_viewport_size({"width": 800, "height": 900})
    page.goto(f"/admin/pgperf/{model}/{numbers.get(model, run.benchmark_id)}/change/")
    assert page.locator(f"#{model}_form").evaluate(BEYOND) == []
