"""benchmarks.driver_loop and its cells: conditions, the work of the bare loop, and the table."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from benchmarks import bare_driver_loop, driver_cells, driver_loop
from benchmarks.driver_cells import MODES, WORKS, Cell
from benchmarks.driver_loop import Taken
from pgperf.catalog import CatalogBenchmark
from pgperf.catalog.driver_suite import DRIVER_SUITE, DRIVER_SUITE_PUBLISHED
from pgperf.core import layers
from pgperf.core.records import Route
from pgperf.runner.plan import make_plan

ROUTE = Route("socket", "/run/pg", 5433, "site", "user", "secret")
ALL = [pytest.param(cell, id=f"{cell.query}-{cell.driver}") for cell in driver_cells.cells(None, None)]


def test_cells_are_every_query_through_every_driver_unless_some_are_chosen() -> None:
    assert len(driver_cells.cells(None, None)) == 28
    assert driver_cells.cells(["arrays"], ["asyncpg"]) == [Cell("arrays", "asyncpg")]


def test_each_driver_has_the_mode() -> None:
    assert all(mode in layers.LAYERS[driver].modes for driver, mode in MODES.items())


@pytest.mark.parametrize("cell", ALL)
@pytest.mark.parametrize("benchmark", [DRIVER_SUITE, DRIVER_SUITE_PUBLISHED], ids=lambda each: each.name)
def test_a_cell_has_the_conditions_of_its_benchmark(cell: Cell, benchmark: CatalogBenchmark) -> None:
    definition = driver_cells.definition_of(benchmark, cell)
    variants = [variant for variant in make_plan(definition).variants if not variant.control]
    assert [(each.layer, each.workload, each.mode) for each in variants] == [
        (cell.driver, cell.query, MODES[cell.driver])
    ]
    for name in ("workers", "row_type", "transaction", "bulk_api", "placement", "idle"):
        assert getattr(definition, name) == getattr(benchmark, name)


@pytest.mark.parametrize("cell", ALL)
def test_the_bare_loop_has_a_loop_and_the_work_of_every_cell(cell: Cell) -> None:
    work, query = driver_loop.work_of(cell, ROUTE), WORKS[cell.query]
    assert (work.driver, work.kind) in bare_driver_loop.LOOPS
    if query.bulk:
        assert work.records == [query.bulk.row] * query.bulk.rows
    else:
        assert tuple(work.args) == query.args
    assert cell.driver != "asyncpg" or "%s" not in work.sql
    assert cell.driver == "asyncpg" or "$1" not in work.sql
    assert work.login["database" if cell.driver == "asyncpg" else "dbname"] == "site"


@pytest.mark.parametrize(("factor", "holds"), [(0.9, True), (1.0, True), (1.019, True), (1.03, False)])
def test_the_bar_is_two_per_cent(factor: float, holds: bool) -> None:
    bare = [[Taken(us, us / 2), Taken(us + 3, us / 2)] for us in (100.0, 110.0, 90.0, 105.0, 95.0, 101.0)]
    ours = [[Taken(factor * us, 1.5 * cpu_us) for us, cpu_us in own] for own in bare]
    estimate = driver_loop.time_ratio(ours, bare)
    assert estimate.centre == pytest.approx(factor)
    assert driver_loop.holds(estimate) is holds
    line = driver_loop.row(Cell("arrays", "asyncpg"), ours, bare)
    assert line.startswith("arrays           asyncpg")
    assert line.endswith("outside") is not holds
    assert f"{factor:.3f} to {factor:.3f}" in line
    assert "1.500 to 1.500" in line


class Bare:
    """A bare loop that must run once while it is placed."""

    entered = 0

    def __enter__(self) -> None:
        self.entered += 1

    def __exit__(self, *_: object) -> None:
        self.entered -= 1

    def place_beside(self, client: object) -> None:
        assert self.entered == 1


@pytest.mark.parametrize("chance", [0.0, 0.9])
def test_each_pair_of_processes_is_new_and_has_its_own_slices(
    chance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    loop = Bare()

    @contextmanager
    def connected(stack: object, definition: object, name: str, earlier: Any) -> Iterator[None]:
        names.append(name)
        with earlier:
            assert loop.entered == (chance < 0.5)  # when the client starts
            yield None

    monkeypatch.setattr(driver_loop, "connected", connected)
    monkeypatch.setattr(driver_loop, "routes_of", lambda stack: {"socket": ROUTE})
    monkeypatch.setattr(driver_loop, "BareLoop", lambda work: loop)
    monkeypatch.setattr(driver_loop.random, "random", lambda: chance)
    monkeypatch.setattr(driver_loop, "_operations", lambda *words: 10)
    monkeypatch.setattr(driver_loop, "_of_client", lambda client, count: Taken(len(names), 1.0))
    monkeypatch.setattr(driver_loop, "_of_bare", lambda client, bare, count: Taken(-len(names), 1.0))
    options = Namespace(processes=3, pairs=2, slice_ms=80)
    ours, bare = driver_loop._measured(None, Cell("arrays", "asyncpg"), options)
    assert len(set(names)) == 3
    assert [[each.us for each in own] for own in ours] == [[1, 1], [2, 2], [3, 3]]
    assert [[each.us for each in own] for own in bare] == [[-1, -1], [-2, -2], [-3, -3]]


def test_too_few_pairs_give_no_interval() -> None:
    estimate = driver_cells.ratio([1.0, 1.0], [1.0, 1.0])
    assert driver_cells.interval(estimate) == "too few pairs"
    assert estimate.centre == 1.0
