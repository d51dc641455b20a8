"""The comparisons of one run: the pairs of variants, their differences, and the outcomes."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from pgperf.analysis import scaling
from pgperf.analysis.fit import Fit, Pair
from pgperf.analysis.ladder import climbs
from pgperf.analysis.layer_groups import base_of, bases, same_but_layer, with_guests
from pgperf.analysis.outcome import CONFIDENCE, Outcome, classify
from pgperf.analysis.paired_comparisons import PairedComparison
from pgperf.analysis.served_page import servers_of
from pgperf.core.records import Definition, Variant


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


def pairs(definition: Definition, variants: Sequence[Variant], django_driver: str) -> list[Pair]:
    """The pairs that a run compares, the variant before its baseline; the controls come last.

    Where a step builds on a route that is not before it, routes and steps ask for the same two in both
    directions. These are one comparison, that of the steps.
    """
    asked = [*_pairs(definition, _originals(variants), django_driver), *_control_pairs(variants)]
    return [*{_merged(pair): pair for pair in asked}.values()]


def _merged(pair: Pair) -> Hashable:
    """The same for both directions between two routes. Two layers that are guests of each other's mode
    have one for each table.
    """
    return frozenset(pair) if pair[0].differs_in(pair[1]) == {"route"} else pair


def variant_comparisons(fit: Fit, asked: Iterable[Pair]) -> list[VariantComparison]:
    """Those of the pairs that shared rounds.

    They share one error rate, and the controls share another: who reads that controls differ doubts
    the run.
    """
    found = {pair: paired for pair in asked if (paired := fit.paired(*pair))}
    families = [[pair for pair in found if bool(pair[0].control) is controls] for controls in (False, True)]
    outcomes: dict[Pair, Outcome] = {}
    for family in families:
        outcomes |= zip(family, classify([found[pair].log.at for pair in family]), strict=True)
    return [_comparison(pair, found[pair], outcome) for pair, outcome in outcomes.items()]


def first_kind(definition: Definition, variants: Sequence[Variant]) -> list[Pair]:
    """The first kind of comparison that these variants have: environments, else layers with their
    base, routes, workloads and so on; a single variant with its control.
    """
    originals = _originals(variants)
    kinds = [
        list(_environment_pairs(definition, originals)),
        [*bases(originals).items(), *_guest_pairs(definition, originals)],
        *map(list, _further_kinds(definition, originals)),
    ]
    return next(filter(None, kinds), _control_pairs(variants))


def _originals(variants: Iterable[Variant]) -> list[Variant]:
    """Without controls, and without searches: their slices are at different rates."""
    return [variant for variant in variants if not variant.control and not variant.is_search]


def _control_pairs(variants: Iterable[Variant]) -> list[Pair]:
    """Without the controls of a variant that is not among them."""
    known = set(variants)
    found = [(variant, replace(variant, control=0)) for variant in variants if variant.control]
    return [pair for pair in found if pair[1] in known]


def _pairs(definition: Definition, originals: Sequence[Variant], django_driver: str) -> Iterator[Pair]:
    yield from _layer_pairs(same_but_layer(originals), django_driver)
    yield from _guest_pairs(definition, originals)
    yield from ((servers[0], view) for view, servers in servers_of(definition, originals).items())
    yield from chain.from_iterable(_further_kinds(definition, originals))


def _guest_pairs(definition: Definition, originals: Sequence[Variant]) -> Iterator[Pair]:
    """In a suite, every layer that lacks a mode over the base of that mode."""
    if definition.is_suite:
        yield from ((guest, base_of(group)) for group, found in with_guests(originals) for guest in found)


def _further_kinds(definition: Definition, originals: Sequence[Variant]) -> Iterator[Iterator[Pair]]:
    yield _route_pairs(definition, originals)
    yield _step_pairs(definition, originals)
    if not definition.is_suite:
        yield _workload_pairs(definition, originals)
    yield _worker_pairs(originals)
    yield _mode_pairs(definition, originals)
    yield _connection_pairs(definition, originals)
    yield _environment_pairs(definition, originals)
    yield _rate_pairs(originals)
    yield _host_pairs(originals)
    yield scaling.pairs(originals)


def _layer_pairs(groups: Iterable[list[Variant]], django_driver: str) -> Iterator[Pair]:
    """Every layer over the base layer, or over the first one where that is missing; then each rung
    over the one below.
    """
    for group in groups:
        base = base_of(group)
        yield from ((variant, base) for variant in group if variant != base)
        for rungs in climbs(group, django_driver).values():
            yield from ((upper, lower) for lower, upper in pairwise(rungs) if lower != base)


def _over_the_first(variants: Iterable[Variant], kind: Callable[[Variant], Variant]) -> Iterator[Pair]:
    """Every variant over the first one of its kind."""
    first: dict[Variant, Variant] = {}
    for variant in variants:
        base = first.setdefault(kind(variant), variant)
        if variant != base:
            yield variant, base


def _over_the_same(variants: Sequence[Variant], base_of: Callable[[Variant], Variant]) -> Iterator[Pair]:
    """Every variant over its base, if that is another of the variants."""
    for variant in variants:
        base = base_of(variant)
        if variant != base and base in variants:
            yield variant, base


def _route_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[Pair]:
    """Every layer over itself on the first route that has it."""
    by_route = sorted(variants, key=lambda each: definition.routes.index(each.route))
    return _over_the_first(by_route, lambda each: replace(each, route=""))


def _step_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[Pair]:
    """Every variant on a web route over the same on the route that this one builds on."""
    return _over_the_same(
        variants, lambda each: replace(each, route=definition.web_routes.get(each.route, ""))
    )


def _workload_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[Pair]:
    """Each layer of the second workload over the same of the first: the cost or the saving of that
    change.
    """
    return _over_the_same(variants, lambda each: replace(each, workload=definition.workloads[0].name))


def _worker_pairs(variants: Sequence[Variant]) -> Iterator[Pair]:
    """Each layer in one process with several workers over the same in as many processes."""
    return _over_the_same(variants, lambda each: replace(each, clients=each.connections, workers=1))


def _mode_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[Pair]:
    """Every statement mode of a layer over the first that the definition names."""
    return _over_the_same(variants, lambda each: replace(each, mode=definition.modes[0]))


def _connection_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[Pair]:
    """Every connection mode of a layer over the first that the definition names."""
    return _over_the_same(variants, lambda each: replace(each, connect=definition.connection_modes[0]))


def _environment_pairs(definition: Definition, variants: Sequence[Variant]) -> Iterator[Pair]:
    """Every layer over itself in the first environment that has it."""
    in_order = sorted(variants, key=lambda each: definition.environments.index(each.environment))
    return _over_the_first(in_order, lambda each: replace(each, environment=""))


def _rate_pairs(variants: Sequence[Variant]) -> Iterator[Pair]:
    """The service time at every rate over that of the closed loop, or of the first rate."""
    return _over_the_first(variants, lambda each: replace(each, rate=None, schedule=""))


def _host_pairs(variants: Sequence[Variant]) -> Iterator[Pair]:
    """Every number of load hosts over the fewest, with the same clients."""
    return _over_the_first(variants, lambda each: replace(each, hosts=0))


def _comparison(pair: Pair, paired: PairedComparison, outcome: Outcome) -> VariantComparison:
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
        aa=bool(pair[0].control),
        pairs=paired.log.pairs,
        sample=paired.log.kind,
        mde=outcome.mde,
    )
