"""Comparisons as tables, and what a change of workload saves in a sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from enum import StrEnum
from functools import partial

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from pgperf.analysis.outcome import DIFFERS
from pgperf.core.records import Variant
from pgperf.core.time_units import unit_of
from pgperf.models import ComparisonResult
from pgperf.reports import number_format
from pgperf.reports.labels import field_title, layer_title, variant_title
from pgperf.reports.run_rows import RunRows
from pgperf.reports.table import (
    Cell,
    Column,
    Table,
    interval,
    interval_column,
    percent,
    ratio,
    ratio_interval,
    signed,
    text_column,
    time_column,
    words,
)

_OUTCOMES = (gettext_noop("differs"), gettext_noop("equivalent"), gettext_noop("inconclusive"))
#: The fields that a label may show.
_NAMED = [each for each in fields(Variant) if each.name not in ("control", "named")]


class ComparisonKind(StrEnum):
    """The field in which a variant differs from its baseline."""

    CONTROL = "control"
    CLIENTS = "clients"
    WORKLOAD = "workload"
    ROUTE = "route"
    MODE = "mode"
    CONNECT = "connect"
    ENVIRONMENT = "environment"
    RATE = "rate"
    HOSTS = "hosts"
    WORKERS = "workers"
    LAYER = "layer"


def kind(row: ComparisonResult) -> ComparisonKind:
    """LAYER also where several fields differ."""
    if row.aa:
        return ComparisonKind.CONTROL
    apart = row.variant.identity.differs_in(row.baseline.identity)
    apart -= {"schedule"} if "rate" in apart else set()
    apart -= {"clients"} if "workers" in apart else set()
    return next(
        (each for each in ComparisonKind if apart == {each}),
        ComparisonKind.LAYER,
    )


def comparison_tables(comparisons: Iterable[ComparisonResult]) -> list[Table]:
    """Each variant against its baseline, with the outcome in a word: a table for each kind, without
    the controls.
    """
    rows = [(kind(row), row) for row in comparisons]
    titles = {
        ComparisonKind.ENVIRONMENT: _("One Python environment against another, layer by layer"),
        ComparisonKind.WORKLOAD: _("One workload against the other, layer by layer"),
        ComparisonKind.CLIENTS: _("More clients"),
        ComparisonKind.LAYER: _("One layer against another"),
        ComparisonKind.ROUTE: _("One route against another"),
        ComparisonKind.MODE: _("One statement mode against another"),
        ComparisonKind.CONNECT: _("One connection mode against another"),
        ComparisonKind.RATE: _("One rate against another: service times"),
        ComparisonKind.HOSTS: _("More load hosts, with the same clients"),
        ComparisonKind.WORKERS: _("Processes against workers in one process, with the same connections"),
    }
    made = (_table(title, [row for one, row in rows if one == each]) for each, title in titles.items())
    return [table for table in made if table.rows]


def all_comparisons(rows: RunRows) -> Table:
    """Every comparison of a run, the controls too, as files have them."""
    return _table(_("Comparisons"), rows.comparisons)


def control_table(comparisons: Iterable[ComparisonResult]) -> Table:
    """The controls: a variant against its own duplicate."""
    controls = [row for row in comparisons if row.aa]
    return _table(_("Controls: the same thing against itself"), controls, "controls")


def workload_headlines(comparisons: Iterable[ComparisonResult]) -> list[str]:
    """What a change from the first workload to the second saves or costs in each layer: a sentence
    for each route.
    """
    return _headlines(comparisons, ComparisonKind.WORKLOAD)


def environment_headlines(comparisons: Iterable[ComparisonResult]) -> list[str]:
    """The same of a change from the first environment to another."""
    return _headlines(comparisons, ComparisonKind.ENVIRONMENT)


def baseline_text(row: ComparisonResult) -> str:
    """The fields in which the baseline differs from its variant."""
    if row.aa:
        return _("itself")
    baseline = row.baseline.identity
    apart = row.variant.identity.differs_in(baseline)
    named = [field_title(baseline, each.name) for each in _NAMED if each.name in apart]
    return " · ".join(filter(None, named))


def outcome_text(outcome: str) -> str:
    """The outcome as people read it."""
    return _(outcome) if outcome in _OUTCOMES else outcome


def outcome_note() -> str:
    """Why of two similar intervals one may differ, and the other not."""
    return _(
        "The intervals are 95 % intervals. Among many, a few lie outside ±1 % by chance. So with several"
        " comparisons, “differs” needs more than 95 % confidence, and of two similar intervals one may differ"
        " and the other be inconclusive."
    )


def _headlines(comparisons: Iterable[ComparisonResult], one: ComparisonKind) -> list[str]:
    """A sentence for each route and change."""
    changes: dict[tuple[str, str, str], list[ComparisonResult]] = {}
    for row in comparisons:
        if kind(row) == one:
            change = row.variant.route, getattr(row.variant, one), getattr(row.baseline, one)
            changes.setdefault(change, []).append(row)
    return [_headline(*change, rows) for change, rows in changes.items()]


def _headline(route: str, second: str, first: str, rows: Sequence[ComparisonResult]) -> str:
    """Layers in which nothing is significant are named without a figure."""
    names, apart = {"route": route, "second": second, "first": first}, _apart(rows)
    certain = [row for row in reversed(rows) if row.outcome == DIFFERS]
    vague = [_told(row, apart) for row in reversed(rows) if row.outcome != DIFFERS]
    sentences = [_changes(certain, names, apart)] if certain else []
    if vague:
        words = _("%(route)s: no significant difference between %(first)s and %(second)s in %(layers)s.")
        sentences.append(words % {**names, "layers": ", ".join(vague)})
    return " ".join(sentences)


def _apart(rows: Sequence[ComparisonResult]) -> list[str]:
    """The fields beside the layer in which the variants of the rows differ."""
    first = rows[0].variant.identity
    found = {name for row in rows for name in first.differs_in(row.variant.identity)}
    return [each.name for each in _NAMED if each.name in found - {"layer"}]


def _told(row: ComparisonResult, apart: Sequence[str]) -> str:
    """The layer of its variant, and what tells it from the variants of the other rows."""
    own = row.variant.identity
    return " · ".join(filter(None, (layer_title(own.layer), *(field_title(own, name) for name in apart))))


def _changes(rows: Sequence[ComparisonResult], names: dict[str, str], apart: Sequence[str]) -> str:
    """The sentence on the layers that differ."""
    saves = all(row.delta_us < 0 for row in rows)
    unit = unit_of(row.delta_us for row in rows)
    sign, form = (-1, number_format.difference) if saves else (1, number_format.signed)
    changes = [
        _("%(us)s %(unit)s in %(layer)s")
        % {
            "us": number_format.in_unit(
                unit, partial(form, figures=[us / unit.us for us in _times(row)]), sign * row.delta_us
            ),
            "unit": number_format.unit_title(unit),
            "layer": _told(row, apart),
        }
        for row in rows
    ]
    return _("%(route)s: %(second)s instead of %(first)s %(words)s %(changes)s.") % {
        **names, "words": _("saves") if saves else _("changes"), "changes": ", ".join(changes),
    }  # fmt: skip


def _times(row: ComparisonResult) -> list[float]:
    """Those that its difference comes from, µs."""
    return [us for us in (row.variant.us_per_op, row.baseline.us_per_op) if us is not None]


def _table(caption: str, rows: Iterable[ComparisonResult], name: str = "comparisons") -> Table:
    columns = (
        text_column(_("Variant"), "variant"),
        text_column(_("Against"), "baseline", "aa"),
        text_column(_("Outcome"), "outcome"),
        Column(_("Time ratio"), keys=("ratio",)),
        interval_column("low", "high"),
        time_column(_("Difference"), "delta_us"),
        interval_column("delta_low_us", "delta_high_us"),
        Column(_("Detectable effect"), keys=("mde",)),
        Column(_("Pairs"), keys=("pairs", "sample")),
    )
    return Table(caption, columns, [_comparison(row) for row in rows], name)


def _comparison(row: ComparisonResult) -> tuple[Cell, ...]:
    return (
        words(variant_title(row.variant), row.variant.label),
        words(baseline_text(row), row.baseline.label, row.aa),
        Cell(outcome_text(row.outcome), (row.outcome,), row.outcome),
        ratio(row.ratio),
        ratio_interval(row.low, row.high),
        signed(row.delta_us, *_times(row)),
        interval(row.delta_low_us, row.delta_high_us, *_times(row)),
        Cell("–", (None,)) if row.mde is None else percent(row.mde),
        Cell(_sample(row), (row.pairs, row.sample)),
    )


def _sample(row: ComparisonResult) -> str:
    """How many pairs of slices; one block alone speaks of its own processes only."""
    text = _("%s in blocks") if row.sample == "blocks" else _("%s in one block")
    return text % number_format.whole(row.pairs)
