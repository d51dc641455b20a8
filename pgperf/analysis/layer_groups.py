"""Which variants stand beside one another as the layers of one comparison, and which is their base."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pgperf.core.layers import BASE_LAYER
from pgperf.core.records import Variant


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


def base_of(group: Sequence[Variant]) -> Variant:
    """The base layer of variants that differ in their layer only, or the first layer there."""
    return next((variant for variant in group if variant.layer == BASE_LAYER), group[0])


def with_guests(variants: Sequence[Variant]) -> list[tuple[list[Variant], list[Variant]]]:
    """Each group of `same_but_layer` with its guests: the layers that never have the group's mode.

    A guest is in the last mode that it has. So asyncpg, which has no mode simple, stands in mode
    prepared beside psycopg2, which has no other.
    """
    groups, modes = same_but_layer(variants), _modes(variants)
    return [
        (group, [each for each in _beside(group, groups) if _is_guest(each, group[0].mode, modes)])
        for group in groups
    ]


def _modes(variants: Iterable[Variant]) -> dict[str, list[str]]:
    """The modes in which each layer was measured, in the order of the run."""
    found: dict[str, dict[str, None]] = {}
    for variant in variants:
        found.setdefault(variant.layer, {})[variant.mode] = None
    return {layer: list(modes) for layer, modes in found.items()}


def _beside(group: Sequence[Variant], groups: Iterable[Sequence[Variant]]) -> list[Variant]:
    """The variants of the groups that differ from this one in layer and mode only."""
    return [each for other in groups if _but_mode(other) == _but_mode(group) for each in other]


def _but_mode(group: Sequence[Variant]) -> Variant:
    """What the variants of a group have in common but their mode. Some layers cannot have workers."""
    first = group[0]
    workers = max(variant.workers for variant in group)
    return replace(first, layer="", mode="", clients=first.connections, workers=workers)


def _is_guest(variant: Variant, mode: str, modes: dict[str, list[str]]) -> bool:
    own = modes[variant.layer]
    return mode not in own and variant.mode == own[-1]
