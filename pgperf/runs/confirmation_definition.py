"""The definition of a run that puts a verdict to the test: the variant and a changed one, side by
side. Pure.
"""

import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pgperf.analysis import interventions
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.catalog.light import LIGHT
from pgperf.core.client_environment import DEFAULT
from pgperf.core.delayed_routes import lengthened
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.layers import BASE_LAYER, LAYERS, VIEW_LAYER
from pgperf.core.records import Definition

#: The fewest that an interval over blocks and a verdict allow.
BLOCKS, ROUNDS = 6, 3
_DIAGNOSTIC_MS = 250


def paired(
    asked: Definition, variant: VariantSummary, test: str, direct: Callable[[], str], most_clients: int
) -> Definition:
    """The definition that tests the verdict on a variant of a run of `asked` by the intervention
    `test`.

    `direct` returns a route around the pooler. Raises InvalidDefinition naming the field that is in
    the way.
    """
    own = replace(
        asked,
        workloads=(asked.work(variant.workload),),
        layers=(variant.layer,),
        routes=(variant.route,),
        modes=(variant.mode,),
        clients=(variant.clients,),
        connection_modes=(variant.connect,),
        rates=(variant.rate,),
        rate_search_ms=0.0,
        load_hosts=(variant.hosts,),
        workers=variant.workers,
        as_processes=False,
        environments=(variant.environment,),
        blocks=BLOCKS,
        rounds=ROUNDS,
        cold_blocks=0,
        precision=0.0,
        budget_s=0,
        diagnostic_ms=asked.diagnostic_ms or _DIAGNOSTIC_MS,
        seed=secrets.randbelow(2**31),
    )
    return replace(own, **_change(own, variant, test, direct, most_clients))


def _change(
    own: Definition, variant: VariantSummary, test: str, direct: Callable[[], str], most_clients: int
) -> dict[str, Any]:
    """The fields that make the changed variant beside the own one."""
    clients = variant.clients
    match test:
        case interventions.LOWER_LAYER:
            return _beside_the_base(variant)
        case interventions.BYPASS_POOLER:
            return {"routes": (direct(), variant.route)}
        case interventions.LIGHT_STATEMENT:
            return {"workloads": (*own.workloads, LIGHT)}
        case interventions.ONE_CLIENT:
            return {"clients": (1, clients)}
        case interventions.ADD_DISTANCE:
            longer = lengthened(variant.route, interventions.added_distance_ms(variant))
            return {"routes": (variant.route, longer)}
        case interventions.PROCESSES:
            _allow(variant.connections, most_clients)
            return {"as_processes": True}
        case interventions.IN_PROCESS:
            return _beside_the_view(variant, direct())
    _allow(2 * variant.connections, most_clients)
    return {"clients": (clients, clients * 2)}


def _beside_the_base(variant: VariantSummary) -> dict[str, Any]:
    """The lowest layer, too: in the default environment, where it runs, and with the same kind of
    connection, or the persistent one if it lacks that.
    """
    known = LAYERS[BASE_LAYER].connection_modes
    return {
        "layers": (BASE_LAYER, variant.layer),
        "environments": tuple(dict.fromkeys((DEFAULT, variant.environment))),
        "connection_modes": (variant.connect, *([] if variant.connect in known else known[:1])),
    }


def _beside_the_view(variant: VariantSummary, direct: str) -> dict[str, Any]:
    """The page by HTTP, and its view in process, whose connection to the database persists."""
    modes = tuple(dict.fromkeys((variant.connect, *LAYERS[VIEW_LAYER].connection_modes)))
    return {
        "layers": (VIEW_LAYER, variant.layer),
        "routes": (direct, variant.route),
        "connection_modes": modes,
    }


def _allow(clients: int, most: int) -> None:
    """Raises InvalidDefinition for more clients than the site allows, each worker counted as one."""
    if clients > most:
        raise InvalidDefinition(f"clients: {clients} is more than {most} (PGPERF['MAX_CLIENTS'])")


def told_apart(
    measured: Iterable[VariantSummary], variant: VariantSummary
) -> tuple[VariantSummary, VariantSummary | None]:
    """The variant measured again and the changed one, of another layer if one is there; an empty
    record and None where they are missing.
    """
    there = [each for each in measured if not each.control]
    own = [each for each in there if _identity(each) == _identity(variant)]
    others = [each for each in there if each not in own]
    changed = min(others, key=lambda each: each.layer == variant.layer, default=None)
    return (own[0] if own else VariantSummary()), changed


def _identity(variant: VariantSummary) -> tuple[str | float | None, ...]:
    return (
        variant.workers,
        variant.workload,
        variant.layer,
        variant.mode,
        variant.route,
        variant.clients,
        variant.connect,
        variant.environment,
        variant.rate,
    )
