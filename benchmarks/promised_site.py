"""The benchmarks of the example site that benchmarks.promised_time runs, and what the site says of
their time. Imported by `manage.py shell`.
"""

from typing import Any

from benchmarks.promised_time import SHORT, SLOW, SLOW_FREE
from example.books.models import Author, Book, Publisher
from pgperf.models import Benchmark, Database, Workload
from pgperf.reports.preview import preview

#: A list without pages, as sites have that grew: the ORM takes most of its time.
BOOKS = 2_500
_QUERY: dict[str, Any] = {
    "model": "books.Book", "fetch": "list", "select_related": ["author", "publisher"], "ordering": ["isbn"],
}  # fmt: skip
_COMMON: dict[str, Any] = {
    "layers": ["libpq", "django_orm"],
    "routes": ["socket"],
    "modes": ["simple"],
    "clients": [1],
}
#: The slow one has the time budget that a user would give it, or none.
_BENCHMARKS: dict[str, dict[str, Any]] = {
    SLOW: {"limit": BOOKS, "budget_s": 120},
    SLOW_FREE: {"limit": BOOKS, "budget_s": 0},
    SHORT: {"limit": 1, "budget_s": 0},
}


def set_up() -> None:
    """Create the books and the benchmarks that do not exist."""
    _create_books()
    _create_benchmarks()


def _create_benchmarks() -> None:
    for name, each in _BENCHMARKS.items():
        query = {**_QUERY, "limit": each["limit"]}
        workload, _ = Workload.objects.get_or_create(name=name, defaults={"title": name, **query})
        values = {**_COMMON, "title": name, "budget_s": each["budget_s"]}
        benchmark, _ = Benchmark.objects.get_or_create(name=name, defaults=values)
        benchmark.set_workloads([workload])


def _create_books() -> None:
    author, publisher = Author.objects.all()[0], Publisher.objects.all()[0]
    there = Book.objects.count()
    Book.objects.bulk_create(
        Book(
            title=f"Volume {at}",
            author=author,
            publisher=publisher,
            year=2000,
            pages=100,
            isbn=f"978{at:010d}",
        )
        for at in range(there, BOOKS)
    )


def promised_s(name: str, *, quick: bool) -> float:
    """The time that the page says which starts a run of the benchmark."""
    shown = preview(Benchmark.objects.get(name=name), Database.objects.get(), quick=quick)
    assert shown.time_s, shown.refusal
    return shown.time_s
