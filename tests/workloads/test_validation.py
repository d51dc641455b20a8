"""A Workload row has exactly one kind of work."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from pgperf.core.records import Definition, WorkloadDefinition
from pgperf.models import Workload
from pgperf.runs.definitions import workload

pytestmark = pytest.mark.django_db


def row(**fields: Any) -> Workload:
    return Workload(**{"name": "mine", "title": "Mine", **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"sql": "SELECT 1"},
        {"sql": "SELECT 1", "orm": "pgperf.site_by_domain"},
        {"orm": "books.by_isbn", "args": ["9790000000042"]},
        {"model": "books.Book", "lookup": {"isbn": "9790000000042"}},
        {"model": "books.Author", "fetch": "list", "prefetch_related": ["books"], "limit": 20},
        {"sql": "SELECT 1", "orm": "pgperf.site_by_domain", "other_orm": "pgperf.sites_by_name"},
        {"orm": "books.authors_prefetched", "other_orm": "books.authors_one_by_one"},
        {"model": "books.Author", "fetch": "list", "limit": 20, "other_orm": "books.authors_one_by_one"},
    ],
)
def test_one_kind_of_work_is_accepted(fields: dict[str, Any]) -> None:
    row(**fields).full_clean()


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({}, "__all__", "Say what one operation does"),
        ({"model": "books.Book", "sql": "SELECT 1"}, "model", "either a model, or SQL"),
        ({"model": "books.Book", "orm": "books.page"}, "model", "either a model, or SQL"),
        ({"model": "books.Book"}, "lookup", "Say which one to get"),
        ({"orm": "books.nothing"}, "orm", "registered are: books.authors_one_by_one"),
        ({"orm": "books.page", "sql": "SELECT 1"}, "sql", "Leave it empty"),
        ({"orm": "books.by_isbn"}, "args", "books.by_isbn(isbn) does not take these values: missing"),
        ({"orm": "books.by_isbn", "args": ["a", "b"]}, "args", "too many positional arguments"),
        ({"orm": "books.authors_one_by_one", "args": [1]}, "args", "books.authors_one_by_one() does not"),
        ({"sql": "SELECT 1", "other_orm": "books.nothing"}, "other_orm", "registered are: books.authors_one"),
        ({"sql": "SELECT 1", "other_orm": "pgperf.nothing"}, "other_orm", "ships no callable of that name"),
        (
            {"sql": "SELECT 1", "other_orm": "books.by_isbn"},
            "other_args",
            "does not take these values: missing",
        ),
        (
            {"sql": "SELECT 1", "orm": "pgperf.light", "other_orm": "books.authors_prefetched"},
            "other_orm",
            "Name one of pgperf's own callables, like pgperf.light",
        ),
        (
            {"orm": "books.authors_prefetched", "other_orm": "pgperf.sites_by_name"},
            "other_orm",
            "Name a callable of this site",
        ),
        (
            {"model": "books.Author", "fetch": "list", "other_orm": "pgperf.sites_by_name"},
            "other_orm",
            "Name a callable of this site",
        ),
        ({"orm": "pgperf.site_by_domain"}, "sql", "Give the SQL that pgperf.site_by_domain sends"),
    ],
)
def test_anything_else_is_refused_by_field(fields: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        row(**fields).full_clean()
    assert words in " ".join(refusal.value.message_dict[field])


def test_is_site_tells_site_workloads() -> None:
    assert not workload(row(sql="SELECT 1", orm="pgperf.site_by_domain")).is_site
    assert workload(row(orm="books.page")).is_site
    record = workload(row(model="books.Book", lookup={"pk": 1}))
    assert record.is_site
    assert record.query["model"] == "books.Book"
    assert record.query["fetch"] == "get"


def test_a_definition_of_two_workloads_survives_its_json() -> None:
    first, second = (
        WorkloadDefinition("a", "", orm="books.page", args=("x", 1)),
        WorkloadDefinition("b", "", query={"model": "books.Book"}),
    )
    definition = Definition("n", (first, second), ("libpq",), ("tcp",))
    again = Definition.from_json(definition.to_json())
    assert again == definition
    assert again.workloads == (first, second)
    assert again.work("b") == second
    assert again.digest() == definition.digest()
