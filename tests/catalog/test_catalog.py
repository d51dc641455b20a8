"""The catalog: valid benchmarks, repeatable fixtures, and SQL equal to Django's."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import psycopg
import pytest
from django.db import connection as django_connection
from django.test.utils import CaptureQueriesContext

from pgperf import registry
from pgperf.catalog import BENCHMARKS, FIXTURES, CatalogBenchmark, Fixture, workloads
from pgperf.core import sql_parameters
from pgperf.core.layers import LAYERS
from pgperf.core.records import MODES, PLACEMENTS, WorkloadDefinition


def rows(connection: psycopg.Connection, statement: str) -> list[Any]:
    return connection.execute(statement).fetchall()


@pytest.fixture
def connection(stack: dict[str, str]) -> Iterator[psycopg.Connection]:
    """A transaction that is rolled back, in the stack's own database."""
    with psycopg.connect(
        host="127.0.0.1", port=int(stack["PGPERF_DB_PORT"]), dbname=stack["PGPERF_DB_NAME"],
        user=stack["PGPERF_DB_USER"], password=stack["PGPERF_DB_PASSWORD"],
    ) as opened:  # fmt: skip
        yield opened
        opened.rollback()


@pytest.mark.parametrize("benchmark", BENCHMARKS.values(), ids=list(BENCHMARKS))
def test_a_benchmark_has_known_layers_modes_and_fixtures(benchmark: CatalogBenchmark) -> None:
    assert set(benchmark.layers) <= set(LAYERS)
    assert set(benchmark.modes) <= set(MODES)
    assert benchmark.placement in PLACEMENTS
    assert benchmark.blocks >= 6
    assert benchmark.precision or benchmark.budget_s, "a fixed length would keep no promised time"
    for work in benchmark.workloads:
        assert work.fixture in ("", *FIXTURES)
        sql_parameters.literal(work.sql, work.args)
        sql_parameters.literal(work.other_sql, work.other_args)


@pytest.mark.parametrize("fixture", FIXTURES.values(), ids=list(FIXTURES))
def test_a_fixture_is_made_twice_probed_and_dropped(fixture: Fixture, connection: psycopg.Connection) -> None:
    for statement in fixture.drop:
        connection.execute(statement)
    assert rows(connection, fixture.probe) == [(False,)]
    for statement in fixture.create * 2:
        connection.execute(statement)
    assert rows(connection, fixture.probe) == [(True,)]
    for statement in fixture.drop * 2:
        connection.execute(statement)
    assert rows(connection, fixture.probe) == [(False,)]


@pytest.mark.parametrize("name", ["copyfrom", "batch"])
def test_autovacuum_leaves_a_table_alone_that_runs_fill(name: str, connection: psycopg.Connection) -> None:
    for statement in (*FIXTURES[name].drop, *FIXTURES[name].create):
        connection.execute(statement)
    options = f"SELECT reloptions FROM pg_class WHERE oid = 'pgperf.{name}'::regclass"
    assert rows(connection, options) == [(["autovacuum_enabled=false"],)]


def test_an_incomplete_fixture_is_not_recognised(connection: psycopg.Connection) -> None:
    site = FIXTURES["site"]
    for statement in (*site.drop, *site.create[:-1]):
        connection.execute(statement)
    assert rows(connection, site.probe) == [(False,)]


@pytest.mark.django_db
@pytest.mark.parametrize("work", [work for work in workloads() if work.orm], ids=lambda work: work.name)
def test_the_sql_is_what_the_orm_sends(work: WorkloadDefinition) -> None:
    import_module("pgperf.catalog.orm")
    with django_connection.cursor() as cursor:
        for statement in FIXTURES[work.fixture].create if work.fixture else ():
            cursor.execute(statement)
    both = ((work.sql, work.args, work.orm), (work.other_sql, work.other_args, work.other_orm))
    for statement, args, name in [each for each in both if each[0]]:
        with CaptureQueriesContext(django_connection) as captured:
            assert registry.get(name)(*args)
        assert [query["sql"] for query in captured] == [sql_parameters.literal(statement, args)]
