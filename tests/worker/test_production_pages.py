"""Runs of pages over a web route: which ones production is asked for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from pgperf.models import Database, Run, Target, Workload
from pgperf.runs.definitions import Overrides
from pgperf.worker import execution
from tests.clients.web_server import WebServer
from tests.factories import new_benchmark
from tests.runner.forked_clients import of_site
from tests.short_runs import request

pytest.importorskip("pycurl")

SMALL = Overrides(
    blocks=1,
    rounds=2,
    slice_ms=10,
    diagnostic_ms=0,
    quick=True,
    placement="scheduler",
    idle="system",
)
REASONS = {
    "/tests/writing/": 'the server refused its UPDATE of "books_book"',
    "/tests/writing-quietly/": 'the server refused its UPDATE of "books_book"',
    "/tests/writing-first/": 'the server refused its UPDATE of "books_book"',
    "/tests/mail/": "it sends mail",
    "/tests/task/": "it queues a task",
    "/tests/elsewhere/": "it uses the alias 'other'",
}


SITE_SETTINGS = "tests.page_settings"


@pytest.fixture(scope="module", autouse=True)
def nursery() -> Iterator[None]:
    """Clients and control connections are forked where Django is set up."""
    with of_site(SITE_SETTINGS, "psycopg") as found, found.raising():
        yield


@pytest.fixture
def site(settings: Any) -> Iterator[WebServer]:
    """It answers each path with a page, so a run ends well if it sends its requests."""
    with WebServer() as server:
        urls = [f"http://127.0.0.1:{server.port}"]
        settings.PGPERF = {**settings.PGPERF, "CONNECTION_SHARE": 0.9, "WEB_URLS": urls}
        settings.ROOT_URLCONF = "tests.page_urls"
        yield server


@pytest.fixture
def database(
    transactional_db: None,
    site: WebServer,
    stack: dict[str, str],
    c_client: Path,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Database:
    """One in production with a web server and a direct route."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", SITE_SETTINGS)
    settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": c_client.parent}
    name = str(connection.settings_dict["NAME"])
    row = Database.objects.create(name="live", dbname=name, credential="alias:default", production=True)
    port = int(stack["PGPERF_DB_PORT"])
    Target.objects.create(database=row, route="tcp", host="127.0.0.1", port=port, sslmode="disable")
    Target.objects.create(database=row, route="web", url=f"http://127.0.0.1:{site.port}")
    return row


def performed(database: Database, path: str, *layers: str) -> Run:
    routes = ["web", "tcp"] if len(layers) > 1 else ["web"]
    work = Workload.objects.create(name="list", title="List", path=path)
    benchmark = new_benchmark(
        [work], name="list", title="List", layers=list(layers), routes=routes, modes=["simple"], clients=[1]
    )
    asked = request(benchmark, database, SMALL, foreground=True, confirmed="live")
    return execution.perform(asked.pk, "tests")


@pytest.mark.parametrize(
    ("path", "layers"),
    [
        *((path, ("http",)) for path in REASONS),
        ("/tests/writing-quietly/", ("http", "libpq", "django_view")),
        ("/tests/mail/", ("http", "django_view")),
    ],
)
def test_production_is_not_asked_for_a_page_that_does_more_than_read(
    database: Database, site: WebServer, path: str, layers: tuple[str, ...]
) -> None:
    run = performed(database, path, *layers)
    assert (run.status, site.requests) == (Run.Status.FAILED, [])
    assert run.error.startswith(
        f"page: list ({path}) is not requested from web servers of a production database"
    )
    assert REASONS[path] in run.error
    assert "measure this one on another database" in run.error
    assert set(run.environment["captures"]) == {"list"}


def test_production_without_a_way_to_the_database_is_not_asked(database: Database, site: WebServer) -> None:
    database.targets.filter(route="tcp").update(enabled=False)
    run = performed(database, "/books/", "http")
    assert (run.status, site.requests) == (Run.Status.FAILED, [])
    assert run.error.startswith("page: list (/books/) is not requested from web servers")
    assert "no enabled target leads to the database" in run.error


def test_a_page_that_reads_is_asked_for_after_it_ran_in_a_read_only_session(
    database: Database, site: WebServer
) -> None:
    run = performed(database, "/books/", "http")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    assert site.requests
    assert run.environment["captures"]["list"]["statements"] == 2  # there are no books to read
    assert "read-only session" in run.environment["access"]["tcp"]
    assert run.summary.get("skipped", []) == []


def test_a_writing_page_of_another_site_is_still_measured_by_http(
    database: Database, site: WebServer
) -> None:
    Database.objects.update(production=False)
    database.refresh_from_db()
    run = performed(database, "/tests/writing/", "http")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    assert site.requests
    assert "captures" not in run.environment
