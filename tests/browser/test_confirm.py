"""From the confirm button of a run page to the test run."""

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from pgperf.models import MachineLook, Run
from pgperf.runs import machine_looks, state
from pgperf.runs.definitions import freeze
from tests import factories
from tests.cpu_accounts import add_cpu_accounts
from tests.machine_looks import look

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
VERDICT = factories.stored_verdict()


def run_with_a_verdict() -> Run:
    factories.make_worker("pgperf@localhost")
    database = factories.make_database()
    frozen = freeze(factories.make_benchmark(), database)
    made = factories.make_run(database=database, definition=frozen.to_json())
    run = add_cpu_accounts(factories.make_results(made, routes=("socket",)))
    run.variants.exclude(label="django_orm · socket").update(verdict={})
    run.variants.filter(label="django_orm · socket").update(verdict=VERDICT)
    return run


def click_confirm(page: Page, run: Run) -> None:
    page.goto(f"/admin/pgperf/run/{run.pk}/change/#run-verdicts")
    page.get_by_text("All verdicts and their evidence").click()
    page.get_by_role("button", name="Confirm").first.click()


def test_the_confirm_button_starts_a_test_run(page: Page) -> None:
    run = run_with_a_verdict()
    click_confirm(page, run)
    expect(page.get_by_text("the same statements through libpq")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="libpq (C) · socket")).to_be_visible()
    assert Run.objects.count() == 1
    page.get_by_role("button", name="Start the test run").click()

    asked = Run.objects.get(confirms=run)
    expect(page).to_have_url(page.url.split("/admin")[0] + f"/admin/pgperf/run/{asked.pk}/change/")
    expect(page.get_by_text("This run tests the verdict on")).to_be_visible()


def with_trusted_types(route: Route) -> None:
    """The server's answer under the strictest policy for scripts."""
    answer = route.fetch()
    policy = "require-trusted-types-for 'script'; trusted-types 'none'"
    route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": policy})


def test_the_answer_to_a_look_appears_by_itself(page: Page) -> None:
    """On the page that a POST opened, whose address alone would not show it."""
    page.route("**/confirm/**", with_trusted_types)
    run = run_with_a_verdict()
    request = MachineLook.objects.create(
        queue="pgperf", asked_at=timezone.now(), host=state.this_machine(), worker="pgperf@localhost"
    )
    click_confirm(page, run)
    button = page.get_by_role("button", name="Check the machine")
    expect(button).to_be_disabled()
    expect(page.get_by_text("A worker was asked to check its machine")).to_be_visible()
    machine_looks.answer(request.pk, look())
    expect(page.get_by_text("The machine is quiet")).to_be_visible(timeout=30_000)
    expect(page.get_by_text("The test run: about ±")).to_be_visible()
    expect(button).to_be_enabled()
