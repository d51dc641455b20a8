"""The headline figure of a benchmark over its runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from pgperf.analysis.change_points import find, least_change
from pgperf.models import Run, VariantResult
from pgperf.reports.dashboard.headlines import Headline, figure
from pgperf.reports.dashboard.viewer import Viewer

#: Runs of one series, the latest ones.
MOST = 30
#: Runs of one series: those of the benchmark on the database whose definition is the same.
_SERIES = ("benchmark_id", "database_id", "definition_hash")


@dataclass(frozen=True)
class Series:
    """The headline figure in µs of each run, the oldest first.

    `changes`: the places in `us` at which a new level begins.
    """

    us: tuple[float, ...] = ()
    changes: tuple[int, ...] = ()


def series(viewer: Viewer, headlines: Iterable[Headline]) -> dict[int, Series]:
    """The series that each headline's run ends, by the primary key of the run, in two queries."""
    last = {_key(headline): headline for headline in headlines if headline.run.database_id is not None}
    runs = _runs(viewer, last)
    times = _times_us(runs, {label for headline in last.values() for label in headline.labels})
    points: dict[int, list[float]] = {headline.run.pk: [] for headline in last.values()}
    for run, key in sorted(runs.items()):
        headline = last[key]
        us = figure([times.get((run, label)) for label in headline.labels])
        if us is not None:
            points[headline.run.pk].append(us)
    return {run: Series(tuple(us), _changes(us)) for run, us in points.items()}


def _changes(us: Sequence[float]) -> tuple[int, ...]:
    return tuple(change.at for change in find(us, least=least_change(us[-1]))) if us else ()


_Key = tuple[int | None, int | None, str]


def _key(headline: Headline) -> _Key:
    run = headline.run
    return run.benchmark_id, run.database_id, run.definition_hash


def _runs(viewer: Viewer, keys: Mapping[_Key, Headline]) -> dict[int, _Key]:
    """The latest runs of each series, each with its series."""
    done = viewer.rows(Run).order_by().filter(status=Run.Status.DONE)
    done = done.filter(definition_hash__in={key[-1] for key in keys})
    ranked = done.annotate(
        place=Window(RowNumber(), partition_by=[F(name) for name in _SERIES], order_by=F("pk").desc())
    )
    found = ranked.filter(place__lte=MOST).values_list("pk", *_SERIES)
    return {pk: tuple(key) for pk, *key in found if tuple(key) in keys}


def _times_us(runs: Iterable[int], labels: Iterable[str]) -> dict[tuple[int, str], float | None]:
    rows = VariantResult.objects.order_by().filter(run__in=list(runs), label__in=list(labels))
    return {(run, label): us for run, label, us in rows.values_list("run_id", "label", "us_per_op")}
