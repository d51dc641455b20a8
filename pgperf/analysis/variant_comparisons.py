"""The comparisons of one run: the pairs of variants, their differences, and the outcomes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pgperf.analysis import scaling
from pgperf.analysis.ladder import climbs
from pgperf.analysis.outcome import CONFIDENCE, Outcome, classify
from pgperf.analysis.paired_comparisons import Measurements, PairedComparison
from pgperf.core.layers import BASE_LAYER
from pgperf.core.records import Definition, Variant

Pair = tuple[Variant, Variant]


@dataclass(frozen=True)
class VariantComparison:
    """A variant against its baseline.

    `ratio` is time per operation, variant over baseline; `delta_us` is the difference. `low` to
    `high` and `delta_low_us` to `delta_high_us` are their 95 % intervals, None if there are too few
    pairs. `aa`: the variant is a control, a duplicate of its baseline. `mde`: the smallest change
    of the ratio that could have been seen, 0.021 for 2.1 %.
    """

    variant: Variant
    baseline: Variant
    ratio: float
    low: float | None
    high: float | None
    delta_us: float
    delta_low_us: float | None
    delta_high_us: float | None
    outcome: str
    aa: bool
    pairs: int
    sample: str
    mde: float | None


def variant_comparisons(
    definition: Definition, measurements: Measurements, variants: Sequence[Variant], django_driver: str
) -> list[VariantComparison]:
    """Every pair that shared rounds.

    The pairs share one error rate; each control is decided by itself.
    """
    originals = [variant for variant in variants if not variant.control]
    controls = [(variant, replace(variant, control=0)) for variant in variants if variant.control]
    family = _compared(measurements, _pairs(definition, originals, django_driver))
    outcomes = classify([paired.log.at for _, paired in family])
    return [_comparison(*item, outcome, aa=False) for item, outcome in zip(family, outcomes, strict=True)] + [
        _comparison(pair, paired, classify([paired.log.at])[0], aa=True)
        for pair, paired in _compared(measurements, controls)
    ]


def bases(variants: Sequence[Variant]) -> dict[Variant, Variant]:
    """The base of each variant: the base layer beside it, or the first layer there.

    A base has none itself.
    """
    groups = same_but_layer(variants)
    return {variant: base for group in groups for variant in group if (base := base_of(group)) != variant}


def same_but_layer(variants: Iterable[Variant]) -> list[list[Variant]]:
    """The variants in groups that differ in their layer only.

    Layers that cannot have workers stand beside the workers of others, with as many connections.
    """
    groups: dict[Variant, list[Variant]] = {}
    for variant in variants:
        alike = replace(variant, layer="", clients=variant.connections, workers=1)
        groups.setdefault(alike, []).append(variant)
    return [part for group in groups.values() for part in _one_of_each_layer(group)]


def _one_of_each_layer(group: Sequence[Variant]) -> list[list[Variant]]:
    """The group without the second variant of a layer, and those by themselves: the same in one
    process and in several is another comparison.
    """
    first = {variant.layer: variant for variant in reversed(group)}
    rest = [variant for variant in group if variant != first[variant.layer]]
    return [[variant for variant in group if variant not in rest], *([rest] if rest else [])]


def _pairs(definition: Definition, originals: Sequence[Variant], django_driver: str) -> Iterator[Pair]:
    yield from _layer_pairs(same_but_layer(originals), django_driver)
    yield from _route_pairs(definition, originals)
    if not definition.is_suite:
        yield from _workload_pairs(definition, originals)
    yield from _worker_pairs(originals)
    yield from _connection_pairs(definition, originals)
    yield from scaling.pairs(originals)


def base_of(group: Sequence[Variant]) -> Variant:
    """The base layer of variants that differ in their layer only, or the first layer there."""
    return next((variant for variant in group if variant.layer == BASE_LAYER), group[0])


def _layer_pairs(groups: Iterable[list[Variant]], django_driver: str) -> Iterator[Pair]:
    """Every layer over the base layer, or over the first one where that is missing; then each rung
    over the one below.
    """
    for group in groups:
        base = base_of(group)
        yield from ((variant, base) for variant in group if variant != base)
        for rungs in climbs(group, django_driver).values():
            yield from ((upper, lower) for lower, upper in pairwise(rungs) if lower != base)


def _route_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[Pair]:
    """Every layer over itself on the first route that has it."""
    by_route = sorted(variants, key=lambda variant: definition.routes.index(variant.route))
    first: dict[Variant, Variant] = {}
    for variant in by_route:
        base = first.setdefault(replace(variant, route=""), variant)
        if variant != base:
            yield variant, base


def _workload_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[Pair]:
    """Each layer of the second workload over the same of the first: the cost or the saving of that
    change.
    """
    for variant in variants:
        base = replace(variant, workload=definition.workloads[0].name)
        if variant != base and base in variants:
            yield variant, base


def _worker_pairs(variants: Sequence[Variant]) -> Iterator[Pair]:
    """Each layer in one process with several workers over the same in as many processes."""
    for variant in variants:
        base = replace(variant, clients=variant.connections, workers=1)
        if variant != base and base in variants:
            yield variant, base


def _connection_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[Pair]:
    """Every connection mode of a layer over the first that the definition names."""
    for variant in variants:
        base = replace(variant, connect=definition.connection_modes[0])
        if variant != base and base in variants:
            yield variant, base


def _compared(measurements: Measurements, pairs: Iterable[Pair]) -> list[tuple[Pair, PairedComparison]]:
    found = ((pair, measurements.paired(*pair)) for pair in dict.fromkeys(pairs))
    return [(pair, paired) for pair, paired in found if paired]


def _comparison(pair: Pair, paired: PairedComparison, outcome: Outcome, *, aa: bool) -> VariantComparison:
    ratio, delta = paired.log.at(CONFIDENCE).exp(), paired.delta.at(CONFIDENCE)
    return VariantComparison(
        *pair,
        ratio=ratio.centre,
        low=ratio.low,
        high=ratio.high,
        delta_us=delta.centre,
        delta_low_us=delta.low,
        delta_high_us=delta.high,
        outcome=outcome.word,
        aa=aa,
        pairs=paired.log.pairs,
        sample=paired.log.kind,
        mde=outcome.mde,
    )
