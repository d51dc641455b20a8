"""*Measure a query of mine*: from a query that exists to its first run."""

import json
import re
import uuid
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from pgperf.access.permissions import MEASURE as NEEDED
from pgperf.admin.measure_forms import Measured
from pgperf.models import Benchmark, Database, Run, Workload
from tests import factories
from tests.admin.test_csp import inline_parts
from tests.admin.users import staff_client
from tests.fuzz.browser import form

MEASURE = "admin:pgperf_benchmark_measure"
#: Kind of query -> what the first page's link or form sends, and what the user fills in after that.
QUERIES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "callable": ({"orm": "books.by_isbn"}, {"args": '["9790000000001"]'}),
    "page": ({"path": "/books/"}, {}),
    "query": ({"model": "books.Book"}, {"fetch": "count"}),
}
KINDS = [*QUERIES]


@pytest.fixture
def database(db: None) -> Database:
    factories.make_worker()
    return factories.make_database()


def address(kind: str, **given: str) -> str:
    return reverse(MEASURE, query={"kind": kind, **QUERIES[kind][0], **given})


def filled(client: Client, kind: str, **changed: Any) -> dict[str, Any]:
    """What a browser sends of the page, with what the user filled in."""
    shown = client.get(address(kind)).content.decode()
    return {**form(shown, "token"), **QUERIES[kind][1], **changed}


def counts() -> tuple[int, int, int]:
    return Workload.objects.count(), Benchmark.objects.count(), Run.objects.count()


def test_the_first_page_shows_what_there_is(admin_page: Client, database: Database) -> None:
    shown = admin_page.get(reverse(MEASURE)).content.decode()
    assert "kind=callable&amp;orm=books.by_isbn" in shown
    assert "books.by_isbn(isbn)" in shown
    assert "<option>books.Book</option>" in shown
    assert f'href="{reverse("admin:pgperf_workload_add")}">Add workload</a>' in shown
    assert "sessions.Session" not in shown
    assert inline_parts(shown) == []


def test_models_are_offered_to_those_who_may_view_them(db: None) -> None:
    client = staff_client("alice", *(name.partition(".")[2] for name in NEEDED))
    assert "books.Book" not in client.get(reverse(MEASURE)).content.decode()


@pytest.mark.parametrize(
    ("given", "unfolded"),
    [
        ({}, False),
        ({"ordering": "title"}, True),
        ({"limit": "x"}, True),
        ({"select_related": "no_such"}, True),
    ],
)
def test_fields_that_most_queries_leave_empty_are_folded(
    admin_page: Client, database: Database, given: dict[str, str], unfolded: bool
) -> None:
    """Unless they are filled in or wrong."""
    sent = filled(admin_page, "query", lookup="{", **given)
    shown = admin_page.post(address("query"), sent).content.decode()
    assert ('<details class="pgperf-more" open>' in shown) == unfolded
    assert ('<details class="pgperf-more">' in shown) != unfolded


@pytest.mark.parametrize("kind", KINDS)
def test_two_pages_lead_to_a_run(admin_page: Client, database: Database, kind: str) -> None:
    before = counts()
    answer = admin_page.post(address(kind), filled(admin_page, kind))
    assert answer.status_code == 302, answer.context["asked"].other_errors()
    run = Run.objects.get()
    assert answer["Location"] == reverse("admin:pgperf_run_change", args=[run.pk])
    assert counts() == tuple(count + 1 for count in before)
    assert run.benchmark
    assert run.database == run.benchmark.database == database
    (workload,) = run.benchmark.workloads
    assert getattr(workload, next(iter(QUERIES[kind][0]))) == next(iter(QUERIES[kind][0].values()))
    assert run.benchmark.routes == ["socket"]
    assert {entry.get_edited_object() for entry in LogEntry.objects.all()} == {run, run.benchmark, workload}


@pytest.mark.parametrize(("kind", "orm", "view"), [("callable", True, False), ("page", False, True)])
def test_the_layers_suit_the_query(
    admin_page: Client, database: Database, kind: str, orm: bool, view: bool
) -> None:
    admin_page.post(address(kind), filled(admin_page, kind))
    layers = Run.objects.get().definition["layers"]
    assert ("django_orm" in layers, "django_view" in layers) == (orm, view)


@pytest.mark.parametrize("kind", KINDS)
def test_a_user_who_goes_away_leaves_nothing_behind(
    admin_page: Client, database: Database, kind: str
) -> None:
    before = counts()
    page = admin_page.get(address(kind))
    assert page.context["estimate"]["variants"] > 1
    assert inline_parts(page.content.decode()) == []
    estimate = reverse("admin:pgperf_benchmark_estimate")
    found = admin_page.post(estimate, filled(admin_page, kind)).json()
    assert found == page.context["estimate"]
    assert counts() == before


@pytest.mark.parametrize(
    ("kind", "changed", "said"),
    [
        ("callable", {"args": "[["}, "valid JSON"),
        ("callable", {"args": "[[1]]"}, "strings, numbers, booleans or nulls"),
        ("callable", {"orm": "nobody.knows"}, "not one of the available choices"),
        ("page", {"path": "/nowhere/"}, "no such page"),
        ("page", {"path": "/admin/"}, "Pages of the admin are not measured"),
        ("query", {"lookup": '{"nothing": 1}'}, "nothing"),
        ("query", {"model": "sessions.Session"}, "no query without code may read"),
        ("callable", {"name": "no slug"}, "letters, numbers, underscores or hyphens"),
        ("callable", {"routes": []}, "This field is required"),
        ("callable", {"routes": ["elsewhere"]}, "demo has no enabled target for elsewhere"),
        ("callable", {"length": "for ever"}, "not one of the available choices"),
        ("callable", {"token": "x"}, "valid value"),
        ("callable", {"database": "4711"}, "not one of the available choices"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_saved(
    admin_page: Client, database: Database, kind: str, changed: dict[str, Any], said: str
) -> None:
    before = counts()
    answer = admin_page.post(address(kind), filled(admin_page, kind, **changed))
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert "nothing was saved" in answer.content.decode()
    assert counts() == before


@pytest.mark.parametrize("name", ["sql", "layers", "groups", "restricted", "bulk", "blocks"])
def test_a_field_that_the_page_lacks_is_not_taken(admin_page: Client, database: Database, name: str) -> None:
    group = Group.objects.create(name="others")
    sent = {
        "sql": "SELECT 1",
        "layers": "asyncpg",
        "groups": group.pk,
        "restricted": "on",
        "bulk": "x",
        "blocks": 3,
    }
    admin_page.post(address("callable"), filled(admin_page, "callable", **{name: sent[name]}))
    run = Run.objects.get()
    assert run.benchmark
    (workload,) = run.benchmark.workloads
    assert not workload.sql
    assert not workload.bulk
    assert not workload.restricted
    assert not run.benchmark.restricted
    assert run.definition["layers"][-1] == "django_orm"
    assert run.benchmark.blocks != 3


def test_a_double_click_starts_one_run(admin_page: Client, database: Database) -> None:
    data = filled(admin_page, "callable")
    first, second = (admin_page.post(address("callable"), data)["Location"] for _ in range(2))
    assert first == second
    assert Run.objects.count() == 1


def test_a_page_that_was_used_says_that_nothing_was_saved(admin_page: Client, database: Database) -> None:
    used = filled(admin_page, "callable")
    admin_page.post(address("callable"), used)
    before = counts()
    other = {**used, "name": "other", "args": '["9790000000002"]'}
    answer = admin_page.post(address("callable"), other, follow=True).content.decode()
    assert f"This form has started run {Run.objects.get().pk} already; nothing more was started" in answer
    assert counts() == before


def test_of_two_clicks_at_the_same_time_the_second_finds_the_run_of_the_first(
    admin_page: Client, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = filled(admin_page, "callable")
    first = admin_page.post(address("callable"), data)["Location"]
    answers, known_run = [None], Measured.known_run
    monkeypatch.setattr(Measured, "known_run", lambda asked: answers.pop() if answers else known_run(asked))
    assert admin_page.post(address("callable"), data)["Location"] == first
    assert Run.objects.count() == 1


def test_the_same_query_again_has_a_name_of_its_own(admin_page: Client, database: Database) -> None:
    for _ in range(2):
        admin_page.post(address("callable"), filled(admin_page, "callable"))
    names = sorted(Workload.objects.filter(orm="books.by_isbn").values_list("name", flat=True))
    assert names == ["books-by_isbn", "books-by_isbn-2"]


def test_numbers_in_attributes_have_no_thousand_separator(admin_page: Client, settings: Any) -> None:
    settings.USE_THOUSAND_SEPARATOR, settings.LANGUAGE_CODE = True, "en"
    factories.make_database("large", id=12345)
    assert (
        '<option value="12345" selected>large</option>'
        in admin_page.get(address("callable")).content.decode()
    )


@pytest.mark.parametrize("production", [True, False])
def test_the_name_is_asked_for_where_a_database_is_in_production(
    admin_page: Client, database: Database, production: bool
) -> None:
    Database.objects.update(production=production)
    shown = admin_page.get(address("callable")).content.decode()
    assert ("A production database: type its name to confirm" in shown) == production


def test_a_production_database_asks_for_its_name(admin_page: Client, database: Database) -> None:
    Database.objects.update(production=True)
    before = counts()
    refused = admin_page.post(address("callable"), filled(admin_page, "callable"))
    assert "Type the database name exactly: demo" in refused.content.decode()
    assert counts() == before
    taken = admin_page.post(address("callable"), filled(admin_page, "callable", confirm_name="demo"))
    assert taken.status_code == 302


def test_groups_are_inherited_from_the_database(admin_page: Client, database: Database) -> None:
    group = Group.objects.create(name="insiders")
    database.groups.set([group])
    database.restricted = True
    database.save()
    admin_page.post(address("callable"), filled(admin_page, "callable"))
    run = Run.objects.get()
    assert run.benchmark
    for row in (run.benchmark, run.benchmark.workloads[0]):
        row.refresh_from_db()
        assert row.restricted
        assert list(row.groups.all()) == [group]


@pytest.mark.parametrize("lacking", NEEDED)
def test_each_permission_is_needed(database: Database, lacking: str) -> None:
    names = {name.partition(".")[2] for name in NEEDED if name != lacking}
    client = staff_client("alice", *names)
    assert client.get(reverse(MEASURE)).status_code == 403
    assert client.post(address("callable"), {"token": uuid.uuid4().hex}).status_code == 403


def test_a_query_of_a_model_needs_the_permission_to_view_it(database: Database) -> None:
    client = staff_client("alice", *(name.partition(".")[2] for name in NEEDED))
    before = counts()
    answer = client.post(address("query"), filled(client, "query"))
    assert "needs the permission to view books.Book" in answer.content.decode()
    assert counts() == before
    User.objects.get(username="alice").user_permissions.add(Permission.objects.get(codename="view_book"))
    assert client.post(address("query"), filled(client, "query")).status_code == 302


def test_a_hidden_database_is_neither_offered_nor_taken(database: Database) -> None:
    database.groups.set([Group.objects.create(name="others")])
    seen = factories.make_database("seen")
    client = staff_client("alice", *(name.partition(".")[2] for name in NEEDED))
    shown = client.get(address("callable", database=str(database.pk))).content.decode()
    assert "demo" not in shown
    answer = client.post(address("callable"), filled(client, "callable", database=database.pk))
    assert answer.status_code == 200
    assert not Run.objects.exists()
    assert client.post(address("callable"), filled(client, "callable", database=seen.pk)).status_code == 302


def test_the_dashboard_leads_there(database: Database, client_of: Any) -> None:
    link = f'href="{reverse(MEASURE)}"'
    assert link in client_of("superuser").get(reverse("admin:app_list", args=["pgperf"])).content.decode()
    assert link not in client_of("runner").get(reverse("admin:app_list", args=["pgperf"])).content.decode()


def test_an_unknown_kind_shows_the_first_page(admin_page: Client, database: Database) -> None:
    shown = admin_page.get(reverse(MEASURE, query={"kind": "nonsense"})).content.decode()
    assert "A registered callable" in shown
    assert re.search("<h1>Measure a query of mine", shown)


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_no_estimate_without_what_names_the_query(
    admin_page: Client, database: Database, kind: str
) -> None:
    """A page without a path has none of the layers of a page."""
    data = filled(admin_page, kind) | dict.fromkeys(QUERIES[kind][0], "")
    found = admin_page.post(reverse("admin:pgperf_benchmark_estimate"), data).json()
    assert found["text"].endswith(" to see how long a run takes and what it needs.")
    assert not found["problem"]


def test_the_estimate_follows_what_is_still_missing(admin_page: Client, database: Database) -> None:
    """A query that is half typed has an estimate, as its layers and routes are known."""
    data = filled(admin_page, "callable", args="[[")
    found = admin_page.post(reverse("admin:pgperf_benchmark_estimate"), data).json()
    assert not found["problem"]
    assert json.dumps(found["layers"])
