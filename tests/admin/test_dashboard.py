"""The dashboard at the app's index and under Runs, on several admin sites."""

import html
import re
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from pgperf.models import Benchmark, Run
from pgperf.reports.dashboard import attention
from pgperf.templatetags import pgperf_dashboard
from tests import factories
from tests.admin.linking_site import LINK
from tests.admin.test_csp import inline_parts
from tests.admin.users import staff_client
from tests.cpu_accounts import add_cpu_accounts
from tests.histories import make_slower

ADDRESSES = ("app_list", "pgperf_run_dashboard")
HEAVY = ("definition", "timings", "summary", "latency_us", "top", "diagnostics", "http")


def address(name: str) -> str:
    return reverse(f"admin:{name}", args=["pgperf"] if name == "app_list" else [])


def page(client: Client, name: str = "app_list") -> str:
    response = client.get(address(name))
    assert response.status_code == 200
    return response.content.decode()


def add_runs(numbers: Iterable[int]) -> None:
    """Benchmarks, databases and runs, some under way and some broken."""
    for number in numbers:
        benchmark = factories.make_benchmark(f"benchmark-{number}")
        database = factories.make_database(f"database-{number}")
        rows = {"benchmark": benchmark, "database": database}
        for _each in range(2):
            add_cpu_accounts(factories.make_results(factories.make_run(**rows)))
        factories.make_run(Run.Status.FAILED, error="see run 1", **rows)
        factories.make_run(Run.Status.RUNNING, message="Instead of run 1.", **rows)
        factories.make_run(Run.Status.QUEUED, message="Waits for run 1, which is running.", **rows)
        factories.make_schedule(**rows, outcome="refused", reason=f"no {number}")
        factories.make_worker(f"worker-{number}@host")


@pytest.mark.parametrize("name", ADDRESSES)
def test_it_shows_results_and_what_runs(admin_page: Client, run: Run, name: str) -> None:
    add_cpu_accounts(run)
    running = factories.make_run(Run.Status.RUNNING, progress=0.25)
    shown = page(admin_page, name)
    assert 'class="pgperf-bar"' in shown
    assert reverse("admin:pgperf_run_change", args=[run.pk]) in shown
    start = reverse("admin:pgperf_benchmark_run", args=[run.benchmark_id])
    assert f"{start}?database={run.database_id}" in shown
    assert f'data-url="{reverse("admin:pgperf_run_progress", args=[running.pk])}"' in shown
    assert "25 %" in shown
    assert "Nothing needs attention" in shown


def test_slower_benchmarks_that_are_not_named_lead_to_the_list_of_benchmarks(
    admin_page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "MOST_ROWS", 0)
    make_slower()
    link = f'<a href="{reverse("admin:pgperf_benchmark_changelist")}">And 1 more benchmark got slower</a>'
    assert link in page(admin_page)


def test_the_tag_says_that_no_site_with_its_pages_has_the_name() -> None:
    with pytest.raises(ImproperlyConfigured, match="none is named 'elsewhere'"):
        pgperf_dashboard._site(SimpleNamespace(current_app="elsewhere"))


def test_every_run_that_it_shows_is_followed(admin_page: Client) -> None:
    """A waiting run may be cancelled, or be started before one that was asked for earlier."""
    database = factories.make_database()
    runs = [factories.make_run(status, database=database) for status in ("running", "queued", "queued")]
    shown = page(admin_page)
    for run in runs:
        address = reverse("admin:pgperf_run_progress", args=[run.pk])
        assert f'data-url="{address}" data-status="{run.status}"' in shown


@pytest.mark.parametrize("name", ADDRESSES)
def test_both_pages_obey_a_strict_policy(admin_page: Client, run: Run, name: str) -> None:
    add_cpu_accounts(run)
    factories.make_results(factories.make_run())
    factories.make_run(Run.Status.RUNNING)
    shown = page(admin_page, name)
    assert 'class="pgperf-sparkline"' in shown
    assert inline_parts(shown) == []


def test_more_runs_than_it_shows_are_in_the_list(admin_page: Client) -> None:
    """Each runs on a database of its own, so that many may run at once."""
    for number in range(10):
        factories.make_run(Run.Status.RUNNING, database=factories.make_database(f"database-{number}"))
    factories.make_run(Run.Status.QUEUED)
    factories.make_run(Run.Status.DONE)
    (link, text) = re.findall(r'href="([^"]*)">(\d+ more runs [^<]*)<', page(admin_page))[0]
    assert text == "3 more runs are running or wait"
    assert "11 runs" in admin_page.get(link).content.decode()


@pytest.mark.parametrize(
    ("kind", "text", "row"),
    [
        ("run", "And 2 more runs failed or were lost", "7 runs"),
        ("schedule", "And 2 more schedules started no run", "7 schedules"),
    ],
)
def test_more_concerns_than_it_names_are_in_the_list(
    admin_page: Client, kind: str, text: str, row: str
) -> None:
    for number in range(7):
        database = factories.make_database(f"database-{number}")
        if kind == "run":
            factories.make_run(Run.Status.FAILED, database=database)
        else:
            factories.make_schedule(database=database, outcome="refused", reason="no")
    factories.make_run(database=factories.make_database())
    factories.make_schedule(outcome="started")
    (link,) = re.findall(f'href="([^"]*)">{text}<', page(admin_page))
    assert row in admin_page.get(html.unescape(link)).content.decode()


def test_the_list_of_models_stays_at_the_index(admin_page: Client) -> None:
    assert reverse("admin:pgperf_workload_changelist") in page(admin_page)


def test_a_database_whose_runs_failed_has_no_result(admin_page: Client, run: Run) -> None:
    """They have ended."""
    factories.make_run(Run.Status.FAILED, database=factories.make_database("other"))
    shown = page(admin_page)
    assert "No result yet." in shown
    assert "No run has ended yet" not in shown


def test_without_a_result_three_steps_lead_to_one(admin_page: Client) -> None:
    factories.make_benchmark()
    shown = page(admin_page)
    assert "Three steps to the first chart" in shown
    assert reverse("admin:pgperf_database_add") in shown
    assert "--queues pgperf" in shown
    assert "No worker is online" not in shown


def test_many_rows_take_as_many_queries_as_few(client_of: Callable[[str], Client]) -> None:
    """For a user whose groups are asked, which takes more queries than for a superuser."""
    client = client_of("runner")
    counts = []
    for numbers in (range(2), range(2, 9)):
        add_runs(numbers)
        page(client)
        with CaptureQueriesContext(connection) as asked:
            page(client)
        counts.append(len(asked))
    assert counts[0] == counts[1]
    assert counts[1] <= 60


def test_no_query_loads_large_columns(admin_page: Client, run: Run) -> None:
    add_runs(range(2))
    with CaptureQueriesContext(connection) as asked:
        page(admin_page)
    selected = [query["sql"] for query in asked.captured_queries if "pgperf_" in query["sql"]]
    assert not [sql for sql in selected for name in HEAVY if f'."{name}"' in sql]


def test_slower_benchmarks_take_as_many_queries_for_many_as_for_one(
    client_of: Callable[[str], Client],
) -> None:
    """And none of them loads a large column."""
    client, counts = client_of("viewer"), []
    for names in (["one"], ["two", "three"]):
        for name in names:
            make_slower(database=factories.make_database(name))
        page(client)
        with CaptureQueriesContext(connection) as asked:
            shown = page(client)
        counts.append(len(asked))
        selected = [query["sql"] for query in asked.captured_queries if "pgperf_" in query["sql"]]
        assert not [sql for sql in selected for name in HEAVY if f'."{name}"' in sql]
    assert counts[0] == counts[1]
    assert shown.count("got slower") == 3
    run = Run.objects.latest("pk")
    query = f"database={run.database_id}&amp;definition={run.definition_hash}"
    assert f'href="{reverse("admin:pgperf_benchmark_runs", args=[run.benchmark_id])}?{query}"' in shown


@pytest.mark.parametrize("name", ADDRESSES)
def test_groups_hide_rows_and_what_names_them(
    client_of: Callable[[str], Client], run: Run, name: str
) -> None:
    assert run.benchmark
    assert run.database
    Run.objects.update(benchmark_name="hushed-benchmark", database_name="hushed-database")
    factories.make_run(Run.Status.FAILED, benchmark_name="hushed-benchmark", error="hushed")
    factories.make_run(Run.Status.RUNNING, benchmark_name="hushed-benchmark", message="hushed")
    Benchmark.objects.filter(pk=run.benchmark_id).update(name="hushed-benchmark", title="hushed")
    run.benchmark.groups.add(Group.objects.create(name="insiders"))
    client = client_of("viewer")
    assert "hushed" not in page(client, name)
    User.objects.get(username="viewer").groups.add(Group.objects.get())
    assert "hushed" in page(client, name)


def test_only_those_who_may_start_runs_get_the_button(client_of: Callable[[str], Client], run: Run) -> None:
    start = reverse("admin:pgperf_benchmark_run", args=[run.benchmark_id])
    assert start not in page(client_of("viewer"))
    assert start in page(client_of("runner"))


@pytest.mark.parametrize(
    ("codenames", "titles"),
    [
        (["view_run"], ["Needs attention", "Running and waiting"]),
        (["view_benchmark"], ["Needs attention", "Benchmarks"]),
        (["view_database"], ["Needs attention", "Databases"]),
        (["view_worker"], ["Needs attention", "Workers and agents online"]),
    ],
)
def test_each_permission_shows_its_part(run: Run, codenames: list[str], titles: list[str]) -> None:
    shown = page(staff_client("clerk", *codenames))
    every = ("Needs attention", "Databases", "Benchmarks", "Running and waiting", "Workers and agents online")
    assert [title for title in every if f">{title}</h2>" in shown] == titles
    assert ("orm-overhead" in shown) == (codenames == ["view_benchmark"])


@pytest.mark.parametrize(("role", "status"), [("staff", 404), ("start_only", 404), ("viewer", 200)])
def test_the_index_is_for_those_who_see_a_model(
    client_of: Callable[[str], Client], role: str, status: int
) -> None:
    assert client_of(role).get(address("app_list")).status_code == status


def test_another_language_writes_no_comma_into_drawings(admin_page: Client, run: Run, settings: Any) -> None:
    add_cpu_accounts(run)
    factories.make_results(factories.make_run())
    factories.make_run(Run.Status.RUNNING, progress=0.5)
    settings.LANGUAGE_CODE = "de"
    shown = page(admin_page)
    assert 'value="0.5"' in shown
    points = shown.partition('points="')[2].partition('"')[0].split()
    assert all(len(point.split(",")) == 2 for point in points)


@pytest.mark.urls("tests.admin.custom_site")
@pytest.mark.parametrize("name", ADDRESSES)
def test_a_custom_site_has_it_too(admin_page: Client, run: Run, name: str) -> None:
    shown = page(admin_page, name)
    assert address(name).startswith("/ops/")
    assert reverse("admin:pgperf_run_change", args=[run.pk]) in shown
    assert "/admin/pgperf" not in shown


@pytest.mark.urls("tests.admin.linking_site")
@pytest.mark.parametrize("name", ADDRESSES)
def test_a_site_whose_navigation_has_plain_links_has_it(admin_page: Client, run: Run, name: str) -> None:
    shown = page(admin_page, name)
    assert LINK in shown
    assert "pgperf-dashboard" in shown
    assert reverse("admin:pgperf_run_change", args=[run.pk]) in shown


@pytest.mark.urls("tests.admin.own_index")
@pytest.mark.parametrize(
    ("codenames", "status"), [(["view_benchmark", "start_run"], 200), (["start_run"], 403)]
)
def test_the_page_under_runs_is_for_those_who_see_a_model(
    run: Run, codenames: list[str], status: int
) -> None:
    """As the index of the app is."""
    response = staff_client("clerk", *codenames).get(address("pgperf_run_dashboard"))
    assert response.status_code == status


@pytest.mark.urls("tests.admin.own_index")
def test_a_site_with_an_index_of_its_own_has_it_under_runs(admin_page: Client, run: Run) -> None:
    assert "pgperf-dashboard" not in page(admin_page)
    dashboard = address("pgperf_run_dashboard")
    assert dashboard in page(admin_page, "pgperf_run_changelist")
    assert "pgperf-dashboard" in page(admin_page, "pgperf_run_dashboard")


def test_the_list_of_runs_leads_to_it(admin_page: Client, run: Run) -> None:
    assert f'href="{address("app_list")}">Dashboard' in page(admin_page, "pgperf_run_changelist")
