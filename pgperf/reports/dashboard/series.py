"""The headline figure of a benchmark over its runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from pgperf.analysis.headline import figure
from pgperf.models import ChangePoint, Run, VariantResult
from pgperf.reports.dashboard.headline_changes import LINE, Line, headline_changes, line_of
from pgperf.reports.dashboard.headlines import Headline
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.runs.change_text import since

#: Runs of one series, the latest ones.
MOST = 30


@dataclass(frozen=True)
class Series:
    """The headline figure in µs of each run, the oldest first.

    `changes`: the places in `us` at which a new level begins, `last_change` the last of them in words.
    """

    us: tuple[float, ...] = ()
    changes: tuple[int, ...] = ()
    last_change: str = ""


def series(viewer: Viewer, headlines: Iterable[Headline]) -> dict[int, Series]:
    """The series that each headline's run ends, by the primary key of the run, in four queries."""
    last = {line_of(headline.run): headline for headline in headlines if headline.run.database_id is not None}
    runs = _runs(viewer, last)
    times = _times_us(runs, {label for headline in last.values() for label in headline.labels})
    points: dict[int, list[tuple[Run, float]]] = {headline.run.pk: [] for headline in last.values()}
    for run in runs:
        headline = last[line_of(run)]
        us = figure([times.get((run.pk, label)) for label in headline.labels])
        if us is not None:
            points[headline.run.pk].append((run, us))
    changes = headline_changes(viewer, set(last))
    return {head.run.pk: _series(points[head.run.pk], changes[line]) for line, head in last.items()}


def _series(points: Sequence[tuple[Run, float]], changes: Iterable[ChangePoint]) -> Series:
    places = {run.pk: at for at, (run, _us) in enumerate(points)}
    shown = [change for change in changes if change.run_id in places]
    last = [since(change.before_us, change.after_us, change.run) for change in shown[-1:]]
    us = tuple(each for _run, each in points)
    return Series(us, tuple(places[change.run_id] for change in shown), "".join(last))


def _runs(viewer: Viewer, keys: Mapping[Line, Headline]) -> list[Run]:
    """The latest runs of each series, the oldest first."""
    done = viewer.rows(Run).order_by().filter(status=Run.Status.DONE)
    done = done.filter(definition_hash__in={key[-1] for key in keys})
    ranked = done.annotate(
        place=Window(RowNumber(), partition_by=[F(name) for name in LINE], order_by=F("pk").desc())
    )
    found = ranked.filter(place__lte=MOST).only(*LINE, "requested_at", "finished_at")
    return sorted((run for run in found if line_of(run) in keys), key=lambda run: run.pk)


def _times_us(runs: Iterable[Run], labels: Iterable[str]) -> dict[tuple[int, str], float | None]:
    rows = VariantResult.objects.order_by().filter(run__in=list(runs), label__in=list(labels))
    return {(run, label): us for run, label, us in rows.values_list("run_id", "label", "us_per_op")}
