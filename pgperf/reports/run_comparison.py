"""Two runs side by side, from what each keeps of its blocks: JSON for the command, charts and
tables for the page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.definition_diff import (
    Difference,
    differences,
    environment_differences,
    server_settings,
    setting_differences,
    under_server,
)
from pgperf.analysis.headline import headline
from pgperf.analysis.outcome import DIFFERS, INCONCLUSIVE
from pgperf.analysis.run_comparison import OVER, TIME, Change, Identified, changes, identified
from pgperf.analysis.step_changes import OtherGround, StepChange, other_grounds
from pgperf.analysis.step_changes import step_changes as find_changes
from pgperf.core.exceptions import NothingToCompare
from pgperf.core.records import Variant, with_defaults
from pgperf.models import Run
from pgperf.reports import earlier_run, number_format, step_changes
from pgperf.reports.chart import Chart, whisker
from pgperf.reports.compared_run import ComparedRun, all_stored
from pgperf.reports.comparisons import outcome_note, outcome_text
from pgperf.reports.fact_names import difference_cells
from pgperf.reports.labels import colour, layer_title, variant_lines, variant_title
from pgperf.reports.lacking import Lacking, lacking
from pgperf.reports.run_json import TERMINAL
from pgperf.reports.table import (
    Cell,
    Column,
    Table,
    interval,
    interval_column,
    number,
    percent,
    ratio,
    ratio_interval,
    signed,
    text_column,
    time_column,
    words,
)
from pgperf.reports.verdicts import nearest_to_a_site
from pgperf.runs import state

#: Routes whose times come first on a page.
_MOST_ANSWERS = 6


@dataclass(frozen=True)
class RunComparison:
    """The second run over the first."""

    before: Run
    after: Run
    changes: Sequence[Change]
    definition: Sequence[Difference]
    environment: Sequence[Difference]
    settings: Sequence[Difference]
    only_before: Sequence[Lacking]
    only_after: Sequence[Lacking]
    disturbances: Sequence[str] = ()  # a sentence for each run that was much disturbed
    of_pages: bool = True  # are the times those of the runs’ pages? Older versions stored none
    steps: Sequence[StepChange] = ()  # what each layer adds to the one below it
    grounds: Sequence[OtherGround] = ()  # layers that stand on another one in each run
    other_bases: Sequence[Variant] = ()  # those whose times are not relative to the same layer in both
    is_relative: bool = False  # are only times relative to a layer compared?

    @property
    def same_definition(self) -> bool:
        return self.before.definition_hash == self.after.definition_hash

    def of(self, measure: str) -> list[Change]:
        return [change for change in self.changes if change.measure == measure]

    def relative(self) -> "RunComparison":
        """Without what has the machine's drift in it: times, and steps in µs.

        Raises NothingToCompare where nothing else is left.
        """
        if not (kept := self.of(OVER)):
            raise NothingToCompare(
                f"runs {self.before.pk} and {self.after.pk}: no variant was measured beside the same first layer in"
                " both, so no time is relative to one; compare them without --relative"
            )
        return replace(self, changes=kept, steps=(), grounds=(), is_relative=True)

    @property
    def not_compared(self) -> Sequence[Variant]:
        """The variants of both runs that no comparison is about."""
        return self.other_bases if self.is_relative else ()

    def worse_by(self, share: float) -> list[Change]:
        """What surely takes more than `share` longer (0.05 for 5 %)."""
        return [change for change in self.changes if change.is_worse_by(share)]

    def undecided_by(self, share: float) -> list[Change]:
        """What may take more than `share` longer, although it is not shown to."""
        return [change for change in self.changes if change.may_be_worse_by(share)]

    @cached_property
    def headlines(self) -> list[str]:
        """What differs, in sentences."""
        return self.sentences(_("the first run"))

    def sentences(self, reference: str) -> list[str]:
        """The same, with a name for the first run.

        A variant's time is left out where its time over libpq is known.
        """
        over = {change.variant for change in self.of(OVER)}
        told = [change for change in self.changes if change.measure == OVER or change.variant not in over]
        found = [_sentence(change, reference) for change in told if change.outcome == DIFFERS]
        found += step_changes.sentences(self.steps, reference)
        return found or [_nothing_found(told)]

    @property
    def answers(self) -> list[str]:
        """How the time of what is nearest to a site changed, over each route; none of a suite."""
        times = {change.variant: change for change in self.of(TIME)}
        if not times or len(headline([*times])) > 1:
            return []
        return [earlier_run.answer(times[each]) for each in nearest_to_a_site(times)][:_MOST_ANSWERS]

    @property
    def step_chart(self) -> Chart | None:
        """How much more each layer adds in the second run."""
        return step_changes.chart(self.steps) if self.steps else None

    @property
    def step_table(self) -> Table | None:
        return step_changes.table(self.steps) if self.steps else None

    @property
    def step_notes(self) -> list[str]:
        """How to read the steps, and which are not compared."""
        told = [step_changes.note()] if self.steps else []
        return told + self.ground_sentences(_("the first run"), _("the second run"))

    def ground_sentences(self, before: str, after: str) -> list[str]:
        """The layers whose steps are not compared, for names of the two runs."""
        return [step_changes.grounds_sentence(each, before, after) for each in self.grounds]

    @property
    def charts(self) -> list[tuple[str, Chart]]:
        shown = [(measure, self.of(measure)) for measure in MEASURES if self.of(measure)]
        return [(measure_title(changes, measure), chart(changes, measure)) for measure, changes in shown]

    @property
    def tables(self) -> list[Table]:
        return [table(self.of(measure), measure) for measure in MEASURES if self.of(measure)]

    @property
    def note(self) -> str:
        """How the figures belong together."""
        times = (
            _("The times per operation are those of the runs’ own pages.")
            if self.of_pages
            else _(
                "The times per operation are estimates from the blocks; they can differ slightly from those"
                " of the runs’ own pages."
            )
        )
        quotient = _("The ratio is their quotient, and the change is their difference.")
        return f"{times} {quotient} {outcome_note()}"

    @property
    def server_settings(self) -> Table | None:
        """The settings of the servers that differ."""
        return settings_table(self.settings, str(self.before), str(self.after)) if self.settings else None

    @property
    def cautions(self) -> list[str]:
        """A sentence for each run that ended early, then for each that was much disturbed."""
        return [*(_partial(run) for run in (self.before, self.after) if run.partial), *self.disturbances]

    @property
    def lengths(self) -> str:
        """That one run is a quick one; "" where both are of one kind."""
        if self.before.quick == self.after.quick:
            return ""
        quick, full = (self.before, self.after) if self.before.quick else (self.after, self.before)
        return _("%(quick)s is a quick run, and %(full)s a full one.") % {"quick": quick, "full": full}

    @property
    def warnings(self) -> Table | None:
        """Other differences between the runs, which may explain different figures."""
        rows = [difference_cells(found) for found in (*self.definition, *self.environment)]
        columns = tuple(map(text_column, (_("What"), str(self.before), str(self.after))))
        return Table(_("Other differences"), columns, rows, "environment") if rows else None


#: The one that cancels the machine's drift first.
MEASURES = (OVER, TIME)


def compare_runs(before: Run, after: Run) -> RunComparison:
    """The comparison of two stored runs. Raises as `compare`."""
    return compare(*all_stored([before, after]))


def compare(earlier: ComparedRun, later: ComparedRun) -> RunComparison:
    """The comparison.

    Raises NothingToCompare for a run under way and where the two have no variant in common.
    """
    before, after = earlier.run, later.run
    for run in (before, after):
        if _status(run) not in TERMINAL:
            raise NothingToCompare(f"run {run.pk}: it has not ended yet; compare it when it has")
    found = changes(earlier.levels, later.levels)
    if not found:
        raise NothingToCompare(_nothing_in_common(earlier, later))
    ours, theirs = identified(earlier.levels, later.levels)
    return RunComparison(
        before,
        after,
        found,
        differences(conditions_of(before), conditions_of(after)),
        environment_differences(before.environment, after.environment),
        setting_differences(*(server_settings(run.environment) for run in (before, after))),
        lacking(ours, theirs),
        lacking(theirs, ours),
        [text for text in map(disturbance, (earlier, later)) if text],
        all(level.us is not None for level in (*earlier.levels, *later.levels)),
        find_changes(earlier.steps, later.steps),
        other_grounds(earlier.steps, later.steps),
        _other_bases(ours, theirs),
    )


def _other_bases(before: Identified, after: Identified) -> list[Variant]:
    both = [(before[name], level) for name, level in after.items() if name in before]
    return [other.variant for one, other in both if one.base_layer != other.base_layer]


def _nothing_in_common(*sides: ComparedRun) -> str:
    """Which runs have no results; else that no variant is in both, with one of each to see why."""
    if empty := [_without_results(side.run) for side in sides if not side.levels]:
        return "; ".join(empty)
    ids = " and ".join(str(side.run.pk) for side in sides)
    measured = [f"run {side.run.pk} has {variant_title(side.levels[0].variant)}" for side in sides]
    return "; ".join([f"runs {ids}: no variant was measured in both", *measured])


def _without_results(run: Run) -> str:
    ends = {"failed": "failed and ", "cancelled": "was cancelled and ", "lost": "was lost and "}
    return f"run {run.pk} {ends.get(_status(run), '')}has no results"


def disturbance(side: ComparedRun) -> str:
    """That a variant of the run was much disturbed, and what follows; "" if none was."""
    most = side.most_disturbed
    if most is None:
        return ""
    return _(
        "%(run)s: other work took at most %(share)s of the time of %(variant)s, its most disturbed variant."
        " A difference that this may explain is inconclusive."
    ) % {
        "run": side.run,
        "variant": variant_title(most.variant),
        "share": number_format.percent(most.disturbed),
    }


def _partial(run: Run) -> str:
    return _("%s has partial results: it ended early, and its figures come from its completed blocks.") % run


def _status(run: Run) -> str:
    """That of now; a query that read several runs may have read it already."""
    return getattr(run, "effective", None) or state.effective_status(run)


def settings_table(settings: Sequence[Difference], before: str, after: str) -> Table:
    """Settings that differ between the servers of two runs of these names."""
    rows = [
        (words(each.what), words(each.before or _("default")), words(each.after or _("default")))
        for each in settings
    ]
    columns = tuple(map(text_column, (_("Setting"), before, after)))
    return Table(_("Server settings that differ"), columns, rows, "environment")


def run_comparison_json(found: RunComparison, fail_on: float | None = None) -> dict[str, Any]:
    """What `pgperf compare --json` prints. Ratios are second over first; null is "not known"."""
    return {
        "before": _run_json(found.before),
        "after": _run_json(found.after),
        "same_definition": found.same_definition,
        "differences": [
            {"part": part, **difference._asdict()}
            for part, several in (
                ("definition", found.definition),
                ("environment", [*found.environment, *under_server(found.settings)]),
            )
            for difference in several
        ],
        "only_before": [label for each in found.only_before for label in each.labels],
        "only_after": [label for each in found.only_after for label in each.labels],
        "disturbances": list(found.disturbances),
        "comparisons": [_change_json(change) for change in found.changes],
        "steps": step_changes.changes_json(found.steps),
        "fail_on": fail_on,
        "worse": [] if fail_on is None else [_change_json(change) for change in found.worse_by(fail_on)],
        "undecided": (
            [] if fail_on is None else [_change_json(change) for change in found.undecided_by(fail_on)]
        ),
    }


def chart(changes: Sequence[Change], measure: str) -> Chart:
    """A dot with its interval per variant, ratio of the second run to the first; 1 is the line."""
    return {
        "kind": "forest",
        "label": _("%s: second run over first, with 95 %% intervals. The table below has the numbers.")
        % measure_title(changes, measure),
        "axis": _("second run over first"),
        "line": 1,
        "rows": [variant_lines(change.variant) for change in changes],
        "values": [change.ratio.centre for change in changes],
        "colours": [colour(change.variant.layer) for change in changes],
        "whiskers": [whisker(change.ratio.low, change.ratio.high) for change in changes],
        "ends": [number_format.ratio(change.ratio.centre) for change in changes],
    }


def table(changes: Sequence[Change], measure: str) -> Table:
    """The numbers of `chart`, with the values of both runs and the outcome."""
    over = measure == OVER
    levels = (_("First"), _("Second"))
    times = (time_column(title, follows=at > 0) for at, title in enumerate(levels))
    columns = (
        text_column(_("Variant")),
        text_column(_("Outcome")),
        *((Column(title, _("times")) for title in levels) if over else times),
        Column(_("Second/first")),
        interval_column(),
        time_column(_("Change")),
        interval_column(),
        Column(_("Detectable effect")),
        Column(_("Blocks")),
    )
    return Table(
        measure_title(changes, measure),
        columns,
        [_row(change, over=over) for change in changes],
        "comparisons",
    )


def measure_title(changes: Sequence[Change], measure: str) -> str:
    if measure == TIME:
        return _("Time per operation")
    bases = dict.fromkeys(layer_title(change.base.layer) for change in changes if change.base)
    return _("Time relative to %s of the same run") % ", ".join(bases)


def _row(change: Change, *, over: bool) -> tuple[Cell, ...]:
    own = ratio if over else number
    figures = () if over else (change.before, change.after)
    return (
        words(variant_title(change.variant)),
        Cell(outcome_text(change.outcome), (change.outcome,), change.outcome),
        own(change.before),
        own(change.after),
        ratio(change.ratio.centre),
        ratio_interval(change.ratio.low, change.ratio.high),
        signed(change.delta.centre, *figures),
        interval(change.delta.low, change.delta.high, *figures),
        Cell("–") if change.mde is None else percent(change.mde),
        Cell(_("%(first)d and %(second)d") % dict(zip(("first", "second"), change.blocks, strict=True))),
    )


def _nothing_found(told: Sequence[Change]) -> str:
    """That no change is shown, which is not that there is none."""
    undecided = [change for change in told if change.outcome == INCONCLUSIVE]
    if not undecided:
        return _("The comparison shows no difference between the two runs.")
    text = _(
        "No significant difference is shown. Inconclusive comparisons: %(undecided)d of %(count)d. %(why)s"
    )
    return text % {
        "undecided": len(undecided), "count": len(told), "why": " ".join(_reasons(undecided)),
    }  # fmt: skip


def _reasons(undecided: Sequence[Change]) -> Iterator[str]:
    doubted = sum(change.is_doubted for change in undecided)
    chance = sum(change.may_be_chance for change in undecided)
    if doubted + chance < len(undecided):
        yield _("Intervals are too wide to tell.")
    if chance:
        text = ngettext(
            "%d interval lies outside ±1 %%, but among so many comparisons that can be chance.",
            "%d intervals lie outside ±1 %%, but among so many comparisons that can be chance.",
            chance,
        )
        yield text % chance
    if doubted:
        yield _("A disturbance may explain a difference.")


def _sentence(change: Change, reference: str) -> str:
    over = change.measure == OVER
    text = (
        _(
            "%(variant)s: time relative to %(base)s is %(ratio)s that of %(reference)s (%(interval)s):"
            " %(after)s instead of %(before)s."
        )
        if over
        else _(
            "%(variant)s: time per operation is %(ratio)s that of %(reference)s (%(interval)s):"
            " %(after)s instead of %(before)s %(unit)s."
        )
    )
    times = {"before": change.before, "after": change.after}
    levels = (
        {name: number_format.ratio(value) for name, value in times.items()}
        if over
        else number_format.in_one_unit(**times)
    )
    return text % {
        "variant": variant_title(change.variant),
        "reference": reference,
        "base": layer_title(change.base.layer) if change.base else "",
        "ratio": number_format.ratio(change.ratio.centre),
        "interval": number_format.ratio_interval(change.ratio.low, change.ratio.high),
        **levels,
    }


def conditions_of(run: Run) -> dict[str, Any]:
    """What was to be measured, and where."""
    return {"database": run.database_name, "quick": run.quick, **with_defaults(run.definition)}


def _run_json(run: Run) -> dict[str, Any]:
    moments = {"started": run.started_at, "finished": run.finished_at}
    return {
        "id": run.pk,
        "benchmark": run.benchmark_name,
        "database": run.database_name,
        "status": str(state.effective_status(run)),
        "quick": run.quick,
        "partial": run.partial,
        "definition_hash": run.definition_hash,
        **{name: moment.isoformat() if moment else None for name, moment in moments.items()},
    }


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "variant": change.variant.label,
        "measure": change.measure,
        "baseline": change.base.label if change.base else None,
        "before": change.before,
        "after": change.after,
        "ratio": change.ratio.centre,
        "low": change.ratio.low,
        "high": change.ratio.high,
        "delta_us": change.delta.centre,
        "delta_low_us": change.delta.low,
        "delta_high_us": change.delta.high,
        "outcome": change.outcome,
        "doubted": change.is_doubted,
        "mde": change.mde,
        "blocks": list(change.blocks),
    }
