"""From a definition to what will be done: variants, controls, cohorts, the order of each round. Pure."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise, product

from pgperf.exceptions import InvalidDefinition
from pgperf.layers import LAYERS
from pgperf.records import CONNECTS, Cohort, Definition, Plan, Variant

#: Variants that stand by together. The whole of `orm-overhead` fits, so that all of it is compared directly.
COHORT_SIZE = 18
_SHUFFLES = 24


def make_plan(definition: Definition, skipped: Mapping[str, str] | None = None) -> Plan:
    """The plan of a definition without the layers (or "layer/mode") in `skipped`, which maps them to the reason.

    Raises InvalidDefinition when nothing is left to compare.
    """
    skipped = dict(skipped or {})
    variants = [
        v for v in _variants(definition) if v.layer not in skipped and f"{v.layer}/{v.mode}" not in skipped
    ]
    if not variants:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise InvalidDefinition(f"layers: none of them can run here ({reasons or 'none given'})")
    return Plan(definition, tuple(_cohorts(variants + _controls(variants))), skipped)


def round_order(plan: Plan, cohort: int, block: int, round_: int) -> list[int]:
    """Indices into the cohort's variants, freshly shuffled; what is compared stays near each other.

    Routes in random order, and within each the shuffle, out of 24, that keeps rungs nearest to the rung below and
    controls nearest to their originals: slices in a row share some of the machine's noise.
    """
    rng = random.Random(f"{plan.definition.seed}/{cohort}/{block}/{round_}")
    variants = plan.cohorts[cohort].variants
    groups: dict[tuple[str, str, int], list[int]] = {}
    for index, variant in enumerate(variants):
        groups.setdefault(_neighbourhood(variant), []).append(index)
    shuffled = list(groups.values())
    rng.shuffle(shuffled)
    nearest = [
        min((rng.sample(group, len(group)) for _ in range(_SHUFFLES)), key=partial(_strain, variants))
        for group in shuffled
    ]
    return [index for group in nearest for index in group]


def _strain(variants: Sequence[Variant], order: Sequence[int]) -> int:
    """How far apart an order puts what is compared: neighbouring rungs, and copies and their originals."""
    rungs = [index for index in sorted(order) if not variants[index].copy]
    copies = [
        (index, variants.index(replace(variants[index], copy=0))) for index in order if variants[index].copy
    ]
    return sum(abs(order.index(a) - order.index(b)) for a, b in [*pairwise(rungs), *copies])


def _variants(definition: Definition) -> list[Variant]:
    """Every combination, in ladder order within each route."""
    order = [layer for layer in LAYERS if layer in definition.layers]
    unknown = sorted(set(definition.layers) - set(LAYERS))
    if unknown:
        raise InvalidDefinition(f"layers: unknown {', '.join(unknown)}; choose from {', '.join(LAYERS)}")
    axes = product(definition.routes, definition.modes, definition.clients, CONNECTS, order)
    return [
        Variant(definition.workload.name, layer, mode, route, clients, connect, definition.placement)
        for route, mode, clients, connect, layer in axes
    ]


def _controls(variants: list[Variant]) -> list[Variant]:
    """A duplicate of the fastest and of the slowest: lowest rung of the first route, highest of the last."""
    fastest, slowest = variants[0], variants[-1]
    return [replace(variant, copy=1) for variant in dict.fromkeys((fastest, slowest))]


def _neighbourhood(variant: Variant) -> tuple[str, str, int]:
    return variant.route, variant.mode, variant.clients


def _cohorts(variants: list[Variant]) -> list[Cohort]:
    """One cohort if they fit, else one per neighbourhood (or part of it), each led by the shared reference."""
    if len(variants) <= COHORT_SIZE:
        return [Cohort(tuple(variants))]
    reference = variants[0]
    cohorts = []
    for _, members in groupby(sorted(variants, key=_rank(variants)), key=_neighbourhood):
        others = [variant for variant in members if variant != reference]
        starts = range(0, len(others), COHORT_SIZE - 1)
        cohorts += [Cohort((reference, *others[start : start + COHORT_SIZE - 1])) for start in starts]
    return cohorts


def _rank(variants: list[Variant]) -> Callable[[Variant], tuple[int, int]]:
    order = list(dict.fromkeys(_neighbourhood(variant) for variant in variants))
    return lambda variant: (order.index(_neighbourhood(variant)), variant.copy)
