"""What each layer adds to the one below it in several runs: charts, tables, sentences and JSON."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from pgperf.analysis.ladder import Ladder
from pgperf.analysis.outcome import DIFFERS
from pgperf.analysis.step_changes import Key, LayerStep, OtherGround, StepChange
from pgperf.core.records import Variant
from pgperf.core.time_units import TimeUnit, unit_of
from pgperf.reports import number_format
from pgperf.reports.chart import Chart, of_times, whisker
from pgperf.reports.comparisons import outcome_text
from pgperf.reports.labels import colour, layer_title, variant_lines, variant_title
from pgperf.reports.ladders import ladder_titles, time_split
from pgperf.reports.table import (
    Cell,
    Column,
    Table,
    interval,
    interval_column,
    number,
    signed,
    text_column,
    time_column,
    words,
)


def title() -> str:
    return _("What each layer adds")


def note() -> str:
    """How to read the steps."""
    return _(
        "A step is what a layer adds to the one below it, in time per operation; the lowest layer’s step is its"
        " own time. The interval of a change is Welch’s, of one value per block of either run. A step that moved"
        " by at most 1 % of the layer’s time counts as equal. The machine’s speed is part of a step: on a slower"
        " machine all steps grow, and the times relative to the lowest layer tell whether a layer changed."
    )


def sentences(changes: Iterable[StepChange], reference: str) -> list[str]:
    """The steps that differ; the lowest one's is its time, of which others tell."""
    return [_sentence(change, reference) for change in changes if change.below and change.outcome == DIFFERS]


def grounds_sentence(ground: OtherGround, before: str, after: str) -> str:
    """Why what a layer adds is not compared between the runs of these names."""
    return _(
        "What %(variant)s adds is not compared: it stands on %(one)s in %(before)s and on %(other)s in %(after)s."
    ) % {
        "variant": variant_title(ground.variant), "before": before, "after": after,
        "one": _ground(ground.before), "other": _ground(ground.after),
    }  # fmt: skip


def chart(changes: Sequence[StepChange]) -> Chart:
    """A dot with its interval per step: the second run less the first; 0 is the line."""
    values = [change.delta.centre for change in changes]
    unit = unit_of(values)
    made = of_times(
        {
            "kind": "forest",
            "label": _(
                "Change of what each layer adds: second run less the first, with 95 % intervals. The table"
                " below has the numbers."
            ),
            "axis": _("%s per operation, second run less the first"),
            "line": 0,
            "rows": [variant_lines(change.variant) for change in changes],
            "values": values,
            "colours": [colour(change.variant.layer) for change in changes],
            "whiskers": [whisker(change.delta.low, change.delta.high) for change in changes],
        }
    )
    return {**made, "ends": [_signed(value, unit) for value in values]}


def table(changes: Sequence[StepChange]) -> Table:
    """The numbers of `chart`, with the step in both runs and the outcome."""
    columns = (
        text_column(_("Variant")),
        text_column(_("Above")),
        text_column(_("Outcome")),
        time_column(_("First")),
        time_column(_("Second"), follows=True),
        time_column(_("Change")),
        interval_column(),
        Column(_("Blocks")),
    )
    return Table(title(), columns, [*map(_row, changes)], "steps")


def changes_json(changes: Iterable[StepChange]) -> list[dict[str, Any]]:
    """Times in µs; null is "not known", and in `below` "the lowest layer"."""
    return [
        {
            "variant": change.variant.label,
            "below": change.below.label if change.below else None,
            "before_us": change.before,
            "after_us": change.after,
            "delta_us": change.delta.centre,
            "delta_low_us": change.delta.low,
            "delta_high_us": change.delta.high,
            "outcome": change.outcome,
            "doubted": change.is_doubted,
            "blocks": list(change.blocks),
        }
        for change in changes
    ]


def stacks(several: Sequence[tuple[str, Sequence[Ladder]]], *, named: bool) -> list[tuple[str, Chart]]:
    """Where a query's time goes in the runs of these names: a chart for each ladder, with a bar for
    each run. Workloads tell ladders apart where their variants are `named` by them.
    """
    told = [(run, _as_told(ladder, named=named)) for run, own in several for ladder in own if ladder.steps]
    groups: dict[str, list[tuple[str, Ladder]]] = {}
    for title, own in zip(ladder_titles([ladder for _run, ladder in told]), told, strict=True):
        groups.setdefault(title, []).append(own)
    return [(name, _stack(own)) for name, own in groups.items()]


def effects(
    base: str,
    baseline: Sequence[LayerStep],
    others: Sequence[tuple[str, Sequence[StepChange]]],
    *,
    named: bool,
) -> Table:
    """What each layer adds in the run called `base`, and how much more in each of the others.

    `named`: are variants found by their workloads' names too?
    """
    by_run = [{_key(change, named=named): change for change in changes} for _name, changes in others]
    unit = unit_of(change.delta.centre for _name, changes in others for change in changes)
    shown = [step for step in baseline if any(step.key(named=named) in changes for changes in by_run)]
    columns = (
        text_column(_("Variant")),
        text_column(_("Above")),
        time_column(base),
        *(Column(name) for name, _changes in others),
    )
    rows = [
        (
            words(_title(step, named=named)),
            words(_below(step.below.variant if step.below else None)),
            number(step.added.us),
            *(_effect(changes.get(step.key(named=named)), unit) for changes in by_run),
        )
        for step in shown
    ]
    caption = _("What each layer adds, and how many %(unit)s more than %(run)s")
    names = {"unit": number_format.unit_title(unit), "run": base}
    return Table(caption % names, columns, rows, "effects")


def scatter(several: Sequence[Sequence[LayerStep]], *, named: bool) -> Table:
    """How far the steps lie apart, of those that all runs have. `named` as above."""
    by_run = [{step.key(named=named): step for step in steps} for steps in several]
    common = [key for key in by_run[0] if all(key in steps for steps in by_run)]
    columns = (
        text_column(_("Variant")),
        text_column(_("Above")),
        time_column(_("Smallest step")),
        time_column(_("Largest step"), follows=True),
        time_column(_("Standard deviation between the runs"), follows=True),
    )
    rows = [_scatter_row([steps[key] for steps in by_run], named=named) for key in common]
    return Table(_("Scatter between the runs: what each layer adds"), columns, rows, "scatter")


def _sentence(change: StepChange, reference: str) -> str:
    text = (
        _(
            "%(variant)s adds %(after)s %(unit)s to %(below)s instead of %(before)s %(unit)s in %(reference)s:"
            " %(low)s to %(high)s %(unit)s more."
        )
        if change.delta.centre > 0
        else _(
            "%(variant)s adds %(after)s %(unit)s to %(below)s instead of %(before)s %(unit)s in %(reference)s:"
            " %(low)s to %(high)s %(unit)s less."
        )
    )
    ends = sorted(abs(end or 0.0) for end in (change.delta.low, change.delta.high))
    times = number_format.in_one_unit(before=change.before, after=change.after, low=ends[0], high=ends[1])
    names = {
        "variant": variant_title(change.variant), "reference": reference,
        "below": layer_title(change.below.layer) if change.below else "",
    }  # fmt: skip
    return text % {**names, **times}


def _row(change: StepChange) -> tuple[Cell, ...]:
    return (
        words(variant_title(change.variant)),
        words(_below(change.below)),
        Cell(outcome_text(change.outcome), (change.outcome,), change.outcome),
        number(change.before),
        number(change.after),
        signed(change.delta.centre, change.before, change.after),
        interval(change.delta.low, change.delta.high, change.before, change.after),
        Cell(_("%(first)d and %(second)d") % dict(zip(("first", "second"), change.blocks, strict=True))),
    )


def _effect(change: StepChange | None, unit: TimeUnit) -> Cell:
    if change is None:
        return Cell("–", (None,), "unknown")
    delta = change.delta
    ends = number_format.in_unit(unit, number_format.interval, delta.low, delta.high)
    text = f"{number_format.in_unit(unit, number_format.signed, delta.centre)} ({ends})"
    shown = text if change.outcome == DIFFERS else f"{text}, {outcome_text(change.outcome)}"
    return Cell(shown, (delta.centre,), change.outcome)


def _key(change: StepChange, *, named: bool) -> Key:
    upper, below = (each and each.as_named(named).label for each in (change.variant, change.below))
    return upper or "", below or ""


def _title(step: LayerStep, *, named: bool) -> str:
    """The title that the same step has in all runs."""
    return variant_title(step.level.variant.as_named(named))


def _scatter_row(several: Sequence[LayerStep], *, named: bool) -> tuple[Cell, ...]:
    first, times = several[0], [step.added.us for step in several]
    return (
        words(_title(first, named=named)),
        words(_below(first.below.variant if first.below else None)),
        number(min(times)),
        number(max(times)),
        number(statistics.stdev(times)),
    )


def _stack(own: Sequence[tuple[str, Ladder]]) -> Chart:
    """Bars of runs instead of routes."""
    split = time_split([ladder for _run, ladder in own])
    label = _("Time per operation, split by layer, in each run. The tables have the numbers.")
    return {**split, "label": label, "rows": [[run] for run, _ladder in own]}


def _as_told(ladder: Ladder, *, named: bool) -> Ladder:
    return ladder if named else replace(ladder, workload="")


def _below(variant: Variant | None) -> str:
    return layer_title(variant.layer) if variant else "–"


def _ground(variant: Variant | None) -> str:
    """What a layer stands on, in a sentence."""
    return layer_title(variant.layer) if variant else _("no other layer")


def _signed(us: float, unit: TimeUnit) -> str:
    text = number_format.in_unit(unit, number_format.signed, us)
    return _("%(number)s %(unit)s") % {"number": text, "unit": number_format.unit_title(unit)}
