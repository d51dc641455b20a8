"""Runs that insert rows: counted in the database, put back after every slice, and on every way out."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from pgperf.catalog import FIXTURES
from pgperf.catalog.driver_queries import BATCH, COPYFROM, ONE_PLUS_ONE
from pgperf.core.answers import ControlQuery
from pgperf.core.exceptions import ClientFailed, RunCancelled
from pgperf.core.records import LeftOut, Route, SliceRecord, WorkloadDefinition
from pgperf.runner import rounds
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_process import while_waiting
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunResult, RunSettings, execute
from pgperf.runner.run_context import RunContext
from pgperf.runner.server import written_tables
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.written_tables import WrittenTables
from tests.runner.builders import definition
from tests.runner.forked_clients import PLAIN, of_no_site
from tests.runner.test_run import Watcher


@pytest.fixture(scope="module", autouse=True)
def nursery() -> Iterator[None]:
    """Clients in Python, and control connections, are forked."""
    with of_no_site(*PLAIN) as found, found.raising():
        yield


@pytest.fixture
def admin(routes: dict[str, Route]) -> Iterator[psycopg.Connection]:
    route = routes["tcp"]
    with psycopg.connect(
        host=route.host, port=route.port, dbname=route.dbname, user=route.user, password=route.password,
        autocommit=True,
    ) as connection:  # fmt: skip
        for name in ("copyfrom", "batch"):
            for statement in FIXTURES[name].create:
                connection.execute(statement)
        yield connection
        connection.execute("TRUNCATE pgperf.copyfrom, pgperf.batch")


def run(
    routes: dict[str, Route], c_client: Path, watcher: Watcher, *works: WorkloadDefinition, **changes: object
) -> RunResult:
    what = definition(
        workloads=works, layers=("libpq", "psycopg2", "psycopg", "asyncpg"), routes=("socket",),
        modes=("simple", "prepared"), **changes,
    )  # fmt: skip
    lacking = [
        LeftOut(layer="psycopg2", mode="prepared", reason=""),
        LeftOut(layer="asyncpg", mode="simple", reason=""),
    ]
    return execute(make_plan(what, lacking), routes, RunSettings(str(c_client.parent), "bulk"), watcher)


def stored(admin: psycopg.Connection) -> list[int]:
    tables = ("copyfrom", "batch")
    return [admin.execute(f"SELECT count(*) FROM pgperf.{table}").fetchone()[0] for table in tables]  # type: ignore


def test_every_slice_counts_its_rows_and_leaves_empty_tables(
    routes: dict[str, Route], c_client: Path, admin: psycopg.Connection
) -> None:
    watcher = Watcher()
    outcome = run(routes, c_client, watcher, COPYFROM, BATCH, ONE_PLUS_ONE, diagnostic_ms=50)
    of_work = {block.variant.workload: block for block in watcher.blocks}
    assert of_work["copyfrom"].rows_per_op == 10_000
    assert of_work["batch"].rows_per_op == 1_000
    for block in watcher.blocks:
        for record in block.slices:
            assert record.rows == record.ops * block.rows_per_op
    batches = {(b.variant.layer, b.variant.mode) for b in watcher.blocks if b.variant.workload == "batch"}
    assert batches == {
        ("libpq", "prepared"), ("psycopg2", "simple"), ("psycopg", "simple"), ("psycopg", "prepared"),
        ("asyncpg", "prepared"),
    }  # fmt: skip
    assert stored(admin) == [0, 0]
    assert outcome.environment["written"]["tables"] == ["pgperf.batch", "pgperf.copyfrom"]
    assert {"fsync", "synchronous_commit"} <= set(outcome.environment["server"])


class Unusable(ControlConnection):
    """Its first answer cannot be used."""

    def __init__(self) -> None:
        self.is_open = False

    def __enter__(self) -> Self:
        self.is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_open = False

    def one(self, query: ControlQuery) -> tuple[Any, ...]:
        assert self.is_open
        raise ClientFailed("what an answer")


def test_a_connection_whose_first_question_fails_is_closed() -> None:
    connection = Unusable()
    with pytest.raises(ClientFailed, match="what an answer"):
        WrittenTables(lambda: connection, {"copyfrom": "pgperf.copyfrom"}).__enter__()
    assert not connection.is_open


def test_a_run_that_is_cancelled_leaves_empty_tables(
    routes: dict[str, Route], c_client: Path, admin: psycopg.Connection
) -> None:
    with pytest.raises(RunCancelled):
        run(routes, c_client, Watcher(cancel_when=lambda: True), COPYFROM)
    assert stored(admin) == [0, 0]


#: Stops a COPY at the first row beyond 25,000, until the test lets it go on.
HOLD = """
CREATE SEQUENCE pgperf.held_rows;
CREATE FUNCTION pgperf.hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('pgperf.held_rows') > 25000 THEN PERFORM pg_advisory_xact_lock_shared(25000); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hold BEFORE INSERT ON pgperf.copyfrom FOR EACH ROW EXECUTE FUNCTION pgperf.hold();
"""
RELEASE = "DROP FUNCTION pgperf.hold CASCADE; DROP SEQUENCE pgperf.held_rows; SELECT pg_advisory_unlock_all()"
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@pytest.fixture
def held(admin: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """A COPY into the table stops half-way."""
    admin.execute(HOLD)
    admin.execute("SELECT pg_advisory_lock(25000)")
    yield admin
    admin.execute(RELEASE)


@pytest.mark.parametrize(
    ("layer", "mode"),
    [("libpq", "simple"), ("psycopg2", "simple"), ("psycopg", "simple"), ("asyncpg", "prepared")],
)
def test_a_run_that_is_cancelled_in_the_middle_of_a_copy_leaves_an_empty_table(
    routes: dict[str, Route], c_client: Path, held: psycopg.Connection, layer: str, mode: str
) -> None:
    """Two clients insert 10,000 rows with each COPY: one at least has ended when the next stops."""
    left: list[int] = []

    def cancel() -> None:
        if held.execute(WAITING).fetchone() != (0,):
            left.append(stored(held)[0])
            held.execute("SELECT pg_advisory_unlock(25000)")
            raise RunCancelled("cancelled on request")

    what = definition(workloads=(COPYFROM,), layers=(layer,), modes=(mode,), routes=("tcp",))
    with pytest.raises(RunCancelled), while_waiting(cancel):
        execute(make_plan(what), routes, RunSettings(str(c_client.parent), "middle"), Watcher())
    assert left[0] in (10_000, 20_000)
    assert stored(held) == [0, 0]
    assert held.execute("SELECT count(*) FROM pg_stat_progress_copy").fetchone() == (0,)


def test_a_wait_that_was_interrupted_does_not_hold_up_the_clean_up(
    routes: dict[str, Route], admin: psycopg.Connection
) -> None:
    """A lock stands for a checkpoint that takes long."""
    plan = make_plan(definition(workloads=(BATCH,), layers=("psycopg",), routes=("tcp",)))
    admin.execute("SELECT pg_advisory_lock(25001)")

    def cancel() -> None:
        if admin.execute(WAITING).fetchone() != (0,):
            raise RunCancelled("cancelled on request")

    admin.execute("INSERT INTO pgperf.batch (a) VALUES (1)")
    with (
        pytest.raises(RunCancelled),
        WrittenTables.of(plan, routes, "long") as written,
        while_waiting(cancel),
    ):
        written._connection.query("SELECT pg_advisory_lock(25001)")  # type: ignore[union-attr]
    assert stored(admin) == [0, 0]
    admin.execute("SELECT pg_advisory_unlock_all()")


def test_rows_of_others_in_the_table_end_the_run(routes: dict[str, Route], admin: psycopg.Connection) -> None:
    plan = make_plan(definition(workloads=(BATCH,), layers=("psycopg",), routes=("tcp",)))
    with WrittenTables.of(plan, routes, "others") as written:
        admin.execute("INSERT INTO pgperf.batch (a) VALUES (1)")
        with pytest.raises(ClientFailed, match=r"inserted 1,000 rows, and pgperf.batch holds 1"):
            written.settle("batch", 1000)
    assert stored(admin) == [0, 0]


def test_a_checkpoint_marks_the_round(routes: dict[str, Route], admin: psycopg.Connection) -> None:
    plan = make_plan(definition(workloads=(BATCH,), layers=("psycopg",), routes=("tcp",)))
    with WrittenTables.of(plan, routes, "marks") as written:
        written.begin_block()
        before = written.checkpoints()
        assert not written.overlapped(before)
        written.begin_block()
        assert written.overlapped(before) == written.facts["checkpoint"].startswith("before")


def test_the_slices_that_wrote_beside_a_checkpoint_are_marked(
    routes: dict[str, Route], c_client: Path, admin: psycopg.Connection, superuser_login: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One comes after the first slice of the first round."""
    settle, slices = rounds._settle, []

    def settle_beside_it(context: RunContext, group: ClientGroup, record: SliceRecord) -> None:
        settle(context, group, record)
        slices.append(group.variant.workload)
        if len(slices) == 1:
            with psycopg.connect(**superuser_login) as superuser:
                superuser.execute("CHECKPOINT")

    monkeypatch.setattr(rounds, "_settle", settle_beside_it)
    watcher = Watcher()
    outcome = run(routes, c_client, watcher, BATCH, ONE_PLUS_ONE, blocks=1, rounds=2)
    why = {
        work: {
            slice_.disturbed for b in watcher.blocks if b.variant.workload == work for slice_ in b.slices[:1]
        }
        for work in ("batch", "oneplusone")
    }
    assert {"batch", "oneplusone"} == set(slices)
    assert why["oneplusone"] == {""}
    if outcome.environment["written"]["checkpoint"].startswith("before"):
        assert why["batch"] == {"a checkpoint ran during this round"}
        assert outcome.environment["written"]["rounds_with_checkpoint"] >= 1


def test_a_block_waits_until_its_own_checkpoint_is_counted(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(definition(workloads=(BATCH,), layers=("psycopg",), routes=("tcp",)))
    with WrittenTables.of(plan, routes, "late") as written:
        if not written.facts["checkpoint"].startswith("before"):
            pytest.skip("before PostgreSQL 15 only a superuser makes checkpoints")
        asked: list[Any] = []
        counted = written.checkpoints

        def late() -> Any:
            """The count as it was before, three times more."""
            found = counted()
            asked.append((asked[0][0], found[1]) if 0 < len(asked) < 4 and found else found)
            return asked[-1]

        monkeypatch.setattr(written, "checkpoints", late)
        written.begin_block()
        counts = [each[0] for each in asked]
        assert len(counts) > 4
        assert counts[-1] > counts[0]


def test_a_login_that_may_make_no_checkpoint_measures_without_and_says_so(
    routes: dict[str, Route], admin: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = replace(written_tables._MAY_CHECKPOINT, sql="SELECT false")
    monkeypatch.setattr(written_tables, "_MAY_CHECKPOINT", refused)
    plan = make_plan(definition(workloads=(BATCH,), layers=("psycopg",), routes=("tcp",)))
    with WrittenTables.of(plan, routes, "none") as written:
        before = written.checkpoints()
        written.begin_block()
        assert written.checkpoints() == before
        assert "GRANT pg_checkpoint TO its role" in written.facts["checkpoint"]


def test_the_role_itself_tells_whether_it_may_make_checkpoints(admin: psycopg.Connection) -> None:
    """pg_monitor has every right to look, and no right to make one."""
    sql = written_tables._MAY_CHECKPOINT.sql
    own = admin.execute(sql).fetchone()
    admin.execute("SET ROLE pg_monitor")
    assert admin.execute(sql).fetchone() == (False,)
    admin.execute("RESET ROLE")
    assert own == (admin.info.server_version >= 150000,)


def test_a_plan_that_only_reads_asks_the_server_nothing() -> None:
    plan = make_plan(definition())
    with WrittenTables.of(plan, {}, "none") as written:
        written.begin_block()
        written.settle("spin", 3)
        assert not written.overlapped(written.checkpoints())
        assert written.facts == {}
