"""Benchmarks that got slower in the last week, by the changes of their headline figures that were
found when runs ended.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from pgperf.analysis.change_points import least_change
from pgperf.models import ChangePoint, Run
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.runs.seen_changes import of_seen_runs

WITHIN = timedelta(days=7)
_LINE = ("benchmark_id", "database_id", "definition_hash")
_OF_RUN = (*_LINE, "benchmark_name", "database_name", "requested_at", "finished_at")
_OF_CHANGE = ("label", "below", "found_by", "before_us", "after_us", "layers")
#: A benchmark's runs of one definition on one database.
_Line = tuple[int | None, int | None, str]


@dataclass(frozen=True)
class Slower:
    """A headline figure that is higher than a week ago: its changes since then, the oldest first."""

    changes: tuple[ChangePoint, ...]

    @property
    def run(self) -> Run:
        """With which the first of the changes begins."""
        return self.changes[0].run

    @property
    def before_us(self) -> float:
        return self.changes[0].before_us

    @property
    def after_us(self) -> float:
        return self.changes[-1].after_us

    @property
    def ratio(self) -> float:
        return self.after_us / self.before_us


def slower(viewer: Viewer) -> list[Slower]:
    """The most slowed first, in one query, or three where a figure changed in the last week. A change
    that other runs made good since is none.
    """
    since = timezone.now() - WITHIN
    lines = _changed(viewer, since)
    if not lines:
        return []
    found = (Slower(tuple(each)) for each in _since(_seen(viewer, lines), since))
    return sorted((each for each in found if _counts(each)), key=lambda each: -each.ratio)


def _changed(viewer: Viewer, since: datetime) -> set[_Line]:
    runs = viewer.rows(Run).order_by().filter(status=Run.Status.DONE, intervention="", finished_at__gte=since)
    of_rows = runs.exclude(benchmark=None).exclude(database=None)
    return set(of_rows.filter(changes__layers__isnull=False).values_list(*_LINE))


def _seen(viewer: Viewer, lines: set[_Line]) -> list[list[ChangePoint]]:
    """The changes of each line's headline figure that the viewer may know, the oldest first."""
    by_column = zip(_LINE, map(set, zip(*lines, strict=True)), strict=True)
    runs = Run.objects.order_by().filter(
        status=Run.Status.DONE, **{f"{name}__in": has for name, has in by_column}
    )
    changes = ChangePoint.objects.filter(layers__isnull=False, run__in=runs.values("pk")).order_by(
        "run_id", "pk"
    )
    changes = changes.select_related("run").only(*_OF_CHANGE, *(f"run__{name}" for name in _OF_RUN))
    hidden: dict[_Line, list[int]] = {}
    for pk, *line in runs.exclude(pk__in=viewer.rows(Run).order_by().values("pk")).values_list("pk", *_LINE):
        hidden.setdefault((line[0], line[1], line[2]), []).append(pk)
    by_line: dict[_Line, list[ChangePoint]] = {line: [] for line in lines}
    for change in changes:
        if (line := _line(change.run)) in by_line:
            by_line[line].append(change)
    return [[*of_seen_runs(each, hidden.get(line, ()))] for line, each in by_line.items()]


def _line(run: Run) -> _Line:
    return run.benchmark_id, run.database_id, run.definition_hash


def _since(lines: Iterable[list[ChangePoint]], since: datetime) -> Iterable[list[ChangePoint]]:
    for changes in lines:
        late = [each for each in changes if each.run.finished_at and each.run.finished_at >= since]
        if late:
            yield late


def _counts(found: Slower) -> bool:
    return found.after_us - found.before_us >= least_change(found.before_us) > 0
