"""Queries without code: what fits the model is built, what does not is refused by field."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext

from example.books.models import Author, Book, Publisher
from pgperf.workloads import queries


@async_to_sync
async def asynchronously(asked: dict[str, Any]) -> Any:
    return await queries.build_async(asked)()


def query(**parts: Any) -> dict[str, Any]:
    return {"model": "books.Book", "fetch": "list", "lookup": {}, **parts}


@pytest.mark.parametrize("part", ["lookup", "select_related", "prefetch_related", "ordering", "values"])
@pytest.mark.parametrize(
    "names", [["title"] * 101, ["t" * 301], ["author__publisher" + "__a" * 10]], ids=["many", "long", "deep"]
)
def test_too_many_or_too_long_names_are_not_looked_up(part: str, names: list[str]) -> None:
    """Each took 30 µs, and a path of relations the square of its length."""
    given: Any = {f"{name}{at}": 1 for at, name in enumerate(names)} if part == "lookup" else names
    with pytest.raises(ValidationError) as refused:
        queries.check(query(**{part: given, "fetch": "values_list" if part == "values" else "list"}))
    assert list(refused.value.message_dict) == [part]
    (message,) = refused.value.message_dict[part]
    assert message.startswith("At most 100 names")


@pytest.fixture
def shelf(db: None) -> Book:
    publisher = Publisher.objects.create(name="Third Shelf", city="Toronto")
    author = Author.objects.create(name="Ada Dahl")
    books = [
        Book.objects.create(
            title=f"Book {number}", author=author, publisher=publisher, year=2000 + number, pages=99,
            isbn=f"979{number:010d}",
        )
        for number in range(5)
    ]  # fmt: skip
    return books[0]


@pytest.mark.parametrize(
    ("parts", "result"),
    [
        ({"fetch": "get", "lookup": {"isbn": "9790000000003"}}, "Book 3"),
        ({"fetch": "first", "ordering": ["-year"]}, "Book 4"),
        ({"fetch": "first", "lookup": {"year": 1900}}, None),
        ({"fetch": "count", "lookup": {"year__gte": 2002}}, 3),
        ({"fetch": "count", "limit": 2}, 2),
        ({"fetch": "exists", "lookup": {"author__name__startswith": "Ada"}}, True),
        ({"fetch": "values_list", "values": ["year"], "limit": 2, "ordering": ["year"]}, [(2000,), (2001,)]),
        ({"lookup": {"year__in": [2001, 2002]}, "ordering": ["year"]}, ["Book 1", "Book 2"]),
    ],
)
@pytest.mark.parametrize("form", ["function", "async function"])
def test_each_way_to_fetch(shelf: Book, parts: dict[str, Any], result: Any, form: str) -> None:
    found = queries.build(query(**parts))() if form == "function" else asynchronously(query(**parts))
    if isinstance(found, Book):
        found = found.title
    elif found and isinstance(found, list) and isinstance(found[0], Book):
        found = [book.title for book in found]
    assert found == result


def test_related_objects_are_fetched(shelf: Book) -> None:
    joined = queries.build(query(select_related=["author", "publisher"], limit=3))
    prefetched = queries.build(
        {"model": "books.Author", "fetch": "list", "prefetch_related": ["books__publisher"]}
    )
    with CaptureQueriesContext(connection) as sent:
        assert [book.author.name for book in joined()] == ["Ada Dahl"] * 3
    assert len(sent) == 1
    with CaptureQueriesContext(connection) as sent:
        assert [len(author.books.all()) for author in prefetched()] == [5]
    assert len(sent) == 3


def test_each_operation_runs_a_new_query(shelf: Book) -> None:
    operation = queries.build(query())
    with CaptureQueriesContext(connection) as sent:
        operation()
        operation()
    assert len(sent) == 2


@pytest.mark.parametrize(
    ("parts", "field", "words"),
    [
        ({"model": "books.Bock"}, "model", 'no model "books.Bock"'),
        ({"model": "nonsense"}, "model", "no model"),
        ({"fetch": "delete"}, "fetch", "Choose one of: get, list"),
        ({"fetch": "get"}, "lookup", "a lookup that one row matches"),
        ({"lookup": {"titel": "x"}}, "lookup", "Cannot resolve keyword 'titel' into field"),
        ({"lookup": {"title__like": "x"}}, "lookup", "Unsupported lookup 'like'"),
        ({"lookup": {"year": "many"}}, "lookup", "Field 'year' expected a number"),
        ({"lookup": {"author": {"id": 1}}}, "lookup", "give text, a number"),
        ({"lookup": {"year__in": [[1]]}}, "lookup", "give text, a number"),
        ({"lookup": {"pages": float("nan")}}, "lookup", "give text, a number"),
        ({"model": "pgperf.VariantResult", "lookup": {"us_per_op": 10**400}}, "lookup", "int too large"),
        ({"lookup": {"_connector": "OR 1=1 OR"}}, "lookup", "do not begin with an underscore"),
        ({"lookup": {"_negated": True}}, "lookup", "do not begin with an underscore"),
        ({"lookup": ["title"]}, "lookup", "Give a JSON object"),
        (
            {"select_related": ["books"]},
            "select_related",
            "has no relation books here; it has: author, publisher",
        ),
        ({"select_related": ["author__books"]}, "select_related", "books.Author has no relation books"),
        ({"select_related": "author"}, "select_related", "Give a JSON list of names"),
        ({"fetch": "count", "select_related": ["author"]}, "select_related", "Only with get, list and first"),
        ({"prefetch_related": ["titles"]}, "prefetch_related", "has no relation titles"),
        ({"ordering": ["-colour"]}, "ordering", "Cannot resolve keyword 'colour'"),
        ({"ordering": ["title; DROP TABLE x"]}, "ordering", "title; DROP TABLE x"),
        ({"values": ["title"]}, "values", "Only with the fetch method values_list"),
        ({"fetch": "values_list", "values": ["colour"]}, "values", "Cannot resolve keyword 'colour'"),
        ({"limit": -1}, "limit", "Give a whole number"),
        ({"limit": 2_000_000}, "limit", "Give a whole number"),
        ({"limit": True}, "limit", "Give a whole number"),
        ({"fetch": "get", "lookup": {"pk": 1}, "limit": 1}, "limit", "Only with list"),
    ],
)
def test_invalid_parts_are_refused_by_field_without_a_query(
    parts: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(ValidationError) as refusal:
        queries.check(query(**parts))
    assert list(refusal.value.message_dict) == [field]
    assert words in " ".join(refusal.value.message_dict[field])


def test_every_part_is_named_at_once() -> None:
    with pytest.raises(ValidationError) as refusal:
        queries.check(query(lookup={"titel": 1}, ordering=["colour"], limit=-1))
    assert set(refusal.value.message_dict) == {"lookup", "ordering", "limit"}


def test_the_routers_select_the_alias() -> None:
    assert queries.alias(query()) == "default"
    assert "books.Book" in queries.models()
