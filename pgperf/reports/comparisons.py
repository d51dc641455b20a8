"""Comparisons as tables, and what a change of workload saves in a sentence."""

from collections.abc import Iterable, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.outcome import DIFFERS
from pgperf.core.records import crowds_apart
from pgperf.models import ComparisonResult
from pgperf.reports import number_format
from pgperf.reports.labels import label_text, layer_title
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
    words,
)


def comparison_tables(comparisons: Iterable[ComparisonResult]) -> list[Table]:
    """Each variant against its baseline, with the outcome in a word, by what differs; no controls."""
    rows = [row for row in comparisons if not row.aa]
    works = workload_rows(rows)
    crowds = [row for row in rows if crowds_apart(row.variant, row.baseline)]
    rest = [row for row in rows if row not in works and row not in crowds]
    routes = [row for row in rest if _layer(row.variant) == _layer(row.baseline)]
    layers = [row for row in rest if row not in routes]
    made = (
        _comparisons(_("One workload against the other, layer by layer"), works),
        _comparisons(_("More clients"), crowds),
        _comparisons(_("One layer against another"), layers),
        _comparisons(_("One route against another"), routes),
    )
    return [table for table in made if table.rows]


def workload_rows(comparisons: Iterable[ComparisonResult]) -> list[ComparisonResult]:
    """Those that set two workloads of one layer over one route against each other."""
    return [row for row in comparisons if not row.aa and _works_apart(row.variant, row.baseline)]


def control_table(comparisons: Iterable[ComparisonResult]) -> Table:
    """The controls: a variant against its own duplicate."""
    controls = [row for row in comparisons if row.aa]
    return _comparisons(_("Controls: the same thing against itself"), controls, "controls")


def workload_headlines(comparisons: Iterable[ComparisonResult]) -> list[str]:
    """What a change from the first workload to the second saves or costs in each layer: one sentence for each route."""
    routes: dict[str, list[ComparisonResult]] = {}
    for row in workload_rows(comparisons):
        routes.setdefault(_place(row.variant)[1], []).append(row)
    return [_workload_headline(route, rows) for route, rows in routes.items()]


def baseline_text(row: ComparisonResult) -> str:
    """What tells the baseline from its variant; the whole label where that is nothing."""
    if row.aa:
        return _("itself")
    variant, baseline = label_text(row.variant).split(" · "), label_text(row.baseline).split(" · ")
    if len(variant) != len(baseline):
        return label_text(row.baseline)
    return " · ".join(part for part, other in zip(baseline, variant, strict=True) if part != other)


def outcome_text(outcome: str) -> str:
    """The outcome as people read it."""
    words = {"differs": _("differs"), "equivalent": _("equivalent"), "inconclusive": _("inconclusive")}
    return words.get(outcome, outcome)


def _workload_headline(route: str, rows: Sequence[ComparisonResult]) -> str:
    """Layers in which nothing is certain are named without a figure, which somebody might quote."""
    names = {"route": route, "second": baseline_text(_swapped(rows[0])), "first": baseline_text(rows[0])}
    certain = [row for row in reversed(rows) if row.outcome == DIFFERS]
    vague = [layer_title(_layer(row.variant)) for row in reversed(rows) if row.outcome != DIFFERS]
    sentences = [_changes(certain, names)] if certain else []
    if vague:
        words = _("%(route)s: no certain difference between %(first)s and %(second)s in %(layers)s.")
        sentences.append(words % {**names, "layers": ", ".join(vague)})
    return " ".join(sentences)


def _changes(rows: Sequence[ComparisonResult], names: dict[str, str]) -> str:
    """The sentence on the layers that differ."""
    saves = all(row.delta_us < 0 for row in rows)
    changes = [
        _("%(us)s µs in %(layer)s")
        % {
            "us": number_format.number(-row.delta_us) if saves else number_format.signed(row.delta_us),
            "layer": layer_title(_layer(row.variant)),
        }
        for row in rows
    ]
    return _("%(route)s: %(second)s instead of %(first)s %(words)s %(changes)s.") % {
        **names, "words": _("saves") if saves else _("changes"), "changes": ", ".join(changes),
    }  # fmt: skip


def _swapped(row: ComparisonResult) -> ComparisonResult:
    return ComparisonResult(variant=row.baseline, baseline=row.variant, aa=row.aa)


def _comparisons(caption: str, rows: Iterable[ComparisonResult], name: str = "comparisons") -> Table:
    columns = (
        text_column(_("Variant")),
        text_column(_("against")),
        text_column(_("outcome")),
        Column(_("time ratio")),
        interval_column(),
        Column(_("difference"), "µs"),
        interval_column(),
        Column(_("visible from")),
        Column(_("pairs")),
    )
    return Table(caption, columns, [_comparison(row) for row in rows], name)


def _place(label: str) -> list[str]:
    """Layer and route of a variant, which lead its label."""
    return label.split(" · ")[:2]


def _works_apart(variant: str, baseline: str) -> bool:
    return _place(variant) == _place(baseline) and not crowds_apart(variant, baseline)


def _layer(label: str) -> str:
    return label.partition(" · ")[0]


def _comparison(row: ComparisonResult) -> tuple[Cell, ...]:
    return (
        words(label_text(row.variant)),
        words(baseline_text(row)),
        Cell(outcome_text(row.outcome), (row.outcome,), row.outcome),
        ratio(row.ratio),
        ratio_interval(row.low, row.high),
        signed(row.delta_us),
        interval(row.delta_low_us, row.delta_high_us),
        Cell("–") if row.mde is None else percent(row.mde),
        Cell(_sample(row), (row.pairs,)),
    )


def _sample(row: ComparisonResult) -> str:
    if row.sample == "blocks":
        return ngettext("%d block", "%d blocks", row.pairs) % row.pairs
    return ngettext("%d round", "%d rounds", row.pairs) % row.pairs
