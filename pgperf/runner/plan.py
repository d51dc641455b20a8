"""From a definition to what will be done: variants, controls, cohorts, the order of each round. Pure."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise, product

from pgperf.exceptions import InvalidDefinition
from pgperf.layers import LAYERS, calls_orm
from pgperf.records import CONNECTS, Cohort, Definition, Plan, Variant

#: Variants that stand by together. The whole of `orm-overhead` fits, so that all of it is compared directly.
COHORT_SIZE = 18
_SHUFFLES = 24


def make_plan(definition: Definition, skipped: Mapping[str, str] | None = None) -> Plan:
    """The plan of a definition without what is in `skipped`, which maps it to the reason.

    Skipped may be a layer, a "layer/mode", either of them for one workload (`of_workload`), or all of a workload below
    the ORM (`below_orm`). Raises InvalidDefinition when nothing is left to compare.
    """
    skipped = dict(skipped or {})
    variants = [v for v in _variants(definition) if not _names_of(v) & set(skipped)]
    if not variants:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise InvalidDefinition(f"layers: none of them can run here ({reasons or 'none given'})")
    return Plan(definition, tuple(_cohorts(variants + _controls(variants))), skipped)


def below_orm(workload: str) -> str:
    """The name in `skipped` of all layers of a workload but the ORM."""
    return of_workload(workload, "all layers below the ORM")


def of_workload(workload: str, layer: str) -> str:
    """The name in `skipped` of a layer (or "layer/mode") for one workload only."""
    return f"{workload}: {layer}"


def _names_of(variant: Variant) -> set[str]:
    """The names under which the variant may be skipped."""
    names = {variant.layer, f"{variant.layer}/{variant.mode}"}
    own = {of_workload(variant.workload, name) for name in names}
    return names | own | (set() if calls_orm(variant.layer) else {below_orm(variant.workload)})


def round_order(plan: Plan, cohort: int, block: int, round_: int) -> list[int]:
    """Indices into the cohort's variants, freshly shuffled; what is compared stays near each other.

    Routes in random order, and within each the shuffle, out of 24, that keeps rungs nearest to the rung below, controls
    nearest to their originals and two workloads of one layer nearest to each other: slices in a row share some of the
    machine's noise.
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
    """How far apart an order puts what is compared."""
    return sum(abs(order.index(a) - order.index(b)) for a, b in _compared(variants, order))


def _compared(variants: Sequence[Variant], order: Sequence[int]) -> list[tuple[int, int]]:
    """Indices of neighbouring rungs, of the two workloads of each rung, of copies and their originals."""
    rungs: dict[str, list[int]] = {}
    for index in sorted(index for index in order if not variants[index].copy):
        rungs.setdefault(variants[index].workload, []).append(index)
    twins = [
        (a, b) for one, other in pairwise(rungs.values()) for a in one for b in other
        if variants[a].layer == variants[b].layer
    ]  # fmt: skip
    copies = [
        (index, variants.index(replace(variants[index], copy=0))) for index in order if variants[index].copy
    ]
    return [*(pair for each in rungs.values() for pair in pairwise(each)), *twins, *copies]


def _variants(definition: Definition) -> list[Variant]:
    """Every combination, in ladder order within each route, two workloads next to each other on each rung."""
    order = [layer for layer in LAYERS if layer in definition.layers]
    unknown = sorted(set(definition.layers) - set(LAYERS))
    if unknown:
        raise InvalidDefinition(f"layers: unknown {', '.join(unknown)}; choose from {', '.join(LAYERS)}")
    works, named = [work.name for work in definition.workloads], len(definition.workloads) > 1
    axes = product(definition.routes, definition.modes, definition.clients, CONNECTS, order, works)
    return [
        Variant(work, layer, mode, route, clients, connect, definition.placement, named=named)
        for route, mode, clients, connect, layer, work in axes
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
