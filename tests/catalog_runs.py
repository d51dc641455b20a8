"""Stored runs of catalog benchmarks, analysed as real ones, with invented durations."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from django.apps import apps
from django.db import DEFAULT_DB_ALIAS

from pgperf.analysis import latency
from pgperf.analysis.summary import summarise
from pgperf.catalog.sync import copy_catalog
from pgperf.core.layers import LAYERS
from pgperf.core.records import Definition, LeftOut, Variant, VariantBlock
from pgperf.models import Benchmark, Database, Run
from pgperf.runner.plan import make_plan
from pgperf.runs import store
from pgperf.runs.definitions import Overrides, freeze
from tests import factories
from tests.analysis.synthetic import piece
from tests.cpu_accounts import add_cpu_accounts

BLOCKS, ROUNDS, OPERATIONS = 4, 2, 300
#: µs per operation through libpq, by workload.
_US = {
    "select-1": 60.0, "pg_type": 900.0, "generate_series": 500.0, "large_object": 350.0, "arrays": 400.0,
    "copyfrom": 20_000.0, "batch": 12_000.0, "oneplusone": 55.0,
}  # fmt: skip
_LAYER = {
    "libpq": 1.0, "pgbench": 1.02, "pgbench_one_thread": 1.1, "psycopg2": 1.6, "psycopg": 1.9, "psycopg_async": 2.6,
    "psycopg_async_uvloop": 2.3, "asyncpg": 1.3, "asyncpg_uvloop": 1.2, "django_cursor": 2.4,
}  # fmt: skip
#: µs that a connection takes, and its shares of connecting, operating and closing.
_CONNECT_US = {"persistent": 0.0, "pool": 25.0, "per_operation": 9_000.0, "request": 11_000.0}
_PHASES = {"connect": 0.82, "operate": 0.1, "close": 0.08}
#: A definition as JSON -> what the analysis makes of its durations, which are always the same.
_summaries: dict[str, Mapping[str, Any]] = {}


def make_catalog_run(name: str, database: Database | None = None, **overrides: object) -> Run:
    """A finished run of the catalog's benchmark of that name."""
    if not Benchmark.objects.filter(name=name).exists():
        copy_catalog(apps=apps, using=DEFAULT_DB_ALIAS)
    benchmark = Benchmark.objects.get(name=name)
    database = database or Database.objects.first() or factories.make_database()
    definition = freeze(benchmark, database, Overrides(blocks=BLOCKS, rounds=ROUNDS, **overrides))  # type: ignore[arg-type]
    frozen = json.dumps(definition.to_json())
    run = factories.make_run(benchmark=benchmark, database=database, definition=json.loads(frozen))
    if frozen not in _summaries:
        _summaries[frozen] = _summary(definition)
    store.save_summary(run, _summaries[frozen])
    run.environment, run.timings = factories.ENVIRONMENT, {"wall_s": 84.2, "slices_s": 64.8}
    run.save()
    return add_cpu_accounts(run)


def _summary(definition: Definition) -> Mapping[str, Any]:
    plan = make_plan(definition, _lacking_modes(definition))
    blocks = [_block(variant, at) for at in range(BLOCKS) for variant in plan.variants]
    summary = summarise(definition, plan.variants, blocks, "psycopg")
    for row in summary["variants"]:
        us = float(row["us_per_op"] or 0)
        row["cpu_us_per_op"] = {
            "client_user": 0.3 * us,
            "client_sys": 0.1 * us,
            "server": 0.3 * us,
            "pooler": 0.0,
        }
    return {**summary, "skipped": [each.to_json() for each in plan.skipped]}


def _lacking_modes(definition: Definition) -> list[LeftOut]:
    known = [LAYERS[layer] for layer in definition.layers]
    return [
        LeftOut(layer=layer.name, mode=mode, reason=layer.mode_reason)
        for layer in known
        for mode in definition.modes
        if mode not in layer.modes
    ]


def _us(variant: Variant) -> float:
    pooled = variant.route == "pgbouncer"
    connect = _CONNECT_US[variant.connect] * (0.2 if pooled else 1.0)
    return _US[variant.workload] * _LAYER[variant.layer] * (1.2 if pooled else 1.0) + connect


def _block(variant: Variant, number: int) -> VariantBlock:
    random = np.random.default_rng([number, *variant.label.encode()])
    durations = (1000 * _us(variant) * random.lognormal(0, 0.2, OPERATIONS)).astype(np.int64)
    us = float(durations.mean()) / 1000
    speed = variant.connections * 1e6 / us
    pieces = tuple(
        piece(
            us * random.lognormal(0, 0.01),
            at,
            OPERATIONS // ROUNDS,
            ops_per_s=speed * random.lognormal(0, 0.01),
        )
        for at in range(ROUNDS)
    )
    whole = latency.sums(durations)
    phases = {
        name: latency.sums((durations * share).astype(np.int64))
        for name, share in _PHASES.items()
        if variant.connect != "persistent"
    }
    return VariantBlock(
        variant=variant, cohort=0, block=number, slices=pieces, histogram=whole.histogram, rows_per_op=1,
        latency_sum_ns=whole.sum_ns, latency_sum_sq=whole.sum_sq, latency_min_ns=whole.min_ns,
        latency_max_ns=whole.max_ns, phases=phases,
    )  # fmt: skip
