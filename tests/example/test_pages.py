"""The example site's own pages."""

import pytest
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from example.books.models import Book
from example.books.sample_data import create_books

pytestmark = pytest.mark.django_db


def test_the_home_page_links_to_benchmarks_and_runs(client: Client) -> None:
    page = client.get("/").content.decode()
    assert "/admin/pgperf/benchmark/" in page
    assert "/admin/pgperf/run/" in page


def test_list_page_shows_books_with_related_rows_in_four_queries(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    create_books()
    with django_assert_num_queries(4):
        response = client.get("/books/")
    assert len(response.context["books"]) == 25
    first = Book.objects.first()
    assert first is not None
    assert first.author.name in response.content.decode()


def test_search_narrows_the_list(client: Client) -> None:
    create_books()
    title = str(Book.objects.values_list("title", flat=True)[0])
    response = client.get("/books/", {"q": title})
    assert {book.title for book in response.context["books"]} == {title}


def test_a_publisher_narrows_the_list(client: Client) -> None:
    create_books()
    response = client.get("/books/", {"publisher": "Cobalt Press"})
    assert {book.publisher.name for book in response.context["books"]} == {"Cobalt Press"}


def test_an_empty_search_result_shows_a_message(client: Client) -> None:
    assert "No book" in client.get("/books/", {"q": "no such title"}).content.decode()


def test_creating_books_twice_adds_nothing() -> None:
    create_books()
    count = Book.objects.count()
    create_books()
    assert Book.objects.count() == count


@pytest.mark.parametrize("url", ["/", "/books/", "/books/?q=%00&publisher=%00&page=1"])
def test_pages_answer_under_a_strict_content_security_policy(client: Client, url: str) -> None:
    response = client.get(url)
    assert response.status_code == 200
    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert " style=" not in response.content.decode()
