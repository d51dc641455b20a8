"""A run of a page, from libpq to the web servers, analysed as a real one, with invented durations."""

import json
from collections.abc import Mapping

import numpy as np

from pgperf.analysis import latency
from pgperf.analysis.summary import summarise
from pgperf.core.records import Definition, Page, Variant, VariantBlock, WorkloadDefinition
from pgperf.models import Run
from pgperf.runner.plan import make_plan
from pgperf.runs import store
from tests import factories
from tests.analysis.synthetic import piece
from tests.cpu_accounts import add_cpu_accounts

#: µs per operation of each layer over TCP.
LAYERS = {
    "libpq": 2_500.0,
    "psycopg2": 2_700.0,
    "psycopg": 2_800.0,
    "django_cursor": 3_100.0,
    "django_view": 9_000.0,
}
#: µs per request of each web server, and the route that it builds on: one that keeps its connection to
#: the database saves the time of connecting.
SERVERS = {
    "web_gunicorn": (18_000.0, ""),
    "web_nginx": (18_900.0, "web_gunicorn"),
    "web_conn_kept": (11_400.0, "web_nginx"),
}
_BLOCKS, _ROUNDS, _OPERATIONS = 6, 2, 200


def make_run(servers: Mapping[str, tuple[float, str]] = SERVERS) -> Run:
    """A finished run of all layers."""
    asked = definition(servers)
    variants = make_plan(asked).variants
    blocks = [_block(variant, number, servers) for number in range(_BLOCKS) for variant in variants]
    run = factories.make_run(definition=json.loads(json.dumps(asked.to_json())))
    summary = summarise(asked, variants, blocks, "psycopg")
    for row in summary["variants"]:
        us = row["us_per_op"]
        row["cpu_us_per_op"] = {
            "client_user": 0.3 * us,
            "client_sys": 0.1 * us,
            "server": 0.3 * us,
            "pooler": 0.0,
        }
    store.save_summary(run, summary)
    run.environment, run.timings = factories.ENVIRONMENT, {"wall_s": 84.2, "slices_s": 64.8}
    run.save()
    return add_cpu_accounts(run)


def definition(servers: Mapping[str, tuple[float, str]] = SERVERS) -> Definition:
    return Definition(
        "page",
        (WorkloadDefinition("list-page", "", page=Page("/books/?page=2")),),
        (*LAYERS, "http"),
        ("tcp", "socket", *servers),
        blocks=_BLOCKS,
        rounds=_ROUNDS,
        web_routes={route: base for route, (_us, base) in servers.items()},
    )


def us_of(variant: Variant, servers: Mapping[str, tuple[float, str]] = SERVERS) -> float:
    us = servers[variant.route][0] if variant.route in servers else LAYERS[variant.layer]
    return us * (0.95 if variant.route == "socket" else 1.0)


def _block(variant: Variant, number: int, servers: Mapping[str, tuple[float, str]]) -> VariantBlock:
    random = np.random.default_rng([number, *variant.label.encode()])
    us = us_of(variant, servers)
    durations = (1000 * us * random.lognormal(0, 0.05, _OPERATIONS)).astype(np.int64)
    whole = latency.sums(durations)
    times = us * random.lognormal(0, 0.01, _ROUNDS)
    pieces = (piece(each, at, _OPERATIONS // _ROUNDS, ops_per_s=1e6 / each) for at, each in enumerate(times))
    return VariantBlock(
        variant=variant, cohort=0, block=number, slices=tuple(pieces), histogram=whole.histogram, rows_per_op=1,
        latency_sum_ns=whole.sum_ns, latency_sum_sq=whole.sum_sq, latency_min_ns=whole.min_ns,
        latency_max_ns=whole.max_ns,
    )  # fmt: skip
