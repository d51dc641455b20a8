"""The newest runs of each definition of each benchmark on each database."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db.models import Count, Max

from pgperf.models import Run
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.runs import state

Status = Run.Status


@dataclass(frozen=True)
class Newest:
    """The newest run of a benchmark's definition on a database that has a status, and how many have
    it; by primary keys. `intervention` is "" unless the run tests a verdict.
    """

    benchmark: int | None
    database: int | None
    status: str
    intervention: str
    definition: str
    run: int
    count: int


def newest(viewer: Viewer) -> list[Newest]:
    """In one query."""
    by = ("benchmark_id", "database_id", "status", "intervention", "definition_hash")
    found = viewer.rows(Run).order_by().values_list(*by).annotate(last=Max("pk"), count=Count("pk"))
    return [Newest(*row) for row in found]


def done_by_benchmark(rows: list[Newest]) -> dict[int, int]:
    """The newest done run of each benchmark, but for those that test a verdict."""
    return _last(_in_order(row for row in rows if not row.intervention), lambda row: row.benchmark)


def longest_by_benchmark(rows: list[Newest]) -> dict[int, int]:
    """The newest run of the definition and database with the most done runs, of several the latest;
    but for tests of a verdict.
    """
    able = [row for row in rows if row.database is not None and not row.intervention]
    return _last(sorted(able, key=lambda row: (row.count, row.run)), lambda row: row.benchmark)


def done_by_database(rows: list[Newest]) -> dict[int, int]:
    """The newest done run on each database."""
    return _last(_in_order(rows), lambda row: row.database)


def broken(rows: list[Newest]) -> list[int]:
    """The runs that failed or were lost, and that no other ended run of the benchmark on the
    database has followed; the newest first.
    """
    last: dict[tuple[int, int], Newest] = {}
    for row in _in_order(row for row in rows if row.status not in state.ACTIVE):
        if row.benchmark is not None and row.database is not None:
            last[row.benchmark, row.database] = row
    found = (row.run for row in last.values() if row.status in (Status.FAILED, Status.LOST))
    return sorted(found, reverse=True)


def _in_order(rows: Iterable[Newest]) -> list[Newest]:
    return sorted(rows, key=lambda row: row.run)


def _last(rows: Iterable[Newest], key: Callable[[Newest], int | None]) -> dict[int, int]:
    """By the key, the done run of the last row that has it."""
    found: dict[int, int] = {}
    for row in rows:
        if row.status == Status.DONE and (pk := key(row)) is not None:
            found[pk] = row.run
    return found
