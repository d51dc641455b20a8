"""Server settings that differ between two runs: on a run's page, on the comparison, in JSON."""

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from pgperf.models import Database, Run
from pgperf.reports.changed_settings import changed_settings
from tests import factories

pytestmark = pytest.mark.django_db

STORED = {**factories.ENVIRONMENT["server"], "max_wal_size": "1GB"}


def make_run(settings: dict[str, Any], **fields: Any) -> Run:
    run = factories.make_results(factories.make_run(**fields))
    run.environment = {**factories.ENVIRONMENT, "server": settings}
    run.save()
    return run


def changed(run: Run) -> list[tuple[str, str, str]] | None:
    found = changed_settings(run, Run.objects.all())
    return [tuple(each) for each in found.settings] if found else None  # type: ignore[misc]


@pytest.fixture
def runs() -> tuple[Run, Run]:
    return make_run(STORED), make_run({**STORED, "work_mem": "16MB", "geqo": "off"})


def test_a_run_names_the_settings_that_changed_since_the_previous_one(runs: tuple[Run, Run]) -> None:
    before, after = runs
    assert changed(after) == [("work_mem", "4MB", "16MB"), ("geqo", "", "off")]
    assert changed(before) is None


def test_without_a_change_there_is_nothing_to_say(runs: tuple[Run, Run]) -> None:
    assert changed(make_run({**STORED, "work_mem": "16MB", "geqo": "off"})) is None


def test_only_a_finished_run_of_the_same_benchmark_and_database_counts() -> None:
    make_run(STORED)
    make_run({**STORED, "jit": "off"}, database=factories.make_database("other"))
    make_run({**STORED, "jit": "off"}, benchmark=factories.make_benchmark("other"))
    failed = make_run({**STORED, "jit": "off"})
    Run.objects.filter(pk=failed.pk).update(status=Run.Status.FAILED)
    assert changed(make_run(STORED)) is None


@pytest.mark.parametrize("odd", [None, [], "x", {}])
def test_runs_that_stored_nothing_usable_are_left_out(odd: Any) -> None:
    make_run(odd)
    assert changed(make_run({"work_mem": "16MB"})) is None


def test_a_run_without_benchmark_or_database_has_no_previous_one(runs: tuple[Run, Run]) -> None:
    _before, after = runs
    Database.objects.all().delete()
    after.refresh_from_db()
    assert changed(after) is None


def test_the_run_page_shows_them_with_a_link(admin_client: Client, runs: tuple[Run, Run]) -> None:
    before, after = runs
    text = admin_client.get(reverse("admin:pgperf_run_change", args=[after.pk])).content.decode()
    assert "The server&#x27;s settings changed" in text or "The server's settings changed" in text
    assert f'{reverse("admin:pgperf_run_compare", args=[after.pk])}?with={before.pk}"' in text
    assert "16MB" in text


def test_a_hidden_run_tells_nothing(runs: tuple[Run, Run]) -> None:
    before, after = runs
    Run.objects.filter(pk=before.pk).update(restricted=True)
    assert changed_settings(after, Run.objects.filter(restricted=False)) is None


def test_the_comparison_has_them_in_a_table_of_their_own(admin_client: Client, runs: tuple[Run, Run]) -> None:
    before, after = runs
    text = admin_client.get(
        reverse("admin:pgperf_run_compare", args=[after.pk]), {"with": before.pk}
    ).content.decode()
    assert "<caption>Server settings that differ</caption>" in text
    assert "Other differences</h2>" not in text


def test_the_command_prints_them_and_json_names_them(runs: tuple[Run, Run]) -> None:
    numbers = [str(run.pk) for run in runs]
    out, as_json = io.StringIO(), io.StringIO()
    call_command("pgperf", "compare", *numbers, stdout=out)
    call_command("pgperf", "compare", *numbers, "--json", stdout=as_json)
    assert "Server settings that differ" in out.getvalue()
    assert {"part": "environment", "what": "server.work_mem", "before": "4MB", "after": "16MB"} in json.loads(
        as_json.getvalue()
    )["differences"]
