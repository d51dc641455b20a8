"""The button that confirms a verdict, and the page that it opens."""

import re
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from pgperf.analysis.verdict import Verdict, VerdictNumbers
from pgperf.models import Database, Run, VariantResult
from pgperf.runs import pause
from pgperf.runs.definitions import freeze
from tests import factories

LABEL = "django_orm · socket"


@pytest.fixture
def run(db: None) -> Run:
    database = factories.make_database()
    frozen = freeze(factories.make_benchmark(), database)
    run = factories.make_results(factories.make_run(database=database, definition=frozen.to_json()))
    numbers = VerdictNumbers(response_us=211.0, parts_us={"client": 165.0}, queue_us={"client": 0.0})
    verdict = Verdict("client_cpu", "likely", numbers=numbers, intervention="lower_layer")
    run.variants.filter(label=LABEL).update(verdict=verdict.to_json())
    return run


@pytest.fixture
def page(run: Run) -> str:
    return reverse("admin:pgperf_run_confirm", args=[run.pk])


def form(**changed: Any) -> dict[str, Any]:
    return {"variant": LABEL, "token": uuid.uuid4().hex, **changed}


@pytest.mark.parametrize("method", ["get", "post"])
def test_the_page_shows_the_verdict_the_test_and_its_resources(
    client_of: Callable[[str], Client], page: str, run: Run, method: str
) -> None:
    """The button on the run's page sends no token: nothing starts before the user sees this page."""
    factories.make_worker()
    text = getattr(client_of("runner"), method)(page, {"variant": LABEL}).content.decode()
    for expected in (
        "client CPU: 165 of 211 µs",
        "the same statements through libpq",
        "<li>libpq (C) · socket</li><li>Django ORM · socket</li>",
        "must be free",
        "Start the test run",
    ):
        assert expected in text
    assert re.search(r'name="token" value="[0-9a-f]{32}"', text)
    assert Run.objects.count() == 1
    assert VariantResult.objects.get(run=run, label=LABEL).verdict["certainty"] == "likely"


def test_the_page_says_that_pgperf_is_paused(admin_page: Client, page: str) -> None:
    said = "No run starts until the pause is deleted"
    assert said not in admin_page.get(page, {"variant": LABEL}).content.decode()
    pause.begin("ada", "Upgrade of the server.")
    text = admin_page.get(page, {"variant": LABEL}).content.decode()
    assert said in text
    assert "Upgrade of the server." in text


def test_a_post_with_a_token_requests_one_run_and_redirects_to_it(
    admin_page: Client, page: str, run: Run
) -> None:
    twice = form()
    first, second = admin_page.post(page, twice), admin_page.post(page, twice)
    asked = Run.objects.get(confirms=run)
    assert first["Location"] == second["Location"] == reverse("admin:pgperf_run_change", args=[asked.pk])
    assert (asked.confirms_variant, asked.intervention, asked.status) == (LABEL, "lower_layer", "queued")
    entry = LogEntry.objects.get()
    assert entry.get_edited_object() == asked
    assert f"to test {LABEL} of run {run.pk}" in entry.change_message


@pytest.mark.parametrize("label", ["\0", "\ud800", "x" * 100_000], ids=["NUL", "surrogate", "long"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_text_that_no_variant_has_leads_back(
    admin_page: Client, page: str, run: Run, method: str, label: str
) -> None:
    query = urlencode(form(variant=label), errors="surrogatepass")
    kind = "application/x-www-form-urlencoded"
    answer = (
        admin_page.get(f"{page}?{query}")
        if method == "get"
        else admin_page.post(page, query, content_type=kind)
    )
    assert answer["Location"] == reverse("admin:pgperf_run_change", args=[run.pk])
    assert Run.objects.count() == 1


def test_a_production_database_requires_its_name(admin_page: Client, page: str, run: Run) -> None:
    Database.objects.update(production=True)
    assert "is a production database" in admin_page.get(page, {"variant": LABEL}).content.decode()
    assert "Type the database name exactly" in admin_page.post(page, form()).content.decode()
    assert admin_page.post(page, form(confirm_name="demo")).status_code == 302
    assert Run.objects.get(confirms=run).confirmed_name == "demo"


@pytest.mark.parametrize("variant", ["", "nobody", "libpq · socket", "<script>"])
def test_a_verdict_without_a_test_redirects_with_an_error(
    admin_page: Client, page: str, run: Run, variant: str
) -> None:
    response = admin_page.post(page, form(variant=variant), follow=True)
    assert response.redirect_chain[-1][0] == reverse("admin:pgperf_run_change", args=[run.pk])
    assert "Variant: " in response.content.decode()
    assert "<script>'" not in response.content.decode()
    assert Run.objects.count() == 1


def test_a_refusal_is_shown_on_the_page(admin_page: Client, page: str, run: Run) -> None:
    factories.make_worker(libpq="the C client is not built: run `manage.py pgperf build`")
    text = admin_page.get(page, {"variant": LABEL}).content.decode()
    assert "libpq (C): the C client is not built" in text
    assert 'class="default" disabled' in text
    run.database.delete()  # type: ignore[union-attr]
    text = admin_page.post(page, form()).content.decode()
    assert "database: demo was deleted" in text
    assert Run.objects.filter(confirms=run).count() == 0


def test_a_wrong_token_starts_no_run(admin_page: Client, page: str, run: Run) -> None:
    assert admin_page.post(page, form(token="x")).status_code == 200
    assert Run.objects.count() == 1
