"""Stored texts of a hostile server, driver or host: versions, settings, wait events, names of
processes, errors.
"""

import json

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.admin import downloads
from pgperf.models import Run
from tests import factories
from tests.admin import hostile_texts


@pytest.fixture(params=hostile_texts.TEXTS)
def text(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def hostile_run(run: Run, text: str) -> Run:
    return hostile_texts.make_hostile(run, text)


def test_pages_of_a_failed_run_show_all_texts_as_text(admin_page: Client, run: Run) -> None:
    text = "".join(text for text in hostile_texts.TEXTS if not text.isdigit())
    hostile_texts.make_hostile(run, text)
    Run.objects.filter(pk=run.pk).update(status=Run.Status.FAILED)
    other = factories.make_results(factories.make_run())
    hostile_texts.assert_pages_are_harmless(admin_page, run, other)


def test_pages_show_the_text_as_text_and_no_cell_of_a_file_is_a_formula(
    admin_page: Client, hostile_run: Run, text: str
) -> None:
    other = factories.make_results(factories.make_run())
    hostile_texts.assert_pages_are_harmless(admin_page, hostile_run, other)
    for name in downloads.FILES:
        hostile_texts.assert_file_is_harmless(admin_page, hostile_run, name)
    assert hostile_texts.read_back(hostile_run)["run"]["environment"]["python"] == text
    Run.objects.filter(pk=hostile_run.pk).update(status=Run.Status.RUNNING, finished_at=None)
    response = admin_page.get(reverse("admin:pgperf_run_progress", args=[hostile_run.pk]))
    assert response["Content-Type"] == "application/json"
    assert json.loads(response.content)
