"""The changes over runs that a reader may know: a level is a median of many runs, and each of them
may be hidden.
"""

from collections.abc import Collection, Iterable, Set

from django.db.models import QuerySet

from pgperf.models import ChangePoint, Run
from pgperf.runs.step_series import Step, comparable

#: Columns of a run that nobody reads of many runs.
_LARGE = ("definition", "environment", "timings", "summary", "environment_changes")


def seen_changes(line: QuerySet[Run], visible: QuerySet[Run]) -> list[ChangePoint]:
    """The changes of comparable runs, the newest first, in three queries. `visible`: those of the
    runs that the reader may see. Changes are read where these runs are.
    """
    return _seen(line, _numbers(line) - _numbers(visible))


def _seen(line: QuerySet[Run], hidden: Set[int]) -> list[ChangePoint]:
    rows = ChangePoint.objects.using(line.db).filter(run__in=line.order_by().values("pk"))
    changes = rows.select_related("run").order_by("run_id", "pk").defer(*(f"run__{name}" for name in _LARGE))
    return sorted(of_seen_runs(changes, hidden), key=lambda change: -change.run_id)


def changes_up_to(run: Run, visible: QuerySet[Run]) -> tuple[list[ChangePoint], int]:
    """Those whose level begins with this run or an earlier one that is comparable, and how many these
    runs are: 0 where a comparable one is hidden, with which a change may be hidden; in three queries.
    """
    line, seen = comparable(Run.objects.all(), run), _numbers(comparable(visible, run))
    hidden = _numbers(line) - seen
    found = [change for change in _seen(line, hidden) if change.run_id <= run.pk]
    return found, 0 if hidden else sum(each <= run.pk for each in seen)


def _numbers(runs: QuerySet[Run]) -> set[int]:
    return set(runs.order_by().values_list("pk", flat=True))


def of_seen_runs(changes: Iterable[ChangePoint], hidden: Collection[int]) -> Iterable[ChangePoint]:
    """Those whose levels are of no hidden run: levels are those from the change before to the run that
    showed this one. `changes`: all of comparable runs, the oldest first.
    """
    begins: dict[Step, int] = {}
    for change in changes:
        step = Step(change.label, change.below)
        begin, begins[step] = begins.get(step, 0), change.run_id
        if not any(begin <= run <= change.found_by for run in hidden):
            yield change
