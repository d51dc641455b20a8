"""The workload form: choices, errors by field, and preserved values."""

from typing import Any

import pytest
from django.test import Client

from pgperf.models import Workload
from pgperf.workloads import discovery

pytestmark = pytest.mark.django_db
ADD = "/admin/pgperf/workload/add/"


def data(**fields: Any) -> dict[str, Any]:
    return {
        "name": "mine", "title": "Mine", "sql": "", "args": "[]", "orm": "", "model": "", "fetch": "get",
        "lookup": "{}", "select_related": "", "prefetch_related": "", "ordering": "", "values": "", "limit": "0",
        "fixture": "", "path": "", "method": "GET", "page_user": "", "other_sql": "",
        "other_args": "[]", "other_orm": "", **fields,
    }  # fmt: skip


def errors(response: Any) -> dict[str, str]:
    assert response.status_code == 200
    return {name: " ".join(found) for name, found in response.context["adminform"].form.errors.items()}


def test_the_form_offers_what_is_registered_and_every_model(admin_client: Client) -> None:
    page = admin_client.get(ADD).content.decode()
    assert '<option value="books.authors_prefetched">' in page
    assert '<option value="books.Book">' in page


def test_the_form_names_a_module_that_failed_to_import(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = discovery.ImportFailure("shop.pgperf_workloads", "ImportError: no shop")
    monkeypatch.setattr(discovery, "discover", lambda: [failure])
    assert (
        "shop.pgperf_workloads cannot be imported: ImportError: no shop."
        in admin_client.get(ADD).content.decode()
    )


def test_a_registered_callable_with_its_arguments(admin_client: Client) -> None:
    response = admin_client.post(ADD, data(orm="books.by_isbn", args='["9790000000042"]'))
    assert response.status_code == 302
    row = Workload.objects.get(name="mine")
    assert (row.orm, row.args, row.sql) == ("books.by_isbn", ["9790000000042"], "")


def test_a_query_without_code(admin_client: Client) -> None:
    fields = {
        "model": "books.Book", "fetch": "list", "lookup": '{"year__gte": 1987}', "select_related": "author, publisher",
        "ordering": "-year title", "limit": "10",
    }  # fmt: skip
    assert admin_client.post(ADD, data(**fields)).status_code == 302
    row = Workload.objects.get(name="mine")
    assert row.query == {
        "model": "books.Book", "fetch": "list", "lookup": {"year__gte": 1987},
        "select_related": ["author", "publisher"], "prefetch_related": [], "ordering": ["-year", "title"],
        "values": [], "limit": 10,
    }  # fmt: skip
    page = admin_client.get(f"/admin/pgperf/workload/{row.pk}/change/").content.decode()
    assert "author, publisher" in page
    assert "1987" not in admin_client.get("/admin/pgperf/workload/").content.decode()


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"model": "books.Book", "lookup": '{"isbm": "1"}'}, "lookup", "Cannot resolve keyword"),
        ({"model": "books.Book", "lookup": "{"}, "lookup", "Enter a valid JSON"),
        ({"model": "books.Book", "lookup": ""}, "lookup", "Say which one to get"),
        ({"model": "books.Book", "lookup": '["isbn"]'}, "lookup", "Give a JSON object"),
        (
            {"model": "books.Book", "fetch": "list", "select_related": "books"},
            "select_related",
            "no relation books",
        ),
        ({"model": "books.Bock"}, "model", "not one of the available choices"),
        ({"orm": "os.system"}, "orm", "not one of the available choices"),
        ({"orm": "books.page", "sql": "SELECT 1"}, "sql", "Leave it empty"),
        ({}, "__all__", "Say what one operation does"),
    ],
)
def test_errors_are_shown_at_their_field(
    admin_client: Client, fields: dict[str, Any], field: str, words: str
) -> None:
    found = errors(admin_client.post(ADD, data(**fields)))
    assert words in found[field]
    assert not Workload.objects.filter(name="mine").exists()


@pytest.mark.parametrize("field", ["args", "other_args", "lookup"])
@pytest.mark.parametrize("typed", ["9" * 5000, "[" * 100_000, '{"year": ' + "9" * 5000 + "}"])
def test_unreadable_json_shows_an_error(admin_client: Client, field: str, typed: str) -> None:
    response = admin_client.post(ADD, data(sql="SELECT 1", **{field: typed}))
    assert errors(response)[field] == "Enter a valid JSON."
    assert typed in response.content.decode().replace("&quot;", '"')  # nothing that was typed is lost


@pytest.mark.parametrize("field", ["args", "other_args", "lookup"])
@pytest.mark.parametrize(
    "typed", ["Infinity", "NaN", '{"a": [-Infinity]}', "[1e999]", r'["\u0000"]', r'{"\ud800": 1}']
)
def test_json_that_a_database_cannot_store_shows_an_error(
    admin_client: Client, field: str, typed: str
) -> None:
    found = errors(admin_client.post(ADD, data(sql="SELECT 1", **{field: typed})))
    assert found[field].startswith("This value contains a ")


@pytest.mark.parametrize("field", ["select_related", "prefetch_related", "ordering", "values"])
def test_a_null_character_shows_an_error(admin_client: Client, field: str) -> None:
    response = admin_client.post(ADD, data(model="books.Book", **{field: "a\x00b"}))
    assert errors(response)[field] == "Null characters are not allowed."


def test_cleared_lists_are_saved_as_empty_lists(admin_client: Client) -> None:
    assert (
        admin_client.post(ADD, data(orm="books.authors_prefetched", args="", other_args="")).status_code
        == 302
    )
    row = Workload.objects.get(name="mine")
    assert (row.args, row.other_args, row.lookup) == ([], [], {})


def test_a_callable_that_is_no_longer_registered_is_kept(admin_client: Client) -> None:
    row = Workload.objects.create(name="old", title="Old", orm="shop.gone")
    page = admin_client.get(f"/admin/pgperf/workload/{row.pk}/change/").content.decode()
    assert '<option value="shop.gone" selected>' in page


def test_a_page_is_saved_with_its_user(admin_client: Client, settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "PAGE_USERS": ["reader"]}
    page = data(path="/books/?page=2", method="HEAD", page_user="reader", one_capture="on")
    assert admin_client.post(ADD, page).status_code == 302
    saved = Workload.objects.get(name="mine")
    assert (saved.path, saved.method, saved.page_user, saved.one_capture) == (
        "/books/?page=2", "HEAD", "reader", True,
    )  # fmt: skip
    assert "HEAD /books/" in admin_client.get("/admin/pgperf/workload/").content.decode()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"path": "/admin/"}, "path"),
        ({"path": "/nowhere/"}, "path"),
        ({"path": "/books/", "sql": "SELECT 1"}, "path"),
        ({"path": "/books/", "method": "POST"}, "method"),
        ({"path": "/books/", "page_user": "admin"}, "page_user"),
        ({"path": "/books/\0"}, "path"),
    ],
)
def test_a_page_that_may_not_be_measured_is_an_error_at_its_field(
    admin_client: Client, fields: dict[str, str], field: str
) -> None:
    assert next(iter(errors(admin_client.post(ADD, data(**fields))))) == field
