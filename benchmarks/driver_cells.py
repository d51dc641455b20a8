"""The cells of the drivers' suites, a query through a driver: each connected as in a run, with the
tables that it needs.
"""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields
from itertools import product
from typing import NamedTuple

import numpy as np
import psycopg

from benchmarks import json_lines
from benchmarks.resident import departing, routes_of
from example.stack.stack import Stack
from pgperf.analysis.paired_statistics import Estimate, log_ratios, signed_rank_interval
from pgperf.catalog import FIXTURES, CatalogBenchmark
from pgperf.catalog.driver_queries import SEVEN
from pgperf.core import protocol
from pgperf.core.layers import LAYERS
from pgperf.core.records import Definition
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.plan import make_plan
from pgperf.runner.server.written_tables import WrittenTables
from pgperf.runner.slice_window import SliceWindow
from pgperf.runner.timed_slice import armed

WORKS = {work.name: work for work in SEVEN}
#: Each driver in the mode in which its users run it: asyncpg prepares, psycopg soon does, psycopg2
#: cannot.
MODES = {"psycopg2": "simple", "psycopg": "prepared", "psycopg_async": "prepared", "asyncpg": "prepared"}
CONFIDENCE = 0.95
_NOTHING = nullcontext()


class Cell(NamedTuple):
    """A query and the driver it goes through."""

    query: str
    driver: str


@dataclass(frozen=True)
class Connected:
    """The client of a cell, and the table that it fills, if any."""

    definition: Definition
    group: ClientGroup
    written: WrittenTables

    def measure(self, request: protocol.Slice) -> tuple[SliceWindow, int]:
        """One slice into an empty table, which is empty again afterwards: its window, and the CPU time
        of the client from the end of the lead-in on, ns.
        """
        request = armed(self.group, request)
        recorded = self.group.run(request)
        ops = sum(reply.lead_in_ops + reply.ops for reply in recorded.replies)
        self.written.settle(self.definition.workloads[0].name, ops * (self.rows_per_op or 0))
        cpu_ns = sum(reply.user_ns + reply.sys_ns for reply in recorded.replies)
        return SliceWindow.of(request, *recorded), cpu_ns

    @property
    def rows_per_op(self) -> int | None:
        return self.group.ready[0].rows_per_op


def cells(queries: list[str] | None, drivers: list[str] | None) -> list[Cell]:
    """The chosen cells; None: all."""
    return [Cell(*each) for each in product(queries or WORKS, drivers or MODES)]


def units(options: Namespace, *conditions: str) -> list[json_lines.Unit]:
    """The chosen cells, each under the conditions that these options are."""
    shared = json_lines.conditions(options, *conditions)
    return [{**cell._asdict(), **shared} for cell in cells(options.query, options.driver)]


def cell_of(unit: json_lines.Unit) -> Cell:
    return Cell(unit["query"], unit["driver"])


def layer_of(driver: str, loop: str) -> str:
    """The driver's layer on that event loop, asyncio or uvloop; the driver without one is a layer."""
    on_loop = f"{driver}_{loop}"
    return on_loop if on_loop in LAYERS else driver


def definition_of(benchmark: CatalogBenchmark, cell: Cell, loop: str = "asyncio") -> Definition:
    """The benchmark's conditions for that cell alone, on that event loop."""
    shared = {each.name for each in fields(Definition)} & {each.name for each in fields(benchmark)}
    own = {
        "benchmark": benchmark.name,
        "workloads": (WORKS[cell.query],),
        "layers": (layer_of(cell.driver, loop),),
        "modes": (MODES[cell.driver],),
    }
    return Definition(**{**{name: getattr(benchmark, name) for name in shared}, **own})


def create_tables(stack: Stack) -> None:
    """The tables of all queries."""
    with psycopg.connect(routes_dsn(stack), autocommit=True) as connection:
        for name in filter(None, (work.fixture for work in SEVEN)):
            for statement in FIXTURES[name].create:
                connection.execute(statement.encode())


def routes_dsn(stack: Stack) -> str:
    """The address of the local socket, for libpq."""
    route = routes_of(stack)["socket"]
    return psycopg.conninfo.make_conninfo(
        host=route.host, port=route.port, dbname=route.dbname, user=route.user, password=route.password
    )


@contextmanager
def connected(
    stack: Stack, definition: Definition, name: str, earlier: AbstractContextManager[object] = _NOTHING
) -> Iterator[Connected]:
    """The cell's client, placed and warmed up. `earlier` is entered before the client starts, when its
    tables are there.
    """
    written = WrittenTables.of(make_plan(definition), routes_of(stack), name)
    with written, earlier, departing(stack, definition, name) as ((group,), _):
        written.empty()
        yield Connected(definition, group, written)


def ratio(ours: list[float], theirs: list[float]) -> Estimate:
    """Ours over theirs, from pairs of positive numbers."""
    return signed_rank_interval(log_ratios(np.array(ours), np.array(theirs)), CONFIDENCE).exp()


def interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "too few pairs"
    return f"{estimate.low:.3f} to {estimate.high:.3f}"
