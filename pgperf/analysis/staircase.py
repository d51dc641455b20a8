"""A staircase: set-ups of a web site, each made from another by one change. Pure.

The effects are the fitted throughputs of each step over those of the one that it builds on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from pgperf.core.delayed_routes import apart
from pgperf.core.records import Variant

Pair = tuple[Variant, Variant]


@dataclass(frozen=True)
class Effect:
    """Requests/s of one step over those of another, with the 95 % interval. The outcome is that of the
    comparison of their times per request, "" without one.
    """

    ratio: float
    low: float | None
    high: float | None
    outcome: str

    @classmethod
    def of_times(cls, ratio: float, low: float | None, high: float | None, outcome: str) -> Self:
        """From a comparison of times, whose ratio is above 0, where throughputs were not compared.

        Clients wait for each answer, so that requests/s are their number over that time.
        """
        return cls(
            _reciprocal(ratio),
            None if high is None else _reciprocal(high),
            None if low is None else _reciprocal(low),
            outcome,
        )


@dataclass(frozen=True)
class Step:
    """One set-up. `builds_on` None: the first. `own`: its effect over the step that it builds on.

    `total`: over the first step below it. None: not compared.
    """

    variant: Variant
    builds_on: Variant | None = None
    own: Effect | None = None
    total: Effect | None = None


def staircases(
    variants: Sequence[Variant], builds_on: Mapping[str, str], effects: Mapping[Pair, Effect]
) -> list[tuple[Step, ...]]:
    """One staircase for each workload, number of clients and distance that has two steps.

    `builds_on`: for the route of each step the route of the step that it builds on, "" for a first.
    The steps keep the order of the variants. Variants on other routes are left out.
    """
    groups: dict[tuple[Variant, float], list[Variant]] = {}
    for variant in variants:
        if variant.route in builds_on and not variant.control:
            groups.setdefault((replace(variant, route=""), apart(variant.route)[1]), []).append(variant)
    found = [tuple(_steps(group, builds_on, effects)) for group in groups.values()]
    return [steps for steps in found if any(step.builds_on for step in steps)]


def _steps(
    group: Sequence[Variant], builds_on: Mapping[str, str], effects: Mapping[Pair, Effect]
) -> Iterator[Step]:
    by_route = {variant.route: variant for variant in group}
    for variant in group:
        base = by_route.get(builds_on[variant.route])
        first = by_route[_first(variant.route, builds_on, by_route)]
        if base is None or base == variant:
            yield Step(variant)
        else:
            yield Step(variant, base, effects.get((variant, base)), effects.get((variant, first)))


def _first(route: str, builds_on: Mapping[str, str], there: Mapping[str, Variant]) -> str:
    """The first step below a route; a circle, which no stack has, ends where it began."""
    seen = {route}
    while (below := builds_on.get(route, "")) in there and below not in seen:
        seen.add(below)
        route = below
    return route


def _reciprocal(value: float) -> float:
    return 1 / value if value else float("inf")
