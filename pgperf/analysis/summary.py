"""What a run says, as plain JSON: a row per variant, the comparisons with their outcomes, the ladders."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from statistics import median
from typing import Any

from pgperf.analysis import (
    consistency_checks,
    cpu_accounting,
    cpu_per_operation,
    diagnostics,
    latency,
    scaling,
    top,
    verdict,
)
from pgperf.analysis.ladder import climbs, ladders
from pgperf.analysis.outcome import CONFIDENCE, Outcome, judge
from pgperf.analysis.paired_comparisons import Comparison, Measurements, ops_per_s
from pgperf.analysis.run_comparison import levels
from pgperf.analysis.samples import interval
from pgperf.analysis.timeline import timeline
from pgperf.core.records import Definition, Variant, VariantBlock

ANALYSIS_VERSION = 4
COLD_PHASES = (
    "startup", "connect", "first", "second", "next_ten", "other_query_first", "other_query_second",
)  # fmt: skip


def summarise(
    definition: Definition, variants: Sequence[Variant], blocks: Sequence[VariantBlock], django_driver: str
) -> dict[str, Any]:
    """The summary of a run from the blocks it has, complete or not. `variants` are in the order of the tables.

    `variants` and `comparisons` hold rows whose keys are the fields of the models of that name; a variant without a
    block has a row of nulls, a pair that shares nothing has no comparison. JSON-able: no NaN, no numpy types.
    """
    measurements = Measurements(blocks)
    originals = [variant for variant in variants if not variant.control]
    groups = _same_but_layer(originals)
    read = diagnostics.rows_expected(blocks)
    rows = [_variant_row(measurements, variant, blocks, read.get(variant.workload)) for variant in variants]
    return {
        "analysis_version": ANALYSIS_VERSION,
        "variants": rows,
        "comparisons": _comparison_rows(
            measurements,
            [
                *_layer_pairs(groups, django_driver),
                *_route_pairs(definition, originals),
                *_workload_pairs(definition, originals),
                *scaling.pairs(originals),
            ],
            [(variant, replace(variant, control=0)) for variant in variants if variant.control],
        ),
        "ladders": [found for group in groups for found in ladders(measurements, group, django_driver)],
        "levels": levels(measurements, originals, bases(originals)),
        "scaling": scaling.curves(measurements, originals, rows),
        "timeline": timeline(blocks),
    }


def bases(variants: Sequence[Variant]) -> dict[Variant, Variant]:
    """What each variant is measured from: the libpq beside it, or the first layer there; those have none."""
    groups = _same_but_layer(variants)
    return {variant: base for group in groups for variant in group if (base := _base(group)) != variant}


def _same_but_layer(variants: Iterable[Variant]) -> list[list[Variant]]:
    groups: dict[Variant, list[Variant]] = {}
    for variant in variants:
        groups.setdefault(replace(variant, layer=""), []).append(variant)
    return list(groups.values())


def _base(group: Sequence[Variant]) -> Variant:
    return next((variant for variant in group if variant.layer == "libpq"), group[0])


def _layer_pairs(groups: Iterable[list[Variant]], django_driver: str) -> Iterator[tuple[Variant, Variant]]:
    """Every layer over libpq, or over the first one where libpq is missing; then each rung over the one below."""
    for group in groups:
        base = _base(group)
        yield from ((variant, base) for variant in group if variant != base)
        for rungs in climbs(group, django_driver).values():
            yield from ((upper, lower) for lower, upper in pairwise(rungs) if lower != base)


def _route_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[tuple[Variant, Variant]]:
    """Every layer over itself on the first route that has it."""
    by_route = sorted(variants, key=lambda variant: definition.routes.index(variant.route))
    first: dict[Variant, Variant] = {}
    for variant in by_route:
        base = first.setdefault(replace(variant, route=""), variant)
        if variant != base:
            yield variant, base


def _workload_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[tuple[Variant, Variant]]:
    """Each layer of the second workload over the same of the first: what that change costs or saves."""
    for variant in variants:
        base = replace(variant, workload=definition.workload.name)
        if variant != base and base in variants:
            yield variant, base


def _comparison_rows(
    measurements: Measurements,
    pairs: Sequence[tuple[Variant, Variant]],
    controls: Sequence[tuple[Variant, Variant]],
) -> list[dict[str, Any]]:
    """The pairs share one error rate; each control is decided by itself."""
    family = _compared(measurements, pairs)
    outcomes = judge([comparison.log.at for _, _, comparison in family])
    rows = [_comparison_row(*item, outcome, aa=False) for item, outcome in zip(family, outcomes, strict=True)]
    return rows + [
        _comparison_row(variant, original, comparison, judge([comparison.log.at])[0], aa=True)
        for variant, original, comparison in _compared(measurements, controls)
    ]


def _compared(
    measurements: Measurements, pairs: Iterable[tuple[Variant, Variant]]
) -> list[tuple[Variant, Variant, Comparison]]:
    found = ((*pair, measurements.compare(*pair)) for pair in dict.fromkeys(pairs))
    return [(variant, baseline, comparison) for variant, baseline, comparison in found if comparison]


def _comparison_row(
    variant: Variant, baseline: Variant, comparison: Comparison, outcome: Outcome, *, aa: bool
) -> dict[str, Any]:
    ratio, delta = comparison.log.at(CONFIDENCE).exp(), comparison.delta.at(CONFIDENCE)
    return {
        "variant": variant.label,
        "baseline": baseline.label,
        "ratio": ratio.centre,
        "low": ratio.low,
        "high": ratio.high,
        "delta_us": delta.centre,
        "delta_low_us": delta.low,
        "delta_high_us": delta.high,
        "outcome": outcome.word,
        "aa": aa,
        "pairs": comparison.log.pairs,
        "sample": comparison.log.kind,
        "mde": outcome.mde,
    }


def _variant_row(
    measurements: Measurements, variant: Variant, blocks: Iterable[VariantBlock], read: int | None
) -> dict[str, Any]:
    """`read`: the rows that one operation reads from the server, where that is known."""
    own = [block for block in blocks if block.variant == variant]
    asked = {"diagnostics": diagnostics.diagnostics(own, read), "top": top.top(own)}
    row = _measured_row(measurements, variant, own) | asked
    return {**row, "verdict": verdict.judge(row, consistency_checks.checks(own, row))}


def _measured_row(
    measurements: Measurements, variant: Variant, own: Sequence[VariantBlock]
) -> dict[str, Any]:
    slices = [piece for block in own for piece in block.slices]
    ops, rows = sum(piece.ops for piece in slices), sum(piece.rows for piece in slices)
    return {
        "label": variant.label,
        **{name: value for name, value in asdict(variant).items() if name != "named"},
        "slices": len(slices),
        "ops": ops,
        "rows": rows,
        "errors": 0,  # an error ends the run: what is summarised here had none
        **_speed(measurements, variant, rows / ops if ops else 0.0),
        "latency_us": latency.summary_us(own),
        "cold_us": _cold_us(own),
        "cpu_us_per_op": cpu_per_operation.per_op_us(own),
        "cpu_account": cpu_accounting.cpu_account(own),
    }


def _speed(measurements: Measurements, variant: Variant, rows_per_op: float) -> dict[str, float | None]:
    if variant not in measurements:
        return dict.fromkeys(("ops_per_s", "rows_per_s", "us_per_op", "us_per_op_low", "us_per_op_high"))
    us = interval(measurements.level(variant), CONFIDENCE).of_a_time()
    ops = interval(measurements.level(variant, ops_per_s), CONFIDENCE).centre
    return {
        "ops_per_s": ops,
        "rows_per_s": ops * rows_per_op,
        "us_per_op": us.centre,
        "us_per_op_low": us.low,
        "us_per_op_high": us.high,
    }


def _cold_us(blocks: Iterable[VariantBlock]) -> dict[str, float | None]:
    """The median over the blocks that measured the phase: a fresh process each, so a handful of values."""
    cold = [block.cold_us for block in blocks]
    known = {phase: [us for row in cold if (us := row.get(phase)) is not None] for phase in COLD_PHASES}
    return {phase: median(values) if values else None for phase, values in known.items()}
