"""Rows that look like a real run of `orm-overhead`, made without running anything."""

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import time, timedelta
from typing import Any

import django
from django.utils import timezone

from pgperf.analysis.summary import ANALYSIS_VERSION
from pgperf.analysis.verdict import Verdict, VerdictNumbers
from pgperf.core.delayed_routes import apart
from pgperf.core.layers import LAYERS
from pgperf.core.records import SliceRecord, Variant, VariantBlock
from pgperf.models import (
    Benchmark,
    BlockResult,
    ComparisonResult,
    Database,
    Run,
    Schedule,
    Target,
    VariantResult,
    Worker,
    Workload,
)
from pgperf.runs import block_codec, store

ROUTES = ("socket", "tcp", "pgbouncer")
LAYER_NAMES = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm")
LADDER = ("libpq", "psycopg", "django_cursor", "django_orm")

#: µs per operation of each layer on a local socket, and what each route adds to it.
_US = {
    "pgbench": 69.0,
    "libpq": 68.9,
    "psycopg2": 73.2,
    "psycopg": 75.6,
    "django_cursor": 89.4,
    "django_orm": 214.7,
}
_ROUTE_US = {"socket": 0.0, "tcp": 11.3, "pgbouncer": 15.4}
#: Any other route.
OTHER_ROUTE_US = 20.0


def make_database(name: str = "demo", **fields: Any) -> Database:
    """A database with one target per route."""
    values = {"dbname": "app", "credential": "alias:default", "allow_fixtures": True, **fields}
    database = Database.objects.create(name=name, **values)
    for route in ROUTES:
        host = "/run/postgresql" if route == "socket" else "127.0.0.1"
        pooler = "transaction" if route == "pgbouncer" else ""
        Target.objects.create(database=database, route=route, host=host, pooler=pooler, sslmode="disable")
    return database


def make_benchmark(name: str = "orm-overhead", **fields: Any) -> Benchmark:
    """A benchmark of five layers over three routes; an existing one of the name is changed to it."""
    workload, _made = Workload.objects.get_or_create(
        name="site-by-domain",
        defaults={
            "title": "One row by a unique column",
            "sql": 'SELECT id, domain, name FROM "pgperf"."site" WHERE domain = %s',
            "args": ["example.com"],
            "orm": "pgperf.site_by_domain",
        },
    )
    values = {
        "title": "Where the ORM's time goes",
        "layers": list(LAYER_NAMES),
        "routes": list(ROUTES),
        "modes": ["simple"],
        "clients": [1],
        "diagnostic_ms": 0,
        "precision": 0.0,
        **fields,
    }
    chosen = values.pop("workloads", [workload])
    benchmark = Benchmark.objects.update_or_create(name=name, defaults=values)[0]
    benchmark.set_workloads(chosen)
    return benchmark


def new_benchmark(workloads: Sequence[Workload], **fields: Any) -> Benchmark:
    """A benchmark of these workloads, with the model's own defaults."""
    benchmark = Benchmark.objects.create(**fields)
    benchmark.set_workloads(workloads)
    return benchmark


def make_worker(hostname: str = "pgperf@localhost", **layers: str) -> Worker:
    """A live worker that can run every layer; a keyword gives the reason why it cannot run that
    one.
    """
    return Worker.objects.update_or_create(
        hostname=hostname,
        defaults={
            "queue": "pgperf",
            "layers": {name: layers.get(name, "") for name in LAYERS},
            "versions": {
                "python": platform.python_version(),
                "django": django.get_version(),
                "psycopg": "3.3.9",
            },
            "last_seen": timezone.now(),
        },
    )[0]


def make_run(status: str = Run.Status.DONE, **fields: Any) -> Run:
    """A run in any state, without results."""
    benchmark = (
        fields.pop("benchmark", None)
        or Benchmark.objects.filter(name="orm-overhead").first()
        or make_benchmark()
    )
    database = fields.pop("database", None) or Database.objects.filter(name="demo").first() or make_database()
    now = timezone.now()
    started = None if status == Run.Status.QUEUED else now - timedelta(seconds=84)
    values: dict[str, Any] = {
        "benchmark": benchmark,
        "benchmark_name": benchmark.name,
        "database": database,
        "database_name": database.name,
        "status": status,
        "definition": {"benchmark": benchmark.name, "layers": benchmark.layers, "routes": benchmark.routes},
        "definition_hash": "9f2c" * 16,
        "requested_at": now - timedelta(seconds=90),
        "started_at": started,
        "heartbeat_at": now if status == Run.Status.RUNNING else started,
        "finished_at": None if status in (Run.Status.QUEUED, Run.Status.RUNNING) else now,
        "busy_key": str(database.pk) if status == Run.Status.RUNNING else None,
        "queue": "pgperf",
        "worker": "" if status == Run.Status.QUEUED else "pgperf@localhost",
        **fields,
    }
    return Run.objects.create(**values)


def make_schedule(**fields: Any) -> Schedule:
    """A schedule of a benchmark that can run, at 02:30 every day, that was not planned yet."""
    benchmark = fields.pop("benchmark", None) or make_benchmark()
    database = fields.pop("database", None) or Database.objects.filter(name="demo").first() or make_database()
    return Schedule.objects.create(
        **{"benchmark": benchmark, "database": database, "at": time(2, 30), **fields}
    )


def make_results(
    run: Run,
    routes: tuple[str, ...] = ROUTES,
    layers: tuple[str, ...] = LAYER_NAMES,
    slower: Mapping[str, float] | None = None,
    clients: tuple[int, ...] = (1,),
) -> Run:
    """Fill a run with variants, comparisons, ladders, environment and timings.

    `slower`: layer -> factor by blocks.
    """
    variants = [
        _variant(layer, route, clients=count) for count in clients for route in routes for layer in layers
    ]
    twice = (layers[0], routes[0]), (layers[-1], routes[-1])
    variants += [_variant(*which, control=1, clients=clients[0]) for which in twice]
    stored = {variant: _variant_result(run, position, variant) for position, variant in enumerate(variants)}
    for row in stored.values():
        row.us_per_op *= (slower or {}).get(row.layer, 1.0)
    VariantResult.objects.bulk_create(stored.values())
    comparisons = []
    for position, (variant, baseline) in enumerate(_pairs(variants, layers[0], routes[0])):
        row = _comparison(run, position, variant, baseline)
        row.variant, row.baseline = stored[variant], stored[baseline]
        comparisons.append(row)
    ComparisonResult.objects.bulk_create(comparisons)
    ladder = tuple(layer for layer in LADDER if layer in layers)
    beside = tuple(layer for layer in layers if layer not in LADDER)
    run.summary = {
        "ladders": [
            _ladder(route, ladder, beside, count, slower or {}) for count in clients for route in routes
        ],
        "levels": [_level(layer, route, layers[0], slower or {}) for route in routes for layer in layers],
    }
    run.environment = ENVIRONMENT
    run.timings = {"wall_s": 84.2, "startup_s": 9.1, "warm_up_s": 7.4, "pilot_s": 1.2, "slices_s": 64.8}
    run.progress, run.analysis_version = 1.0, ANALYSIS_VERSION
    run.save()
    return run


#: As a run of `orm-overhead` stores it.
ENVIRONMENT: dict[str, Any] = {
    "pgperf": "0.1.0",
    "python": "3.11.2",
    "idle": {"idle": "awake", "note": ""},
    "layers": {
        "libpq": {"libpq": "18.6", "client": "0.1.0"},
        "psycopg2": {"libpq": "18.6", "driver": "psycopg2", "python": "3.11.2", "driver_version": "2.9.13"},
        "psycopg": {
            "libpq": "18.6", "driver": "psycopg", "python": "3.11.2", "driver_version": "3.3.9",
            "implementation": "binary",
        },
        "django_cursor": {
            "libpq": "18.6", "django": "5.2.19", "driver": "psycopg", "python": "3.11.2", "driver_version": "3.3.9",
            "implementation": "binary",
        },
        "django_orm": {
            "libpq": "18.6", "django": "5.2.19", "driver": "psycopg", "python": "3.11.2", "driver_version": "3.3.9",
            "implementation": "binary",
        },
    },
    "memory": {
        "unlimited": [], "free_bytes": 20614103040, "client_bytes": 571262373, "allowed_bytes": 10307051520,
    },
    "packages": {
        "numpy": "2.4.6", "redis": "8.1.0", "Django": "5.2.19", "celery": "5.7.0", "psycopg": "3.3.9",
        "psycopg2": "2.9.13", "psycopg-binary": "3.3.9",
    },
    "machine": {
        "kernel": "6.18.0", "system": "Linux x86_64", "governor": None, "processor": "Example CPU @ 2.6 GHz",
        "hypervisor": True, "processors": 2, "clocksource": "tsc", "load_average": [0.33, 0.28, 0.26],
        "memory_bytes": 25276502016,
    },
    "server": {
        "jit": "on", "ssl": "off", "fsync": "on", "TimeZone": "UTC", "work_mem": "4MB", "io_method": "worker",
        "wal_level": "replica", "huge_pages": "try", "log_statement": "none", "server_version": "18.6",
        "shared_buffers": "128MB", "max_connections": "100", "plan_cache_mode": "auto", "track_io_timing": "off",
        "compute_query_id": "off", "synchronous_commit": "on", "password_encryption": "scram-sha-256",
        "effective_cache_size": "4GB", "pg_stat_statements.track": "none",
        "shared_preload_libraries": "pg_stat_statements", "log_min_duration_statement": "-1",
        "max_parallel_workers_per_gather": "2", "client_connection_check_interval": "0",
    },
    "pooler": {"name": "pgbouncer", "version": "PgBouncer 1.18.0"},
    "placement": {"note": "", "server": [1], "clients": [0], "placement": "apart"},
}  # fmt: skip


def _us(layer: str, route: str, clients: int = 1) -> float:
    """Two CPUs serve the clients; for the rest of its time a client waits."""
    base, delay_ms = apart(route)
    alone = _US[layer] + _ROUTE_US.get(base, OTHER_ROUTE_US) + 1000 * delay_ms
    return max(alone, alone * 0.85 * clients)


def _variant(layer: str, route: str, control: int = 0, clients: int = 1) -> Variant:
    return Variant(
        workload="site-by-domain",
        layer=layer,
        mode="simple",
        route=route,
        clients=clients,
        connect="persistent",
        placement="apart",
        control=control,
    )


def _variant_result(run: Run, position: int, variant: Variant) -> VariantResult:
    us = _us(variant.layer, variant.route, variant.clients) * (1 + 0.003 * variant.control)
    ops = round(6 * 5 * 200_000 / us)
    return VariantResult(
        run=run, position=position, label=variant.label, workload=variant.workload, layer=variant.layer,
        mode=variant.mode, route=variant.route, clients=variant.clients, placement=variant.placement,
        connect=variant.connect, control=variant.control, slices=30, ops=ops, rows=ops, errors=0,
        ops_per_s=variant.clients * 1e6 / us, rows_per_s=variant.clients * 1e6 / us, us_per_op=us,
        us_per_op_low=us * 0.985, us_per_op_high=us * 1.017,
        latency_us={
            "min": us * 0.71, "mean": us, "stddev": us * 0.31, "p50": us * 0.94, "p90": us * 1.22,
            "p95": us * 1.41, "p99": us * 2.6, "max": us * 41,
        },
        cold_us=_cold(variant, us), cpu_us_per_op=_cpu(variant, _us(variant.layer, apart(variant.route)[0])),
        verdict={},
    )  # fmt: skip


def _cold(variant: Variant, us: float) -> dict[str, float | None]:
    if variant.control:
        return {}
    start_up = {"libpq": 2_100.0, "psycopg2": 61_000.0, "psycopg": 118_000.0}.get(variant.layer, 342_000.0)
    return {
        "startup": start_up, "connect": 3_912.0, "first": us * 7.7, "second": us * 2.1, "next_ten": us * 11.4,
        "other_query_first": us * 2.4, "other_query_second": us * 1.1,
    }  # fmt: skip


def _cpu(variant: Variant, us: float) -> dict[str, float | None]:
    pooled = variant.route == "pgbouncer"
    own = us - 60
    return {
        "client_user": own * 0.8, "client_sys": own * 0.2 + 4.1, "pooler": 14.2 if pooled else 0.0,
        "server": 21.8, "unattributed": None if pooled else 3.3,
    }  # fmt: skip


def _pairs(variants: list[Variant], first: str, route: str) -> list[tuple[Variant, Variant]]:
    measured = [variant for variant in variants if not variant.control]
    layers = [(each, replace(each, layer=first)) for each in measured if each.layer != first]
    routes = [(each, replace(each, route=route)) for each in measured if each.route != route]
    controls = [(variant, replace(variant, control=0)) for variant in variants if variant.control]
    return layers + routes + controls


def _comparison(run: Run, position: int, variant: Variant, baseline: Variant) -> ComparisonResult:
    base_us = _us(baseline.layer, baseline.route, baseline.clients)
    ratio = 1.004 if variant.control else _us(variant.layer, variant.route, variant.clients) / base_us
    outcome = "inconclusive" if variant.control else "differs"
    return ComparisonResult(
        run=run, position=position, ratio=ratio, low=ratio * 0.988,
        high=ratio * 1.012, delta_us=(ratio - 1) * base_us, delta_low_us=(ratio * 0.988 - 1) * base_us,
        delta_high_us=(ratio * 1.012 - 1) * base_us, outcome=outcome, aa=bool(variant.control), pairs=6,
        sample="blocks", mde=0.021,
    )  # fmt: skip


def _ladder(
    route: str,
    layers: tuple[str, ...],
    beside: tuple[str, ...],
    clients: int,
    slower: Mapping[str, float],
) -> dict[str, Any]:
    rungs = [_variant(layer, route, clients=clients) for layer in layers]
    steps = [_step(below, rung, rungs[0], slower) for below, rung in zip((None, *rungs), rungs, strict=False)]
    side = [_step(rungs[0], replace(rungs[0], layer=layer), rungs[0], slower) for layer in beside]
    return {
        "workload": "site-by-domain",
        "route": route,
        "mode": "simple",
        "clients": clients,
        "placement": "apart",
        "driver": "psycopg",
        "steps": steps,
        "side": side,
    }


def _level(layer: str, route: str, first: str, slower: Mapping[str, float]) -> dict[str, Any]:
    """Six blocks with a wave of a few per mille in each, as analysis.compare keeps them."""
    waves = [0.004 * math.sin(7 * block + len(layer) + len(route)) for block in range(6)]
    us = [_us(layer, route) * slower.get(layer, 1.0) * math.exp(wave) for wave in waves]
    level = {
        "variant": asdict(_variant(layer, route)),
        "base_layer": "",
        "log_us": [[math.log(value) for value in us]],
        "log_over": [],
        "us_over": [],
        "us": _us(layer, route) * slower.get(layer, 1.0),
        "base_us": None,
    }
    if layer == first:
        return level
    base = [_us(first, route) * slower.get(first, 1.0)] * len(us)
    return {
        **level,
        "base_layer": first,
        "log_over": [[math.log(one / other) for one, other in zip(us, base, strict=True)]],
        "us_over": [[one - other for one, other in zip(us, base, strict=True)]],
        "base_us": base[0],
    }


def make_blocks(run: Run, blocks: int = 2, rounds: int = 3, routes: tuple[str, ...] = ("socket",)) -> Run:
    """Store invented slices, a little different in each."""
    numbered = range(blocks)
    for at in numbered:
        store_block(run, [_block(layer, route, at, rounds) for route in routes for layer in LAYER_NAMES])
    return run


def store_block(run: Run, variants: list[VariantBlock]) -> None:
    """Store the variants of one block, whatever state the run is in."""
    data = block_codec.encode(variants, plain=store.finite)
    BlockResult.objects.create(run=run, attempt=1, cohort=0, block=variants[0].block, data=data)


def _block(layer: str, route: str, block: int, rounds: int) -> VariantBlock:
    slices = tuple(_slice(_us(layer, route), block, round_) for round_ in range(rounds))
    return VariantBlock(variant=_variant(layer, route), cohort=0, block=block, slices=slices, rows_per_op=1)


def _slice(us: float, block: int, round_: int) -> SliceRecord:
    us *= 1 + 0.003 * math.sin(5 * block + 3 * round_)
    ops = round(50_000 / us)
    return SliceRecord(
        round=round_, position=round_, ops=ops, rows=ops, lead_in_ops=50, window_ns=50_000_000, us_per_op=us,
        ops_per_s=ops / 50_000_000 * 1e9, user_ns=30_000_000, sys_ns=9_000_000, client_ns=41_000_017,
        started_ns=10**12 + 10**9 * (100 * block + round_),
    )  # fmt: skip


def _step(
    below: Variant | None, rung: Variant, first: Variant, slower: Mapping[str, float]
) -> dict[str, Any]:
    def own_us(of: Variant) -> float:
        return _us(of.layer, of.route, of.clients) * slower.get(of.layer, 1.0)

    us = own_us(rung)
    step = us - (own_us(below) if below else 0)
    ratio = us / own_us(first)
    return {
        "layer": rung.layer, "label": rung.label, "us": us, "low": us * 0.985, "high": us * 1.017,
        "step_us": step, "step_low_us": step * 0.9, "step_high_us": step * 1.12,
        "ratio": ratio, "ratio_low": ratio * 0.988, "ratio_high": ratio * 1.013,
    }  # fmt: skip


def label_to_test(run: Run) -> str:
    """A variant of the run, with a verdict that can be tested: a short run's own may be unknown."""
    row = run.variants.filter(layer="django_orm", control=0)[0]
    row.verdict = stored_verdict()
    row.save()
    return row.label


def stored_verdict(word: str = "client_cpu", **more: Any) -> dict[str, Any]:
    """A likely verdict as it is stored, with 165 of 211 µs on the client's CPU."""
    numbers = VerdictNumbers(
        response_us=211.0, parts_us={"client": 165.0, "latency": 40.0}, queue_us={"client": 0.0}
    )
    fields = {"certainty": "likely", "intervention": "lower_layer", "numbers": numbers, **more}
    return Verdict(word, **fields).to_json()
