"""Steps of a web site: requests/s, response time and the effect of each step, as charts, table and
JSON.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _

from pgperf.analysis.outcome import DIFFERS
from pgperf.analysis.staircase import Effect, Step, staircases
from pgperf.catalog.published import Figure
from pgperf.core.delayed_routes import apart
from pgperf.core.records import Variant
from pgperf.models import ComparisonResult, VariantResult
from pgperf.reports import number_format, published
from pgperf.reports.chart import Chart, of_times, whisker
from pgperf.reports.comparisons import outcome_text
from pgperf.reports.labels import clients_title, colour, field_title
from pgperf.reports.run_rows import RunRows, once
from pgperf.reports.table import (
    Cell,
    Column,
    Table,
    count,
    exact,
    file_columns,
    interval,
    interval_column,
    number,
    ratio,
    ratio_interval,
    text_column,
    time_column,
    words,
)

#: The key of a run's definition: for each route that is a step, the route that it builds on.
_BUILDS_ON = "web_routes"
#: Fields that tell staircases of one run apart.
_SETTING = ("workload", "layer", "mode", "clients", "connect", "rate", "hosts", "environment")


@dataclass(frozen=True)
class Staircase:
    """The steps of one workload, number of clients and distance, with their rows.

    `figures` has what a publication measured, by the primary keys of the rows.
    """

    steps: Sequence[Step]
    rows: dict[Variant, VariantResult]
    figures: dict[int, Figure] = field(default_factory=dict)

    @cached_property
    def shown(self) -> list[VariantResult]:
        return [self.row(step) for step in self.steps]

    def row(self, step: Step) -> VariantResult:
        return self.rows[step.variant]

    def published(self, variant: Variant | None) -> float | None:
        """The published requests/s of a step; None where there are none."""
        figure = self.figures.get(self.rows[variant].pk) if variant else None
        return figure.ops_per_s if figure else None

    def published_effect(self, step: Step) -> float | None:
        """Of the published figures: the step over the one that it builds on."""
        own, base = self.published(step.variant), self.published(step.builds_on)
        return own / base if own and base else None


@once
def found(rows: RunRows) -> list[Staircase]:
    """The staircases of a run; none for a run that measured no web site's steps."""
    builds_on = rows.run.definition.get(_BUILDS_ON) if rows.run.definition else None
    if not isinstance(builds_on, dict):
        return []
    by_identity = {row.identity: row for row in rows.variants}
    effects = {
        (row.variant.identity, row.baseline.identity): _effect(row, rows.throughput_ratios)
        for row in rows.comparisons
        if not row.aa and _is_step(row.variant.identity, row.baseline.identity)
    }
    effects = {**_not_judged(rows), **effects}
    steps_of_all = staircases(list(by_identity), builds_on, effects)
    return [Staircase(steps, by_identity, rows.published) for steps in steps_of_all]


def _not_judged(rows: RunRows) -> dict[tuple[Variant, Variant], Effect]:
    """The quotients of all steps that differ in nothing else. A step that is neither on the first one
    nor on the run's first route has no comparison with it, and so no outcome.
    """
    by_label = {row.label: row.identity for row in rows.variants}
    known = {labels: each for labels, each in rows.throughput_ratios.items() if by_label.keys() >= {*labels}}
    return {
        pair: Effect(each["ratio"], each["low"], each["high"], "")
        for (one, other), each in known.items()
        if each["ratio"] is not None and _is_step(*(pair := (by_label[one], by_label[other])))
    }


def alone(rows: RunRows) -> bool:
    """Are steps of a web site all that the run measured?"""
    return bool(found(rows)) and all(row.route in rows.run.definition[_BUILDS_ON] for row in rows.variants)


def _is_step(variant: Variant, base: Variant) -> bool:
    """Do the two differ in the step alone? At a rate, all steps have the same requests/s."""
    return not variant.is_open_loop and variant.differs_in(base) == {"route"}


def _effect(row: ComparisonResult, ratios: Mapping[tuple[str, str], Mapping[str, float | None]]) -> Effect:
    """The quotient of the requests/s that are shown; of a run of an earlier version, the reciprocal of
    the ratio of times.
    """
    found = ratios.get((row.variant.label, row.baseline.label))
    if found is None or found["ratio"] is None:
        return Effect.of_times(row.ratio, row.low, row.high, row.outcome)
    return Effect(found["ratio"], found["low"], found["high"], row.outcome)


def title(staircase: Staircase, among: Sequence[Staircase]) -> str:
    """What tells it from the other staircases of the run."""
    variant = staircase.steps[0].variant
    parts = [clients_title(variant.clients), *_differing_settings(staircase, among)]
    delay_ms = apart(variant.route)[1]
    parts += [_("+%s ms simulated network delay") % f"{delay_ms:g}"] if delay_ms else []
    return " · ".join(parts)


def _differing_settings(staircase: Staircase, among: Sequence[Staircase]) -> list[str]:
    """The settings but the number of clients in which staircases of the run differ."""
    variants = [each.steps[0].variant for each in among]
    names = [
        name for name in _SETTING if name != "clients" and len({getattr(of, name) for of in variants}) > 1
    ]
    return [field_title(staircase.steps[0].variant, name) for name in names]


def throughput(staircase: Staircase) -> Chart:
    """Requests/s of each step, and as published."""
    marks = [staircase.published(step.variant) for step in staircase.steps]
    return {
        "kind": "groups",
        "label": _("Requests per second of each step. The table below has the numbers."),
        "axis": _("requests per second"),
        "rows": _names(staircase.steps),
        "series": [
            {
                "name": _("requests per second"),
                "colour": colour(staircase.steps[0].variant.layer),
                "values": [row.ops_per_s for row in staircase.shown],
                "marks": marks,
            }
        ],
        "overlay": published.overlay() if any(marks) else "",
    }


def response_time(staircase: Staircase) -> Chart:
    """The time from request to answer, with 95 % intervals."""
    return of_times(
        {
            "kind": "bars",
            "label": _("Response time of each step, with 95 % intervals. The table below has the numbers."),
            "axis": _("%s per request"),
            "rows": _names(staircase.steps),
            "values": [row.us_per_op for row in staircase.shown],
            "colours": [colour(row.layer) for row in staircase.shown],
            "whiskers": [whisker(row.us_per_op_low, row.us_per_op_high) for row in staircase.shown],
            "ends": [row.us_per_op for row in staircase.shown],
        }
    )


def effects(staircase: Staircase) -> Chart:
    """Each step's own effect: requests/s over those of the step that it builds on."""
    shown = [(step, step.own) for step in staircase.steps if step.own]
    return {
        "kind": "forest",
        "label": _(
            "Requests per second of each step over those of the step that it builds on, with 95 % intervals."
            " The table below has the numbers."
        ),
        "axis": _("requests per second, over the step below"),
        "line": 1,
        "rows": _names([step for step, _own in shown]),
        "values": [own.ratio for _step, own in shown],
        "colours": [colour(step.variant.layer) for step, _own in shown],
        "whiskers": [whisker(own.low, own.high) for _step, own in shown],
        "ends": [number_format.ratio(own.ratio) for _step, own in shown],
    }


def table(staircase: Staircase, among: Sequence[Staircase]) -> Table:
    """The numbers of the charts."""
    caption = _("Steps of the site, %s") % title(staircase, among)
    return Table(caption, _columns(), [_row(staircase, step) for step in staircase.steps], "staircase")


def tables(rows: RunRows) -> list[Table]:
    """Of all staircases of a run, for a terminal."""
    shown = found(rows)
    made = [make(each, shown) for each in shown for make in (table, published_table)]
    return [each for each in made if each.rows]


def all_steps(rows: RunRows) -> Table:
    """The steps of all staircases of a run, as files have them."""
    steps = [_row(each, step) for each in found(rows) for step in each.steps]
    return Table(_("Steps of the site"), _columns(), steps, "staircase")


def published_table(staircase: Staircase, among: Sequence[Staircase]) -> Table:
    """The published figures beside those of the run; no rows without any."""
    columns = (
        text_column(_("Step")),
        Column(_("Published"), _("requests/s")),
        Column(_("Here"), _("requests/s")),
        Column(_("Published"), _("own effect")),
        Column(_("Here"), _("own effect")),
        interval_column(),
        text_column(_("Outcome here")),
    )
    rows = [
        _beside_published(staircase, step)
        for step in staircase.steps
        if staircase.published(step.variant) is not None
    ]
    return Table(_("Published steps, %s") % title(staircase, among), columns, rows, "published")


def headlines(staircase: Staircase) -> list[str]:
    """The steps that make a difference, in sentences."""
    return list(map(_headline, _differing(staircase)))


def largest(found: Sequence[Staircase], most: int) -> tuple[list[str], int]:
    """The same for the steps that change the most, in their order; and how many others differ.

    Each has its number of clients and its settings where those of the run differ. The names of routes
    tell distances apart.
    """
    steps = [(each, step) for each in found for step in _differing(each)]
    by_change = sorted((step for _each, step in steps), key=_change, reverse=True)
    told = {step.variant for step in by_change[:most]}
    shown = [f"{_load(each, found)}{_headline(step)}" for each, step in steps if step.variant in told]
    return shown, len(steps) - len(told)


def _load(staircase: Staircase, among: Sequence[Staircase]) -> str:
    """What tells its load apart, before a sentence."""
    clients = {each.steps[0].variant.clients for each in among}
    parts = [clients_title(staircase.steps[0].variant.clients)] if len(clients) > 1 else []
    parts += _differing_settings(staircase, among)
    return _("%s: ") % " · ".join(parts) if parts else ""


def _differing(staircase: Staircase) -> list[Step]:
    return [step for step in staircase.steps if step.builds_on and step.own and step.own.outcome == DIFFERS]


def _change(step: Step) -> float:
    return abs(math.log(step.own.ratio)) if step.own else 0.0


def _headline(step: Step) -> str:
    assert step.own
    assert step.builds_on
    return _("%(step)s: %(ratio)s the requests per second of %(base)s (%(interval)s).") % {
        "step": step.variant.route,
        "base": step.builds_on.route,
        "ratio": number_format.ratio(step.own.ratio),
        "interval": number_format.ratio_interval(step.own.low, step.own.high),
    }


def note() -> str:
    """How to read the effects."""
    return _(
        "The own effect of a step is its requests per second over those of the step that it builds on."
        " Its interval comes from pairs of slices of the same round. The outcome is that of the response"
        " times, in which no request counts as longer than the slice’s 99th percentile. So the quotient of"
        " two response times can differ a little from the effect."
    )


def staircases_json(rows: RunRows) -> list[dict[str, Any]]:
    """`staircases` of a run's JSON; null is unknown or not compared."""
    return [
        {
            **{name: getattr(each.steps[0].variant, name) for name in _SETTING},
            "steps": [_step_json(each, step) for step in each.steps],
        }
        for each in found(rows)
    ]


def _step_json(staircase: Staircase, step: Step) -> dict[str, Any]:
    row = staircase.row(step)
    processes, cpus = _size(row)
    return {
        "step": step.variant.route,
        "variant": step.variant.label,
        "builds_on": step.builds_on.route if step.builds_on else None,
        "published_ops_per_s": staircase.published(step.variant),
        "ops_per_s": row.ops_per_s,
        "us_per_op": row.us_per_op,
        "us_per_op_low": row.us_per_op_low,
        "us_per_op_high": row.us_per_op_high,
        "effect": _effect_json(step.own),
        "total": _effect_json(step.total),
        "web_workers": processes,
        "servers_cpus": cpus,
    }


def _effect_json(effect: Effect | None) -> dict[str, Any] | None:
    if effect is None:
        return None
    interval = {"low": effect.low, "high": effect.high}
    return {"ratio": effect.ratio, **interval, "outcome": effect.outcome or None}


def _columns() -> tuple[Column, ...]:
    return (
        text_column(_("Step"), "step"),
        text_column(_("Builds on"), "builds_on"),
        *file_columns(_SETTING),
        Column(_("Requests/s"), keys=("ops_per_s",)),
        time_column(_("Response time"), "us_per_op"),
        interval_column("us_per_op_low", "us_per_op_high"),
        Column(_("Own effect"), keys=("effect",)),
        interval_column("effect_low", "effect_high"),
        text_column(_("Outcome"), "outcome"),
        Column(_("Over the first step"), keys=("total",)),
        interval_column("total_low", "total_high"),
        Column(_("Web processes"), keys=("web_workers",)),
        Column(_("Servers’ CPUs"), keys=("servers_cpus",)),
    )


def _row(staircase: Staircase, step: Step) -> tuple[Cell, ...]:
    row = staircase.row(step)
    base = step.builds_on.route if step.builds_on else ""
    return (
        words(step.variant.route, step.variant.route),
        words(base or "–", base),
        *(exact(getattr(row, name)) for name in _SETTING),
        number(row.ops_per_s),
        number(row.us_per_op),
        interval(row.us_per_op_low, row.us_per_op_high),
        *_effect_cells(step.own),
        _outcome_cell(step.own),
        *_effect_cells(step.total),
        *map(count, _size(row)),
    )


def _size(row: VariantResult) -> tuple[int | None, int | None]:
    """The processes of the step's web servers, and the CPUs that they share with the database's: those
    of the host where they are not limited. None is not known.
    """
    account = row.record.cpu_account
    if account is None:
        return None, None
    cpus = (account.role_cpus and account.role_cpus.server) or account.cpus
    return account.web_workers, None if cpus is None else round(cpus)


def _beside_published(staircase: Staircase, step: Step) -> tuple[Cell, ...]:
    effect = staircase.published_effect(step)
    return (
        words(step.variant.route),
        number(staircase.published(step.variant)),
        number(staircase.row(step).ops_per_s),
        Cell("–") if effect is None else ratio(effect),
        *_effect_cells(step.own),
        _outcome_cell(step.own),
    )


def _outcome_cell(effect: Effect | None) -> Cell:
    if effect is None:
        return Cell("–", (None,))
    return Cell(outcome_text(effect.outcome), (effect.outcome,), effect.outcome)


def _effect_cells(effect: Effect | None) -> tuple[Cell, Cell]:
    if effect is None:
        return Cell("–", (None,)), Cell("–", (None, None))
    return ratio(effect.ratio), ratio_interval(effect.low, effect.high)


def _names(steps: Sequence[Step]) -> list[list[str]]:
    """The name of each step, and of the one that it builds on."""
    return [
        [step.variant.route, _("on %s") % step.builds_on.route if step.builds_on else _("first step")]
        for step in steps
    ]
