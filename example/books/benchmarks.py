"""Benchmarks of the site's own queries, ready to run in the admin."""

from typing import Any

from example.stack.web_steps import PUBLISHED, PUBLISHED_MS, STEPS
from pgperf.core.delayed_routes import lengthened
from pgperf.models import Benchmark, Database, Workload

WORKLOADS: dict[str, dict[str, Any]] = {
    "book-by-isbn": {"title": "One book by its ISBN", "orm": "books.by_isbn", "args": ["9790000000042"]},
    "books-page": {
        "title": "A page of the catalogue, with joins",
        "orm": "books.page",
        "args": ["the", 1990],
    },
    "authors-one-by-one": {
        "title": "Twenty authors, their books one author at a time",
        "orm": "books.authors_one_by_one",
    },
    "authors-prefetched": {
        "title": "Twenty authors, their books prefetched",
        "orm": "books.authors_prefetched",
    },
    "books-of-a-publisher": {
        "title": "The latest books of a publisher, without code",
        "model": "books.Book",
        "fetch": "list",
        "lookup": {"publisher__name": "Cobalt Press", "year__gte": 2000},
        "select_related": ["author"],
        "ordering": ["-year", "title"],
        "limit": 10,
    },
    "list-page": {"title": "The list of books", "path": "/books/?page=2"},
}
BENCHMARKS: dict[str, dict[str, Any]] = {
    "book-by-isbn": {
        "title": "One book by its ISBN",
        "description": "Book.objects.get(isbn=...) of this site, layer by layer.",
        "workloads": ["book-by-isbn"],
    },
    "books-page": {
        "title": "A page of the catalogue",
        "description": "select_related, filter, ordering and a slice: the query of the list of books.",
        "workloads": ["books-page"],
    },
    "n-plus-one": {
        "title": "N+1 queries and prefetch_related",
        "description": "Twenty authors and their books: 21 queries compared with two by prefetch_related.",
        "workloads": ["authors-one-by-one", "authors-prefetched"],
        "routes": ["socket"],
    },
    "books-of-a-publisher": {
        "title": "A query without code",
        "description": "The workload form gives the model, the lookup and the fetch method.",
        "workloads": ["books-of-a-publisher"],
    },
    "page": {
        "title": "A page taken apart",
        "description": (
            "The list of books with its four statements: libpq, driver, cursor, then view and template, then gunicorn"
            " and nginx, where `make up-web` serves them. The view keeps its connection to PostgreSQL, and so does"
            " the last step."
        ),
        "workloads": ["list-page"],
        "layers": ["libpq", "psycopg2", "psycopg", "django_cursor", "django_view", "http"],
        # The web servers connect over TCP, so they stand on the view of that route, the first one.
        "routes": ["tcp", "socket", "web_gunicorn", "web_nginx", "web_conn_kept"],
    },
    "site-steps": {
        "title": "A site made faster step by step, as published in 2011",
        "description": (
            "The list of books, requested by 20 clients from Apache with mod_wsgi, gunicorn and nginx, with and without"
            " PgBouncer, TLS, autocommit, kept connections, Django's pool and advised server settings. The steps that"
            " Stein Magnus Jodal published are measured at a simulated distance of 45 ms too. `make up-web` serves"
            " them."
        ),
        "workloads": ["list-page"],
        "layers": ["http"],
        "routes": [*STEPS, *(lengthened(name, PUBLISHED_MS) for name in PUBLISHED)],
        "connection_modes": ["per_operation"],
        "clients": [20],
        "blocks": 6,
        "rounds": 3,
        "diagnostic_ms": 0,
        # Starts and warm-ups take a quarter of an hour; no prediction knows the time of a page.
        "budget_s": 3600,
    },
}
_COMMON: dict[str, Any] = {
    "layers": ["libpq", "psycopg2", "psycopg", "django_cursor", "django_orm"],
    # The site's role can write, so pgperf uses read-only sessions, which a pooler would not keep.
    "routes": ["socket", "tcp"],
    "modes": ["simple"],
    "clients": [1],
}


def create_benchmarks(database: Database) -> None:
    """Create the workloads and benchmarks that do not exist."""
    workloads = {
        name: Workload.objects.get_or_create(name=name, defaults=fields)[0]
        for name, fields in WORKLOADS.items()
    }
    for name, fields in BENCHMARKS.items():
        values = {**_COMMON, **fields, "database": database}
        chosen = [workloads[each] for each in values.pop("workloads")]
        benchmark, made = Benchmark.objects.get_or_create(name=name, defaults=values)
        if made:
            benchmark.set_workloads(chosen)
