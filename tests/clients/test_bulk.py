"""Bulk operations, row types and transactions, in every client that has them."""

from collections.abc import Iterator

import psycopg
import pytest

from pgperf.catalog import FIXTURES
from pgperf.catalog.driver_queries import ARRAYS, BATCH, COPYFROM, LARGE_OBJECT, PG_TYPE
from pgperf.core import layers, protocol, sql_parameters
from pgperf.core.records import BulkInsert, Route, WorkloadDefinition
from tests.clients.conftest import Start
from tests.clients.driving import Driven, Subject, spec
from tests.clients.test_conformance import LAYERS, SQL_LAYERS

THREE = protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=0, count=2)
#: Each way to insert many rows: a layer in a mode, a workload, and the calls that it uses.
WAYS = [
    pytest.param(subject, work, api, id=f"{subject}-{work.name}-{api}")
    for subject in LAYERS
    if subject.layer in layers.LAYERS
    for work in (COPYFROM, BATCH)
    for api in protocol.BULK_APIS
    if work.bulk and subject.mode in layers.LAYERS[subject.layer].bulk_modes(work.bulk.kind, api)
]
WITH_TRANSACTIONS = ("psycopg2", "psycopg", "psycopg_async", "psycopg_async_uvloop")
DRIVERS = [subject for subject in SQL_LAYERS if subject.layer in WITH_TRANSACTIONS]


@pytest.fixture(autouse=True)
def tables(admin: psycopg.Connection) -> Iterator[None]:
    for name in ("copyfrom", "batch", "large_object", "arrays"):
        for statement in FIXTURES[name].create:
            admin.execute(statement)
    yield
    admin.execute("TRUNCATE pgperf.copyfrom, pgperf.batch")


def insert_of(work: WorkloadDefinition) -> BulkInsert:
    assert work.bulk
    return work.bulk


def bulk_spec(
    subject: Subject, route: Route, work: WorkloadDefinition, rows: int, api: str = "best"
) -> protocol.Spec:
    insert = insert_of(work)
    return spec(subject, route, work)._replace(
        statements=[sql_parameters.row_statement(insert.sql, insert.row)],
        bulk=protocol.Bulk(insert.kind, insert.table, [*insert.columns], [*insert.types], rows, api),
        cold=False,
    )


def stored(admin: psycopg.Connection, work: WorkloadDefinition) -> int:
    row = admin.execute(f"SELECT count(*) FROM {insert_of(work).table}").fetchone()  # type: ignore[arg-type]
    assert row
    return int(row[0])


@pytest.mark.parametrize(("subject", "work", "api"), WAYS)
def test_all_rows_are_in_the_table_with_their_values(
    subject: Subject, work: WorkloadDefinition, api: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    client = start(subject)
    client.send(bulk_spec(subject, tcp, work, 500, api))
    assert client.read(protocol.Ready).rows_per_op == 500
    reply, durations = client.slice(THREE)
    assert (reply.ops, reply.rows, len(durations)) == (2, 1000, 2)
    assert stored(admin, work) == 500 * (1 + reply.lead_in_ops + reply.ops)
    insert = insert_of(work)
    assert admin.execute(f"SELECT DISTINCT * FROM {insert.table}").fetchall() == [insert.row]  # type: ignore[arg-type]


@pytest.mark.parametrize(("subject", "work", "api"), [way for way in WAYS if way.values[2] == "best"])
def test_an_operation_that_fails_inserts_nothing(
    subject: Subject, work: WorkloadDefinition, api: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    """The last rows of an operation exceed a limit that the first ones keep."""
    table = insert_of(work).table
    admin.execute(f"CREATE SEQUENCE IF NOT EXISTS {table}_rows".replace("pgperf.", "public."))  # type: ignore[arg-type]
    name = f"public.{work.name}_rows"
    admin.execute(
        f"ALTER TABLE {table} ADD CONSTRAINT few CHECK (nextval('{name}') < 400 AND a > 0)"  # type: ignore[arg-type]
    )
    try:
        client = start(subject)
        client.send(bulk_spec(subject, tcp, work, 500, api))
        error = client.read(protocol.Error)
        assert (error.stage, error.sqlstate) == ("ready", "23514")
        assert client.wait() == protocol.EXIT_FAILED
        assert stored(admin, work) == 0
    finally:
        admin.execute(f"ALTER TABLE {table} DROP CONSTRAINT few")  # type: ignore[arg-type]
        admin.execute(f"DROP SEQUENCE {name}")  # type: ignore[arg-type]


@pytest.mark.parametrize("subject", [each for each in SQL_LAYERS if each.layer != "django_view"], ids=str)
@pytest.mark.parametrize("work", [LARGE_OBJECT, ARRAYS, PG_TYPE], ids=lambda work: work.name)
def test_every_layer_reads_the_suites_values(
    subject: Subject, work: WorkloadDefinition, start: Start, tcp: Route
) -> None:
    client = start(subject)
    client.send(spec(subject, tcp, work)._replace(cold=False))
    rows = client.read(protocol.Ready).rows_per_op
    assert rows == 100 if work.fixture else rows > 500


@pytest.mark.parametrize("row_type", protocol.ROW_TYPES)
@pytest.mark.parametrize("transaction", protocol.TRANSACTIONS)
@pytest.mark.parametrize("subject", DRIVERS, ids=str)
def test_no_transaction_is_open_between_slices(
    subject: Subject, row_type: str, transaction: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    client = start(subject)
    asked = spec(subject, tcp, PG_TYPE)._replace(cold=False, row_type=row_type, transaction=transaction)
    client.send(asked)
    ready = client.read(protocol.Ready)
    assert state(admin, ready.backend_pid) == "idle"
    client.slice(THREE)
    assert state(admin, ready.backend_pid) == "idle"


@pytest.mark.parametrize("subject", DRIVERS, ids=str)
def test_the_drivers_default_is_one_transaction_in_a_slice(
    subject: Subject, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    client = start(subject)
    client.send(bulk_spec(subject, tcp, BATCH, 3, "dbapi")._replace(transaction="driver_default"))
    client.read(protocol.Ready)
    admin.execute("TRUNCATE pgperf.batch")
    client.slice(THREE)
    assert admin.execute("SELECT count(*), count(DISTINCT xmin::text) FROM pgperf.batch").fetchone() == (9, 1)


def state(admin: psycopg.Connection, pid: int) -> str:
    row = admin.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
    assert row
    return str(row[0])


LACKING = [
    pytest.param(subject, work, api, id=f"{subject}-{work.name}-{api}")
    for subject in LAYERS
    if "django" in subject.layer and subject.layer != "django_view"  # which asks for a page first
    for work in (COPYFROM, BATCH)
    for api in protocol.BULK_APIS
    if work.bulk and subject.mode not in layers.LAYERS[subject.layer].bulk_modes(work.bulk.kind, api)
]


@pytest.mark.parametrize(("subject", "work", "api"), LACKING)
def test_a_layer_without_bulk_operations_says_so(
    subject: Subject, work: WorkloadDefinition, api: str, start: Start, tcp: Route
) -> None:
    client = start(subject)
    client.send(bulk_spec(subject, tcp, work, 3, api))
    assert client.read(protocol.Error).message.startswith("bulk: ")


def test_libpq_has_no_batch_of_simple_statements(start: Start, tcp: Route) -> None:
    client: Driven = start(Subject("libpq", "simple", ""))
    client.send(bulk_spec(Subject("libpq", "simple", ""), tcp, BATCH, 3))
    assert "pipeline" in client.read(protocol.Error).message


@pytest.mark.parametrize("work", [COPYFROM, BATCH], ids=lambda work: work.name)
def test_a_connection_that_ends_in_the_middle_is_an_error(
    work: WorkloadDefinition, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    table, subject = insert_of(work).table, Subject("libpq", "prepared", "")
    admin.execute(
        f"ALTER TABLE {table} ADD CONSTRAINT gone CHECK (pg_terminate_backend(pg_backend_pid()) AND a > 0)"  # type: ignore[arg-type]
    )
    try:
        client = start(subject)
        client.send(bulk_spec(subject, tcp, work, 500))
        assert client.read(protocol.Error).sqlstate in ("57P01", "")
        assert client.wait() == protocol.EXIT_FAILED
        assert stored(admin, work) == 0
    finally:
        admin.execute(f"ALTER TABLE {table} DROP CONSTRAINT gone")  # type: ignore[arg-type]
