"""Rows to tables, one function per table: the numbers behind each chart, as text with the exact value beside it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.outcome import DIFFERS
from pgperf.models import ComparisonResult, VariantResult
from pgperf.records import CAPTURES
from pgperf.reports import figures
from pgperf.reports.charts import (
    CPU_ROLES,
    PERCENTILES,
    Ladder,
    cpu_names,
    ladder_title,
    layer_title,
    rung_lines,
    side_rungs,
)


@dataclass(frozen=True)
class Cell:
    """What is shown, the exact value behind it (null: not a number), and a word to colour it by."""

    text: str
    value: float | None = None
    mark: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Table:
    """A table with row headers in its first column. `unit` stands in the caption."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    name: str = ""

    @property
    def heads(self) -> list[tuple[str, bool]]:
        """Each column's title, and whether it holds numbers."""
        first = self.rows[0] if self.rows else ()
        return [
            (title, index < len(first) and first[index].numeric) for index, title in enumerate(self.columns)
        ]


def ladder_table(ladder: Ladder, ladders: Sequence[Ladder]) -> Table:
    """One ladder: time of each rung, what it adds, its ratio to the first; each with its 95 % interval."""
    columns = (
        _("Layer"), _("µs per operation"), _("95 % interval"), _("step, µs"), _("95 % interval"),
        _("over the first"), _("95 % interval"),
    )  # fmt: skip
    climbed = len(ladder["steps"])
    rows = [
        (
            _head(", ".join(rung_lines(rung, beside=index >= climbed))),
            _number(rung["us"]),
            _text(figures.interval(rung.get("low"), rung.get("high"))),
            *_step_cells(rung, first=index == 0),
        )
        for index, rung in enumerate([*ladder["steps"], *side_rungs(ladder)])
    ]
    return Table(_("The ladder of %s") % ladder_title(ladder, ladders), columns, rows, "ladder")


def throughput_table(variants: Sequence[VariantResult]) -> Table:
    """What each variant got done, controls included."""
    columns = (
        _("Variant"), _("operations"), _("operations/s"), _("rows/s"), _("errors"), _("µs per operation"),
        _("95 % interval"),
    )  # fmt: skip
    rows = [
        (
            _head(label_text(variant.label)),
            _count(variant.ops),
            _number(variant.ops_per_s),
            _number(variant.rows_per_s),
            _count(variant.errors),
            _number(variant.us_per_op),
            _text(figures.interval(variant.us_per_op_low, variant.us_per_op_high)),
        )
        for variant in variants
    ]
    return Table(_("Throughput"), columns, rows, "throughput")


def cpu_table(variants: Sequence[VariantResult]) -> Table:
    """Processor time of one operation by who spent it, µs. A role that no variant knows has no column."""
    names = cpu_names()
    roles = [role for role in CPU_ROLES if any(v.cpu_us_per_op.get(role) is not None for v in variants)]
    columns = (_("Variant"), *(_("%s, µs") % names[role] for role in roles))
    rows = [
        (_head(label_text(variant.label)), *(_number(variant.cpu_us_per_op.get(role)) for role in roles))
        for variant in variants
    ]
    unseen = ", ".join(names[role] for role in CPU_ROLES if role not in roles)
    caption = _("Processor time per operation")
    return Table(_("%s; not known here: %s") % (caption, unseen) if unseen else caption, columns, rows, "cpu")


def latency_table(variants: Sequence[VariantResult]) -> Table:
    """The distribution of one operation's duration, µs."""
    keys = ("min", "mean", "stddev", *PERCENTILES, "max")
    columns = (_("Variant"), *(f"{_(key)}, µs" for key in keys))
    rows = [(_head(label_text(v.label)), *(_number(v.latency_us.get(key)) for key in keys)) for v in variants]
    return Table(_("Latency: duration of one operation, closed loop"), columns, rows, "latency")


def cold_table(variants: Sequence[VariantResult]) -> Table:
    """What comes before the steady state: start-up, connecting, the first operations, µs."""
    phases = {
        "startup": _("process start-up"),
        "connect": _("connect"),
        "first": _("first"),
        "second": _("second"),
        "next_ten": _("next ten"),
        "other_query_first": _("other query, first"),
        "other_query_second": _("other query, second"),
    }
    shown = [variant for variant in variants if any(value is not None for value in variant.cold_us.values())]
    columns = (_("Variant"), *(_("%s, µs") % title for title in phases.values()))
    rows = [(_head(label_text(v.label)), *(_number(v.cold_us.get(phase)) for phase in phases)) for v in shown]
    return Table(_("Cold phases: the median of the processes started for them"), columns, rows, "cold")


def comparison_tables(comparisons: Iterable[ComparisonResult]) -> list[Table]:
    """Each variant against its baseline, with the outcome in a word: workloads, layers, routes; no controls."""
    rows = [row for row in comparisons if not row.aa]
    works = workload_rows(rows)
    routes = [row for row in rows if row not in works and _layer(row.variant) == _layer(row.baseline)]
    layers = [row for row in rows if row not in works and row not in routes]
    made = (
        _comparisons(_("One workload against the other, layer by layer"), works),
        _comparisons(_("One layer against another"), layers),
        _comparisons(_("One route against another"), routes),
    )
    return [table for table in made if table.rows]


def workload_rows(comparisons: Iterable[ComparisonResult]) -> list[ComparisonResult]:
    """Those that set two workloads of one layer over one route against each other."""
    return [row for row in comparisons if not row.aa and _place(row.variant) == _place(row.baseline)]


def control_table(comparisons: Iterable[ComparisonResult]) -> Table:
    """The controls: a variant against its own duplicate."""
    controls = [row for row in comparisons if row.aa]
    return _comparisons(_("Controls: the same thing against itself"), controls, "controls")


def timings_table(timings: dict[str, float]) -> Table:
    """Where the run's wall time went."""
    names = {
        "slices_s": _("slices (lead-ins and windows)"),
        "warm_up_s": _("warm-up"),
        "pilot_s": _("pilot"),
        "startup_s": _("starting processes and connecting"),
        "wall_s": _("whole run"),
    }
    wall = timings.get("wall_s")
    rows = [
        (_head(name), _number(timings[key]), _text(figures.percent(timings[key] / wall) if wall else ""))
        for key, name in names.items()
        if timings.get(key) is not None
    ]
    return Table(_("Where the run's own time went"), (_("Part"), _("seconds"), _("share")), rows, "timings")


def environment_tables(environment: dict[str, Any]) -> list[Table]:
    """What was measured on: one table per part, nested parts flattened to dotted names."""
    environment = {key: value for key, value in environment.items() if key != CAPTURES}
    plain = {key: value for key, value in environment.items() if not isinstance(value, dict)}
    parts = {_("General"): plain} | {_words(k): v for k, v in environment.items() if isinstance(v, dict)}
    columns = (_("What"), _("value"))
    return [
        Table(
            title,
            columns,
            [(_head(key), _text(text, numeric=False)) for key, text in _flat(part)],
            "environment",
        )
        for title, part in parts.items()
        if part
    ]


def capture_tables(environment: dict[str, Any]) -> list[Table]:
    """What one operation of each of the site's own workloads sent, values masked, with the rows of each statement."""
    columns = (_("Statement"), _("its text, values masked"), _("rows"))
    return [
        Table(
            _capture_caption(name, capture),
            columns,
            [
                (_head(str(number)), _text(each["sql"], numeric=False), _count(each["rows"]))
                for number, each in enumerate(capture["each"], 1)
            ],
            "capture",
        )
        for name, capture in environment.get(CAPTURES, {}).items()
    ]


def _capture_caption(name: str, capture: dict[str, Any]) -> str:
    sent = ngettext("%d statement", "%d statements", capture["statements"]) % capture["statements"]
    rows = ngettext("%d row", "%d rows", capture["rows"]) % capture["rows"]
    return _("One operation of %(name)s: %(sent)s, %(rows)s") % {"name": name, "sent": sent, "rows": rows}


def headlines(ladders: Sequence[Ladder]) -> list[str]:
    """Each ladder in one sentence."""
    return [_headline(ladder, ladders) for ladder in ladders if len(ladder["steps"]) > 1]


def workload_headlines(comparisons: Iterable[ComparisonResult]) -> list[str]:
    """What a change from the first workload to the second saves or costs in each layer: one sentence for each route."""
    routes: dict[str, list[ComparisonResult]] = {}
    for row in workload_rows(comparisons):
        routes.setdefault(_place(row.variant)[1], []).append(row)
    return [_workload_headline(route, rows) for route, rows in routes.items()]


def label_text(label: str) -> str:
    """A variant's label with the layer's title instead of its name."""
    layer, *rest = label.split(" · ")
    return " · ".join([layer_title(layer), *rest])


def _headline(ladder: Ladder, ladders: Sequence[Ladder]) -> str:
    first, last = ladder["steps"][0], ladder["steps"][-1]
    return _("%(route)s: %(top)s takes %(us)s µs per operation, %(ratio)s of %(bottom)s's %(base)s µs.") % {
        "route": ladder_title(ladder, ladders),
        "top": layer_title(last["layer"]),
        "us": figures.number(last["us"]),
        "ratio": figures.ratio(last.get("ratio")),
        "bottom": layer_title(first["layer"]),
        "base": figures.number(first["us"]),
    }


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
            "us": figures.number(-row.delta_us) if saves else figures.signed(row.delta_us),
            "layer": layer_title(_layer(row.variant)),
        }
        for row in rows
    ]
    return _("%(route)s: %(second)s instead of %(first)s %(words)s %(changes)s.") % {
        **names, "words": _("saves") if saves else _("changes"), "changes": ", ".join(changes),
    }  # fmt: skip


def _swapped(row: ComparisonResult) -> ComparisonResult:
    return ComparisonResult(variant=row.baseline, baseline=row.variant, aa=row.aa)


def _step_cells(step: dict[str, Any], *, first: bool) -> tuple[Cell, ...]:
    if first:
        return (Cell("–"), Cell("–"), Cell(figures.ratio(1.0), 1.0), Cell("–"))
    return (
        Cell(figures.signed(step.get("step_us")), step.get("step_us")),
        _text(figures.interval(step.get("step_low_us"), step.get("step_high_us"))),
        Cell(figures.ratio(step.get("ratio")), step.get("ratio")),
        _text(figures.ratio_interval(step.get("ratio_low"), step.get("ratio_high"))),
    )


def _comparisons(caption: str, rows: Iterable[ComparisonResult], name: str = "comparisons") -> Table:
    columns = (
        _("Variant"), _("against"), _("outcome"), _("time ratio"), _("95 % interval"), _("difference, µs"),
        _("95 % interval"), _("visible from"), _("pairs"),
    )  # fmt: skip
    return Table(caption, columns, [_comparison(row) for row in rows], name)


def _place(label: str) -> list[str]:
    """Layer and route of a variant, which lead its label."""
    return label.split(" · ")[:2]


def _layer(label: str) -> str:
    return label.partition(" · ")[0]


def _comparison(row: ComparisonResult) -> tuple[Cell, ...]:
    return (
        _head(label_text(row.variant)),
        Cell(baseline_text(row), numeric=False),
        Cell(outcome_text(row.outcome), mark=row.outcome, numeric=False),
        Cell(figures.ratio(row.ratio), row.ratio),
        _text(figures.ratio_interval(row.low, row.high)),
        Cell(figures.signed(row.delta_us), row.delta_us),
        _text(figures.interval(row.delta_low_us, row.delta_high_us)),
        Cell("–" if row.mde is None else figures.percent(row.mde), row.mde),
        Cell(_sample(row), row.pairs),
    )


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


def _sample(row: ComparisonResult) -> str:
    if row.sample == "blocks":
        return ngettext("%d block", "%d blocks", row.pairs) % row.pairs
    return ngettext("%d round", "%d rounds", row.pairs) % row.pairs


def _head(text: str) -> Cell:
    return Cell(str(text), numeric=False)


def _text(text: str, *, numeric: bool = True) -> Cell:
    return Cell(text, numeric=numeric)


def _number(value: float | None) -> Cell:
    return Cell(figures.number(value), value, "" if value is not None else "unknown")


def _count(value: int) -> Cell:
    return Cell(figures.whole(value), value)


def _words(key: str) -> str:
    return key.replace("_", " ").capitalize()


def _flat(part: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in part.items():
        if isinstance(value, dict):
            rows += _flat(value, f"{prefix}{key}.")
        else:
            rows.append((f"{prefix}{key}", _plain(value)))
    return rows


def _plain(value: Any) -> str:
    if value is None:
        return _("unknown")
    if isinstance(value, list):
        return ", ".join(str(item) for item in value) or _("none")
    return str(value).strip() or "–"
