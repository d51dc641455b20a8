"""The site's queries for pgperf. Each callable is one operation, as a view would execute it.

Before each block of a run, the web servers of the steps that it measures start anew.
"""

from pathlib import Path

from django.conf import settings

from example.books.models import Author, Book
from example.stack import control, web_steps
from pgperf.registry import BlockStart, before_block, workload

AUTHORS = 20


@workload("books.by_isbn")
def by_isbn(isbn: str) -> Book:
    """One book by a unique field."""
    return Book.objects.get(isbn=isbn)


@workload("books.page")
def page(search: str, since: int) -> list[Book]:
    """A page of the catalogue: filtered and ordered, with joins to authors and publishers."""
    books = Book.objects.select_related("author", "publisher")
    return list(books.filter(title__icontains=search, year__gte=since).order_by("-year", "title")[:25])


@workload("books.authors_one_by_one")
def authors_one_by_one() -> list[tuple[str, list[str]]]:
    """Twenty authors and their books: one query for the authors and one for each author."""
    return [_with_titles(author) for author in Author.objects.all()[:AUTHORS]]


@workload("books.authors_prefetched")
def authors_prefetched() -> list[tuple[str, list[str]]]:
    """The same authors and books in two queries."""
    return [_with_titles(author) for author in Author.objects.prefetch_related("books")[:AUTHORS]]


def _with_titles(author: Author) -> tuple[str, list[str]]:
    return author.name, [book.title for book in author.books.all()]


@before_block
def fresh_web_servers(start: BlockStart) -> None:
    """Have the stack start its own web steps anew. Other routes are left alone."""
    own = [name for name in web_steps.STEPS if name in start.urls and start.urls[name] == _url(name)]
    if own:
        control.start_anew(Path(settings.STACK["PGPERF_STACK_CONTROL"]), own, start.block)


def _url(name: str) -> str | None:
    return settings.STACK.get(web_steps.variable(name))
