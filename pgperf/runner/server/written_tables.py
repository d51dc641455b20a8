"""The tables that a run's workloads fill: counted and emptied between slices, never inside one."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, Self

from pgperf.core.answers import TEXT, TRUTH, WHOLE, ControlQuery
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import Plan, Route, most_direct
from pgperf.runner.client_process import while_waiting
from pgperf.runner.server import version
from pgperf.runner.server.control_connection import ControlConnection

#: A checkpoint writes all that a block's warm-up left.
_CHECKPOINT_S = 120.0
#: The checkpointer counts a checkpoint after it has answered whoever asked for it.
_COUNTED_S, _POLL_S = 5.0, 0.005
_MAY_CHECKPOINT = ControlQuery(
    "its roles",
    "SELECT rolsuper OR EXISTS (SELECT FROM pg_roles r WHERE r.rolname = 'pg_checkpoint'"
    " AND pg_has_role(r.oid, 'USAGE')) FROM pg_roles WHERE rolname = current_user",
    (TRUTH,),
)
_NO_CHECKPOINT = "none: the login may not make one (GRANT pg_checkpoint TO its role, from PostgreSQL 15 on)"
#: Checkpoints started since the server's start, and the end of the newest one.
_CHECKPOINTS = "SELECT {} , checkpoint_lsn::text FROM pg_stat_{}, pg_control_checkpoint()"
NO_TABLES: Mapping[str, str] = MappingProxyType({})


class WrittenTables:
    """The tables of the plan's writing workloads. Without any, every method does nothing.

    Use as a context manager; at its end the tables are empty. Enter it before the clients start, so
    that it ends after they have. Raises ClientFailed if a table does not hold the rows that its
    clients report.
    """

    def __init__(
        self, connect: Callable[[], ControlConnection] | None = None, tables: Mapping[str, str] = NO_TABLES
    ) -> None:
        self._connect, self._tables = connect, dict(tables)
        self._connection = connect() if connect else None
        self._checkpoint_query: ControlQuery | None = None
        self._may_checkpoint = False
        self._under_way = False  # has a checkpoint started that has not ended?
        self.facts: dict[str, Any] = {}  # for the run's environment

    @classmethod
    def of(cls, plan: Plan, routes: Mapping[str, Route], run_id: str) -> Self:
        sent = {variant.workload for variant in plan.variants}
        works = (work for work in plan.definition.workloads if work.name in sent)
        tables = {work.name: work.bulk.table for work in works if work.bulk}
        if not tables:
            return cls()
        route = most_direct(routes.values())
        return cls(partial(ControlConnection, route, f"pgperf-{run_id}-tables"), tables)

    def __enter__(self) -> Self:
        if self._connection:
            with ExitStack() as unless_known:
                self._look(unless_known.enter_context(self._connection))
                unless_known.pop_all()
        return self

    def _look(self, connection: ControlConnection) -> None:
        """What the login may do there."""
        self._checkpoint_query = _checkpoints(connection)
        (self._may_checkpoint,) = connection.one(_MAY_CHECKPOINT)
        self.facts = {
            "tables": sorted(set(self._tables.values())),
            "checkpoint": "before each block" if self._may_checkpoint else _NO_CHECKPOINT,
            "rounds_with_checkpoint": 0,
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if not self._connection:
            return
        try:
            with while_waiting(lambda: None):
                self.empty() if error is None else self._empty_anew()
        except ClientFailed:
            if error is None:
                raise
        finally:
            self._connection.__exit__(kind, error, tb)

    def empty(self) -> None:
        """Put all tables back as they were: empty."""
        if self._connection:
            self._empty(self._connection)

    def _empty_anew(self) -> None:
        """Over another connection: on the first one, a checkpoint that was not awaited may go on."""
        assert self._connect
        with self._connect() as connection:
            self._empty(connection)

    def _empty(self, connection: ControlConnection) -> None:
        connection.query(f"TRUNCATE {', '.join(sorted(set(self._tables.values())))}")

    def begin_block(self) -> None:
        """Empty tables and a checkpoint, so that each block begins with the same work to do."""
        if not self._connection:
            return
        self.empty()
        if self._may_checkpoint:
            before = self.checkpoints()
            self._connection.query("CHECKPOINT", _CHECKPOINT_S)
            self._await_count(before)
            self._under_way = False

    def _await_count(self, before: tuple[Any, ...] | None) -> None:
        """Wait until the block's own checkpoint is counted, or it would mark the first round."""
        deadline = time.monotonic() + _COUNTED_S
        while before and (now := self.checkpoints()) and now[0] == before[0] and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def settle(self, workload: str, rows: int) -> None:
        """After a slice that inserted so many rows: check that they are there, and empty the table."""
        if not self._connection or workload not in self._tables:
            return
        table = self._tables[workload]
        (found,) = self._connection.one(
            ControlQuery("the rows of a table", f"SELECT count(*) FROM {table}", (WHOLE,))
        )
        if found != rows:
            raise ClientFailed(
                f"{workload}: the clients inserted {rows:,} rows, and {table} holds {found:,}. Does another run or"
                " program use the table?"
            )
        self.empty()

    def checkpoints(self) -> tuple[Any, ...] | None:
        """A mark to pass to `overlapped`; None without writing workloads."""
        if not (self._connection and self._checkpoint_query):
            return None
        return self._connection.one(self._checkpoint_query)

    def overlapped(self, before: tuple[Any, ...] | None) -> bool:
        """Was a checkpoint under way at any time since the mark?"""
        if before is None:
            return False
        now, earlier = self.checkpoints(), self._under_way
        assert now
        started, ended = now[0] != before[0], now[1] != before[1]
        self._under_way = (started or earlier) and not ended
        found = bool(started or ended or earlier)
        self.facts["rounds_with_checkpoint"] += found
        return found


def _checkpoints(connection: ControlConnection) -> ControlQuery:
    """PostgreSQL 17 has a view of its own for checkpoints."""
    (number,) = connection.one(version.NUMBER)
    counters = (
        ("num_timed + num_requested", "checkpointer")
        if number >= 170000
        else ("checkpoints_timed + checkpoints_req", "bgwriter")
    )
    return ControlQuery("its checkpoints", _CHECKPOINTS.format(*counters), (WHOLE, TEXT))
