"""Two runs side by side, from what each keeps of its blocks: JSON for the command, charts and
tables for the page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _

from pgperf.analysis.definition_diff import Difference, differences
from pgperf.analysis.outcome import DIFFERS
from pgperf.analysis.run_comparison import OVER, TIME, Change, Level, changes, identified
from pgperf.core.exceptions import NothingToCompare
from pgperf.core.records import with_workloads
from pgperf.models import Run
from pgperf.reports import number_format
from pgperf.reports.chart import Chart
from pgperf.reports.comparisons import outcome_text
from pgperf.reports.labels import colour, layer_title, variant_lines, variant_title
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
    words,
)
from pgperf.runs import state

Times = Mapping[str, float | None]


@dataclass(frozen=True)
class RunComparison:
    """The second run over the first."""

    before: Run
    after: Run
    changes: Sequence[Change]
    definition: Sequence[Difference]
    environment: Sequence[Difference]
    only_before: Sequence[str]
    only_after: Sequence[str]

    @property
    def same_definition(self) -> bool:
        return self.before.definition_hash == self.after.definition_hash

    def of(self, measure: str) -> list[Change]:
        return [change for change in self.changes if change.measure == measure]

    def relative(self) -> "RunComparison":
        """Without the measure that has the machine's drift in it."""
        return replace(self, changes=self.of(OVER))

    def worse_by(self, share: float) -> list[Change]:
        """What differs and takes more than `share` longer (0.05 for 5 %)."""
        return [change for change in self.changes if change.is_worse_by(share)]

    @cached_property
    def headlines(self) -> list[str]:
        """What differs, in sentences.

        A variant's time is left out where its time over libpq is known.
        """
        over = {change.variant for change in self.of(OVER)}
        told = [change for change in self.changes if change.measure == OVER or change.variant not in over]
        found = [_sentence(change) for change in told if change.outcome == DIFFERS]
        return found or [_("The comparison shows no difference between the two runs.")]

    @property
    def charts(self) -> list[tuple[str, Chart]]:
        shown = [(measure, self.of(measure)) for measure in _MEASURES if self.of(measure)]
        return [(_title(changes, measure), chart(changes, measure)) for measure, changes in shown]

    @property
    def tables(self) -> list[Table]:
        return [table(self.of(measure), measure) for measure in _MEASURES if self.of(measure)]

    @property
    def note(self) -> str:
        """Why a ratio is not exactly the quotient of the times beside it."""
        return _(
            "The times per operation are those of the runs’ own pages. The ratio and the change are centres"
            " of the runs’ blocks, so they can differ from the quotient and the difference of the two times."
        )

    @property
    def warnings(self) -> Table | None:
        """Other differences between the runs, which may explain different figures."""
        rows = [
            (words(found.what), words(found.before or "–"), words(found.after or "–"))
            for found in (*self.definition, *self.environment)
        ]
        columns = tuple(map(text_column, (_("What"), str(self.before), str(self.after))))
        return Table(_("Other differences"), columns, rows, "environment") if rows else None


#: The one that cancels the machine's drift first.
_MEASURES = (OVER, TIME)


def compare_runs(before: Run, after: Run) -> RunComparison:
    """The comparison.

    Raises NothingToCompare for a run under way and where the two have no variant in common.
    """
    for run in (before, after):
        if state.effective_status(run) not in TERMINAL:
            raise NothingToCompare(f"run {run.pk}: it has not ended yet; compare it when it has")
    earlier, later = levels_of(before), levels_of(after)
    times = times_of(before), times_of(after)
    found = [_as_on_run_pages(change, *times) for change in changes(earlier, later)]
    if not found:
        raise NothingToCompare(f"runs {before.pk} and {after.pk}: no variant was measured in both")
    ours, theirs = identified(earlier, later)
    return RunComparison(
        before,
        after,
        found,
        differences(_conditions(before), _conditions(after)),
        differences(before.environment, after.environment),
        [level.variant.label for name, level in ours.items() if name not in theirs],
        [level.variant.label for name, level in theirs.items() if name not in ours],
    )


def levels_of(run: Run) -> list[Level]:
    """One value per block and variant, as the run's summary keeps them; none before it is
    summarised.
    """
    return [Level.from_json(level) for level in run.summary.get("levels", [])]


def times_of(run: Run) -> Times:
    """µs per operation of each variant by its label, as on the run's page."""
    return dict(run.variants.values_list("label", "us_per_op"))


def _as_on_run_pages(change: Change, before: Times, after: Times) -> Change:
    """The change with the times of the runs' pages in place of the centres of the logarithms."""
    label = change.variant.label
    first, second = before.get(label), after.get(label)
    if change.measure != TIME or first is None or second is None:
        return change
    return replace(change, before=first, after=second)


def run_comparison_json(found: RunComparison, fail_on: float | None = None) -> dict[str, Any]:
    """What `pgperf compare --json` prints. Ratios are second over first; null is "not known"."""
    return {
        "before": _run_json(found.before),
        "after": _run_json(found.after),
        "same_definition": found.same_definition,
        "differences": [
            {"part": part, **difference._asdict()}
            for part, several in (("definition", found.definition), ("environment", found.environment))
            for difference in several
        ],
        "only_before": list(found.only_before),
        "only_after": list(found.only_after),
        "comparisons": [_change_json(change) for change in found.changes],
        "fail_on": fail_on,
        "worse": [] if fail_on is None else [_change_json(change) for change in found.worse_by(fail_on)],
    }


def chart(changes: Sequence[Change], measure: str) -> Chart:
    """A dot with its interval per variant, ratio of the second run to the first; 1 is the line."""
    return {
        "kind": "forest",
        "label": _("%s: second run over first, with 95 %% intervals. The table below has the numbers.")
        % _title(changes, measure),
        "axis": _("second run over first"),
        "line": 1,
        "rows": [variant_lines(change.variant) for change in changes],
        "values": [change.ratio.centre for change in changes],
        "colours": [colour(change.variant.layer) for change in changes],
        "whiskers": [_ends(change) for change in changes],
        "ends": [number_format.ratio(change.ratio.centre) for change in changes],
    }


def table(changes: Sequence[Change], measure: str) -> Table:
    """The numbers of `chart`, with the values of both runs and the outcome."""
    over = measure == OVER
    unit = _("times") if over else "µs"
    columns = (
        text_column(_("Variant")),
        Column(_("first"), unit),
        Column(_("second"), unit),
        Column(_("second/first")),
        interval_column(),
        text_column(_("outcome")),
        Column(_("change"), "µs"),
        interval_column(),
        Column(_("visible from")),
        Column(_("blocks")),
    )
    return Table(
        _title(changes, measure), columns, [_row(change, over=over) for change in changes], "comparisons"
    )


def _title(changes: Sequence[Change], measure: str) -> str:
    if measure == TIME:
        return _("Time per operation")
    bases = dict.fromkeys(layer_title(change.base.layer) for change in changes if change.base)
    return _("Time relative to %s of the same run") % ", ".join(bases)


def _row(change: Change, *, over: bool) -> tuple[Cell, ...]:
    own = ratio if over else number
    return (
        words(variant_title(change.variant)),
        own(change.before),
        own(change.after),
        ratio(change.ratio.centre),
        ratio_interval(change.ratio.low, change.ratio.high),
        Cell(outcome_text(change.outcome), (change.outcome,), change.outcome),
        signed(change.delta.centre),
        interval(change.delta.low, change.delta.high),
        Cell("–") if change.mde is None else percent(change.mde),
        Cell(_("%(first)d and %(second)d") % dict(zip(("first", "second"), change.blocks, strict=True))),
    )


def _sentence(change: Change) -> str:
    text = (
        _("%(variant)s: time relative to %(base)s is %(ratio)s that of the earlier run (%(interval)s).")
        if change.measure == OVER
        else _("%(variant)s: time per operation is %(ratio)s that of the earlier run (%(interval)s).")
    )
    return text % {
        "variant": variant_title(change.variant),
        "base": layer_title(change.base.layer) if change.base else "",
        "ratio": number_format.ratio(change.ratio.centre),
        "interval": number_format.ratio_interval(change.ratio.low, change.ratio.high),
    }


def _ends(change: Change) -> list[float] | None:
    ratio = change.ratio
    return None if ratio.low is None or ratio.high is None else [ratio.low, ratio.high]


def _conditions(run: Run) -> dict[str, Any]:
    """What was to be measured, and where."""
    return {"database": run.database_name, "quick": run.quick, **with_workloads(run.definition)}


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
        "mde": change.mde,
        "blocks": list(change.blocks),
    }
