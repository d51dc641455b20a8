"""Two to eight runs beside each other: each over a baseline, how far they scatter, and what differs
around them.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.definition_diff import SERVER, Difference, fact, server_settings, setting
from pgperf.analysis.outcome import DIFFERS
from pgperf.analysis.run_comparison import TIME, Change, Level
from pgperf.core.exceptions import NothingToCompare
from pgperf.core.records import Variant
from pgperf.models import Run
from pgperf.reports import number_format, step_changes
from pgperf.reports.chart import Chart, of_times
from pgperf.reports.compared_run import ComparedRun, all_stored
from pgperf.reports.comparisons import outcome_note, outcome_text
from pgperf.reports.fact_names import fact_name, fact_text
from pgperf.reports.labels import layer_title, variant_title
from pgperf.reports.run_comparison import MEASURES, RunComparison, compare, conditions_of, measure_title
from pgperf.reports.table import Cell, Column, Table, number, percent, ratio, text_column, time_column, words

LEAST, MOST = 2, 8
#: Of the runs by age: told apart by people with any colour vision.
_COLOURS = (
    {"light": "#0072b2", "dark": "#4fa8e8"},
    {"light": "#d55e00", "dark": "#ff8b3d"},
    {"light": "#00916a", "dark": "#2dbd92"},
    {"light": "#9c3587", "dark": "#d982c4"},
    {"light": "#7a6a00", "dark": "#d0bf45"},
    {"light": "#3b2f94", "dark": "#8d83ef"},
    {"light": "#8c8c8c", "dark": "#b5b5b5"},
    {"light": "#7a2e2e", "dark": "#b5533c"},
)


@dataclass(frozen=True, eq=False)
class SeveralRuns:
    """`sides` are all runs that can be compared, the oldest first, and `baseline` is one of them.

    `comparisons`: every other side over the baseline, in the same order. `refused`: the other runs
    that were asked for, each with the reason.
    """

    baseline: ComparedRun
    sides: Sequence[ComparedRun]
    comparisons: Sequence[RunComparison]
    refused: Sequence[tuple[Run, str]]

    def relative(self) -> "SeveralRuns":
        """Without the measure that has the machine's drift in it. Raises as that of a comparison."""
        return replace(self, comparisons=[found.relative() for found in self.comparisons])

    @property
    def runs(self) -> list[Run]:
        return [side.run for side in self.sides]

    @property
    def refusals(self) -> list[str]:
        """The runs that cannot be compared, each with the reason."""
        return [f"{run}: {reason}" for run, reason in self.refused]

    @property
    def listed(self) -> list[tuple[Run, bool]]:
        """Each run, and whether it is the baseline."""
        return [(side.run, side is self.baseline) for side in self.sides]

    @property
    def title(self) -> str:
        count = len(self.comparisons)
        over = ngettext("%(count)d run over %(run)s", "%(count)d runs over %(run)s", count)
        return over % {"count": count, "run": self.baseline.run}

    @property
    def headlines(self) -> list[tuple[Run, list[str]]]:
        """What differs from the baseline: for each run first what is nearest to a site."""
        return [
            (found.after, [*found.answers, *found.sentences(_("the baseline"))]) for found in self.comparisons
        ]

    @property
    def cautions(self) -> list[str]:
        """A sentence for each run that ended early, and for each that was much disturbed."""
        return list(dict.fromkeys(text for found in self.comparisons for text in found.cautions))

    @cached_property
    def differences(self) -> Table | None:
        """What else differs from the baseline: definition, environment and settings of the server, a
        column for each run. None where nothing does.
        """
        return _difference_table(self)

    @cached_property
    def ladders(self) -> list[tuple[str, Chart]]:
        """The times of the layers, a bar for each run; a chart for each route and load."""
        groups: dict[str, list[str]] = {}
        for name, variant in self._variants.items():
            groups.setdefault(" · ".join(variant.details), []).append(name)
        return [(title, self._overlay(names)) for title, names in groups.items()]

    @cached_property
    def times(self) -> Table:
        """The times of the layers as the charts of the ladders have them, a column for each run."""
        names = [self.name(side.run) for side in self.sides]
        columns = [time_column(name, follows=at > 0) for at, name in enumerate(names)]
        rows = [
            (words(variant_title(variant)), *(_time(levels.get(name)) for levels in self._levels))
            for name, variant in self._variants.items()
        ]
        return Table(
            _("Time per operation in each run"), (text_column(_("Variant")), *columns), rows, "times"
        )

    @cached_property
    def stacks(self) -> list[tuple[str, Chart]]:
        """What each layer adds, a bar for each run; a chart for each route and load."""
        if not self.has_steps:
            return []
        several = [(self.name(side.run), side.ladders) for side in self.sides]
        return step_changes.stacks(several, named=self._named)

    @property
    def has_steps(self) -> bool:
        return any(found.steps for found in self.comparisons)

    @cached_property
    def step_effects(self) -> Table | None:
        """How much more each layer adds in each run than in the baseline."""
        if not self.has_steps:
            return None
        others = [(self.name(found.after), found.steps) for found in self.comparisons]
        return step_changes.effects(
            self.name(self.baseline.run), self.baseline.steps, others, named=self._named
        )

    @property
    def step_note(self) -> str:
        """How to read the steps."""
        return step_changes.note()

    @cached_property
    def effects(self) -> list[Table]:
        """A ratio to the baseline for each variant and run, by measure."""
        return [table for measure in MEASURES if (table := self._effect_table(measure)).rows]

    @cached_property
    def scatter(self) -> list[Table]:
        """How far the times of the runs, and the steps of their layers, lie apart. None of fewer than
        three runs.
        """
        if len(self.sides) <= LEAST:
            return []
        steps = step_changes.scatter([side.steps for side in self.sides], named=self._named)
        return [_scatter_table(self._levels), *([steps] if self.has_steps and steps.rows else [])]

    @cached_property
    def one_sided(self) -> list[str]:
        """What a run or the baseline lacks, in sentences."""
        base = self.baseline.run
        pairs = [
            pair
            for found in self.comparisons
            for pair in (
                *((each, base, found.after) for each in found.only_before),
                *((each, found.after, base) for each in found.only_after),
            )
        ]
        told = [each.sentence(self.name(own), self.name(other)) for each, own, other in pairs]
        for found in self.comparisons:
            told += found.ground_sentences(self.name(base), self.name(found.after))
        return list(dict.fromkeys(told))

    @property
    def notes(self) -> list[str]:
        """How to read the tables."""
        ratio_note = _(
            "A ratio above 1 means that the run takes longer than the baseline. Times relative to a layer"
            " of the same run were paired within that run, so what slows the whole machine cancels; the"
            " time per operation includes it."
        )
        chance_note = _(
            "Each run is compared with the baseline alone, so the more runs there are, the more"
            " comparisons differ by chance."
        )
        return [ratio_note, outcome_note(), *([chance_note] if len(self.comparisons) > 1 else [])]

    @cached_property
    def _levels(self) -> list[dict[str, Level]]:
        """Those of each side by a name that the same variant has in all."""
        identified = (
            [replace(level, variant=self._identified(level.variant)) for level in side.levels]
            for side in self.sides
        )
        return [{level.variant.label: level for level in levels} for levels in identified]

    def _identified(self, variant: Variant) -> Variant:
        """With the label, title and details that the same variant has in all runs."""
        return variant.as_named(self._named)

    @cached_property
    def _named(self) -> bool:
        """Are variants found by the names of their workloads too?"""
        return any(level.variant.named for side in self.sides for level in side.levels)

    @cached_property
    def _variants(self) -> dict[str, Variant]:
        """Of all runs, by name."""
        return {name: level.variant for levels in self._levels for name, level in levels.items()}

    def _overlay(self, names: Sequence[str]) -> Chart:
        sides = zip(self.sides, self._levels, _COLOURS, strict=False)
        return of_times(
            {
                "kind": "groups",
                "label": _("Time per operation of each layer in each run. The table below has the numbers."),
                "axis": _("%s per operation"),
                "rows": [[layer_title(self._variants[name].layer)] for name in names],
                "series": [
                    {
                        "name": self.name(side.run),
                        "colour": colour,
                        "values": [levels[name].shown(TIME) if name in levels else None for name in names],
                    }
                    for side, levels, colour in sides
                ],
            }
        )

    def name(self, run: Run) -> str:
        """A short name; the baseline is called so."""
        return _("#%d (baseline)") % run.pk if run is self.baseline.run else f"#{run.pk}"

    def _effect_table(self, measure: str) -> Table:
        by_run = [
            {self._identified(change.variant).label: change for change in found.of(measure)}
            for found in self.comparisons
        ]
        shown = {
            label: self._identified(change.variant) for changes in by_run for label, change in changes.items()
        }
        columns = (text_column(_("Variant")), *(Column(self.name(found.after)) for found in self.comparisons))
        rows = [
            _effects(variant, [changes.get(label) for changes in by_run]) for label, variant in shown.items()
        ]
        changes = [change for each in by_run for change in each.values()]
        title = measure_title(changes, measure) if changes else ""
        return Table(
            _("%(title)s, over %(run)s") % {"title": title, "run": self.baseline.run},
            columns,
            rows,
            "effects",
        )


def compare_several(runs: Sequence[Run], baseline: Run | None = None) -> SeveralRuns:
    """The stored runs over the baseline, which is one of them, by default the oldest one.

    Raises NothingToCompare for another number of runs than two to eight, and where no run can be
    compared with the baseline.
    """
    sides = all_stored(sorted(runs, key=lambda run: run.pk))
    return several(sides, next((side for side in sides if side.run is baseline), None))


def several(sides: Sequence[ComparedRun], baseline: ComparedRun | None = None) -> SeveralRuns:
    """The same of sides in their order. The baseline is one of them, by default the first one, or
    another one.
    """
    base = baseline or next(iter(sides), None)
    others = [side for side in sides if side is not base]  # a file may have the number of another run
    if base is None or not 1 <= len(others) < MOST:
        raise NothingToCompare(f"runs: choose {LEAST} to {MOST} different runs")
    compared = [(side, *_over(base, side)) for side in others]
    if not any(found for _side, found, _reason in compared):
        raise NothingToCompare("; ".join(reason for _side, _found, reason in compared))
    kept = [side for side, found, _reason in compared if found]
    before = [side for side in kept if base in sides and sides.index(side) < sides.index(base)]
    return SeveralRuns(
        base,
        [*before, base, *(side for side in kept if side not in before)],
        [found for _side, found, _reason in compared if found],
        [(side.run, reason) for side, _found, reason in compared if reason],
    )


def _over(base: ComparedRun, side: ComparedRun) -> tuple[RunComparison | None, str]:
    """The comparison, or why there is none."""
    try:
        return compare(base, side), ""
    except NothingToCompare as error:
        return None, str(error)


def _time(level: Level | None) -> Cell:
    return number(level.shown(TIME) if level else None)


def _effects(variant: Variant, changes: Sequence[Change | None]) -> tuple[Cell, ...]:
    return words(variant_title(variant)), *map(_effect, changes)


def _effect(change: Change | None) -> Cell:
    if change is None:
        return Cell("–", (None,), "unknown")
    low, high = change.ratio.low, change.ratio.high
    text = f"{number_format.ratio(change.ratio.centre)} ({number_format.ratio_interval(low, high)})"
    shown = text if change.outcome == DIFFERS else f"{text}, {outcome_text(change.outcome)}"
    return Cell(shown, (change.ratio.centre,), change.outcome)


def _difference_table(found: SeveralRuns) -> Table | None:
    """One row per difference, with what each run itself has."""
    runs = [found.baseline.run, *(comparison.after for comparison in found.comparisons)]
    rows = [
        (words(fact_name(what)), *(words(fact_text(what, text)) for text in texts))
        for what, texts in _differing_facts(found.comparisons, runs)
    ]
    columns = (text_column(_("What")), *(text_column(found.name(run)) for run in runs))
    return (
        Table(_("Differences in definition and environment"), columns, rows, "environment") if rows else None
    )


def _differing_facts(
    comparisons: Sequence[RunComparison], runs: Sequence[Run]
) -> Iterator[tuple[str, list[str]]]:
    """Each fact in which a run differs from the baseline, and its value in every run."""
    for what in _names(each.definition for each in comparisons):
        yield what, [fact(conditions_of(run), what) for run in runs]
    for what in _names(each.environment for each in comparisons):
        yield what, [fact(run.environment, what) for run in runs]
    for name in _names(each.settings for each in comparisons):
        yield f"{SERVER}.{name}", [_setting(run, name) for run in runs]


def _names(several: Iterable[Sequence[Difference]]) -> list[str]:
    return list(dict.fromkeys(each.what for differences in several for each in differences))


def _setting(run: Run, name: str) -> str:
    known = setting(server_settings(run.environment), name)
    return _("unknown") if known is None else known or _("default")


def _scatter_table(several_levels: Sequence[dict[str, Level]]) -> Table:
    """Of the variants that all runs have."""
    columns = (
        text_column(_("Variant")),
        time_column(_("Fastest run")),
        time_column(_("Slowest run"), follows=True),
        Column(_("Slowest/fastest")),
        Column(_("Standard deviation between the runs")),
    )
    common = [name for name in several_levels[0] if all(name in levels for levels in several_levels)]
    rows = [
        _scatter_row(several_levels[0][name].variant, [levels[name].shown(TIME) for levels in several_levels])
        for name in common
    ]
    return Table(_("Scatter between the runs: time per operation"), columns, rows, "scatter")


def _scatter_row(variant: Variant, times: Sequence[float]) -> tuple[Cell, ...]:
    low, high = min(times), max(times)
    spread = statistics.stdev(times) / statistics.fmean(times)
    return words(variant_title(variant)), number(low), number(high), ratio(high / low), percent(spread)
