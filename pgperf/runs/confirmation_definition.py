"""The definition of a run that puts a verdict to the test: the variant and a changed one, side by
side. Pure.
"""

import math
import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pgperf.analysis import interventions
from pgperf.analysis.number_text import in_one_unit
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.catalog.light import LIGHT
from pgperf.core.client_environment import DEFAULT
from pgperf.core.delayed_routes import apart, lengthened
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.layers import BASE_LAYER, LAYERS, VIEW_LAYER, over_http
from pgperf.core.limits import REQUEST_DEADLINE_S
from pgperf.core.records import Definition
from pgperf.runner import run_time
from pgperf.runner.plan import make_plan
from pgperf.runner.preflight import lasting

#: The fewest that an interval over blocks and a verdict allow.
BLOCKS, ROUNDS = 6, 3
_DIAGNOSTIC_MS = 250
#: The longest mean time of a changed variant's request, s: single ones take longer than the mean.
_MOST_REQUEST_S = 0.8 * REQUEST_DEADLINE_S


def paired(
    asked: Definition, variant: VariantSummary, test: str, other_route: Callable[[], str], most_clients: int
) -> Definition:
    """The definition that tests the verdict on a variant of a run of `asked` by the intervention
    `test`.

    `other_route` returns the route of the changed variant without its delay, where the test changes
    it. Raises InvalidDefinition naming the field that is in the way, and where the changed variant
    cannot be measured.
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
        ends_after_blocks=False,
        diagnostic_ms=asked.diagnostic_ms or _DIAGNOSTIC_MS,
        seed=secrets.randbelow(2**31),
    )
    found = replace(own, **_change(own, variant, test, other_route, most_clients))
    _refuse_alone(found, variant)
    return found


def in_time(asked: Definition, variant: VariantSummary, test: str, most_s: float) -> Definition:
    """The definition with a time budget, at most `most_s`, in which its blocks fit by the variant's
    measured time of an operation; as it is where that is not known.

    Raises InvalidDefinition where six blocks cannot fit, and where requests would meet their
    deadline.
    """
    if not variant.us_per_op:
        return asked
    timed = _as_slow(asked, variant, test)
    _refuse_late(timed.work(variant.workload).op_s, variant)
    plan = make_plan(timed)
    if (least_s := run_time.least_s(plan)) > most_s:
        raise InvalidDefinition(
            f"time: the test takes at least {lasting(math.ceil(least_s))}, because an operation of {variant.label}"
            f" takes {' '.join(in_one_unit(variant.us_per_op))}; allowed are {lasting(most_s)}"
            " (PGPERF['MAX_RUN_SECONDS'])"
        )
    budget_s = min(math.ceil(run_time.with_reserve_s(plan)), math.floor(most_s))
    return replace(timed, budget_s=budget_s, ends_after_blocks=True)


def _as_slow(asked: Definition, variant: VariantSummary, test: str) -> Definition:
    """The definition whose tested workload is as slow as the change can make it. Twice the clients
    wait twice as long where something is used up; at a fixed rate they ask no more than before.
    """
    times = 2 if test == interventions.DOUBLE_CLIENTS and variant.rate is None else 1
    added_s = interventions.added_distance_ms(variant) / 1000 if test == interventions.ADD_DISTANCE else 0.0
    op_s = times * (variant.us_per_op or 0.0) / 1e6 + added_s
    works = [replace(work, op_s=op_s) if work.name == variant.workload else work for work in asked.workloads]
    return replace(asked, workloads=tuple(works))


def _refuse_late(op_s: float, variant: VariantSummary) -> None:
    """Raises InvalidDefinition where the change makes a request take about as long as it may, s."""
    own_us = variant.us_per_op or 0.0
    if over_http(variant.layer) and op_s > max(_MOST_REQUEST_S, own_us / 1e6):
        own, changed, unit = in_one_unit(own_us, op_s * 1e6)
        raise InvalidDefinition(
            f"time: a request of {variant.label} takes {own} {unit}, and of the changed variant about {changed}"
            f" {unit}; one that takes longer than {REQUEST_DEADLINE_S} s fails. Measure it with fewer clients, and"
            " test that verdict"
        )


def _change(
    own: Definition, variant: VariantSummary, test: str, other_route: Callable[[], str], most_clients: int
) -> dict[str, Any]:
    """The fields that make the changed variant beside the own one."""
    clients = variant.clients
    match test:
        case interventions.LOWER_LAYER:
            return _beside_the_base(variant)
        case interventions.BYPASS_POOLER | interventions.WEB_PROCESSES:
            return {"routes": (_as_far(other_route(), variant.route), variant.route)}
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
            return _beside_the_view(variant, other_route())
    _allow(2 * variant.connections, most_clients)
    return {"clients": (clients, clients * 2)}


def _refuse_alone(asked: Definition, variant: VariantSummary) -> None:
    """Raises InvalidDefinition where the plan leaves out what would be measured beside the variant."""
    plan = make_plan(asked)
    originals = [each for each in plan.variants if not each.control]
    lacking = set(asked.layers) - {each.layer for each in originals}
    if len(originals) > 1 and not lacking:
        return
    reasons = [each.reason for each in plan.skipped if not lacking or each.layer in lacking]
    raise InvalidDefinition(
        f"variant: the test of {variant.label} needs a changed variant beside it, which cannot be measured"
        f" ({'; '.join(dict.fromkeys(reasons)) or 'the change makes none'})"
    )


def _as_far(changed: str, route: str) -> str:
    """The changed route at the distance of the other one: nothing else shall differ."""
    added_ms = apart(route)[1]
    return lengthened(changed, added_ms) if added_ms else changed


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
