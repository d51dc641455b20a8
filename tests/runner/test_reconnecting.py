"""Runs of clients that reconnect: who pays for a connection, on a real server and pooler."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from pgperf.core.records import Route, VariantBlock
from pgperf.runner.cpu import placement
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunResult, RunSettings, execute
from pgperf.runner.server import departure
from tests.runner.builders import definition
from tests.runner.cpu.test_accounting import Keeper

#: A login by SCRAM takes 2 to 5 ms of the server's CPU time, a query 0.05 ms.
CONNECT_NS, QUERY_NS = 1_000_000, 500_000

pytestmark = pytest.mark.usefixtures("forked_control_connections", "no_autovacuum")


class Watcher(Keeper):
    """Keeps the CPUs of a process between the rounds too."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid = pid
        self.cpus: list[set[int]] = []

    def progress(self, share: float, message: str) -> None:
        self.cpus.append(os.sched_getaffinity(self.pid))


def run(
    routes: dict[str, Route], postmaster: psutil.Process, route: str, **changes: object
) -> tuple[RunResult, Watcher]:
    """Two clients that connect in each operation."""
    what = definition(
        **{
            "layers": ("psycopg",), "routes": (route,), "clients": (2,), "connection_modes": ("per_operation",),
            "blocks": 1, "rounds": 3, "slice_ms": 100, **changes,
        }
    )  # fmt: skip
    watcher = Watcher(postmaster.pid)
    settings = RunSettings(build_dir="", run_id="reconnecting")
    return execute(make_plan(what), routes, settings, watcher), watcher


def cpus_of_children(process: psutil.Process) -> set[frozenset[int]]:
    """The sets of CPUs that they may use; a child that ends meanwhile, such as a backend, has none."""
    found = set()
    for child in process.children():
        with suppress(ProcessLookupError):
            found.add(frozenset(os.sched_getaffinity(child.pid)))
    return found


def server_ns_per_op(block: VariantBlock) -> list[float]:
    assert all(piece.server_ns is not None for piece in block.slices)
    return [(piece.server_ns or 0) / (piece.lead_in_ops + piece.ops) for piece in block.slices]


def test_a_connection_without_a_pooler_is_the_servers_work(
    own_group: Path, routes: dict[str, Route], postmaster: psutil.Process
) -> None:
    result, watcher = run(routes, postmaster, "tcp")
    for block in watcher.blocks:
        assert min(server_ns_per_op(block)) > CONNECT_NS
        assert "server_unknown" not in block.cpu_account
        assert {piece.disturbed for piece in block.slices} <= {"", *CONTENDED}
    assert result.environment["connections"]["tcp"]["authentication"] == "scram-sha-256"
    assert result.environment["ports"]["predicted"] > 0


#: Of clients that share a window of 100 ms, on a machine that does other things too.
CONTENDED = (
    "a client completed nothing inside the common window",
    "a client began after the common window had opened",
)


def test_a_pooler_keeps_the_servers_connections(
    one_own_group: None, routes: dict[str, Route], postmaster: psutil.Process
) -> None:
    """Its server connections are used again, whoever used them before."""
    _result, watcher = run(routes, postmaster, "pgbouncer")
    for block in watcher.blocks:
        assert 0 < sorted(server_ns_per_op(block))[1] < CONNECT_NS
        assert all(piece.pooler_ns > 0 for piece in block.slices)


def test_without_a_control_group_the_server_is_unknown(
    shared_group: None, routes: dict[str, Route], postmaster: psutil.Process
) -> None:
    """Neither zero nor too small; clients that keep their connections are measured beside them."""
    modes = ("persistent", "per_operation")
    _result, watcher = run(routes, postmaster, "tcp", connection_modes=modes, rounds=1)
    for block in watcher.blocks:
        if block.variant.reconnects:
            assert {piece.server_ns for piece in block.slices} == {None}
            assert "no control group of its own" in block.cpu_account["server_unknown"]
        else:
            assert all(piece.server_ns for piece in block.slices)
            assert "server_unknown" not in block.cpu_account


def test_the_next_slice_does_not_pay_for_the_last(
    one_own_group: None, routes: dict[str, Route], postmaster: psutil.Process
) -> None:
    """A kept connection beside one that is made anew costs what it costs alone."""
    modes = ("persistent", "per_operation")
    _result, watcher = run(routes, postmaster, "tcp", connection_modes=modes, rounds=6)
    for block in watcher.blocks:
        if not block.variant.reconnects:
            assert sorted(server_ns_per_op(block))[-2] < QUERY_NS


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="apart needs two CPUs")
def test_the_postmaster_is_bound_for_the_run(routes: dict[str, Route], postmaster: psutil.Process) -> None:
    before = os.sched_getaffinity(postmaster.pid)
    result, watcher = run(routes, postmaster, "tcp", placement="apart")
    assert {frozenset(cpus) for cpus in watcher.cpus} == {
        frozenset(result.environment["placement"]["server"])
    }
    assert os.sched_getaffinity(postmaster.pid) == before
    assert cpus_of_children(postmaster) == {frozenset(before)}
    assert {variant.placement for variant in result.plan.variants} == {"apart"}


def test_the_postmaster_is_left_alone_where_clients_keep_their_connections(
    routes: dict[str, Route], postmaster: psutil.Process
) -> None:
    before = os.sched_getaffinity(postmaster.pid)
    _result, watcher = run(
        routes, postmaster, "tcp", placement="apart", connection_modes=("persistent", "pool"), rounds=1
    )
    assert all(cpus == before for cpus in watcher.cpus)


def test_a_postmaster_that_may_not_be_bound_leaves_all_to_the_scheduler(
    routes: dict[str, Route], postmaster: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = placement.may_pin
    monkeypatch.setattr(placement, "may_pin", lambda pid: pid != postmaster.pid and real(pid))
    result, _watcher = run(routes, postmaster, "tcp", placement="apart", rounds=1)
    assert {variant.placement for variant in result.plan.variants} == {"scheduler"}
    assert "does not allow" in result.environment["placement"]["note"]


def test_backends_that_stay_disturb_their_slice(
    routes: dict[str, Route], postmaster: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departure, "_left_here", lambda found, deadline: 2)
    _result, watcher = run(routes, postmaster, "tcp", clients=(1,), rounds=1)
    reasons = {piece.disturbed for block in watcher.blocks for piece in block.slices}
    assert reasons == {"2 of its backends had not left the server after 5 s"}


def test_a_route_without_a_password_is_said_so(routes: dict[str, Route], postmaster: psutil.Process) -> None:
    trusted = {"tcp": replace(routes["tcp"], user="demo_trusted", password="")}
    result, _watcher = run(trusted, postmaster, "tcp", rounds=1)
    found = result.environment["connections"]["tcp"]
    assert found == {"authentication": "none (trust, peer or certificate)", "tls": "none"}
