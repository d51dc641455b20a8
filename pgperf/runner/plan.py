"""The plan of a definition (pure): variants, controls, cohorts and the order of each round."""

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise, product
from typing import TypeVar

from pgperf.core import pgbench, sql_parameters
from pgperf.core.client_environment import DEFAULT
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.layers import (
    LAYERS,
    NO_DATABASE_ROUTE,
    NO_ENVIRONMENTS,
    NO_NAMED_ROWS,
    NO_PAGE,
    NO_WEB_ROUTE,
    OF_PAGES,
    Layer,
    over_http,
)
from pgperf.core.records import BulkInsert, Cohort, Definition, LeftOut, Plan, Variant

#: Most variants in one cohort. All of `orm-overhead` fits, so all of it is compared directly.
COHORT_SIZE = 18
#: Most connections that one cohort holds, without those of the reference and of controls. A process
#: has one or more, so this limits the processes, too.
COHORT_CONNECTIONS = 64
#: Most clients of one cohort that request pages, on a machine, counted likewise. They are small, and
#: all steps of a site need room: 13 of 20 clients. The runner has three files open for each, of the
#: 1024 that a process usually may have.
COHORT_PAGE_PROCESSES = 260
_SHUFFLES = 24
#: Most combinations of a benchmark's fields: a page plans them, and may not take seconds for it.
MOST_COMBINATIONS = 2_000
_WORKERS_STAY = "several workers of a process keep their connections"
_TOOL_KEEPS_NO_RATE = "another program makes its load, and takes no schedule from pgperf"
_TOOL_KEEPS_NO_START = "another program makes its load, and begins when it likes"
_BULK_ON_ONE = "inserting many rows is measured by one worker"
_BULK_BY_COUNT = "inserting many rows is measured by count, without a rate"
_NO_ORM_CALL = "this workload of the suite has no call of the ORM"
T = TypeVar("T")
_BULK_PERSISTENT = "inserting many rows is measured on a connection that stays open"


def make_plan(definition: Definition, skipped: Iterable[LeftOut] = ()) -> Plan:
    """The plan of a definition without what is skipped.

    Raises InvalidDefinition when nothing is left to compare.
    """
    check_size(definition)
    lacking = (
        *_lacking_connection_modes(definition),
        *_lacking_environments(definition),
        *_lacking_rates(definition),
        *_lacking_load_hosts(definition),
        *_unfit_for_pgbench(definition),
        *_lacking_conditions(definition),
        *_lacking_routes(definition),
        *_lacking_pages(definition),
    )
    skipped = tuple(dict.fromkeys((*skipped, *lacking)))
    variants = [v for v in _variants(definition) if not any(each.covers(v) for each in skipped)]
    if not variants:
        raise InvalidDefinition(f"layers: none of them can run here ({_reasons(skipped) or 'none given'})")
    return Plan(definition, tuple(_cohorts(definition, variants + _controls(definition, variants))), skipped)


def _reasons(skipped: Iterable[LeftOut]) -> str:
    """Each reason once, behind the names of all that it leaves out."""
    left: dict[tuple[str, str], list[LeftOut]] = {}
    for each in skipped:
        left.setdefault((each.workload, each.reason), []).append(each)
    return "; ".join(f"{_named(each)}: {reason}" for (_, reason), each in left.items())


def _named(left: list[LeftOut]) -> str:
    """The names of parts of one workload, which stands before the first only."""
    first, *others = left
    return " and ".join([first.name, *(replace(each, workload="").name for each in others)])


def sharing(variants: Iterable[Variant]) -> dict[Variant, list[Variant]]:
    """Variant that owns client processes -> all variants that use some of them, itself included.

    Variants share processes if they differ only in their number of clients and in their rate. A
    variant of 8 clients uses the first 8 processes of the largest variant, and the others wait. A
    control has its own, and so has a variant whose clients are in one process.
    """
    alike: dict[Variant, list[Variant]] = {}
    for variant in variants:
        kind = variant if variant.is_one_process else _of_same_processes(variant)
        alike.setdefault(kind, []).append(variant)
    return {max(members, key=lambda v: v.clients): members for members in alike.values()}


def _of_same_processes(variant: Variant) -> Variant:
    return replace(variant.closed, clients=0)


def request_pages(variants: Iterable[Variant]) -> bool:
    """Do clients of some request pages from a web server?"""
    return any(over_http(variant.layer) for variant in variants)


def warm_up_turns(variants: Iterable[Variant]) -> list[list[Variant]]:
    """Variants whose clients warm up at the same time. Those of pages do so one variant after another:
    all of them together would wait for the web servers until a request is given up.
    """
    alone: list[list[Variant]] = []
    together: list[Variant] = []
    for variant in variants:
        if over_http(variant.layer):
            alone.append([variant])
        else:
            together.append(variant)
    return [*([together] if together else []), *alone]


def round_order(plan: Plan, cohort: int, block: int, round_: int) -> list[int]:
    """Indices into the cohort's variants, shuffled; variants that are compared stay close together.

    The workloads of a suite come one after the other, in random order, and so do the routes of each.
    Within a route this is the best of 24 shuffles: it keeps each rung close to the rung below,
    controls close to their originals and two workloads of a layer close together, because
    consecutive slices share some of the machine's noise. An original and its controls then draw for
    their places. In the first round, searches come last: their closed loops show them what these
    processes can do.
    """
    rng = random.Random(f"{plan.definition.seed}/{cohort}/{block}/{round_}")
    variants = plan.cohorts[cohort].variants
    turns: dict[str, dict[tuple[str, str, int], list[int]]] = {}
    for index, variant in enumerate(variants):
        turn = turns.setdefault(variant.workload if plan.definition.is_suite else "", {})
        turn.setdefault(_neighbourhood(variant), []).append(index)
    shuffled = [group for turn in _shuffled(rng, turns.values()) for group in _shuffled(rng, turn.values())]
    nearest = [
        min((rng.sample(group, len(group)) for _ in range(_SHUFFLES)), key=partial(_distance, variants))
        for group in shuffled
    ]
    order = [index for group in nearest for index in _drawn(rng, variants, group)]
    return order if round_ else sorted(order, key=lambda index: variants[index].is_search)


def _shuffled(rng: random.Random, items: Iterable[T]) -> list[T]:
    shuffled = list(items)
    if len(shuffled) > 1:
        rng.shuffle(shuffled)
    return shuffled


def _drawn(rng: random.Random, variants: Sequence[Variant], order: Sequence[int]) -> list[int]:
    """The same order, with the places of an original and its controls among them at random.

    In the nearest order a control, which is compared with its original only, is at an end more
    often. There it follows a slice of another route, so it would not measure the same as its
    original.
    """
    places: dict[Variant, list[int]] = {}
    for place, index in enumerate(order):
        places.setdefault(replace(variants[index], control=0), []).append(place)
    found = list(order)
    for own in places.values():
        for place, index in zip(own, _shuffled(rng, [order[place] for place in own]), strict=True):
            found[place] = index
    return found


def _distance(variants: Sequence[Variant], order: Sequence[int]) -> int:
    """The sum of the distances between compared variants in this order."""
    return sum(abs(order.index(a) - order.index(b)) for a, b in _compared(variants, order))


def _compared(variants: Sequence[Variant], order: Sequence[int]) -> list[tuple[int, int]]:
    """Index pairs: adjacent rungs, the two workloads of a rung, a rung in two environments, and
    controls with their originals.
    """
    rungs: dict[tuple[str, str], list[int]] = {}
    for index in sorted(index for index in order if not variants[index].control):
        rungs.setdefault((variants[index].workload, variants[index].environment), []).append(index)
    twins = [
        (a, b) for (key, one), (other_key, other) in combinations(rungs.items(), 2) for a in one for b in other
        if variants[a].layer == variants[b].layer and (key[0] == other_key[0] or key[1] == other_key[1])
    ]  # fmt: skip
    copies = [
        (index, variants.index(replace(variants[index], control=0)))
        for index in order
        if variants[index].control
    ]
    return [*(pair for each in rungs.values() for pair in pairwise(each)), *twins, *copies]


def check_size(definition: Definition) -> None:
    """Raises InvalidDefinition for more combinations than a plan may have."""
    fields = {
        "workloads": definition.workloads, "layers": definition.layers, "routes": definition.routes,
        "modes": definition.modes, "clients": definition.clients, "connection modes": definition.connection_modes,
        "environments": definition.environments, "rates": definition.rates, "load hosts": definition.load_hosts,
    }  # fmt: skip
    total = math.prod(len(values) for values in fields.values())
    if total > MOST_COMBINATIONS:
        several = ", ".join(f"{len(values)} {name}" for name, values in fields.items() if len(values) > 1)
        raise InvalidDefinition(
            f"layers: {several} make {total:,} combinations, and a benchmark has at most {MOST_COMBINATIONS:,}:"
            " choose fewer, or make several benchmarks"
        )


def _variants(definition: Definition) -> list[Variant]:
    """Every combination, in ladder order within each route.

    The workloads of a suite come one after the other; the two of a comparison are adjacent on each
    rung.
    """
    works, named = [work.name for work in definition.workloads], len(definition.workloads) > 1
    suite, pair = (works, [""]) if definition.is_suite else ([""], works)
    counts, load_hosts = sorted(set(definition.clients)), sorted(set(definition.load_hosts))
    axes = product(
        suite, definition.routes, definition.modes, counts, definition.connection_modes,
        definition.environments, _loops(definition), load_hosts, _rungs(definition), pair,
    )  # fmt: skip
    return [
        Variant(
            workload=turn or work,
            layer=layer,
            mode=mode,
            route=route,
            clients=processes,
            connect=connect,
            placement=definition.placement,
            named=named,
            workers=workers,
            environment=environment,
            rate=rate,
            schedule=schedule,
            hosts=hosts,
        )
        for turn, route, mode, clients, connect, environment, (rate, schedule), hosts, layer, work in axes
        if LAYERS[layer].over_http == (route in definition.web_routes)
        for processes, workers in _processes(definition, layer, clients)
    ]


def _rungs(definition: Definition) -> list[str]:
    """The layers in ladder order."""
    if unknown := sorted(set(definition.layers) - set(LAYERS)):
        raise InvalidDefinition(f"layers: unknown {', '.join(unknown)}; choose from {', '.join(LAYERS)}")
    return [layer for layer in LAYERS if layer in definition.layers]


def _loops(definition: Definition) -> dict[tuple[float | None, str], None]:
    """Rate and schedule of each loop, in order; a search comes last."""
    loops = [(rate, "" if rate is None else definition.schedule) for rate in definition.rates]
    search = [(None, definition.schedule)] if definition.rate_search_ms else []
    return dict.fromkeys([*loops, *search])


def _processes(definition: Definition, layer: str, clients: int) -> Iterator[tuple[int, int]]:
    """Client processes and workers in each. All of them make the same number of connections: a
    layer without workers has a process for each.
    """
    has_workers = LAYERS[layer].has_workers and definition.workers > 1
    if has_workers:
        yield clients, definition.workers
    if not has_workers or definition.as_processes:
        yield clients * definition.workers, 1


def _lacking_connection_modes(definition: Definition) -> Iterator[LeftOut]:
    """Connection modes that a layer does not have, or not with several workers."""
    for layer in filter(None, map(LAYERS.get, definition.layers)):
        for mode in definition.connection_modes:
            if mode not in layer.connection_modes:
                yield LeftOut(layer=layer.name, connect=mode, reason=layer.connection_reason)
            elif mode != "persistent" and layer.has_workers and definition.workers > 1:
                yield LeftOut(layer=layer.name, connect=mode, reason=_WORKERS_STAY)


def _lacking_environments(definition: Definition) -> Iterator[LeftOut]:
    """Environments other than the default one, of layers that no Python runs."""
    for layer in filter(None, map(LAYERS.get, definition.layers)):
        if not layer.has_environments:
            yield from (
                LeftOut(layer=layer.name, environment=environment, reason=NO_ENVIRONMENTS)
                for environment in definition.environments
                if environment != DEFAULT
            )


def _lacking_rates(definition: Definition) -> Iterator[LeftOut]:
    """Open loops of layers whose load another program makes, and of bulk operations."""
    if not any(schedule for _rate, schedule in _loops(definition)):
        return
    for layer in filter(None, map(LAYERS.get, definition.layers)):
        if layer.tool:
            yield LeftOut(layer=layer.name, loop="open", reason=_TOOL_KEEPS_NO_RATE)
        for work in definition.workloads:
            if work.bulk:
                yield LeftOut(workload=work.name, layer=layer.name, loop="open", reason=_BULK_BY_COUNT)


def _lacking_load_hosts(definition: Definition) -> Iterator[LeftOut]:
    """Load hosts for layers whose load another program makes, and for bulk operations."""
    if not any(definition.load_hosts):
        return
    for layer in filter(None, map(LAYERS.get, definition.layers)):
        if layer.one_process:
            yield LeftOut(layer=layer.name, load="hosts", reason=_TOOL_KEEPS_NO_START)
        for work in definition.workloads:
            if work.bulk:
                yield LeftOut(workload=work.name, layer=layer.name, load="hosts", reason=_BULK_ON_ONE)


def _unfit_for_pgbench(definition: Definition) -> Iterator[LeftOut]:
    """Workloads that pgbench would change, by mode.

    Those of the site are tried after their capture.
    """
    tools = [layer for layer in definition.layers if layer in LAYERS and LAYERS[layer].tool == "pgbench"]
    for work, mode in product(definition.workloads if tools else (), definition.modes):
        try:
            pgbench.script(sql_parameters.statements(work.sql, work.args), mode)
        except InvalidDefinition as error:
            yield from (
                LeftOut(workload=work.name, layer=tool, mode=mode, reason=str(error)) for tool in tools
            )


def _lacking_conditions(definition: Definition) -> Iterator[LeftOut]:
    """Bulk operations and row types that a layer does not have."""
    for layer in filter(None, map(LAYERS.get, definition.layers)):
        if definition.row_type not in layer.row_types:
            yield LeftOut(layer=layer.name, reason=NO_NAMED_ROWS)
        for work in definition.workloads:
            if definition.is_suite and layer.calls_orm and not work.has_orm_call:
                yield LeftOut(workload=work.name, layer=layer.name, reason=_NO_ORM_CALL)
            if work.bulk:
                yield from _lacking_bulk(definition, layer, work.name, work.bulk)


def _lacking_bulk(definition: Definition, layer: Layer, workload: str, bulk: BulkInsert) -> Iterator[LeftOut]:
    """Connection modes and modes in which the layer does not insert many rows."""
    for mode in definition.connection_modes:
        if mode != "persistent":
            yield LeftOut(workload=workload, layer=layer.name, connect=mode, reason=_BULK_PERSISTENT)
    able = layer.bulk_modes(bulk.kind, definition.bulk_api)
    for mode in sorted(({*definition.modes} & {*layer.modes}) - {*able}):
        yield LeftOut(workload=workload, layer=layer.name, mode=mode, reason=layer.bulk_reason)


def _lacking_pages(definition: Definition) -> Iterator[LeftOut]:
    """The ORM's layers of a page, which has no ORM call, and the view of workloads that are none."""
    for layer in filter(None, map(LAYERS.get, definition.layers)):
        for work in definition.workloads:
            if work.page and layer.calls_orm:
                yield LeftOut(workload=work.name, layer=layer.name, reason=OF_PAGES)
            elif not work.page and layer.requests_pages:
                yield LeftOut(workload=work.name, layer=layer.name, reason=NO_PAGE)


def _lacking_routes(definition: Definition) -> Iterator[LeftOut]:
    """Layers without a route: web routes are for requests by HTTP, and all others for the rest."""
    kinds = {route in definition.web_routes for route in definition.routes}
    for layer in filter(None, map(LAYERS.get, definition.layers)):
        if layer.over_http not in kinds:
            reason = NO_WEB_ROUTE if layer.over_http else NO_DATABASE_ROUTE
            yield LeftOut(layer=layer.name, reason=reason)


def _controls(definition: Definition, variants: list[Variant]) -> list[Variant]:
    """A duplicate of the fastest and of the slowest: lowest rung of the first route, highest of the
    last.

    Those with the fewest connections, as a control's processes are its own; no search, whose slices
    are not alike. Each workload of a suite has one of the two, in turn.
    """
    steady = [variant for variant in variants if not variant.is_search]
    fewest = min(variant.connections for variant in steady)
    few = [variant for variant in steady if variant.connections == fewest]
    chosen = [few[0], few[-1]]
    if definition.is_suite:
        each = [
            [variant for variant in few if variant.workload == work.name] for work in definition.workloads
        ]
        chosen = [own[-1 if at % 2 else 0] for at, own in enumerate(filter(None, each))]
    return [replace(variant, control=1) for variant in dict.fromkeys(chosen)]


def _neighbourhood(variant: Variant) -> tuple[str, str, int]:
    return variant.route, variant.mode, variant.connections


def _cohorts(definition: Definition, variants: list[Variant]) -> list[Cohort]:
    """One cohort if they fit.

    Else those of a suite are split by workload first: workloads are not compared with each other,
    so their cohorts share no reference. A workload that does not fit into one cohort is split by
    route, but the steps of a site stay together.
    """
    if _fit(variants, COHORT_SIZE):
        return [Cohort(tuple(variants))]
    if not definition.is_suite:
        return _split(variants)
    found: list[Cohort] = []
    for own in _by_workload(variants):
        together = [*(found[-1].variants if found else ()), *own]
        if found and _fit(together, COHORT_SIZE):
            found[-1] = Cohort(tuple(together))
        else:
            found += [Cohort(tuple(own))] if _fit(own, COHORT_SIZE) else _split(own)
    return found


def _by_workload(variants: Iterable[Variant]) -> list[list[Variant]]:
    groups: dict[str, list[Variant]] = {}
    for variant in variants:
        groups.setdefault(variant.workload, []).append(variant)
    return list(groups.values())


def _split(variants: list[Variant]) -> list[Cohort]:
    """A cohort per place and mode (or part of it), each led by the shared reference."""
    reference = variants[0]
    parts = [set(part) | {reference} for groups in _groups_by_place(variants) for part in _parts(groups)]
    return [Cohort(tuple(v for v in variants if v in part)) for part in parts if len(part) > 1]


def _fit(variants: Sequence[Variant], most: int) -> bool:
    """Do they fit into one cohort?"""
    own = list(sharing(variant for variant in variants if not variant.control))
    pages = [variant for variant in own if over_http(variant.layer)]
    on_a_host = sum(math.ceil(variant.processes / max(1, variant.hosts)) for variant in pages)
    connections = sum(variant.connections for variant in own if not over_http(variant.layer))
    return len(variants) <= most and on_a_host <= COHORT_PAGE_PROCESSES and connections <= COHORT_CONNECTIONS


def _groups_by_place(variants: Iterable[Variant]) -> list[list[list[Variant]]]:
    """By place and mode, groups of variants that share processes, with their controls and the same
    in other environments.
    """
    by_place: dict[tuple[str | float, str], dict[Variant, list[Variant]]] = {}
    for variant in variants:
        groups = by_place.setdefault((_place(variant), variant.mode), {})
        alike = _of_same_processes(replace(variant, control=0, environment=DEFAULT))
        groups.setdefault(alike, []).append(variant)
    return [list(groups.values()) for groups in by_place.values()]


def _place(variant: Variant) -> str | float:
    """A route; for all steps of a site, each a route of its own, their distance: the effect of a step
    is its ratio to the step that it builds on, at the same distance.
    """
    _route, delay_ms = apart(variant.route)
    return delay_ms if over_http(variant.layer) else variant.route


def _parts(groups: Iterable[list[Variant]]) -> list[list[Variant]]:
    """Split the groups into as few cohorts as possible; a group too big for one gets its own."""
    parts: list[list[Variant]] = [[]]
    for group in groups:
        if parts[-1] and not _fit([*parts[-1], *group], COHORT_SIZE - 1):
            parts.append([])
        parts[-1] += group
    return parts
