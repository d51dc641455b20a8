"""The newest runs of each benchmark on each database."""

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import Max

from pgperf.models import Run
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.runs import state

Status = Run.Status


@dataclass(frozen=True)
class Newest:
    """The newest run of a benchmark on a database that has a status; by primary keys. `intervention`
    is "" unless the run tests a verdict.
    """

    benchmark: int | None
    database: int | None
    status: str
    intervention: str
    run: int


def newest(viewer: Viewer) -> list[Newest]:
    """In one query."""
    by = ("benchmark_id", "database_id", "status", "intervention")
    found = viewer.rows(Run).order_by().values_list(*by).annotate(last=Max("pk"))
    return [Newest(*row) for row in found]


def done_by_benchmark(rows: list[Newest]) -> dict[int, int]:
    """The newest done run of each benchmark, but for those that test a verdict."""
    return _newest([row for row in rows if not row.intervention], lambda row: row.benchmark)


def done_by_database(rows: list[Newest]) -> dict[int, int]:
    """The newest done run on each database."""
    return _newest(rows, lambda row: row.database)


def broken(rows: list[Newest]) -> list[int]:
    """The runs that failed or were lost, and that no other ended run of the benchmark on the
    database has followed; the newest first.
    """
    last: dict[tuple[int, int], Newest] = {}
    for row in sorted((row for row in rows if row.status not in state.ACTIVE), key=lambda row: row.run):
        if row.benchmark is not None and row.database is not None:
            last[row.benchmark, row.database] = row
    found = (row.run for row in last.values() if row.status in (Status.FAILED, Status.LOST))
    return sorted(found, reverse=True)


def _newest(rows: list[Newest], key: Callable[[Newest], int | None]) -> dict[int, int]:
    done = [row for row in rows if row.status == Status.DONE]
    found: dict[int, int] = {}
    for row in sorted(done, key=lambda row: row.run):
        if (pk := key(row)) is not None:
            found[pk] = row.run
    return found
