"""Statements of a server in *Measure a query of mine*."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from pgperf.access.permissions import MEASURE
from pgperf.admin.statements import StatementValues
from pgperf.core import sql_numbered
from pgperf.models import Database, Run, StatementList
from pgperf.reports import statement_lists
from tests import factories
from tests.admin.test_csp import inline_parts
from tests.admin.users import staff_client
from tests.fuzz.browser import form

PAGE, ASK = "admin:pgperf_benchmark_measure", "admin:pgperf_benchmark_statements"
QUERY = "SELECT title FROM books_book WHERE year = $2 AND isbn = $1 AND year % $2 = $3"
NEEDED = [name.partition(".")[2] for name in MEASURE]


@pytest.fixture
def database(db: None) -> Database:
    factories.make_worker()
    database = factories.make_database()
    rows = [{"query": QUERY, "calls": 20, "rows": 20, "total_ms": 5.0}]
    StatementList.objects.create(
        database=database, read_at=timezone.now() - timedelta(seconds=150), statements=rows
    )
    return database


def key(database: Database) -> str:
    return statement_lists._shown(database, database.statement_list).statements[0].key


def address(database: Database) -> str:
    return reverse(PAGE, query={"kind": "statement", "statement": key(database)})


def filled(client: Client, database: Database, *values: str) -> dict[str, Any]:
    data = form(client.get(address(database)).content.decode(), "token")
    return {**data, **{f"value_{at}": value for at, value in enumerate(values, 1)}}


@pytest.mark.parametrize(
    ("longest_ms", "unit", "means"), [(5.0, "µs", ["250", "10.0"]), (3000.0, "ms", ["150", "0.0100"])]
)
def test_the_times_of_a_list_have_one_unit(
    database: Database, longest_ms: float, unit: str, means: list[str]
) -> None:
    shown = database.statement_list
    shown.statements = [
        {"query": QUERY, "calls": 20, "rows": 20, "total_ms": longest_ms},
        {"query": "SELECT 1", "calls": 10, "rows": 10, "total_ms": 0.1},
        {"query": "SELECT 2", "calls": 0, "rows": 0, "total_ms": 0.0},
    ]
    shown.save()
    found = statement_lists._shown(database, shown)
    assert [each.mean for each in found.statements] == [*means, ""]
    page = staff_client("ada", *NEEDED, "manage_targets").get(reverse(PAGE)).content.decode()
    assert f"Server, {unit} per call" in page


def test_an_estimate_needs_the_permission_of_the_kind(database: Database) -> None:
    client = staff_client("ada", *NEEDED, "change_benchmark")
    data = {"kind": "statement", "numbered": QUERY, "value_1": "1"}
    assert client.post(reverse("admin:pgperf_benchmark_estimate"), data).status_code == 403


@pytest.mark.parametrize(
    ("numbered", "value"), [("SELECT " + "$1 " * 6000, "7"), ("SELECT " + "$1," * 150 + "1", "x" * 100_000)]
)
def test_a_value_is_not_repeated_without_limit(numbered: str, value: str) -> None:
    """A megabyte for each of ten thousand placeholders ended the process of the page."""
    values = StatementValues(numbered, {"numbered": numbered, "value_1": value})
    assert not values.is_valid()
    assert len(json.dumps(values.args)) < 2_000


def test_the_list_has_its_age_and_times(admin_page: Client, database: Database) -> None:
    shown = admin_page.get(reverse(PAGE)).content.decode()
    assert "Read 2\xa0minutes ago." in shown
    assert f"statement={key(database)}&amp;database={database.pk}" in shown
    assert '<td class="num">250</td>' in shown
    assert inline_parts(shown) == []


def test_a_statement_runs_with_the_values_of_its_placeholders(admin_page: Client, database: Database) -> None:
    page = admin_page.get(address(database))
    assert [field.label for field in page.context["fields"]] == ["$1", "$2", "$3"]
    answer = admin_page.post(reverse(PAGE), filled(admin_page, database, '"42"', "1999", "0"))
    assert answer.status_code == 302, answer.context["asked"].other_errors()
    run = Run.objects.get()
    assert run.benchmark
    (workload,) = run.benchmark.workloads
    assert workload.sql == "SELECT title FROM books_book WHERE year = %s AND isbn = %s AND year %% %s = %s"
    assert workload.args == [1999, "42", 1999, 0]
    assert not any("orm" in layer for layer in run.definition["layers"])


def test_a_placeholder_without_a_value_is_named(admin_page: Client, database: Database) -> None:
    answer = admin_page.post(reverse(PAGE), filled(admin_page, database, "1", "", "0"))
    assert answer.status_code == 200
    assert answer.context["asked"].values.errors == {"value_2": ["This field is required."]}
    assert not Run.objects.exists()


@pytest.mark.parametrize("sql", ["DELETE FROM t", "SELECT 1; SELECT 2", "SELECT pg_terminate_backend(9)", ""])
def test_the_check_of_a_workload_holds(admin_page: Client, database: Database, sql: str) -> None:
    data = filled(admin_page, database, "1", "2", "3") | {"numbered": sql}
    assert admin_page.post(reverse(PAGE), data).status_code == 200
    assert not Run.objects.exists()


def test_a_statement_that_is_gone_leads_to_the_list(admin_page: Client, database: Database) -> None:
    before = address(database)
    StatementList.objects.update(statements=[])
    assert "not stored any more" in admin_page.get(before).content.decode()


def test_asking_awaits_an_answer(admin_page: Client) -> None:
    database = factories.make_database()
    answer = admin_page.post(reverse(ASK), {"database": database.pk})
    assert answer["Location"] == reverse(PAGE) + "#pgperf-statements"
    assert StatementList.objects.get().asked_at
    shown = admin_page.get(reverse(PAGE)).content.decode()
    assert "waits for a worker" in shown
    assert inline_parts(shown) == []


@pytest.mark.parametrize("chosen", ["", "x", "4711", "9" * 30])
def test_an_unknown_database_is_not_found(admin_page: Client, chosen: str) -> None:
    assert admin_page.post(reverse(ASK), {"database": chosen}).status_code == 404


def test_a_user_who_may_not_manage_targets_sees_no_statement(database: Database) -> None:
    client = staff_client("alice", *NEEDED)
    assert "books_book" not in client.get(reverse(PAGE)).content.decode()
    assert client.get(address(database)).status_code == 403
    assert client.post(reverse(ASK), {"database": database.pk}).status_code == 403


def test_the_statements_of_a_hidden_database_are_hidden(database: Database) -> None:
    database.groups.set([Group.objects.create(name="others")])
    client = staff_client("alice", *NEEDED, "manage_targets")
    assert "books_book" not in client.get(reverse(PAGE)).content.decode()
    assert "books_book" not in client.get(address(database)).content.decode()
    assert client.post(reverse(ASK), {"database": database.pk}).status_code == 404


def test_a_restricted_database_restricts_the_workload(admin_page: Client, database: Database) -> None:
    """The text of a statement may tell what only the group should know."""
    group = Group.objects.create(name="insiders")
    database.groups.set([group])
    answer = admin_page.post(reverse(PAGE), filled(admin_page, database, "1", "2", "3"))
    assert answer.status_code == 302
    run = Run.objects.get()
    assert run.benchmark
    (workload,) = run.benchmark.workloads
    assert workload.restricted
    assert list(workload.groups.all()) == [group]


def test_a_statement_of_megabytes_is_refused_before_it_is_read(
    admin_page: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    placeholders = sql_numbered.placeholders
    monkeypatch.setattr(
        sql_numbered, "placeholders", lambda text: read.append(len(text)) or placeholders(text)
    )
    data = {**filled(admin_page, database), "numbered": "\\" * 1_000_000}
    answer = admin_page.post(address(database), data)
    assert "at most 20000 characters" in answer.content.decode()
    assert read
    assert max(read) <= 20_001


@pytest.mark.parametrize("digits", [20, 4_400])
def test_a_placeholder_beyond_any_number_is_refused(
    admin_page: Client, database: Database, digits: int
) -> None:
    data = {**filled(admin_page, database), "numbered": "SELECT $" + "9" * digits}
    answer = admin_page.post(address(database), data)
    assert answer.status_code == 200
    assert 'class="errorlist' in answer.content.decode()


def test_the_estimate_needs_no_values(admin_page: Client, database: Database) -> None:
    data = filled(admin_page, database)
    found = admin_page.post(reverse("admin:pgperf_benchmark_estimate"), data).json()
    assert found == admin_page.get(address(database)).context["estimate"]
    assert not found["problem"], json.dumps(found)
