"""Connected variants, as in a run, for scripts that drive slices themselves."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from example.stack.stack import Stack
from pgperf.core import protocol
from pgperf.core.layers import LAYERS
from pgperf.core.records import Definition, Route, Variant
from pgperf.install.c_client import build
from pgperf.runner.client_group import ClientGroup, find_server_cgroup
from pgperf.runner.client_startup import started
from pgperf.runner.cpu import idle, placement
from pgperf.runner.plan import make_plan, request_pages
from pgperf.runner.server.probe import ServerProbe
from pgperf.runner.timed_slice import AwaitDeparture

_WARM_UP = protocol.Slice(seq=0, lead_in_ops=300, lead_in_ns=500_000_000, count=1)
#: Of each connection, where operations take milliseconds.
_FEW_OPS = 2
_SEVERAL_OPS = 10


def routes_of(stack: Stack) -> dict[str, Route]:
    """The local socket and, if the stack has one, the pooler."""
    env = stack.env
    login = (env["PGPERF_DB_NAME"], env["PGPERF_DB_USER"], env["PGPERF_DB_PASSWORD"])
    routes = {"socket": Route("socket", env["PGPERF_DB_SOCKET"], int(env["PGPERF_DB_PORT"]), *login)}
    if "PGPERF_PGBOUNCER_PORT" in env:
        port = int(env["PGPERF_PGBOUNCER_PORT"])
        routes["pgbouncer"] = Route("pgbouncer", "127.0.0.1", port, *login, pooler="session")
    return routes


@contextmanager
def resident(
    stack: Stack, definition: Definition, name: str, web: Collection[Route] = ()
) -> Iterator[list[ClientGroup]]:
    """The groups of `departing`."""
    with departing(stack, definition, name, web) as (groups, _):
        yield groups


@contextmanager
def departing(
    stack: Stack, definition: Definition, name: str, web: Collection[Route] = ()
) -> Iterator[tuple[list[ClientGroup], AwaitDeparture]]:
    """Client groups of the definition's variants, without controls.

    They are connected, placed and warmed up, and their server processes are known. Then what waits
    until the backends of a slice have left. `web`: routes to web servers, beside those to the stack's
    database. The script exits if the placement of the definition is not possible.
    """
    plan, routes = make_plan(definition), {**routes_of(stack), **{route.name: route for route in web}}
    build_dir = stack.place.own / "build"
    if not all(LAYERS[layer].program for layer in definition.layers):
        build_dir = build(build_dir, pg_config=stack.env["PGPERF_PG_CONFIG"]).path.parent
    with ServerProbe.open(plan, routes, name, may_pin=True) as server, idle.keep_awake(definition.idle):
        cpu_placement = placement.place(
            definition.placement,
            os.sched_getaffinity(0),
            server.pin_refusal(),
            pages=request_pages(plan.variants),
        )
        if cpu_placement.note:
            raise SystemExit(f"verdict: cannot measure: {cpu_placement.note}")
        server.bind(plan, cpu_placement)
        variants = [variant for variant in plan.variants if not variant.control]
        named = [(variant, f"{server.application}-{at}") for at, variant in enumerate(variants)]
        with started(
            definition,
            named,
            routes,
            str(build_dir),
            cold=False,
            placed=cpu_placement,
            interpreters={"pgbench": stack.env["PGPERF_PGBENCH"]},
            turn=name,
        ) as groups:
            for group in groups:
                group.run(_WARM_UP._replace(lead_in_ops=_lead_in_ops(definition, group.variant)))
            server.finder(cpu_placement)(groups)
            find_server_cgroup(groups)
            yield groups, server.departed


def pin_new_backends(stack: Stack, group: ClientGroup) -> None:
    """Let the backends of another program start on the CPUs of the group's own backends."""
    postmaster = stack.running[0].process
    assert postmaster
    placement.pin(postmaster.pid, frozenset(os.sched_getaffinity(group.server_pids[0])))


@contextmanager
def on_cpus_of(group: ClientGroup) -> Iterator[None]:
    """What this process starts meanwhile runs on the CPUs of the group's client."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, os.sched_getaffinity(group.clients[0].pid))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _lead_in_ops(definition: Definition, variant: Variant) -> int:
    if definition.work(variant.workload).bulk:
        return _FEW_OPS
    return _SEVERAL_OPS if variant.backends_pass or variant.workers > 1 else _WARM_UP.lead_in_ops
