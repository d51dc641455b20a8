"""The history of a benchmark on a database: its steps over runs, with what changed on the way.

Its runs are those of one definition. The number of queries does not depend on their number.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Count, Max, Min, QuerySet

from pgperf.analysis.definition_diff import Difference
from pgperf.core.records import Variant
from pgperf.models import Benchmark, ChangePoint, Run, VariantResult
from pgperf.runs.seen_changes import seen_changes
from pgperf.runs.step_series import Point, Series, Step, series_of, steps_of

#: Runs that a chart and a file have, the latest ones, and rows of one page of a table.
MOST, PER_PAGE = 1_000, 50


class HistoryRun(NamedTuple):
    """What a history tells of a run; a row of the model takes twice as long to load."""

    pk: int
    benchmark_name: str
    database_name: str
    definition_hash: str
    quick: bool
    finished_at: datetime | None
    requested_at: datetime
    notes: str
    environment_changes: dict[str, Any] | None


@dataclass(frozen=True)
class Line:
    """The runs of one definition on one database: what can be chosen. `last` is the newest run;
    `test` is "" unless all of them test a verdict.
    """

    database: int
    database_name: str
    definition: str
    count: int
    last: int
    test: str = ""

    @property
    def short_definition(self) -> str:
        return self.definition[:8]


@dataclass(frozen=True)
class History:
    """`runs` are those of the chart, the oldest first, and `listed` those of them in the table;
    `earlier` counts the runs before `runs`. `steps` are those of the runs, `now` has them of the
    newest run, which may lack some, `series` those that were asked for, `changes` the newest first.
    """

    benchmark: Benchmark
    line: Line
    lines: Sequence[Line]
    runs: Sequence[HistoryRun]
    steps: Mapping[Step, Variant]
    now: Mapping[Step, Point]
    series: Mapping[Step, Series]
    changes: Sequence[ChangePoint]
    earlier: int = 0
    listed: Sequence[HistoryRun] = ()

    @property
    def earlier_listed(self) -> int:
        """How many runs come before those in the table."""
        return self.earlier + sum(run.pk < self.listed[0].pk for run in self.runs)

    @property
    def later(self) -> bool:
        """Are there newer runs than those in the table?"""
        return self.listed[-1].pk != self.line.last

    @cached_property
    def names(self) -> dict[str, Step]:
        """The steps by what asks for them."""
        return _by_name(self.steps)

    def name_of(self, step: Step) -> str:
        return next(name for name, each in self.names.items() if each == step)

    def has_variant(self, asked: str) -> bool:
        """Is there such a step? "" asks for none. No step has the label of a suite's headline figure,
        whose changes stand on every page.
        """
        return not asked or asked in self.names or any(each.label == asked for each in self.changes)

    @cached_property
    def numbers(self) -> frozenset[int]:
        """The primary keys of the shown runs."""
        return frozenset(run.pk for run in self.runs)

    def changes_of(self, step: Step) -> list[ChangePoint]:
        return [each for each in self.changes if (each.label, each.below) == step]

    @cached_property
    def environment_changes(self) -> dict[int, list[Difference]]:
        """By run. What a run that is not shown had is not said."""
        found = {run.pk: run.environment_changes or {} for run in self.runs}
        return {
            pk: [Difference(*each) for each in changed["differences"]]
            for pk, changed in found.items()
            if changed.get("differences") and changed.get("since") in self.numbers
        }


@dataclass(frozen=True)
class Asked:
    """What a reader asks for; None and "" choose for the reader. `before`: the table has runs before
    that number. `variant`: that whose series is read, or another name of History.names; all if it is
    None.
    """

    database: int | None = None
    definition: str = ""
    before: int | None = None
    variant: str | None = ""


def read(benchmark: Benchmark, visible: QuerySet[Run], asked: Asked) -> History | None:
    """None without a run that is done. `visible`: the runs that the reader may see.

    `variant` "" is the last step of the first route's ladder, None all of them.
    """
    done = visible.filter(benchmark=benchmark, status=Run.Status.DONE)
    lines = _lines(done)
    line = _chosen(lines, asked)
    if line is None:
        return None
    comparable = {"database": line.database, "definition_hash": line.definition}
    same = done.filter(**comparable)
    every = Run.objects.filter(benchmark=benchmark, status=Run.Status.DONE, **comparable)
    runs = _runs(same, asked.before)
    if not runs:  # deleted meanwhile
        return None
    numbers = [run.pk for run in runs]
    steps = _steps(line.last, numbers)
    return History(
        benchmark,
        line,
        lines,
        runs,
        steps,
        now={step: series[line.last] for step, series in series_of([line.last], steps).items() if series},
        series=series_of(numbers, _asked_steps(steps, asked)),
        changes=seen_changes(every, same),
        earlier=same.filter(pk__lt=numbers[0]).count(),
        listed=_listed(runs, asked.before),
    )


def longest_other(run: Run, visible: QuerySet[Run]) -> Line | None:
    """The line of the run's benchmark with the most runs, two at least, of several the latest; but for
    tests of a verdict. None if the run's own has as many. In one query.
    """
    if run.benchmark_id is None:
        return None
    lines = _lines(visible.filter(benchmark=run.benchmark_id, status=Run.Status.DONE))
    own = run.database_id, run.definition_hash
    found = ((line.count, (line.database, line.definition) == own, line) for line in lines if not line.test)
    count, is_own, line = max(found, key=lambda each: each[:2], default=(0, False, None))
    return line if count > 1 and not is_own else None


def _runs(same: QuerySet[Run], before: int | None) -> list[HistoryRun]:
    """Those of the chart: the latest ones; where the table has older ones, those up to them."""
    latest = _latest(same)
    if not latest or before is None or before > latest[0].pk:
        return latest
    return _latest(same.filter(pk__lt=before)) or latest


def _latest(runs: QuerySet[Run]) -> list[HistoryRun]:
    rows = runs.order_by("-pk").values_list(*HistoryRun._fields)[:MOST]
    return [HistoryRun(*row) for row in reversed(rows)]


def _listed(runs: Sequence[HistoryRun], before: int | None) -> Sequence[HistoryRun]:
    """The latest ones that the reader asks for; where there are none before a number, the latest."""
    asked = [run for run in runs if before is None or run.pk < before]
    return (asked or runs)[-PER_PAGE:]


def _lines(done: QuerySet[Run]) -> list[Line]:
    """The newest first, those of tests of a verdict last."""
    by = ("database_id", "database__name", "definition_hash")
    counts = Count("pk"), Max("pk"), Min("intervention")
    found = done.exclude(database=None).order_by().values_list(*by).annotate(*counts)
    return sorted((Line(*row) for row in found), key=lambda line: (bool(line.test), -line.last))


def _chosen(lines: Iterable[Line], asked: Asked) -> Line | None:
    fitting = (
        line
        for line in lines
        if asked.database in (None, line.database) and line.definition.startswith(asked.definition)
    )
    return next(fitting, None)


def _steps(last: int, numbers: Sequence[int]) -> dict[Step, Variant]:
    """Those of the shown run with the most variants and those of the newest run: either may lack a
    layer or a route, whose series would go with it, for a time or for good.
    """
    newest, fullest = steps_of(last), _fullest(numbers)
    if fullest is None or fullest == last:
        return newest
    found = steps_of(fullest)
    both = newest | found
    return {step: both[step] for step in _merged(found, newest)}


def _merged(fuller: Iterable[Step], newest: Iterable[Step]) -> list[Step]:
    """In the order of the ladder: a step that only the newest run has comes after that of the same
    variant, or after what it has before it in that run.
    """
    order, at = [*fuller], -1
    for step in newest:
        if step in order:
            at = order.index(step)
            continue
        same = [place for place, each in enumerate(order) if each.variant == step.variant]
        at = (same[-1] if same else at) + 1
        order.insert(at, step)
    return order


def _fullest(numbers: Sequence[int]) -> int | None:
    """The run with the most variants, of several the latest; in one query that reads an index only.

    So it counts controls too: runs of one definition have as many.
    """
    counts = VariantResult.objects.order_by().filter(run__in=numbers).values("run_id")
    most = counts.annotate(variants=Count("run_id")).order_by("-variants", "-run_id")
    found: int | None = most.values_list("run_id", flat=True).first()
    return found


def _asked_steps(steps: Mapping[Step, Variant], asked: Asked) -> list[Step]:
    if asked.variant is None:
        return [*steps]
    named = _by_name(steps).get(asked.variant)
    return [named] if named else first_shown(steps)  # the page says so


def _by_name(steps: Iterable[Step]) -> dict[str, Step]:
    """The name is the variant's label; a second step of the variant has the layer below in it."""
    found: dict[str, Step] = {}
    for step in steps:
        second = f"{step.variant} over {step.below or 'nothing'}"
        found[second if step.variant in found else step.variant] = step
    return found


def first_shown(steps: Mapping[Step, Variant]) -> list[Step]:
    """That of the last variant over the first route: of the layer nearest to the user."""
    routes = [variant.route for variant in steps.values()]
    last = [step.variant for step, variant in steps.items() if variant.route == routes[0]][-1:]
    return [step for step in steps if step.variant in last][:1]
