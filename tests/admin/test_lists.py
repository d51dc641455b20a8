"""Index, lists, forms and empty states."""

from datetime import timedelta

import pytest
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.db import OperationalError, ProgrammingError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from pgperf.models import Benchmark, Database, Run, Worker
from pgperf.runs import state
from tests import factories
from tests.admin.users import staff_client


def text(client: Client, name: str, *args: int) -> str:
    response = client.get(reverse(f"admin:{name}", args=args))
    assert response.status_code == 200
    return response.content.decode()


def test_the_index_lists_pgperf(admin_page: Client) -> None:
    index = text(admin_page, "index")
    for model in ("benchmark", "database", "workload", "run", "worker"):
        assert reverse(f"admin:pgperf_{model}_changelist") in index


def test_empty_states_name_the_next_step(admin_page: Client) -> None:
    Benchmark.objects.all().delete()
    benchmarks = text(admin_page, "pgperf_benchmark_changelist")
    assert "No benchmarks yet" in benchmarks
    assert "manage.py migrate" in benchmarks
    assert "There is no database to run on" in benchmarks
    runs = text(admin_page, "pgperf_run_changelist")
    assert "No runs yet" in runs
    assert "--queues pgperf" in runs
    assert "--queues pgperf" in text(admin_page, "pgperf_worker_changelist")


def test_rows_that_groups_hide_are_none(db: None) -> None:
    client = staff_client("eve", "view_benchmark", "view_database", "view_run")
    factories.make_run()
    lists = "pgperf_benchmark_changelist", "pgperf_run_changelist"
    hints = ("No benchmarks yet", "There is no database to run on", "No runs yet")
    shown = "".join(text(client, name) for name in lists)
    assert not any(hint in shown for hint in hints)
    for model in (Benchmark, Database, Run):
        model._default_manager.update(restricted=True)
    shown = "".join(text(client, name) for name in lists)
    assert all(hint in shown for hint in hints)
    assert "Ask a user who may add databases." in shown
    assert reverse("admin:pgperf_database_add") not in shown


def test_what_a_benchmark_compares_is_counted(admin_page: Client) -> None:
    factories.make_benchmark("one-layer", layers=["http"], routes=["web"])
    factories.make_benchmark("two-layers", layers=["libpq", "psycopg"], routes=["tcp", "socket"])
    page = text(admin_page, "pgperf_benchmark_changelist")
    assert ">1 layer over web<" in page
    assert ">2 layers over tcp, socket<" in page


def test_filled_lists_show_no_hints(admin_page: Client, run: Run) -> None:
    for model in ("benchmark", "run", "worker"):
        page = text(admin_page, f"pgperf_{model}_changelist")
        assert "No benchmarks yet" not in page
        assert "No runs yet" not in page
        assert "No worker is online" not in page


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        ("", ["write-path", "orm-overhead"]), ("q=orm", ["orm-overhead"]), ("status__exact=failed", ["write-path"]),
        ("quick__exact=1", ["write-path"]), ("benchmark_name=orm-overhead", ["orm-overhead"]),
        ("o=1", ["orm-overhead", "write-path"]), ("o=-1", ["write-path", "orm-overhead"]),
    ],
)  # fmt: skip
def test_runs_are_searched_filtered_and_sorted(
    admin_page: Client, run: Run, query: str, listed: list[str]
) -> None:
    factories.make_run(Run.Status.FAILED, quick=True, benchmark_name="write-path")
    page = admin_page.get(reverse("admin:pgperf_run_changelist") + f"?{query}")
    assert [row.benchmark_name for row in page.context["cl"].result_list] == listed


def test_the_run_of_a_dead_worker_is_shown_as_lost(admin_page: Client, run: Run) -> None:
    factories.make_run(Run.Status.RUNNING, heartbeat_at=run.requested_at.replace(year=2020))
    assert '<span class="pgperf-badge lost">' in text(admin_page, "pgperf_run_changelist")


def test_the_run_of_a_dead_worker_is_lost_in_the_filter_and_may_be_deleted(admin_page: Client) -> None:
    run = factories.make_run(Run.Status.RUNNING, heartbeat_at=timezone.now().replace(year=2020))
    listed = {}
    for status in ("running", "lost"):
        page = admin_page.get(reverse("admin:pgperf_run_changelist"), {"status__exact": status})
        listed[status] = [row.pk for row in page.context["cl"].result_list]
    assert listed == {"running": [], "lost": [run.pk]}
    assert admin_page.get(reverse("admin:pgperf_run_delete", args=[run.pk])).status_code == 200


def test_the_list_is_shown_where_a_lost_run_cannot_be_stored(
    admin_page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OperationalError("read-only")

    monkeypatch.setattr(state, "mark_lost", refuse)
    factories.make_run(Run.Status.RUNNING, heartbeat_at=timezone.now().replace(year=2020))
    assert '<span class="pgperf-badge lost">' in text(admin_page, "pgperf_run_changelist")


def test_the_list_shows_the_duration_and_the_user_of_a_run(admin_page: Client) -> None:
    factories.make_run(quick=True, requested_by=User.objects.create_user("clerk"))
    page = text(admin_page, "pgperf_run_changelist")
    assert 'done</span><span class="pgperf-under">1\u00a0min 24\u00a0s</span>' in page
    assert '<span class="pgperf-under">quick, clerk</span>' in page
    factories.make_run(Run.Status.QUEUED)
    page = text(admin_page, "pgperf_run_changelist")
    assert 'queued</span><span class="pgperf-under"></span>' in page
    assert '<span class="pgperf-under">full</span>' in page


def test_a_clock_that_was_set_back_gives_no_duration(admin_page: Client) -> None:
    run = factories.make_run()
    Run.objects.filter(pk=run.pk).update(started_at=timezone.now() + timedelta(days=9))
    assert 'done</span><span class="pgperf-under">–</span>' in text(admin_page, "pgperf_run_changelist")


def test_a_worker_shows_its_layers_and_the_reasons_against_others(admin_page: Client) -> None:
    worker = factories.make_worker(libpq="the C client is not built")
    assert 'alt="True"' in text(admin_page, "pgperf_worker_changelist")
    page = text(admin_page, "pgperf_worker_change", worker.pk)
    assert "libpq (C): the C client is not built" in page
    assert 'name="hostname"' not in page
    Worker.objects.update(last_seen=worker.last_seen.replace(year=2020))
    assert 'alt="False"' in text(admin_page, "pgperf_worker_changelist")


def test_a_database_has_its_routes_inline(admin_page: Client) -> None:
    database = factories.make_database()
    assert 'name="targets-2-route"' in text(admin_page, "pgperf_database_change", database.pk)
    assert "socket, tcp, pgbouncer" in text(admin_page, "pgperf_database_changelist")


def post_benchmark(client: Client, benchmark: Benchmark, **changed: object) -> tuple[int, str]:
    data = {
        "name": benchmark.name, "title": benchmark.title, "workloads": [row.pk for row in benchmark.workloads],
        "layers": ["libpq", "psycopg"], "modes": ["simple"], "routes": "socket, tcp", "clients": "1 8",
        "connection_modes": ["persistent"], "rates": "closed", "schedule": benchmark.schedule,
        "latency_limit_ms": 0, "rate_search_ms": 0, "workers": 1, "row_type": benchmark.row_type,
        "transaction": benchmark.transaction, "bulk_api": benchmark.bulk_api,
        "placement": "apart", "idle": "awake", "blocks": 6, "rounds": 5, "slice_ms": 0,
        "diagnostic_ms": 500, "precision": 2, "budget_s": 0, **changed,
    }  # fmt: skip
    response = client.post(reverse("admin:pgperf_benchmark_change", args=[benchmark.pk]), data)
    return response.status_code, response.content.decode()


def test_the_benchmark_form_needs_no_json(admin_page: Client) -> None:
    benchmark = factories.make_benchmark()
    page = text(admin_page, "pgperf_benchmark_change", benchmark.pk)
    assert 'value="socket, tcp, pgbouncer"' in page
    assert post_benchmark(admin_page, benchmark)[0] == 302
    benchmark.refresh_from_db()
    assert (benchmark.layers, benchmark.routes, benchmark.clients) == (
        ["libpq", "psycopg"],
        ["socket", "tcp"],
        [1, 8],
    )


def test_rates_are_typed_as_numbers_and_the_word_closed(admin_page: Client) -> None:
    benchmark = factories.make_benchmark()
    changed = {
        "rates": "closed, 100 2.5",
        "schedule": "constant",
        "latency_limit_ms": 20,
        "rate_search_ms": 7.5,
    }
    assert post_benchmark(admin_page, benchmark, **changed)[0] == 302
    benchmark.refresh_from_db()
    assert benchmark.rates == [None, 100.0, 2.5]
    assert (benchmark.schedule, benchmark.latency_limit_ms) == ("constant", 20.0)
    assert benchmark.rate_search_ms == 7.5
    assert 'value="closed, 100, 2.5"' in text(admin_page, "pgperf_benchmark_change", benchmark.pk)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"layers": []}, "This field is required"),
        ({"layers": ["nonsense"]}, "Select a valid choice"),
        ({"routes": "Über"}, "route names"),
        ({"routes": ""}, "This field is required"),
        ({"clients": "eight"}, "whole numbers"),
        ({"clients": "0"}, "numbers of clients"),
        ({"clients": "²"}, "whole numbers"),
        ({"clients": "1, 1"}, "numbers of clients"),
        ({"rates": "fast"}, "Give rates in operations/s"),
        ({"rates": "1e3"}, "Give rates in operations/s"),
        ({"rates": "-5"}, "Give rates in operations/s"),
        ({"rates": "closed, closed"}, "different rates"),
        ({"rates": "0"}, "different rates"),
        ({"rates": "1000001"}, "different rates"),
        ({"schedule": "poisson"}, "Select a valid choice"),
        ({"latency_limit_ms": "-1"}, "0.1 to 60000 ms"),
    ],
)
def test_a_wrong_benchmark_shows_the_error_at_its_field(
    admin_page: Client, changed: dict[str, object], message: str
) -> None:
    status, page = post_benchmark(admin_page, factories.make_benchmark(), **changed)
    assert status == 200
    assert message in page


@pytest.mark.parametrize("more", [(), ("view_target",), ("change_target",)])
def test_a_search_finds_addresses_for_those_who_may_see_them(db: None, more: tuple[str, ...]) -> None:
    factories.make_database().targets.update(host="10.1.2.3")
    client = staff_client("ada", "view_database", *more)
    page = client.get(reverse("admin:pgperf_database_changelist"), {"q": "10.1.2"})
    assert page.context["cl"].result_count == bool(more)


@pytest.mark.parametrize(
    ("model", "lookup"),
    [
        ("database", "targets__host__startswith"),
        ("database", "targets__host"),
        ("database", "groups__user__password__startswith"),
        ("benchmark", "database__targets__host__startswith"),
        ("benchmark", "database__credential__startswith"),
        ("benchmark", "workload_links__workload__sql__contains"),
        ("run", "requested_by__password__startswith"),
        ("run", "database__targets__host__startswith"),
        ("run", "benchmark__workload_links__workload__sql__contains"),
        ("schedule", "owner__password__startswith"),
        ("schedule", "database__targets__host__startswith"),
        ("schedule", "database__credential__startswith"),
    ],
)
def test_no_list_is_filtered_by_columns_of_other_rows(
    admin_page: Client, run: Run, model: str, lookup: str
) -> None:
    """The number of rows would tell whether a guess is right."""
    factories.make_schedule()
    page = reverse(f"admin:pgperf_{model}_changelist")
    assert admin_page.get(page, {lookup: "a"}).status_code == 400


@pytest.mark.parametrize(
    ("model", "lookup"),
    [("run", "status__exact"), ("benchmark", "name"), ("database", "name"), ("worker", "queue")],
)
def test_a_filter_with_a_nul_is_answered(admin_page: Client, run: Run, model: str, lookup: str) -> None:
    page = reverse(f"admin:pgperf_{model}_changelist")
    assert admin_page.get(page, {lookup: "a\0"}).status_code == 400


MOMENTS = {"run": "requested_at", "schedule": "due_at", "worker": "last_seen", "pause": "since"}
TEXTS = {
    "benchmark": "name",
    "database": "name",
    "workload": "name",
    "run": "benchmark_name",
    "schedule": "reason",
    "worker": "queue",
    "pause": "reason",
}
UNASKABLE = [
    *[(model, f"{name}__regex", "(") for model, name in TEXTS.items()],
    *[(model, "id__range", value) for model in TEXTS for value in ("1", "123")],
    *[(model, f"{name}__year", "9" * digits) for model, name in MOMENTS.items() for digits in (14, 20)],
    ("run", "requested_at__year", "9999"),  # the last one, which its bounds go beyond
]


@pytest.mark.parametrize(("model", "lookup", "value"), UNASKABLE)
def test_a_filter_that_no_query_can_have_is_answered_as_a_wrong_one(
    admin_page: Client, model: str, lookup: str, value: str
) -> None:
    page = reverse(f"admin:pgperf_{model}_changelist")
    answer = admin_page.get(page, {lookup: value})
    assert (answer.status_code, answer["Location"]) == (302, f"{page}?e=1")


def test_a_database_that_refuses_an_unfiltered_list_is_no_wrong_filter(
    admin_page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object, request: object) -> None:
        raise ProgrammingError("no such table")

    monkeypatch.setattr(ChangeList, "get_results", refuse)
    with pytest.raises(ProgrammingError):
        admin_page.get(reverse("admin:pgperf_worker_changelist"))


@pytest.mark.parametrize("action", ["delete_selected", "export_variants_csv", "export_comparisons_csv"])
def test_an_action_reads_many_runs_at_once(admin_page: Client, action: str) -> None:
    """The results of a run, which may be large, are read for each of them."""
    page = reverse("admin:pgperf_run_changelist")

    def queries(runs: list[Run]) -> int:
        chosen = {"action": action, "_selected_action": [run.pk for run in runs]}
        with CaptureQueriesContext(connection) as asked:
            assert admin_page.post(page, chosen).status_code == 200
        return sum(
            f'FROM "{table}"' in each["sql"] for each in asked for table in ("pgperf_run", "auth_user")
        )

    clerk = User.objects.create_user("clerk")
    runs = [factories.make_results(factories.make_run(requested_by=clerk)) for _number in range(5)]
    assert queries(runs) == queries(runs[:2])
