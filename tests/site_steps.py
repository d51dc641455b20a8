"""A run of a web site's steps as it is stored, made without running anything."""

from dataclasses import asdict
from typing import Any

from pgperf.analysis.http_requests import HttpRequests
from pgperf.analysis.open_loop import OpenLoop
from pgperf.core.records import Variant
from pgperf.models import ComparisonResult, Run, VariantResult
from tests import factories

#: Requests/s of each step, and the step that it builds on.
STEPS = {
    "web_apache": (4.0, ""),
    "web_nginx": (9.0, "web_apache"),
    "web_pgbouncer": (10.5, "web_nginx"),
    "web_tls": (10.4, "web_pgbouncer"),
    "web_advised": (11.7, "web_pgbouncer"),
}
CLIENTS = 20


def variant(route: str) -> Variant:
    return Variant(
        workload="books", layer="http", mode="simple", route=route, clients=CLIENTS, connect="persistent",
        placement="apart",
    )  # fmt: skip


def at_rate(run: Run, rate: float) -> Run:
    """The same run at a rate, which every step but the first held."""
    for row in run.variants.order_by("position"):
        us = 1e6 / row.ops_per_s
        loop = OpenLoop(
            rate=rate, schedule="exponential", due=100, ended=100 if row.position else 60, late=None,
            skipped=0, backlog=0 if row.position else 40, seconds=100 / rate,
        )  # fmt: skip
        row.rate, row.schedule, row.open_loop = rate, loop.schedule, asdict(loop)
        row.label = row.identity.label
        row.latency_us = {"mean": us, "p50": us, "p90": 2 * us, "p95": 3 * us, "p99": 4 * us, "max": 5 * us}
        row.phases_us = {"lag": {**row.latency_us}, "service": {**row.latency_us}}
        row.ops_per_s = rate
        row.save()
    return run


def with_requests(run: Run) -> Run:
    """The same run with what came of its requests, of which two of the first step failed."""
    for row in run.variants.order_by("position"):
        us = row.us_per_op
        failed = {} if row.position else {"status 502": 1, "timed out": 1}
        row.http = HttpRequests(5000, failed, 0.75, 6_000, 6_144 + row.position).to_json()
        row.phases_us = {
            phase: {"mean": share * us, "p50": share * us, "p99": 2 * share * us, "max": 3 * share * us}
            for phase, share in (("connect", 0.1), ("first_byte", 0.8), ("receive", 0.1))
        }
        row.errors, row.cpu_account = sum(failed.values()), {"web_workers": 4}
        row.save()
    return run


def make_step(run: Run, position: int, route: str, ops_per_s: float) -> VariantResult:
    us = 1e6 * CLIENTS / ops_per_s
    found = variant(route)
    return VariantResult.objects.create(
        run=run, position=position, label=found.label, **asdict(found), ops=1000, slices=30, ops_per_s=ops_per_s,
        us_per_op=us, us_per_op_low=us * 0.98, us_per_op_high=us * 1.02, latency_us={"mean": us, "p50": us},
        cpu_us_per_op={"client_user": 90.0, "client_sys": 20.0, "pooler": 0.0, "server": us / 40},
    )  # fmt: skip


def compare(position: int, row: VariantResult, base: VariantResult, outcome: str) -> None:
    ratio = row.us_per_op / base.us_per_op
    ComparisonResult.objects.create(
        run=row.run, position=position, variant=row, baseline=base, ratio=ratio, low=ratio * 0.97,
        high=ratio * 1.03, delta_us=1.0, outcome=outcome, aa=False, pairs=60, sample="blocks",
    )  # fmt: skip


def make_run(**fields: Any) -> Run:
    """Every step over the one that it builds on, and over the first."""
    web_routes = {route: base for route, (_ops, base) in STEPS.items()}
    made = factories.make_run(
        definition={
            "benchmark": "site-steps",
            "layers": ["http"],
            "routes": list(STEPS),
            "web_routes": web_routes,
        },
        **fields,
    )
    rows = {
        route: make_step(made, position, route, ops)
        for position, (route, (ops, _base)) in enumerate(STEPS.items())
    }
    for position, (route, (_ops, base)) in enumerate(STEPS.items()):
        if base:
            outcome = "equivalent" if route == "web_tls" else "differs"
            compare(10 * position, rows[route], rows[base], outcome)
            if base != "web_apache":
                compare(10 * position + 1, rows[route], rows["web_apache"], "differs")
    return made
