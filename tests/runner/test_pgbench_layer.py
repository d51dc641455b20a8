"""Runs with the layers of pgbench, on a real server."""

import os
from functools import partial
from pathlib import Path

import pytest
from django.conf import settings

from pgperf.analysis.diagnostics import diagnostics
from pgperf.analysis.summary import summarise
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import Definition, Route, VariantBlock, WorkloadDefinition
from pgperf.runner.cpu import schedstat
from pgperf.runner.cpu.process_cpu import ProcessCpu
from pgperf.runner.plan import make_plan, sharing
from pgperf.runner.run import RunSettings, execute
from tests.busy_machine import too_busy
from tests.runner.builders import definition
from tests.runner.cpu.test_accounting import Keeper

PROGRAMS = {"pgbench": str(settings.PGPERF["PGBENCH"])}
READ = WorkloadDefinition("read", "SELECT generate_series(1, %s)", (3,))


def run(routes: dict[str, Route], what: Definition) -> list[VariantBlock]:
    keeper = Keeper()
    execute(
        make_plan(what), routes, RunSettings(build_dir="", run_id="pgbench", interpreters=PROGRAMS), keeper
    )
    return keeper.blocks


@pytest.fixture(scope="module")
def kept(routes: dict[str, Route]) -> list[VariantBlock]:
    """Each pgbench lasts a second at least, so several tests read what two runs measured."""
    what = definition(
        workloads=(READ,), layers=("psycopg", "pgbench"), routes=("tcp",), clients=(2,), modes=("prepared",), rounds=2,
        slice_ms=100, diagnostic_ms=600,
    )  # fmt: skip
    return run(routes, what)


@pytest.fixture(scope="module")
def connected_each_time(routes: dict[str, Route]) -> list[VariantBlock]:
    what = definition(
        workloads=(READ,), layers=("psycopg", "pgbench", "pgbench_one_thread"), routes=("tcp",), clients=(3,),
        connection_modes=("per_operation",), slice_ms=300, diagnostic_ms=600,
    )  # fmt: skip
    return run(routes, what)


def test_kept_connections_have_a_mean_and_no_percentiles(kept: list[VariantBlock]) -> None:
    what = definition(workloads=(READ,), layers=("psycopg", "pgbench"), routes=("tcp",), slice_ms=100)
    found = summarise(what, [block.variant for block in kept], kept, "psycopg")
    rows = {row["layer"]: row for row in found["variants"] if not row["control"]}
    assert set(rows["pgbench"]["latency_us"].values()) == {None}
    assert rows["pgbench"]["us_per_op"] == pytest.approx(2e6 / rows["pgbench"]["ops_per_s"], rel=0.2)
    assert rows["pgbench"]["rows"] == 3 * rows["pgbench"]["ops"]
    assert rows["pgbench"]["cpu_us_per_op"]["client_sys"] > 0
    assert set(rows["pgbench"]["cold_us"].values()) == {None}
    assert any(
        {each.variant.layer, each.baseline.layer} == {"psycopg", "pgbench"} for each in found["comparisons"]
    )


def test_a_connection_each_has_latencies(connected_each_time: list[VariantBlock]) -> None:
    blocks = [block for block in connected_each_time if block.variant.layer != "psycopg"]
    assert {block.variant.layer for block in blocks} == {"pgbench", "pgbench_one_thread"}
    for block in blocks:
        assert block.latency_min_ns > 0
        ops = sum(piece.ops for piece in block.slices)
        assert {name: part.ops for name, part in block.phases.items()} == {
            "connect": ops,
            "operate": ops,
            "close": 0,
        }
        assert block.rows_per_op is None
        assert [piece.rows for piece in block.slices] == [None]
        assert all(piece.client_ns for piece in block.slices)


def clients_and_this() -> list[int]:
    """The processes that may have reaped a pgbench."""
    children = schedstat.children(os.getpid())
    clients = [pid for pid in children if "pgbench_client" in schedstat.read_text(f"/proc/{pid}/cmdline")]
    return [os.getpid(), *clients]


def test_the_time_of_pgbench_is_not_that_of_other_processes(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with its slice, and the client that has started it is the run's."""
    monkeypatch.setattr(
        "pgperf.runner.block_processes.ProcessCpu", partial(ProcessCpu, list_pids=clients_and_this)
    )
    what = definition(workloads=(READ,), layers=("pgbench",), routes=("tcp",), cold_blocks=0)
    for each in run(routes, what):
        client_ns = sum(piece.client_ns or 0 for piece in each.slices)
        assert each.cpu_account["ours_ns"] >= client_ns > 0
        assert each.cpu_account["others_ns"] < client_ns / 2


def counting_none(blocks: list[VariantBlock]) -> set[str]:
    """The layers of which a diagnostic slice says why it counts no statements."""
    told = {block.variant.layer: diagnostics([block], None) for block in blocks}
    return {
        layer for layer, each in told.items() if each and "begin within" in each.notes.get("statements", "")
    }


def test_a_diagnostic_slice_counts_no_statements_of_new_sessions(
    kept: list[VariantBlock], connected_each_time: list[VariantBlock]
) -> None:
    assert counting_none(kept) == {"pgbench"}
    assert counting_none(connected_each_time) == {"psycopg", "pgbench", "pgbench_one_thread"}


def test_a_diagnostic_slice_sees_its_sessions(
    kept: list[VariantBlock], connected_each_time: list[VariantBlock]
) -> None:
    for block in (*kept, *connected_each_time):
        found = diagnostics([block], None)
        assert found
        assert found.wait_events or too_busy(found.notes), (block.variant.label, found.notes)


def test_one_process_makes_all_clients() -> None:
    what = definition(layers=("libpq", "pgbench"), clients=(1, 8))
    variants = [variant for variant in make_plan(what).variants if not variant.control]
    assert {variant.layer: variant.processes for variant in variants} == {"libpq": 8, "pgbench": 1}
    owners = sharing(variants)
    assert sorted((owner.layer, owner.clients) for owner in owners) == [
        ("libpq", 8),
        ("pgbench", 1),
        ("pgbench", 8),
    ]


def test_a_statement_that_pgbench_would_change_leaves_it_out() -> None:
    tricky = WorkloadDefinition("tricky", "SELECT ':name'")
    plan = make_plan(
        definition(workloads=(tricky,), layers=("fake", "pgbench"), modes=("simple", "extended"))
    )
    assert {(v.layer, v.mode) for v in plan.variants} == {
        ("fake", "simple"), ("fake", "extended"), ("pgbench", "simple")
    }  # fmt: skip
    (left_out,) = plan.skipped
    assert "takes :name for one of its variables" in left_out.reason
    with pytest.raises(InvalidDefinition, match="backslash"):
        make_plan(definition(workloads=(WorkloadDefinition("meta", "\\! true"),), layers=("pgbench",)))


@pytest.mark.parametrize("mode", ["pool", "request"])
def test_it_has_no_pool(mode: str) -> None:
    with pytest.raises(InvalidDefinition, match="has no pool"):
        make_plan(definition(layers=("pgbench",), connection_modes=(mode,)))


def test_a_pgbench_that_fails_ends_the_run(routes: dict[str, Route], tmp_path: Path) -> None:
    program = tmp_path / "pgbench"
    program.write_text(
        f"#!/bin/sh\n[ $1 = --version ] && exec {PROGRAMS['pgbench']} --version\nkill -SEGV $$\n"
    )
    program.chmod(0o755)
    what = definition(layers=("pgbench",), routes=("tcp",))
    with pytest.raises(Exception, match="pgbench ended with signal 11"):
        execute(
            make_plan(what), routes,
            RunSettings(build_dir="", run_id="pgbench", interpreters={"pgbench": str(program)}), Keeper(),
        )  # fmt: skip
