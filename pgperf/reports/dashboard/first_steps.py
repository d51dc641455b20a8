"""The steps from nothing to a first chart."""

from dataclasses import dataclass

from pgperf.models import Benchmark, Database, Target
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.reports.dashboard.workers import Workers
from pgperf.reports.run_json import worker_command

#: A benchmark that needs no more than a database with one direct route.
FIRST = "orm-overhead"


@dataclass(frozen=True)
class FirstSteps:
    """Which steps are done, and the benchmark to run first; None if the user sees none."""

    has_route: bool
    has_worker: bool
    benchmark: Benchmark | None
    may_add_database: bool
    worker_command: str


def first_steps(viewer: Viewer, workers: Workers) -> FirstSteps:
    """In two queries."""
    routes = Target.objects.filter(enabled=True, database__in=viewer.rows(Database).order_by())
    benchmarks = viewer.rows(Benchmark).order_by("name").only("name", "title")
    known = {benchmark.name: benchmark for benchmark in benchmarks}
    first = known.get(FIRST) or next(iter(known.values()), None)
    return FirstSteps(
        routes.exists(), bool(workers.workers), first, viewer.may_add(Database), worker_command()
    )
