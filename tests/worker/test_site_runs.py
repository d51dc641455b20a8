"""Whole runs of the example site's workloads on the test database, by real clients."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import serializers
from django.db import connection

from example.books.benchmarks import BENCHMARKS, WORKLOADS, create_benchmarks
from example.books.sample_data import create_books
from pgperf import models
from pgperf.access import page_sessions
from pgperf.clients import page_instruments
from pgperf.models import Benchmark, Database, Run, Target, Workload
from pgperf.reports import csv_results
from pgperf.reports.run_json import run_json
from pgperf.reports.run_page import result
from pgperf.runs.definitions import Overrides
from pgperf.worker import execution
from tests.factories import new_benchmark
from tests.runner.forked_clients import Nursery, of_site, with_modules_of_site
from tests.short_runs import request

SECRET = "9790000000042"
SMALL = Overrides(
    blocks=1,
    rounds=2,
    slice_ms=10,
    diagnostic_ms=0,
    quick=True,
    routes=("tcp",),
    placement="scheduler",
    idle="system",
)
TOO_HARD = {"tests.counting": "has other values each time", "tests.atomic": "controls transactions"}
SITE_SETTINGS = "tests.site_settings"


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with of_site(SITE_SETTINGS, "psycopg") as found:
        yield found


@pytest.fixture
def forked(nursery: Nursery) -> Iterator[None]:
    """Clients and control connections are forked where Django is set up."""
    with nursery.raising():
        yield


@pytest.fixture(scope="module")
def nursery_of_any_site() -> Iterator[Nursery]:
    with with_modules_of_site("psycopg") as found:
        yield found


@pytest.fixture
def forked_for_any_site(nursery_of_any_site: Nursery) -> Iterator[None]:
    """The same, but clients set Django up themselves, with the test's own settings."""
    with nursery_of_any_site.raising():
        yield


@pytest.fixture
def demo(
    transactional_db: None,
    stack: dict[str, str],
    c_client: Path,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Database:
    """The example's rows and benchmarks, in the database that these tests commit to."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", SITE_SETTINGS)
    settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": c_client.parent}
    create_books()
    name = str(connection.settings_dict["NAME"])
    database = Database.objects.create(name="demo", dbname=name, credential="alias:default")
    port = int(stack["PGPERF_DB_PORT"])
    Target.objects.create(database=database, route="tcp", host="127.0.0.1", port=port, sslmode="disable")
    create_benchmarks(database)
    return database


def performed(name: str, **changes: Any) -> Run:
    benchmark = Benchmark.objects.get(name=name)
    overrides = Overrides(**{**vars(SMALL), **changes})
    asked = request(benchmark, benchmark.database or Database.objects.get(), overrides, foreground=True)
    return execution.perform(asked.pk, "tests")


@pytest.mark.usefixtures("forked")
def test_a_query_loop_and_its_fix_are_compared_in_every_layer(demo: Database) -> None:
    run = performed("n-plus-one", layers=("libpq", "django_orm"))
    assert (run.status, run.error) == (Run.Status.DONE, "")
    captures = run.environment["captures"]
    assert [captures[name]["statements"] for name in ("authors-one-by-one", "authors-prefetched")] == [21, 2]
    assert captures["authors-one-by-one"]["rows"] == captures["authors-prefetched"]["rows"]
    saved = run.comparisons.filter(variant__workload="authors-prefetched")
    pairs = {(row.variant.label, row.baseline.label) for row in saved}
    assert ("django_orm · tcp · authors-prefetched", "django_orm · tcp · authors-one-by-one") in pairs
    assert ("libpq · tcp · authors-prefetched", "libpq · tcp · authors-one-by-one") in pairs
    assert len(run.summary["ladders"]) == 2
    parts = {section.name: section.part for section in result(run).sections}
    (point,) = (point for point in parts["answer"]["points"] if point.anchor == "comparisons")
    (sentence,) = point.sentences
    assert sentence.startswith("tcp: ")
    assert {"authors-one-by-one", "authors-prefetched"} <= set(re.split(r"[ .,]", sentence))
    assert len(parts["captures"]["tables"]) == 2
    assert parts["comparisons"]["tables"][0].caption.startswith("One workload against the other")
    versions = run.environment["layers"]["django_orm"]
    assert versions["instrumentation"] == "none found"
    assert versions["engine"] == "django.db.backends.postgresql"


@pytest.mark.usefixtures("forked_for_any_site")
def test_captured_values_are_stored_only_where_a_user_typed_them(
    demo: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And OPTIONS that a read-only session cannot satisfy are overridden."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings_options")
    monkeypatch.setenv("PGPERF_TEST_OPTIONS", '{"target_session_attrs": "read-write", "pool": true}')
    run = performed("book-by-isbn", layers=("psycopg", "django_cursor", "django_orm"))
    assert (run.status, run.error, run.summary.get("skipped", [])) == (Run.Status.DONE, "", [])
    typed = {"args": [SECRET]}
    assert run.definition["workloads"][0]["args"] == typed["args"]
    kept = {name: getattr(run, name) for name in ("environment", "summary", "timings", "error", "message")}
    told = [json.dumps(kept), csv_results.variants_csv(run), csv_results.comparisons_csv(run)]
    told += [serializers.serialize("json", model.objects.all()) for model in _results()]
    told.append(json.dumps({k: v for k, v in run_json(run).items() if k != "run"}))
    assert not [text for text in told if SECRET in text]
    assert "WHERE" in run.environment["captures"]["book-by-isbn"]["each"][0]["sql"]


def _results() -> list[Any]:
    return [models.VariantResult, models.ComparisonResult, models.BlockResult]


@pytest.mark.usefixtures("forked")
def test_unrepeatable_statements_are_measured_only_in_the_orm(demo: Database) -> None:
    works = [Workload.objects.create(name=orm[6:], title="Hard", orm=orm) for orm in TOO_HARD]
    new_benchmark(
        works, name="hard", title="Hard", database=demo, layers=["libpq", "psycopg", "django_orm"],
        routes=["tcp"], modes=["simple"], clients=[1],
    )  # fmt: skip
    run = performed("hard")
    assert run.status == Run.Status.DONE
    assert {(row.workload, row.layer) for row in run.variants.all()} == {
        (work.name, "django_orm") for work in works
    }
    found = result(run)
    assert found.skipped_count == len(works)
    for work in works:
        (why,) = (why for why, titles in found.skipped.items() if any(work.name in title for title in titles))
        assert TOO_HARD[str(work.orm)] in why
    kept = json.dumps([run.environment, run.summary])
    assert not re.search(r"(?<![\d.])4711(?![\d.])", kept), "as a value, not as digits of a time"


@pytest.mark.usefixtures("forked")
def test_a_writing_statement_is_refused_by_the_server(demo: Database) -> None:
    work = Workload.objects.create(name="hard", title="Hard", orm="tests.writing")
    new_benchmark(
        [work], name="hard", title="Hard", database=demo, layers=["django_orm"], routes=["tcp"],
        modes=["simple"], clients=[1],
    )  # fmt: skip
    run = performed("hard")
    assert run.status == Run.Status.FAILED
    assert run.error == (
        'tests.writing: the server refused its UPDATE of "books_book": pgperf calls it in read-only sessions.'
        " Register a callable that only reads"
    )


def test_everything_the_example_registers_is_valid(demo: Database) -> None:
    for row in [*Workload.objects.filter(name__in=WORKLOADS), *Benchmark.objects.filter(name__in=BENCHMARKS)]:
        row.full_clean()
    create_benchmarks(demo)
    assert Benchmark.objects.filter(name__in=BENCHMARKS).count() == len(BENCHMARKS)


@pytest.mark.usefixtures("forked")
def test_a_page_is_measured_from_libpq_to_its_view_and_each_of_its_statements_alone(demo: Database) -> None:
    run = performed("page", layers=("libpq", "psycopg", "django_cursor", "django_view"), diagnostic_ms=50)
    assert (run.status, run.error) == (Run.Status.DONE, "")
    assert run.environment["captures"]["list-page"]["statements"] == 4
    (ladder,) = run.summary["ladders"]
    layers = ["libpq", "psycopg", "django_cursor", "django_view"]
    assert [step["layer"] for step in ladder["steps"]] == layers
    assert run.environment["layers"]["django_view"]["answer"].startswith("200, ")
    rows = {row["layer"]: row["rows"] for row in run_json(run)["variants"]}
    assert all(rows.values())
    parts = {section.name: section.part for section in result(run).sections}

    times = {each["layer"]: each["each"] for each in run.environment["statement_times"]}
    assert list(times) == layers[:-1]
    for each in times.values():
        assert [one["numbers"] for one in each] == [[1], [2], [3], [4]]
        assert all(one["us"] > 0 for one in each)
    table, _parts = parts["captures"]["tables"]
    assert len(table.rows) == 4
    (view,) = run.environment["page_parts"]
    assert set(view["parts_us"]) == set(page_instruments.PARTS)
    assert all(us > 0 for us in view["parts_us"].values())


@pytest.mark.usefixtures("forked_for_any_site")
def test_a_page_is_seen_by_its_user_without_a_trace_of_the_session(
    demo: Database, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.page_settings")
    settings.PGPERF = {**settings.PGPERF, "PAGE_USERS": ["reader"]}
    settings.ROOT_URLCONF = "tests.page_urls"
    User.objects.create_user("reader")
    work = Workload.objects.create(name="mine", title="Mine", path="/tests/mine/", page_user="reader")
    benchmark = new_benchmark(
        [work], name="mine", layers=["libpq", "django_view"], routes=["tcp"], modes=["simple"], clients=[1]
    )
    run = performed(benchmark.name)
    assert (run.status, run.error) == (Run.Status.DONE, "")
    assert run.environment["captures"]["mine"]["statements"] == 3
    key = page_sessions.key_of(run, "reader")
    assert not Session.objects.exists()
    assert key not in serializers.serialize("json", [*Run.objects.all(), *models.BlockResult.objects.all()])
