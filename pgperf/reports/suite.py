"""A suite, three or more workloads, as a heat map of ratios, with the geometric mean of each layer."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import geometric_mean

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pgperf.analysis.geometric_mean import GeometricMean
from pgperf.analysis.latency import variation
from pgperf.analysis.outcome import DIFFERS, EQUIVALENT, INCONCLUSIVE, MARGIN
from pgperf.catalog.published import Figure
from pgperf.core.records import Variant
from pgperf.models import ComparisonResult, VariantResult
from pgperf.reports import number_format, open_loops, published
from pgperf.reports.chart import Chart, whisker
from pgperf.reports.comparisons import ComparisonKind, kind, outcome_text
from pgperf.reports.labels import colour, connections_title, hosts_title, layer_title, rate_title
from pgperf.reports.run_rows import RunRows, once
from pgperf.reports.table import (
    Cell,
    Column,
    Note,
    Table,
    interval,
    interval_column,
    number,
    percent,
    ratio,
    ratio_interval,
    text_column,
    time_column,
    words,
)

#: Ratios from which a cell has the next darker colour, the same for slower and faster.
_SHADES = (1.1, 1.25, 1.6, 2.5, 5.0)
#: A layer of a setting: its name and its workers.
ColumnKey = tuple[str, int]
#: A published throughput, and the measured one.
Pair = tuple[float, float]


@dataclass(frozen=True)
class Setting:
    """The variants of a suite that differ in workload and layer only, with their comparisons with
    the base layer, and guests: layers that lack the mode, in a mode of their own.

    `like` is a variant of it without workload and layer. `among`: the settings of the run.
    `published` has the figures of a publication by the primary keys of the variants.
    """

    like: Variant
    variants: Sequence[VariantResult]
    comparisons: dict[int, ComparisonResult]
    means: Sequence[GeometricMean]
    published: dict[int, Figure] = field(default_factory=dict)

    @cached_property
    def workloads(self) -> list[str]:
        return list(dict.fromkeys(row.workload for row in self.variants))

    @property
    def own(self) -> list[VariantResult]:
        """Without the guests."""
        return [row for row in self.variants if row.mode == self.like.mode]

    @cached_property
    def columns(self) -> list[ColumnKey]:
        return list(dict.fromkeys((row.layer, row.workers) for row in self.variants))

    @cached_property
    def base(self) -> ColumnKey:
        """The layer with which most others are compared."""
        bases = [(row.baseline.layer, row.baseline.workers) for row in self.comparisons.values()]
        return max(self.columns, key=bases.count)

    def base_of(self, workload: str) -> ColumnKey:
        """The base of a workload: another one where the base layer lacks it."""
        bases = [
            (self.comparisons[row.pk].baseline.layer, self.comparisons[row.pk].baseline.workers)
            for row in self.variants
            if row.workload == workload and row.pk in self.comparisons
        ]
        return max(bases, key=bases.count) if bases else self.base

    def at(self, workload: str, column: ColumnKey) -> VariantResult | None:
        found = (r for r in self.variants if r.workload == workload and (r.layer, r.workers) == column)
        return next(found, None)

    def published_at(self, workload: str, column: ColumnKey) -> float | None:
        """The published throughput over that of the base layer; None where one is missing."""
        own, base = (self.at(workload, each) for each in (column, self.base_of(workload)))
        found = [self.published.get(row.pk) for row in (own, base) if row]
        if len(found) < 2 or not found[0] or not found[1]:
            return None
        return found[0].ops_per_s / found[1].ops_per_s

    def mean(self, column: ColumnKey) -> GeometricMean | None:
        return next((mean for mean in self.means if (mean.layer, mean.workers) == column), None)

    def base_of_mean(self, mean: GeometricMean) -> ColumnKey:
        """The layer that the mean is relative to. Most workloads may have another base: the mean
        leaves out those that some layer lacks.
        """
        alike = [column for column in self.columns if column[0] == mean.base]
        return next((each for each in alike if each[1] == mean.workers), (alike or [self.base])[0])

    @cached_property
    def bases_of_means(self) -> list[ColumnKey]:
        return list(dict.fromkeys(map(self.base_of_mean, self.means)))

    @cached_property
    def bases_title(self) -> str:
        """The layers that the means are relative to: several where processes and workers differ."""
        return _(" and ").join(map(self.column_title, self.bases_of_means))

    def column_title(self, column: ColumnKey) -> str:
        layer, workers = column
        several = len([1 for other, _workers in self.columns if other == layer]) > 1
        mode = self._modes[column]
        if mode != self.like.mode:
            return f"{layer_title(layer)} · {mode}"
        return _("%(layer)s, %(workers)d workers") % {
            "layer": layer_title(layer), "workers": workers,
        } if several else layer_title(layer)  # fmt: skip

    @cached_property
    def _modes(self) -> dict[ColumnKey, str]:
        return {(row.layer, row.workers): row.mode for row in self.variants}


@once
def settings(rows: RunRows) -> list[Setting]:
    """One for each route, mode, number of connections and connection mode; none for other runs."""
    if not rows.is_suite:
        return []
    groups: dict[Variant, list[VariantResult]] = {}
    for row in rows.originals:
        groups.setdefault(_like(row.identity), []).append(row)
    against = _against_base(rows.comparisons)
    return [_setting(rows, like, group, against.get(like, {})) for like, group in groups.items()]


def _setting(
    rows: RunRows, like: Variant, own: Sequence[VariantResult], against: dict[int, ComparisonResult]
) -> Setting:
    known = {row.pk for row in own}
    variants = [*own, *(found.variant for pk, found in against.items() if pk not in known)]
    return Setting(
        like,
        variants,
        against,
        [mean for mean in rows.geometric_means if _of(mean, like)],
        {row.pk: rows.published[row.pk] for row in variants if row.pk in rows.published},
    )


def setting_title(setting: Setting, among: Sequence[Setting]) -> str:
    """The route, and whatever else tells the setting from the run's others."""
    details = ("mode", "connections", "connect", "environment", "rate", "hosts")
    apart = [name for name in details if len({getattr(each.like, name) for each in among}) > 1]
    parts = [str(getattr(setting.like, name)).replace("_", " ") for name in apart]
    if "connections" in apart:
        parts[apart.index("connections")] = connections_title(setting.like.connections)
    if "rate" in apart:
        parts[apart.index("rate")] = rate_title(setting.like.rate)
    if "hosts" in apart:
        parts[apart.index("hosts")] = hosts_title(setting.like.hosts)
    return " · ".join([setting.like.route, *parts])


def heat_map(setting: Setting, among: Sequence[Setting]) -> Table:
    """Workloads by layers: the ratio of the time per operation to the base layer's, with its
    interval. The base layer's cells have its time.
    """
    columns = (text_column(_("Workload")), *(_column(setting, each) for each in setting.columns))
    rows = [
        (words(name), *(_heat(setting, name, column) for column in setting.columns))
        for name in setting.workloads
    ]
    if setting.means:
        means = (_mean_cell(setting, column) for column in setting.columns)
        rows.append((words(_mean_head(setting)), *means))
    caption = _("Time per operation over %(title)s (above 1: slower): ratio to %(base)s, with its 95 %% interval") % {
        "title": setting_title(setting, among), "base": _base_titles(setting),
    }  # fmt: skip
    return Table(caption, columns, rows, "heat")


def number_table(setting: Setting, among: Sequence[Setting]) -> Table:
    """The figures behind the heat map, a row for each workload and layer."""
    columns = (
        text_column(_("Workload")),
        text_column(_("Layer")),
        Column(_("Operations/s")),
        Column(_("Rows/s")),
        time_column(_("Time per operation")),
        interval_column(),
        *(time_column(each) for each in ("p50", "p95", "p99", _("Standard deviation"))),
        Column(_("Variation"), _("of the mean")),
        Column(_("Time ratio")),
        interval_column(),
        text_column(_("Outcome")),
    )
    rows = [_numbers(setting, row) for row in setting.variants]
    return Table(_("Figures over %s") % setting_title(setting, among), columns, rows, "suite")


def mean_table(rows: RunRows) -> Table:
    """The geometric mean of each layer, as pages and files have it."""
    means = rows.geometric_means
    columns = (
        text_column(_("Layer"), "layer"),
        text_column(_("Against"), "baseline"),
        text_column(_("Route"), "route"),
        text_column(_("Mode"), "mode"),
        Column(_("Clients"), keys=("clients",)),
        Column(_("Workers"), keys=("workers",)),
        text_column(_("Connection"), "connect"),
        Column(_("Geometric mean of the time ratios"), keys=("ratio",)),
        interval_column("low", "high"),
        Column(_("Blocks"), keys=("blocks", "sample")),
        text_column(_("Workloads"), "workloads"),
        _telling(_("Python environment"), "environment", (mean.environment for mean in means)),
        _telling(_("Rate"), "rate", (mean.rate for mean in means)),
        _telling(_("Load hosts"), "hosts", (mean.hosts for mean in means)),
        _telling(
            _("Mode compared with"), "base_mode", (True, *(_base_mode(mean) == mean.mode for mean in means))
        ),
    )
    return Table(_("Geometric mean of each layer"), columns, [*map(_mean_row, means)], "means")


def _telling(title: str, key: str, values: Iterable[object]) -> Column:
    """A column that pages show where it tells rows apart."""
    return Column(title, keys=(key,), numeric=False, file_only=len(set(values)) <= 1)


def _base_mode(mean: GeometricMean) -> str:
    return mean.base_mode or mean.mode


def mean_chart(setting: Setting) -> Chart:
    """The geometric mean of each layer's time ratios, with its interval; the base layer is 1."""
    means = {column: setting.mean(column) for column in setting.columns}
    shown = [column for column in setting.columns if means[column] or column in setting.bases_of_means]
    known = [(column, means[column]) for column in shown]
    return {
        "kind": "bars",
        "label": _("Geometric mean of the time of each layer over all workloads, relative to %s.")
        % setting.bases_title,
        "axis": _("time relative to %s (above 1: slower)") % setting.bases_title,
        "rows": [[setting.column_title(column)] for column in shown],
        "values": [mean.ratio if mean else 1.0 for _column, mean in known],
        "colours": [colour(layer) for layer, _workers in shown],
        "whiskers": [whisker(mean.low, mean.high) if mean else None for _column, mean in known],
        "ends": [number_format.ratio(mean.ratio) if mean else "×1" for _column, mean in known],
        "line": 1,
    }


def bars(setting: Setting, among: Sequence[Setting]) -> Chart:
    """Throughput over the base layer's by workload, a bar for each layer."""
    return {
        "kind": "groups",
        "label": _("Relative throughput by workload over %s. The tables have the numbers.")
        % setting_title(setting, among),
        "axis": _("throughput relative to %s (above 1: faster)") % setting.column_title(setting.base),
        "rows": [_row_lines(setting, name) for name in setting.workloads],
        "series": [_series(setting, column) for column in setting.columns],
        "line": 1,
        "overlay": published.overlay() if setting.published else "",
    }


def published_table(setting: Setting, among: Sequence[Setting]) -> Table:
    """The published figures beside those of the run, then geometric means; no rows without any."""
    columns = (
        text_column(_("Workload")),
        text_column(_("Layer")),
        Column(_("Published"), _("operations/s")),
        Column(_("Here"), _("operations/s")),
        Column(_("Published"), _("over %s") % setting.column_title(setting.base)),
        Column(_("Here"), _("over %s") % setting.column_title(setting.base)),
    )
    rows = [_beside_published(setting, row) for row in setting.variants if row.pk in setting.published]
    caption = _("Published throughput over %s") % setting_title(setting, among)
    return Table(caption, columns, [*rows, *_published_means(setting)], "published")


def tables(rows: RunRows) -> list[Table]:
    """The tables of a suite for a terminal: none for other runs."""
    found = settings(rows)
    kinds = (heat_map, number_table, published_table)
    made = [table for each in found for kind in kinds if (table := kind(each, found)).rows]
    return [*made, mean_table(rows)] if found else []


def headlines(settings: Sequence[Setting]) -> list[str]:
    """The geometric means of each setting in a sentence."""
    return [_headline(setting, base, settings) for setting in settings for base in setting.bases_of_means]


def note(settings: Sequence[Setting]) -> str:
    """Which workloads the geometric means leave out, and why."""
    taken = {name for setting in settings for mean in setting.means for name in mean.workloads}
    left = [name for name in dict.fromkeys(n for s in settings for n in s.workloads) if name not in taken]
    text = _("The geometric mean of a layer is made of the workloads that every layer here has.")
    return f"{text} {_('It leaves out %s.') % ', '.join(left)}" if taken and left else text


def _like(variant: Variant) -> Variant:
    return replace(variant, workload="", layer="", clients=variant.connections, workers=1)


def _of(mean: GeometricMean, like: Variant) -> bool:
    same = all(
        getattr(mean, name) == getattr(like, name)
        for name in ("route", "connect", "environment", "rate", "hosts")
    )
    mode = mean.base_mode or mean.mode
    return same and mode == like.mode and mean.clients * mean.workers == like.connections


def _against_base(comparisons: Iterable[ComparisonResult]) -> dict[Variant, dict[int, ComparisonResult]]:
    """By setting of the baseline, each variant's first comparison with another layer, which is that
    with the base layer.
    """
    found: dict[Variant, dict[int, ComparisonResult]] = {}
    for row in comparisons:
        if kind(row) == ComparisonKind.LAYER and row.variant.workload == row.baseline.workload:
            found.setdefault(_like(row.baseline.identity), {}).setdefault(row.variant_id, row)
    return found


def _base_titles(setting: Setting) -> str:
    """The base layer; with those of workloads that it lacks."""
    others = [
        _("%(base)s for %(workload)s")
        % {"base": setting.column_title(setting.base_of(name)), "workload": name}
        for name in setting.workloads
        if setting.base_of(name) != setting.base
    ]
    return ", ".join([setting.column_title(setting.base), *others])


def _row_lines(setting: Setting, workload: str) -> list[str]:
    """The label of a workload's bars, with their base where it is another one."""
    base = setting.base_of(workload)
    if base == setting.base:
        return [workload]
    return [workload, _("over %s") % setting.column_title(base)]


def _column(setting: Setting, column: ColumnKey) -> Column:
    title = setting.column_title(column)
    return time_column(title) if column == setting.base else Column(title)


def _heat(setting: Setting, workload: str, column: ColumnKey) -> Cell:
    row = setting.at(workload, column)
    if row is None:
        return Cell("–", (None,), "unknown")
    found = setting.comparisons.get(row.pk)
    if found is None:
        if column == setting.base:  # the head of its column has the unit
            return replace(number(row.us_per_op), mark="base")
        return Cell(number_format.time(row.us_per_op), (row.us_per_op,), "base")
    text = Note(number_format.ratio_interval(found.low, found.high))
    mark = heat(found.ratio) if found.outcome == DIFFERS else found.outcome
    return Cell(number_format.ratio(found.ratio), (found.ratio,), mark, (text,))


def heat(value: float) -> str:
    """The CSS class of a ratio: "slower-1" to "slower-6", or faster."""
    size = max(value, 1 / value) if value > 0 else math.inf
    shade = 1 + sum(size >= each for each in _SHADES)
    return f"{'slower' if value > 1 else 'faster'}-{shade}"


def _mean_head(setting: Setting) -> str:
    """The head of the means, with their base where it is not that of the ratios above them."""
    if setting.bases_of_means == [setting.base]:
        return _("geometric mean")
    return _("geometric mean, over %s") % setting.bases_title


def _mean_cell(setting: Setting, column: ColumnKey) -> Cell:
    mean = setting.mean(column)
    if mean is None:
        return Cell("×1" if column in setting.bases_of_means else "–", mark="base")
    text = Note(number_format.ratio_interval(mean.low, mean.high))
    return Cell(number_format.ratio(mean.ratio), (mean.ratio,), _mean_mark(mean), (text,))


def _mean_mark(mean: GeometricMean) -> str:
    """By the margin of the cells above it, so that one legend holds for all."""
    if mean.low is None or mean.high is None:
        return INCONCLUSIVE
    low, high = math.log(mean.low), math.log(mean.high)
    if low > MARGIN or high < -MARGIN:
        return heat(mean.ratio)
    return EQUIVALENT if max(-low, high) <= MARGIN else INCONCLUSIVE


def _numbers(setting: Setting, row: VariantResult) -> tuple[Cell, ...]:
    found = setting.comparisons.get(row.pk)
    compared = (
        (ratio(found.ratio), ratio_interval(found.low, found.high), _outcome(found))
        if found
        else (Cell("–"), Cell("–"), Cell("–"))
    )
    return (
        words(row.workload),
        words(setting.column_title((row.layer, row.workers))),
        number(row.ops_per_s),
        number(row.rows_per_s),
        number(row.us_per_op),
        interval(row.us_per_op_low, row.us_per_op_high),
        *(open_loops.latency(row, key) for key in ("p50", "p95", "p99", "stddev")),
        _variation(row),
        *compared,
    )


def _variation(row: VariantResult) -> Cell:
    """The standard deviation of the operations in per cent of their mean."""
    share = variation(row.latency_us)
    return Cell("–", (None,), "unknown") if share is None else percent(share)


def _outcome(row: ComparisonResult) -> Cell:
    return Cell(outcome_text(row.outcome), (row.outcome,), row.outcome)


def _mean_row(mean: GeometricMean) -> tuple[Cell, ...]:
    return (
        words(layer_title(mean.layer), mean.layer),
        words(layer_title(mean.base), mean.base),
        words(mean.route, mean.route),
        words(mean.mode, mean.mode),
        Cell(number_format.whole(mean.clients), (mean.clients,)),
        Cell(number_format.whole(mean.workers), (mean.workers,)),
        words(mean.connect.replace("_", " "), mean.connect),
        ratio(mean.ratio),
        ratio_interval(mean.low, mean.high),
        Cell(number_format.whole(mean.blocks), (mean.blocks, mean.sample)),
        words(", ".join(mean.workloads), " ".join(mean.workloads)),
        words(mean.environment, mean.environment),
        words(rate_title(mean.rate), mean.rate),
        words(number_format.whole(mean.hosts), mean.hosts),
        words(_base_mode(mean), _base_mode(mean)),
    )


def _series(setting: Setting, column: ColumnKey) -> Chart:
    values = [_relative(setting, name, column) for name in setting.workloads]
    return {
        "name": setting.column_title(column),
        "colour": colour(column[0]),
        "tint": _tint(setting, column),
        "values": values,
        "marks": [_mark(setting, name, column) for name in setting.workloads],
    }


def _mark(setting: Setting, workload: str, column: ColumnKey) -> float | None:
    """The published figure; none of the base layer, which is 1 by itself."""
    return None if column == setting.base_of(workload) else setting.published_at(workload, column)


def _tint(setting: Setting, column: ColumnKey) -> int:
    """How many columns before it have the colour of its layer."""
    before = setting.columns[: setting.columns.index(column)]
    return sum(colour(layer) == colour(column[0]) for layer, _workers in before)


def _beside_published(setting: Setting, row: VariantResult) -> tuple[Cell, ...]:
    column = (row.layer, row.workers)
    return (
        words(row.workload),
        words(setting.column_title(column)),
        number(setting.published[row.pk].ops_per_s),
        number(row.ops_per_s),
        ratio(setting.published_at(row.workload, column)),
        ratio(_throughput_over_base(setting, row)),
    )


def _throughput_over_base(setting: Setting, row: VariantResult) -> float | None:
    """The quotient of the operations/s that are shown, as the published one is: interruptions count in
    full.
    """
    base = setting.at(row.workload, setting.base_of(row.workload))
    return row.ops_per_s / base.ops_per_s if base and row.ops_per_s and base.ops_per_s else None


def _published_means(setting: Setting) -> list[tuple[Cell, ...]]:
    """The geometric mean of each published layer over the workloads that all of them have."""
    pairs = {
        column: [_pair(setting, name, column) for name in setting.workloads] for column in setting.columns
    }
    of_layers = {column: own for column, own in pairs.items() if any(own)}
    whole = [at for at, each in enumerate(zip(*of_layers.values(), strict=True)) if all(each)]
    if len(whole) < 2:
        return []
    means = {column: _means([pair for at in whole if (pair := own[at])]) for column, own in of_layers.items()}
    return [_mean_beside_published(setting, column, means) for column in means]


def _means(pairs: Sequence[Pair]) -> Pair:
    theirs, ours = zip(*pairs, strict=True)
    return geometric_mean(theirs), geometric_mean(ours)


def _mean_beside_published(
    setting: Setting, column: ColumnKey, means: dict[ColumnKey, Pair]
) -> tuple[Cell, ...]:
    own, base = means[column], means.get(setting.base)
    over = [mean / other for mean, other in zip(own, base, strict=True)] if base else [None, None]
    head = words(_("geometric mean")), words(setting.column_title(column))
    return (*head, *map(number, own), *map(ratio, over))


def _pair(setting: Setting, workload: str, column: ColumnKey) -> Pair | None:
    """The published throughput and the measured one; None where one is missing."""
    row = setting.at(workload, column)
    figure = setting.published.get(row.pk) if row else None
    return (figure.ops_per_s, row.ops_per_s) if row and figure and row.ops_per_s else None


def _relative(setting: Setting, workload: str, column: ColumnKey) -> float | None:
    row = setting.at(workload, column)
    return _throughput_over_base(setting, row) if row else None


def _headline(setting: Setting, base: ColumnKey, among: Sequence[Setting]) -> str:
    """The means that are relative to one layer."""
    means = [mean for mean in setting.means if setting.base_of_mean(mean) == base]
    ratios = [
        _("%(layer)s %(ratio)s")
        % {
            "layer": setting.column_title((mean.layer, mean.workers)),
            "ratio": number_format.ratio(mean.ratio),
        }
        for mean in sorted(means, key=lambda mean: mean.ratio)
    ]
    count = len(means[0].workloads)
    text = ngettext(
        "%(title)s: geometric mean of the time over %(base)s in %(count)d workload: %(means)s.",
        "%(title)s: geometric mean of the time over %(base)s in %(count)d workloads: %(means)s.",
        count,
    )
    return text % {
        "title": setting_title(setting, among),
        "base": setting.column_title(base),
        "count": count,
        "means": ", ".join(ratios),
    }
