"""Clients that variants share, on a real server: whose backends are whose, and a run of 1, 2 and 4
clients.
"""

from pathlib import Path

import pytest

from pgperf.core.records import Definition, Route, VariantBlock, WorkloadDefinition
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_startup import started
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server.probe import ServerProbe
from tests.runner.builders import definition

from .test_run import Watcher


def many(route: str, **changes: object) -> Definition:
    return definition(
        workloads=(WorkloadDefinition("one", "SELECT 1"),),
        layers=("libpq",),
        routes=(route,),
        clients=(1, 2, 4),
        **changes,
    )


@pytest.mark.parametrize("route", ["socket", "pgbouncer"])
def test_a_variants_backends_are_those_of_the_clients_it_drives(
    route: str, routes: dict[str, Route], c_client: Path
) -> None:
    plan = make_plan(many(route))
    with ServerProbe.open(plan, routes, f"many-{route}", may_pin=False) as server:
        named = [(variant, f"{server.application}-{at}") for at, variant in enumerate(plan.variants)]
        with started(plan.definition, named, routes, str(c_client.parent), False, None) as groups:
            server.finder(CpuPlacement("scheduler"))(groups)
            check_backends(groups)
            if route == "socket":
                assert groups[2].server_pids == [ready.backend_pid for ready in groups[2].ready]


def check_backends(groups: list[ClientGroup]) -> None:
    one, two, four, control = [group.server_pids for group in groups]
    assert [len(set(pids)) for pids in (one, two, four, control)] == [1, 2, 4, 1]
    assert (one, two) == (four[:1], four[:2])
    assert not set(control) & set(four)


def test_a_run_of_one_two_and_four_clients(routes: dict[str, Route], c_client: Path) -> None:
    watcher = Watcher()
    what = many("socket", slice_ms=20, lead_in_ms=10, rounds=2)
    execute(make_plan(what), routes, RunSettings(str(c_client.parent), "many"), watcher)
    assert [(block.variant.clients, block.variant.control) for block in watcher.blocks] == [
        (1, 0), (2, 0), (4, 0), (1, 1),
    ]  # fmt: skip
    for block in watcher.blocks:
        check_slices(block)


def check_slices(block: VariantBlock) -> None:
    assert len(block.slices) == 2
    for record in block.slices:
        assert record.ops > 0
        assert record.rows == record.ops
        assert record.client_ns
        assert record.server_ns
