"""From the confirm button of a run page to the test run."""

import pytest
from playwright.sync_api import Page, expect

from pgperf.models import Run
from pgperf.runs.definitions import freeze
from tests import factories
from tests.cpu_accounts import add_cpu_accounts

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
VERDICT = factories.stored_verdict()


def test_the_confirm_button_starts_a_test_run(page: Page) -> None:
    factories.make_worker()
    database = factories.make_database()
    frozen = freeze(factories.make_benchmark(), database)
    made = factories.make_run(database=database, definition=frozen.to_json())
    run = add_cpu_accounts(factories.make_results(made, routes=("socket",)))
    run.variants.exclude(label="django_orm · socket").update(verdict={})
    run.variants.filter(label="django_orm · socket").update(verdict=VERDICT)

    page.goto(f"/admin/pgperf/run/{run.pk}/change/")
    page.get_by_role("button", name="Confirm").first.click()
    expect(page.get_by_text("the same statements through libpq")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="libpq (C) · socket")).to_be_visible()
    assert Run.objects.count() == 1
    page.get_by_role("button", name="Start the test run").click()

    asked = Run.objects.get(confirms=run)
    expect(page).to_have_url(page.url.split("/admin")[0] + f"/admin/pgperf/run/{asked.pk}/change/")
    expect(page.get_by_text("This run tests the verdict on")).to_be_visible()
