"""The web servers that a page's ladder goes on with, above the view in process. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pgperf.core.layers import SERVER_LAYER, VIEW_LAYER
from pgperf.core.records import Definition, Variant


def servers_of(definition: Definition, variants: Sequence[Variant]) -> dict[Variant, list[Variant]]:
    """Each view on the first route that has one, with the requests over HTTP that stand on it, lowest
    first; none of a suite, whose ladders are not shown.

    One route only: a web server connects by one, and by which is not known.
    """
    views = [variant for variant in variants if variant.layer == VIEW_LAYER and not definition.is_suite]
    direct = min((definition.routes.index(view.route) for view in views), default=None)
    climb, there = list(_climb(definition)), set(variants)
    served = {
        view: [each for route in climb if (each := _requested(view, route)) in there]
        for view in views
        if definition.routes.index(view.route) == direct
    }
    return {view: above for view, above in served.items() if above}


def with_servers(definition: Definition, groups: Sequence[Sequence[Variant]]) -> list[list[Variant]]:
    """The groups of `same_but_layer`, that of a view with its web servers.

    A group whose variants all stand on a view is none of its own.
    """
    served = servers_of(definition, [variant for group in groups for variant in group])
    standing = {variant for above in served.values() for variant in above}
    return [
        [*group, *(each for variant in group for each in served.get(variant, ()))]
        for group in groups
        if not standing.issuperset(group)
    ]


def _requested(view: Variant, route: str) -> Variant:
    return replace(view, layer=SERVER_LAYER, route=route)


def _climb(definition: Definition) -> Iterator[str]:
    """The first web route that builds on no other, then the first that builds on it, and so on."""
    on, below = definition.web_routes, ""
    while above := next((route for route in definition.routes if on.get(route) == below), ""):
        yield above
        below = above
