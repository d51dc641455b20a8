"""The headline figure of a benchmark over its runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from pgperf.analysis.change_points import find, least_change
from pgperf.analysis.headline import figure
from pgperf.models import Run, VariantResult
from pgperf.reports.dashboard.headlines import Headline
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.runs.change_text import since

#: Runs of one series, the latest ones.
MOST = 30
#: Runs of one series: those of the benchmark on the database whose definition is the same.
_SERIES = ("benchmark_id", "database_id", "definition_hash")


@dataclass(frozen=True)
class Series:
    """The headline figure in µs of each run, the oldest first.

    `changes`: the places in `us` at which a new level begins, `last_change` the last of them in words.
    """

    us: tuple[float, ...] = ()
    changes: tuple[int, ...] = ()
    last_change: str = ""


def series(viewer: Viewer, headlines: Iterable[Headline]) -> dict[int, Series]:
    """The series that each headline's run ends, by the primary key of the run, in two queries."""
    last = {_key(headline.run): headline for headline in headlines if headline.run.database_id is not None}
    runs = _runs(viewer, last)
    times = _times_us(runs, {label for headline in last.values() for label in headline.labels})
    points: dict[int, list[tuple[Run, float]]] = {headline.run.pk: [] for headline in last.values()}
    for run in runs:
        headline = last[_key(run)]
        us = figure([times.get((run.pk, label)) for label in headline.labels])
        if us is not None:
            points[headline.run.pk].append((run, us))
    return {run: _series(each) for run, each in points.items()}


def _series(points: Sequence[tuple[Run, float]]) -> Series:
    us = tuple(each for _run, each in points)
    found = find(us, least=least_change(us[-1])) if us else []
    last = [since(change.before, change.after, points[change.at][0]) for change in found[-1:]]
    return Series(us, tuple(change.at for change in found), "".join(last))


_Key = tuple[int | None, int | None, str]


def _key(run: Run) -> _Key:
    return run.benchmark_id, run.database_id, run.definition_hash


def _runs(viewer: Viewer, keys: Mapping[_Key, Headline]) -> list[Run]:
    """The latest runs of each series, the oldest first."""
    done = viewer.rows(Run).order_by().filter(status=Run.Status.DONE)
    done = done.filter(definition_hash__in={key[-1] for key in keys})
    ranked = done.annotate(
        place=Window(RowNumber(), partition_by=[F(name) for name in _SERIES], order_by=F("pk").desc())
    )
    found = ranked.filter(place__lte=MOST).only(*_SERIES, "requested_at", "finished_at")
    return sorted((run for run in found if _key(run) in keys), key=lambda run: run.pk)


def _times_us(runs: Iterable[Run], labels: Iterable[str]) -> dict[tuple[int, str], float | None]:
    rows = VariantResult.objects.order_by().filter(run__in=list(runs), label__in=list(labels))
    return {(run, label): us for run, label, us in rows.values_list("run_id", "label", "us_per_op")}
