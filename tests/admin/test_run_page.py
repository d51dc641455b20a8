"""The run page, its progress and its downloads."""

import csv
import html
import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.staticfiles import finders
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from pgperf.admin import pages, runs
from pgperf.models import Run, VariantResult
from pgperf.reports import run_page
from pgperf.runs.change_text import day
from tests import factories
from tests.cpu_accounts import add_cpu_accounts

#: Number of queries of each page, for any amount of data.
#: The page is of a run without an earlier one: one of its queries looks for other series.
PAGE_QUERIES, LIST_QUERIES = 10, 16
#: Instead, one sets a run against the run before, and three read the changes over the runs.
AGAINST_EARLIER = PAGE_QUERIES + 3

#: What the answer of a run says that cannot be set against another.
FIRST = "<p>You see no earlier completed run of this definition on this database.</p>"


def page(run: Run, name: str = "change", *args: str) -> str:
    return reverse(f"admin:pgperf_run_{name}", args=[run.pk, *args])


def test_a_finished_run_shows_all_results(admin_page: Client, run: Run) -> None:
    text = admin_page.get(page(run)).content.decode()
    for expected in (
        "Time by layer", "The ladder", "How to read this", "Throughput and CPU time", "Latency",
        "Cold phases", "Comparisons", "Controls", "Environment", "shared_buffers", "chart-ladder-3",
        "chart-answer-split", "pgperf/charts.js", "pgperf/topics.js",
    ):  # fmt: skip
        assert expected in text or expected.replace("&#x27;", "'") in text, expected
    assert "pgperf/progress.js" not in text


def test_a_large_run_comes_with_its_answer(
    admin_page: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The browser fetches the other topics; one without scripts is sent to them."""
    monkeypatch.setattr(run_page, "AT_ONCE", run.variants.count() - 1)
    first = admin_page.get(page(run)).content.decode()
    assert 'id="topic-answer"' in first
    assert first.count('class="pgperf-topic') == 1 + first.count('class="pgperf-topics"')
    assert '<noscript><meta http-equiv="refresh" content="0; url=?topics=all"></noscript>' in first
    assert '<a href="?topics=all" data-other-topics="?topics=others">Show all topics</a>' in first
    others = admin_page.get(page(run), {"topics": "others"}).content.decode()
    assert 'id="topic-answer"' not in others
    for expected in ('id="topic-layers"', 'id="topic-method"', 'href="#topic-all"'):
        assert expected in others, expected
    whole = admin_page.get(page(run), {"topics": "all"}).content.decode()
    for expected in (
        'id="topic-answer"',
        'id="topic-method"',
        'href="#topic-all"',
        "Throughput and CPU time",
    ):
        assert expected in whole, expected
    assert "data-other-topics" not in whole
    assert "http-equiv" not in whole


def test_a_run_of_as_many_variants_comes_as_a_whole(
    admin_page: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_page, "AT_ONCE", run.variants.count())
    assert 'id="topic-method"' in admin_page.get(page(run)).content.decode()


@pytest.mark.parametrize(
    ("idle", "said"), [("awake", "kept the CPUs awake"), ("system", "could sleep during this run")]
)
def test_the_page_says_whether_cpus_could_sleep(admin_page: Client, run: Run, idle: str, said: str) -> None:
    run.environment = {**run.environment, "idle": {"idle": idle, "note": ""}}
    run.save()
    assert said in admin_page.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()


def test_every_canvas_has_a_role_a_label_and_its_data(admin_page: Client, run: Run) -> None:
    text = admin_page.get(page(run)).content.decode()
    canvases = text.count("<canvas ")
    assert canvases == 7
    assert text.count('role="img" aria-label="') == canvases
    assert text.count('type="application/json"') == canvases


def test_the_tables_have_the_exact_values(admin_page: Client, run: Run) -> None:
    text = admin_page.get(page(run)).content.decode()
    for variant in run.variants.all():
        assert f'data-value="{variant.ops_per_s}"' in text


@pytest.mark.parametrize("status", ["queued", "running"])
def test_an_active_run_shows_progress(admin_page: Client, status: str) -> None:
    run = factories.make_run(status, progress=0.37, message="block 3 of 6")
    text = admin_page.get(page(run)).content.decode()
    assert f'data-url="{page(run, "progress")}"' in text
    assert "block 3 of 6" in text
    assert "Cancel run" in text
    assert "pgperf/charts.js" not in text


def test_progress_is_small_uncached_json(admin_page: Client) -> None:
    run = factories.make_run(Run.Status.RUNNING, progress=0.5, message="block 3 of 6")
    response = admin_page.get(page(run, "progress"))
    assert "no-store" in response["Cache-Control"]
    assert response.json() == {
        "id": run.pk, "status": "running", "status_text": "running", "progress": 0.5, "message": "block 3 of 6",
        "error": "", "terminal": False, "workers": 0, "needs_worker": False, "hint": "",
    }  # fmt: skip


def test_a_queued_run_without_a_worker_names_the_command(admin_page: Client) -> None:
    text = admin_page.get(page(factories.make_run(Run.Status.QUEUED))).content.decode()
    assert 'id="pgperf-no-worker">' in text
    assert "--queues pgperf" in text


def test_the_run_of_a_command_waits_for_no_worker_and_says_that_it_stops(admin_page: Client) -> None:
    waits = factories.make_run(Run.Status.QUEUED, queue="", message="Waits for run 12")
    text = admin_page.get(page(waits)).content.decode()
    assert '<div id="pgperf-no-worker" hidden>' in text
    stops = factories.make_run(Run.Status.RUNNING, queue="", cancel_requested=True)
    text = admin_page.get(page(stops)).content.decode()
    assert (
        '<p class="pgperf-note" data-part="hint">Stopping: the run ends after the slices under way.' in text
    )


def test_a_failed_run_shows_the_error_and_the_next_step(admin_page: Client) -> None:
    run = factories.make_run(Run.Status.FAILED, error="connections: the run needs 18, allowed are 9 <b>")
    text = admin_page.get(page(run)).content.decode()
    assert "connections: the run needs 18, allowed are 9 &lt;b&gt;" in text
    assert "This run has no results" in text
    assert "Download variants (CSV)" not in text


@pytest.mark.parametrize(
    ("status", "error", "hinted"),
    [
        (Run.Status.FAILED, "host: it is wrong", True),
        (Run.Status.FAILED, "", False),
        (Run.Status.CANCELLED, "Cancelled: interrupted.", False),
        (Run.Status.LOST, "Its worker stopped.", False),
    ],
)
def test_only_a_failed_run_with_an_error_asks_to_correct_it(
    admin_page: Client, db: None, status: Run.Status, error: str, hinted: bool
) -> None:
    text = admin_page.get(page(factories.make_run(status, error=error))).content.decode()
    assert "This run has no results" in text
    assert ("Correct the error above" in text) == hinted


def test_a_cancelled_run_shows_no_error(admin_page: Client, db: None) -> None:
    cancelled = factories.make_run(Run.Status.CANCELLED, error="cancelled on request")
    text = admin_page.get(page(cancelled)).content.decode()
    assert '<p class="pgperf-note">Cancelled on request</p>' in text
    assert "<strong>Error:</strong>" not in text


def test_a_lost_run_shows_partial_results(admin_page: Client) -> None:
    run = factories.make_results(
        factories.make_run(Run.Status.LOST, error="The worker died."), routes=("socket",)
    )
    run.summary |= {"partial": True}
    run.save()
    text = admin_page.get(page(run)).content.decode()
    assert "The worker died." in text
    assert "Partial results." in text
    assert "chart-ladder-1" in text


def test_without_chart_js_the_page_shows_tables_and_a_hint(
    admin_page: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "CHART_JS", "pgperf/vendor/not-built.js")
    text = admin_page.get(page(run)).content.decode()
    assert "run make build" in text
    assert "not-built.js" not in text
    assert 'class="pgperf-table numbers ladder"' in text


@pytest.mark.parametrize(
    "file",
    [
        "pgperf.css",
        "run.css",
        "theme.js",
        "whiskers.js",
        "charts.js",
        "topics.js",
        "menu.js",
        "progress.js",
        "start.js",
        "waiting.js",
    ],
)
def test_static_files_exist(file: str) -> None:
    assert finders.find(f"pgperf/{file}")


def test_cancel_requests_cancellation_and_is_logged(admin_page: Client) -> None:
    run = factories.make_run(Run.Status.RUNNING)
    assert admin_page.post(page(run, "cancel"))["Location"] == page(run)
    run.refresh_from_db()
    assert run.cancel_requested
    said = f"Requested cancellation, definition {run.definition_hash[:12]}. From 127.0.0.1."
    assert LogEntry.objects.get().get_change_message() == said


@pytest.mark.parametrize(
    ("status", "text"),
    [(Run.Status.QUEUED, "Cancelled before it started."), (Run.Status.RUNNING, "Cancelling: the run stops")],
)
def test_cancelling_says_when_the_run_stops(admin_page: Client, status: str, text: str) -> None:
    response = admin_page.post(page(factories.make_run(status), "cancel"), follow=True)
    assert text in [str(message)[: len(text)] for message in response.context["messages"]]


def test_cancelling_an_ended_run_shows_an_error(admin_page: Client, run: Run) -> None:
    response = admin_page.post(page(run, "cancel"), follow=True)
    assert "is done" in response.content.decode()
    assert not LogEntry.objects.exists()


def test_the_csv_has_the_stored_numbers(admin_page: Client, run: Run) -> None:
    response = admin_page.get(page(run, "download", "variants.csv"))
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert (
        response["Content-Disposition"] == f'attachment; filename="pgperf-orm-overhead-{run.pk}-variants.csv"'
    )
    rows = csv.DictReader(io.StringIO(response.content.decode()))
    assert [float(row["us_per_op"]) for row in rows] == [variant.us_per_op for variant in run.variants.all()]


@pytest.mark.parametrize(
    "name",
    [
        "variants.xlsx", "comparisons.csv", "comparisons.xlsx", "scaling.csv", "timeline.csv", "top.csv",
    ],
)  # fmt: skip
def test_the_other_downloads(admin_page: Client, run: Run, name: str) -> None:
    response = admin_page.get(page(run, "download", name))
    assert response.status_code == 200
    assert response.content.startswith(b"PK" if name.endswith("xlsx") else b"run_id,benchmark,")


def test_an_unknown_download_gives_404(admin_page: Client, run: Run) -> None:
    assert admin_page.get(page(run, "download", "passwords.csv")).status_code == 404


@pytest.mark.parametrize("action", ["export_variants_csv", "export_variants_xlsx", "export_comparisons_csv"])
def test_the_list_exports_several_runs(admin_page: Client, run: Run, action: str) -> None:
    other = factories.make_results(factories.make_run())
    data = {"action": action, "_selected_action": [run.pk, other.pk]}
    response = admin_page.post(reverse("admin:pgperf_run_changelist"), data)
    assert "attachment" in response["Content-Disposition"]
    if action == "export_variants_csv":
        rows = list(csv.DictReader(io.StringIO(response.content.decode())))
        assert {row["run_id"] for row in rows} == {str(run.pk), str(other.pk)}


@pytest.mark.parametrize("action", ["export_variants_csv", "export_variants_xlsx", "export_comparisons_csv"])
def test_the_list_exports_no_more_runs_than_a_file_may_have(
    admin_page: Client, run: Run, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    monkeypatch.setattr(runs, "_MOST_EXPORTED", 1)
    factories.make_results(factories.make_run())
    data = {"action": action, "_selected_action": [run.pk], "select_across": "1"}
    response = admin_page.post(reverse("admin:pgperf_run_changelist"), data, follow=True)
    assert "One file has at most 1 runs" in response.content.decode()
    assert not LogEntry.objects.exists()


def queries_of(client: Client, method: str, address: str, data: Any = None) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        answer = getattr(client, method)(address, data)
    assert answer.status_code == 200
    return [query["sql"] for query in captured]


@pytest.mark.parametrize("method", ["get", "post"])
def test_the_pages_that_delete_runs_count_results_and_read_none(admin_page: Client, method: str) -> None:
    """By the run's own button, and by the action of the list."""
    small = factories.make_results(factories.make_run(), routes=("socket",), layers=("libpq", "django_orm"))
    large = factories.make_blocks(factories.make_results(factories.make_run()))
    found = []
    for run in (small, large):
        data = {"action": "delete_selected", "_selected_action": [run.pk]}
        address = page(run, "delete") if method == "get" else reverse("admin:pgperf_run_changelist")
        found.append(queries_of(admin_page, method, address, data if method == "post" else None))
    assert len(found[0]) == len(found[1])
    results = [sql for sql in found[1] if re.search('FROM "pgperf_(comparison|block)result"', sql)]
    assert results
    assert all(sql.startswith("SELECT COUNT(*)") for sql in results)


def test_the_page_that_deletes_a_run_says_what_goes_with_it(admin_page: Client, run: Run) -> None:
    shown = admin_page.get(page(run, "delete")).content.decode()
    assert f'<a href="{page(run)}">{run}</a>' in shown
    assert f"Variant results: {run.variants.count()}" in shown
    assert admin_page.post(page(run, "delete"), {"post": "yes"}).status_code == 302
    assert not Run.objects.exists()


def test_the_run_page_uses_a_constant_number_of_queries(
    admin_page: Client, run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    small = factories.make_results(factories.make_run(), routes=("socket",), layers=("libpq", "django_orm"))
    large = factories.make_blocks(factories.make_results(factories.make_run()))
    for one, queries in ((run, PAGE_QUERIES), (small, AGAINST_EARLIER), (large, AGAINST_EARLIER)):
        admin_page.get(page(one))
        with django_assert_num_queries(queries):
            admin_page.get(page(one))


def test_the_answer_is_set_against_the_run_before(admin_page: Client, run: Run) -> None:
    later = add_cpu_accounts(factories.make_results(factories.make_run(), slower={"django_orm": 1.1}))
    shown = admin_page.get(page(later)).content.decode()
    link = f"{reverse('admin:pgperf_run_compare', args=[later.pk])}?with={run.pk}"
    assert f'<a href="{link}">Since the last run</a>' in shown
    assert f"Slower than {run} of {day(run)}." in shown
    assert FIRST in admin_page.get(page(run)).content.decode()
    assert FIRST not in shown


def test_the_last_change_is_a_link_to_its_history(client_of: Callable[[str], Client], run: Run) -> None:
    levels = {"before_us": 50.0, "after_us": 62.0, "low_us": 11.0, "high_us": 13.0}
    run.changes.create(label="django_orm · socket", found_by=run.pk, **levels)
    later = add_cpu_accounts(factories.make_results(factories.make_run()))
    text = f"Django ORM · socket: 12\u00a0µs slower since run {run.pk}, {day(run)}."
    viewer = client_of("viewer")
    shown = viewer.get(page(later)).content.decode()
    (link,) = re.findall(f'<a href="([^"]*)">{text}</a>', shown)
    followed = viewer.get(html.unescape(link)).content.decode()
    assert '<option value="django_orm · socket" selected>' in followed
    Run.objects.filter(pk=run.pk).update(restricted=True)
    factories.make_results(factories.make_run())
    last = add_cpu_accounts(factories.make_results(factories.make_run()))
    assert "since run" not in viewer.get(page(last)).content.decode()


def test_the_run_before_is_one_that_the_user_may_see(client_of: Callable[[str], Client], run: Run) -> None:
    later = add_cpu_accounts(factories.make_results(factories.make_run()))
    viewer = client_of("viewer")
    assert FIRST not in viewer.get(page(later)).content.decode()
    Run.objects.filter(pk=run.pk).update(restricted=True)
    shown = viewer.get(page(later)).content.decode()
    assert FIRST in shown
    assert f"?with={run.pk}" not in shown


def test_the_list_marks_much_disturbed_runs(
    admin_page: Client, run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    disturbed = [add_cpu_accounts(factories.make_results(factories.make_run())) for _ in range(3)]
    for row in VariantResult.objects.filter(run__in=disturbed, layer="django_orm"):
        row.verdict = {**row.verdict, "grade": {"word": "poor", "share": 0.4, "disturbances": []}}
        row.save()
    with django_assert_num_queries(LIST_QUERIES):  # nobody requested them, and their variants are read
        shown = admin_page.get(reverse("admin:pgperf_run_changelist")).content.decode()
    assert shown.count("much disturbed") == len(disturbed)


def test_the_list_uses_a_constant_number_of_queries(
    admin_page: Client, run: Run, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    users = [User.objects.create_user(f"user {number}") for number in range(3)]
    admin_page.get(reverse("admin:pgperf_run_changelist"))
    for added in (3, 30):
        for number in range(added):
            factories.make_run(requested_by=users[number % 3])
        with django_assert_num_queries(LIST_QUERIES):
            admin_page.get(reverse("admin:pgperf_run_changelist"))


def test_the_list_loads_no_results(admin_page: Client, run: Run) -> None:
    with CaptureQueriesContext(connection) as asked:
        admin_page.get(reverse("admin:pgperf_run_changelist"))
    heavy = ("definition", "environment", "timings", "summary")
    assert not [query for query in asked.captured_queries for name in heavy if f'"{name}"' in query["sql"]]


def test_a_missing_run_redirects_to_the_index(admin_page: Client) -> None:
    assert admin_page.get(reverse("admin:pgperf_run_change", args=[4711])).status_code == 302


def test_one_who_may_start_but_sees_no_benchmark_cannot_run_it_again(run: Run) -> None:
    user = User.objects.create_user("watcher", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="pgperf", codename__in=("view_run", "start_run"))
    )
    client = Client()
    client.force_login(user)
    shown = client.get(page(run)).content.decode()
    assert "Run again" not in shown
    assert "Results over runs" not in shown
    assert client.get(reverse("admin:pgperf_benchmark_run", args=[run.benchmark_id])).status_code == 403
