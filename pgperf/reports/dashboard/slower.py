"""Benchmarks that got slower, by the changes of their headline figures that the runs of the last
week showed when they ended.

A change is found some runs after the one with which it begins, which may be weeks if runs are rare.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from pgperf.analysis.change_points import least_change
from pgperf.models import ChangePoint, Run
from pgperf.reports.dashboard.headline_changes import LINE, Line, headline_changes
from pgperf.reports.dashboard.viewer import Viewer

WITHIN = timedelta(days=7)


@dataclass(frozen=True)
class Slower:
    """A headline figure that is higher by the changes found since a week ago, the oldest first."""

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
    """The most slowed first, in one query, or three where the last week showed a change. One that
    other runs made good since is none.
    """
    recent = _found_since(viewer, timezone.now() - WITHIN)
    if not recent:
        return []
    of_lines = headline_changes(viewer, set(recent.values()))
    late = ([each for each in changes if each.pk in recent] for changes in of_lines.values())
    found = (Slower(tuple(changes)) for changes in late if changes)
    return sorted((each for each in found if _counts(each)), key=lambda each: -each.ratio)


def _found_since(viewer: Viewer, since: datetime) -> dict[int, Line]:
    """The changes of headline figures that runs showed since then, by number, each with its line."""
    runs = viewer.rows(Run).order_by().filter(status=Run.Status.DONE, intervention="", finished_at__gte=since)
    changes = ChangePoint.objects.order_by().filter(layers__isnull=False, found_by__in=runs.values("pk"))
    of_rows = changes.exclude(run__benchmark=None).exclude(run__database=None)
    columns = ("pk", *(f"run__{name}" for name in LINE))
    return {
        pk: (benchmark, database, definition)
        for pk, benchmark, database, definition in of_rows.values_list(*columns)
    }


def _counts(found: Slower) -> bool:
    return found.after_us - found.before_us >= least_change(found.before_us) > 0
