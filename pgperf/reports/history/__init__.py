"""The history of a benchmark on a database: its steps over runs, with what changed on the way.

Its runs are those of one definition. The number of queries does not depend on their number.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from django.db.models import Count, Max, Min, QuerySet

from pgperf.analysis.definition_diff import Difference
from pgperf.core.records import Variant
from pgperf.models import Benchmark, ChangePoint, Run
from pgperf.reports.disturbed import variants_in_doubt
from pgperf.runs.seen_changes import seen_changes
from pgperf.runs.step_series import Point, Series, Step, series_of, steps_of

#: Runs that a page shows, and those that a file has: the latest ones.
MOST, MOST_IN_FILE = 200, 1_000
_OF_RUN = ("benchmark_id", "benchmark_name", "database_id", "database_name", "definition_hash", "quick",
           "finished_at", "requested_at", "notes", "environment_changes", "status")  # fmt: skip


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
    """`runs` are the shown ones, the oldest first; `earlier` counts those before them. `now` are the
    steps of the newest run, `series` those that were asked for, `changes` the newest first.
    `disturbed`: the run and the label of each variant of the series that was much disturbed.
    """

    benchmark: Benchmark
    line: Line
    lines: Sequence[Line]
    runs: Sequence[Run]
    steps: Mapping[Step, Variant]
    now: Mapping[Step, Point]
    series: Mapping[Step, Series]
    changes: Sequence[ChangePoint]
    disturbed: frozenset[tuple[int, str]] = frozenset()
    earlier: int = 0
    later: bool = False

    @cached_property
    def numbers(self) -> frozenset[int]:
        """The primary keys of the shown runs."""
        return frozenset(run.pk for run in self.runs)

    def changes_of(self, step: Step) -> list[ChangePoint]:
        return [each for each in self.changes if (each.label, each.below) == step]

    def is_disturbed(self, run: int, step: Step) -> bool:
        """Was one of the two variants of the step much disturbed in this run?"""
        return any((run, label) in self.disturbed for label in step)

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
    """What a reader asks for; None and "" choose for the reader. `before`: runs before that number.
    `steps`: those whose series are read, all if it is None.
    """

    database: int | None = None
    definition: str = ""
    before: int | None = None
    variant: str | None = ""
    most: int = MOST


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
    shown = same.filter(pk__lt=asked.before) if asked.before else same
    runs = sorted(shown.order_by("-pk").only(*_OF_RUN)[: asked.most], key=lambda run: run.pk)
    steps = steps_of(line.last)
    numbers, shown_steps = [run.pk for run in runs], _asked_steps(steps, asked)
    return History(
        benchmark,
        line,
        lines,
        runs,
        steps,
        now={step: series[line.last] for step, series in series_of([line.last], steps).items() if series},
        series=series_of(numbers, shown_steps),
        changes=seen_changes(every, same),
        disturbed=variants_in_doubt(numbers, chain.from_iterable(shown_steps)),
        earlier=shown.count() - len(runs),
        later=bool(asked.before) and bool(runs) and runs[-1].pk != line.last,
    )


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


def _asked_steps(steps: Mapping[Step, Variant], asked: Asked) -> list[Step]:
    if asked.variant is None:
        return [*steps]
    named = [step for step in steps if step.variant == asked.variant]
    return named or first_shown(steps)


def first_shown(steps: Mapping[Step, Variant]) -> list[Step]:
    """The last step over the first route: that of the layer nearest to the user."""
    routes = [variant.route for variant in steps.values()]
    return [step for step, variant in steps.items() if variant.route == routes[0]][-1:] if routes else []
