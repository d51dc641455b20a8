"""The CPUs of a pooler, by who reaches it; in a run, on a real pooler."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

import psutil
import pytest

from pgperf.core.records import Cohort, Definition, Page, Plan, Route, WorkloadDefinition
from pgperf.runner.cpu.placement import CpuPlacement, Sides
from pgperf.runner.cpu.pooler_cpus import PoolerCpus
from pgperf.runner.plan import make_plan
from pgperf.runner.processes import pooler_process
from pgperf.runner.run import RunSettings, execute
from tests.runner.builders import definition
from tests.runner.test_reconnecting import Watcher

APART = CpuPlacement("apart", frozenset({0}), frozenset({1, 2}))
#: Of four CPUs, one is that of clients that request pages.
FOUR = CpuPlacement(
    "apart", frozenset({0, 1}), frozenset({2, 3}), Sides(frozenset({0}), frozenset({1, 2, 3}))
)


@pytest.mark.parametrize(
    ("reached", "cpus", "reasons"),
    [
        ({"pgbouncer": False}, {0}, {"pgbouncer": "CPU 0, as the clients: only clients use this pooler"}),
        ({"web": True}, {1, 2}, {"web": "CPUs 1, 2, as the web servers: only web servers use this pooler"}),
    ],
)
def test_a_pooler_is_beside_those_that_reach_it(
    reached: dict[str, bool], cpus: set[int], reasons: dict[str, str]
) -> None:
    poolers = PoolerCpus()
    for route, by_web in reached.items():
        poolers.reached(7, route, by_web)
    assert poolers.of(7, APART) == cpus
    assert poolers.to_json(APART) == reasons


@pytest.mark.parametrize("order", [(False, True), (True, False)])
def test_one_that_both_reach_has_one_place(order: tuple[bool, bool]) -> None:
    poolers = PoolerCpus()
    for by_web in order:
        poolers.reached(7, "web" if by_web else "pgbouncer", by_web)
    poolers.reached(8, "other", False)
    assert (poolers.of(7, APART), poolers.of(8, APART)) == ({1, 2}, {0})
    assert (poolers.is_beside_server(7), poolers.is_beside_server(8)) == (True, False)
    found = poolers.to_json(APART)
    assert found["pgbouncer"] == found["web"]
    assert found["web"].startswith(
        "CPUs 1, 2, as the database server: clients and web servers use this pooler"
    )
    assert found["other"].startswith("CPU 0, as the clients: ")


def test_one_that_both_reach_runs_where_no_client_of_either_does() -> None:
    poolers = PoolerCpus()
    poolers.reached(7, "web", True)
    assert (poolers.of(7, FOUR), poolers.is_shared(7)) == ({1, 2, 3}, False)
    poolers.reached(7, "pgbouncer", False)
    assert (poolers.of(7, FOUR), poolers.is_shared(7)) == ({2, 3}, True)


def test_one_that_web_servers_may_use_has_the_place_of_one_that_they_do() -> None:
    poolers = PoolerCpus()
    poolers.reached(7, "pgbouncer", False)
    poolers.expect(["web"])
    poolers.place()
    assert (poolers.of(7, FOUR), poolers.is_shared(7)) == ({2, 3}, True)
    assert poolers.to_json(FOUR) == {
        "pgbouncer": "CPUs 2, 3, as the database server: clients use this pooler, and web servers may, too"
    }
    poolers.saw("web")
    poolers.place()
    assert poolers.of(7, FOUR) == {2, 3}, "it stays there for the run"


def test_one_that_web_servers_are_seen_to_use_later_says_where_it_was() -> None:
    poolers = PoolerCpus()
    poolers.reached(7, "pgbouncer", False)
    poolers.expect(["web"])
    poolers.saw("web")
    poolers.place()
    assert poolers.of(7, FOUR) == {0, 1}
    poolers.reached(7, "web", True)
    poolers.place()
    assert poolers.of(7, FOUR) == {2, 3}
    assert poolers.to_json(FOUR)["web"].endswith("; until that was seen, CPUs 0, 1, as the clients")


def test_where_all_share_their_cpus_there_is_nothing_to_decide() -> None:
    poolers = PoolerCpus()
    poolers.reached(7, "pgbouncer", False)
    poolers.reached(7, "web", True)
    assert poolers.to_json(CpuPlacement("together", frozenset({1}), frozenset({1}))) == {}
    assert poolers.to_json(CpuPlacement("scheduler")) == {}
    assert not poolers.is_beside_server(None)


@pytest.fixture
def web(routes: dict[str, Route]) -> Iterator[Route]:
    """A web server that reaches its database over the pooler."""
    over = routes["pgbouncer"]
    login = {name: getattr(over, name) for name in ("host", "port", "dbname", "user", "password")}
    program = [sys.executable, "-m", "tests.runner.pooled_page"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(login) + "\n")
        server.stdin.flush()
        port = int(server.stdout.readline())
        yield Route("web", "127.0.0.1", port, "", "", "", url=f"http://127.0.0.1:{port}")
        server.communicate()


def by_layer(plan: Plan) -> Plan:
    """With a cohort for each layer, as where they do not fit into one."""
    layers = dict.fromkeys(variant.layer for variant in plan.variants)
    cohorts = [tuple(variant for variant in plan.variants if variant.layer == layer) for layer in layers]
    return replace(plan, cohorts=tuple(map(Cohort, cohorts)))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="apart needs two CPUs")
@pytest.mark.parametrize("planned", [make_plan, lambda what: by_layer(make_plan(what))], ids=["one", "two"])
def test_a_pooler_of_clients_and_web_servers_is_bound_once(
    planned: Callable[[Definition], Plan], routes: dict[str, Route], web: Route
) -> None:
    pytest.importorskip("pycurl")
    pooler = pooler_process.process(routes["pgbouncer"].port)
    assert pooler
    before = psutil.Process(pooler).cpu_affinity()
    what = definition(
        workloads=(WorkloadDefinition("page", "SELECT 1", page=Page("/")),), layers=("psycopg", "http"),
        routes=("pgbouncer", "web"), web_routes={"web": ""}, placement="apart", blocks=2, slice_ms=50, nominal_us={},
    )  # fmt: skip
    watcher = Watcher(pooler)
    result = execute(planned(what), {**routes, "web": web}, RunSettings("", "shared"), watcher)
    placed = result.environment["placement"]
    seen = {frozenset(cpus) for cpus in watcher.cpus}
    assert seen <= {frozenset(before), frozenset(placed["server"])}
    assert watcher.cpus[-1] == set(placed["server"])
    assert placed["poolers"]["pgbouncer"] == placed["poolers"]["web"]
    assert "clients and web servers use this pooler" in placed["poolers"]["web"]
    assert {block.cpu_account["role_cpus"]["pooler_beside_server"] for block in watcher.blocks} == {True}
    assert psutil.Process(pooler).cpu_affinity() == before
