"""The dashboard: databases, benchmarks, runs under way, workers, and what needs attention.

It reads stored rows only, and never connects to a measured server. Each part is narrowed to what
the user's permissions and groups allow. The number of queries does not depend on how much is stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeVar

from django.db.models import Model, QuerySet

from pgperf.models import Benchmark, Database, Pause, Run, Worker
from pgperf.reports.dashboard import attention, benchmarks, databases, headlines, newest, series, workers
from pgperf.reports.dashboard.active import Active, active
from pgperf.reports.dashboard.attention import Concern
from pgperf.reports.dashboard.benchmarks import BenchmarkRow
from pgperf.reports.dashboard.databases import DatabaseCard
from pgperf.reports.dashboard.first_steps import FirstSteps, first_steps
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.runs import state

M = TypeVar("M", bound=Model)
#: Those that ran last are shown; the lists have the others.
MOST_DATABASES, MOST_BENCHMARKS = 6, 20


@dataclass(frozen=True)
class ShownWorker:
    """A worker or an agent that is online, and the layers that it cannot run."""

    worker: Worker
    lacking: str = ""
    is_agent: bool = False


@dataclass(frozen=True)
class Dashboard:
    """What one user sees. A part that the user may not see is empty, and `sees` has its model not.

    `first_steps`: until there is a result.
    """

    viewer: Viewer
    concerns: Sequence[Concern] = ()
    pause: Pause | None = None
    first_steps: FirstSteps | None = None
    databases: Sequence[DatabaseCard] = ()
    more_databases: int = 0
    benchmarks: Sequence[BenchmarkRow] = ()
    more_benchmarks: int = 0
    active: Active = field(default_factory=Active)
    workers: Sequence[ShownWorker] = ()

    @property
    def sees(self) -> dict[str, bool]:
        """The names of the models that the user sees."""
        return {
            model._meta.object_name or "": True for model in self.viewer.models if self.viewer.sees(model)
        }


def read(viewer: Viewer) -> Dashboard:
    """The dashboard of a user, in a constant number of queries."""
    last, online, under_way = newest.newest(viewer), workers.online(), active(viewer)
    on_database, of_benchmark = newest.done_by_database(last), newest.done_by_benchmark(last)
    all_databases = _latest_first(viewer.rows(Database), on_database)
    all_benchmarks = _latest_first(viewer.rows(Benchmark).only("name", "title", "database_id"), of_benchmark)
    shown_databases, shown_benchmarks = all_databases[:MOST_DATABASES], all_benchmarks[:MOST_BENCHMARKS]
    longest = newest.longest_by_benchmark(last)
    wanted = {each[row.pk] for row in shown_benchmarks for each in (of_benchmark, longest) if row.pk in each}
    heads = headlines.headlines(viewer, {*wanted, *(on_database.get(row.pk, 0) for row in shown_databases)})
    over_runs = series.series(viewer, [heads[run] for run in wanted if run in heads])
    is_new = viewer.sees(Run) and not any(row.status == Run.Status.DONE for row in last)
    on_page = [heads[run] for row in shown_databases if (run := on_database.get(row.pk, 0)) in heads]
    facts = attention.Facts(
        all_databases, [*on_database.values()], on_page, newest.broken(last), under_way.lost, online, is_new
    )
    return Dashboard(
        viewer=viewer,
        concerns=attention.concerns(viewer, facts),
        pause=state.pause(),
        first_steps=first_steps(viewer, online) if is_new else None,
        databases=databases.cards(shown_databases, on_database, heads),
        more_databases=len(all_databases) - len(shown_databases),
        benchmarks=benchmarks.rows(shown_benchmarks, of_benchmark, longest, heads, over_runs),
        more_benchmarks=len(all_benchmarks) - len(shown_benchmarks),
        active=under_way,
        workers=_shown(online) if viewer.sees(Worker) else (),
    )


def _latest_first(rows: QuerySet[M], done: Mapping[int, int]) -> list[M]:
    """Those with the newest done run first, the others by name."""
    by_name = sorted(rows, key=attrgetter("name"))
    return sorted(by_name, key=lambda row: -done.get(row.pk, 0))


def _shown(online: workers.Workers) -> list[ShownWorker]:
    able = (*online.workers, *online.load_hosts)
    found = [ShownWorker(worker, workers.lacking(worker)) for worker in able]
    return found + [ShownWorker(agent, is_agent=True) for agent in online.agents]
