"""The frozen Definition of a run, made from its Benchmark and the user's overrides."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.core.exceptions import ValidationError

from pgperf import models, registry
from pgperf.catalog.driver_queries import BULK_INSERTS
from pgperf.core import limits, protocol, records, site_start
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.layers import LAYERS, VIEW_LAYER
from pgperf.core.limits import Limit, N
from pgperf.db import validators
from pgperf.runner.plan import check_size
from pgperf.workloads import discovery

#: To end the web servers of a route, and for the first answer of those that follow.
_STOP_AND_ANSWER_S = 0.5


@dataclass(frozen=True)
class Overrides:
    """Values that replace the benchmark's in one run; None keeps the benchmark's."""

    workloads: Sequence[str] | None = None
    layers: Sequence[str] | None = None
    routes: Sequence[str] | None = None
    clients: Sequence[int] | None = None
    connection_modes: Sequence[str] | None = None
    environments: Sequence[str] | None = None
    rates: Sequence[float | None] | None = None
    latency_limit_ms: float | None = None
    rate_search_ms: float | None = None
    load_hosts: Sequence[int] | None = None
    load_host_names: Sequence[str] | None = None
    placement: str | None = None
    idle: str | None = None
    slice_ms: int | None = None
    rounds: int | None = None
    blocks: int | None = None
    diagnostic_ms: int | None = None
    workers: int | None = None
    precision: float | None = None
    budget_s: int | None = None
    quick: bool = False


#: The benchmark as it is saved.
AS_SAVED = Overrides()


def freeze(
    benchmark: models.Benchmark,
    database: models.Database,
    overrides: Overrides = AS_SAVED,
    workloads: Sequence[models.Workload] | None = None,
) -> records.Definition:
    """The definition with every default filled in. `workloads`: those of a benchmark that is not
    saved.

    Raises InvalidDefinition, which names the wrong field.
    """
    preset = _Preset(benchmark, overrides)
    routes = _routes(benchmark, database, overrides.routes)
    definition = records.Definition(
        benchmark=benchmark.name,
        workloads=_workloads(_chosen(benchmark, workloads, overrides.workloads)),
        layers=_checked("layers", preset.pick("layers"), validators.layer_list),
        routes=routes,
        web_routes=_web_routes(database, routes),
        modes=_checked("modes", benchmark.modes, validators.mode_list),
        clients=_clients(preset),
        connection_modes=_checked(
            "connection_modes", preset.pick("connection_modes"), validators.connection_mode_list
        ),
        environments=_checked("environments", preset.pick("environments"), validators.environment_list),
        rates=_checked("rates", preset.pick("rates"), validators.rate_list),
        schedule=_one_of("schedule", benchmark.schedule, records.SCHEDULES),
        latency_limit_ms=float(_number(limits.LATENCY_LIMIT_MS, preset)),
        rate_search_ms=float(_number(limits.RATE_SEARCH_MS, preset)),
        load_hosts=_checked("load_hosts", preset.pick("load_hosts"), validators.load_host_counts),
        load_host_names=_checked(
            "load_host_names", preset.pick("load_host_names"), validators.load_host_names
        ),
        may_lose_hosts=bool(benchmark.may_lose_hosts),
        workers=_number(limits.WORKERS, preset),
        row_type=_one_of("row_type", benchmark.row_type, records.ROW_TYPES),
        transaction=_one_of("transaction", benchmark.transaction, records.TRANSACTIONS),
        bulk_api=_one_of("bulk_api", benchmark.bulk_api, records.BULK_APIS),
        placement=_one_of("placement", preset.pick("placement"), records.PLACEMENTS),
        idle=_one_of("idle", preset.pick("idle"), records.IDLES),
        blocks=_number(limits.BLOCKS, preset),
        rounds=_number(limits.ROUNDS, preset),
        slice_ms=_number(limits.SLICE_MS, preset),
        lead_in_ms=limits.QUICK_LEAD_IN_MS if overrides.quick else limits.LEAD_IN_MS,
        cold_blocks=limits.QUICK_COLD_BLOCKS if overrides.quick else limits.COLD_BLOCKS,
        diagnostic_ms=_number(limits.DIAGNOSTIC_MS, preset),
        precision=float(_number(limits.PRECISION, preset)),
        budget_s=_number(limits.BUDGET_S, preset),
        seed=secrets.randbelow(2**31),
    )
    _check_together(definition)
    _asked_load_hosts(overrides, definition)
    return starting_here(definition)


def _check_together(definition: records.Definition) -> None:
    """The fields that are right on their own, but perhaps not together."""
    check_size(definition)
    _some_mode_possible(definition)
    _allowed_connections(definition)
    _rates_of_clients(definition)
    _search_beside_closed_loop(definition)
    _named_load_hosts(definition)
    if definition.transaction != "autocommit" and definition.connection_modes != ("persistent",):
        raise InvalidDefinition("transaction: connections that end with each operation need autocommit")


def starting_here(definition: records.Definition) -> records.Definition:
    """The definition with the time that the site takes to start: for its own workloads, and for web
    servers that a hook starts anew before a block.
    """
    works = (
        replace(work, start_s=site_start.seconds()) if work.is_site else work for work in definition.workloads
    )
    restart_s = _restart_s() if definition.web_routes else 0.0
    return replace(definition, workloads=tuple(works), restart_s=restart_s)


def _restart_s() -> float:
    """Of the web servers of a route: they load the site as the layer of a view does; 0 if no hook."""
    discovery.discover()
    loads_s = max(LAYERS[VIEW_LAYER].start_seconds, site_start.seconds())
    return _STOP_AND_ANSWER_S + loads_s if registry.BLOCK_HOOKS else 0.0


def workload(row: models.Workload) -> records.WorkloadDefinition:
    """The record of a Workload row. Raises InvalidDefinition, which names the wrong field."""
    return records.WorkloadDefinition(
        name=row.name,
        sql=row.sql,
        args=_checked("args", row.args, validators.scalar_list),
        orm=row.orm,
        other_sql=row.other_sql,
        other_args=_checked("other_args", row.other_args, validators.scalar_list),
        other_orm=row.other_orm,
        fixture=row.fixture,
        query=row.query,
        bulk=_bulk(row.bulk),
        page=_page(row),
    )


def _page(row: models.Workload) -> records.Page | None:
    """The page that a row names by its path."""
    if not row.path:
        return None
    method = _one_of("method", row.method, records.PAGE_METHODS)
    return records.Page(row.path, method, row.page_user, row.one_capture)


def _bulk(name: str) -> records.BulkInsert | None:
    """The catalog's bulk insert of that name; its table and rows come from nowhere else."""
    if name and name not in BULK_INSERTS:
        raise InvalidDefinition(f"bulk: {name!r} is unknown; choose from {', '.join(BULK_INSERTS)}")
    return BULK_INSERTS[name] if name else None


def _chosen(
    benchmark: models.Benchmark, given: Sequence[models.Workload] | None, names: Iterable[str] | None
) -> Sequence[models.Workload]:
    """Those of these names, in the benchmark's order; None: all."""
    rows = benchmark.workloads if given is None else given
    if names is None:
        return rows
    wanted, there = set(names), [row.name for row in rows]
    if not wanted or not wanted <= set(there):
        unknown = ", ".join(sorted(wanted - set(there))) or "none"
        raise InvalidDefinition(f"workloads: {unknown}; choose from {', '.join(there)}")
    return [row for row in rows if row.name in wanted]


def _workloads(rows: Sequence[models.Workload]) -> tuple[records.WorkloadDefinition, ...]:
    if not 1 <= len(rows) <= limits.MOST_WORKLOADS:
        raise InvalidDefinition(
            f"workloads: the benchmark has {len(rows)}; choose 1 to {limits.MOST_WORKLOADS}"
        )
    return tuple(map(workload, rows))


def missing_routes(benchmark: models.Benchmark, database: models.Database) -> list[str]:
    """Routes the benchmark names and the database has no enabled target for: a run leaves them out."""
    there = set(_enabled(database))
    return [route for route in benchmark.routes if apart(route)[0] not in there]


@dataclass(frozen=True)
class _Preset:
    """The user's override, else the benchmark's value, lowered to the quick preset in a quick run."""

    benchmark: models.Benchmark
    overrides: Overrides

    def pick(self, name: str) -> Any:
        given = getattr(self.overrides, name)
        return getattr(self.benchmark, name) if given is None else given

    def number(self, limit: Limit[N]) -> Any:
        """Bad numbers as they are: the caller refuses them."""
        found = self.pick(limit.name)
        lowered = self.overrides.quick and getattr(self.overrides, limit.name) is None
        return limit.in_quick_run(found) if lowered and limit.allows(found) else found


def _checked(field: str, value: Any, validate: Any) -> tuple[Any, ...]:
    value = list(value) if isinstance(value, tuple) else value
    try:
        validate(value)
    except ValidationError as error:
        raise InvalidDefinition(f"{field}: {' '.join(error.messages)}") from None
    return tuple(value)


def _routes(
    benchmark: models.Benchmark, database: models.Database, wanted: Iterable[str] | None
) -> tuple[str, ...]:
    """The user's routes, which must all exist; else the benchmark's routes that the database has."""
    there = _enabled(database)
    asked = _checked("routes", benchmark.routes if wanted is None else list(wanted), validators.name_list)
    lacking = [route for route in asked if apart(route)[0] not in there]
    if lacking and (wanted is not None or len(lacking) == len(asked)):
        raise InvalidDefinition(
            f"routes: database {database} has no enabled target for {', '.join(lacking)}; "
            f"it has {', '.join(there) or 'none: add a target'}"
        )
    refuse_delayed_sockets(database, asked)
    absent = set(lacking)
    return tuple(dict.fromkeys(route for route in asked if route not in absent))


def refuse_delayed_sockets(database: models.Database, routes: Iterable[str]) -> None:
    """A relay, which delays a route, connects by TCP only. Raises InvalidDefinition."""
    delayed = {base for base, ms in map(apart, routes) if ms}
    if not delayed:
        return
    sockets = database.targets.filter(host__startswith="/", route__in=delayed)
    for base in sockets.values_list("route", flat=True):
        raise InvalidDefinition(f"routes: {base} is a Unix socket, which has no delay; name a TCP route")


def _web_routes(database: models.Database, routes: Sequence[str]) -> dict[str, str]:
    """Those that are URLs, each with the route of the run that it builds on, at the same distance."""
    targets = database.targets.filter(enabled=True).exclude(url="").values_list("route", "builds_on")
    builds_on = dict(targets)
    found = {}
    for route in routes:
        base, _ms = apart(route)
        if base in builds_on:
            below = builds_on[base] + route.removeprefix(base)
            found[route] = below if builds_on[base] and below in routes else ""
    return found


def _enabled(database: models.Database) -> list[str]:
    return list(database.targets.filter(enabled=True).values_list("route", flat=True))


def _one_of(field: str, value: Any, choices: Sequence[str]) -> str:
    if value not in choices:
        raise InvalidDefinition(f"{field}: {value!r} is unknown; choose from {', '.join(choices)}")
    return str(value)


def _number(limit: Limit[N], preset: _Preset) -> N:
    value = preset.number(limit)
    if not limit.allows(value):
        raise InvalidDefinition(f"{limit.name}: {value!r} is not allowed. {limit.remedy}")
    return value


def _clients(preset: _Preset) -> tuple[int, ...]:
    """A quick run starts few clients, unless its benchmark compares several numbers of clients."""
    clients = _checked("clients", preset.pick("clients"), validators.client_list)
    if len(clients) > 1 or preset.overrides.clients is not None or not preset.overrides.quick:
        return clients
    return tuple(min(limits.CLIENTS.quick or count, count) for count in clients)


def _allowed_connections(definition: records.Definition) -> None:
    """Each worker is a client to the server: the site's limit counts all of them."""
    clients, workers, most = max(definition.clients), definition.workers, validators.client_limit().high
    if clients * workers > most:
        raise InvalidDefinition(
            f"workers: {clients} clients with {workers} workers each make {clients * workers} connections,"
            f" more than {most} (PGPERF['MAX_CLIENTS']); choose fewer workers or clients"
        )


def _rates_of_clients(definition: records.Definition) -> None:
    """All client processes share a rate, and the wire protocol has a least rate for each."""
    rates = [rate for rate in definition.rates if rate is not None]
    connections = max(definition.clients) * definition.workers
    if rates and min(rates) / connections < protocol.MIN_RATE:
        raise InvalidDefinition(
            f"rates: {min(rates):g} operations/s are too few for {connections} connections; choose"
            f" {connections * protocol.MIN_RATE:g} or more, or fewer clients"
        )


def _search_beside_closed_loop(definition: records.Definition) -> None:
    """A search takes its rates as shares of what the closed loop reaches."""
    if definition.rate_search_ms and None not in definition.rates:
        raise InvalidDefinition(
            "rate_search_ms: a search has the closed loop beside it; add closed to the rates"
        )
    if definition.rate_search_ms and definition.latency_limit_ms:
        raise InvalidDefinition(
            "rate_search_ms: a latency limit skips operations, which a search has to count; choose one of the two"
        )


def _named_load_hosts(definition: records.Definition) -> None:
    """Names are enough for the most hosts."""
    most, names = max(definition.load_hosts), definition.load_host_names
    if names and len(names) < most:
        raise InvalidDefinition(
            f"load_host_names: {len(names)} names for {most} load hosts; name {most}, or none for those that are free"
        )


def _asked_load_hosts(overrides: Overrides, definition: records.Definition) -> None:
    """Hosts that are asked for by name make load. Those of a benchmark may rest in a run."""
    if overrides.load_host_names and not any(definition.load_hosts):
        raise InvalidDefinition(
            "load_host_names: the run's own worker makes the load; set load_hosts to how many hosts are to"
            f" make it, such as {len(overrides.load_host_names)}"
        )


def _some_mode_possible(definition: records.Definition) -> None:
    if not any(mode in LAYERS[layer].modes for layer in definition.layers for mode in definition.modes):
        raise InvalidDefinition(
            f"modes: none of {', '.join(definition.layers)} supports {', '.join(definition.modes)}"
        )
