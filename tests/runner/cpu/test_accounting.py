"""CPU accounts of slices and blocks: reading with real processes, subtraction with made-up ones."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pgperf.core.records import Definition, Route, SliceRecord, VariantBlock
from pgperf.runner.cpu import accounting
from pgperf.runner.cpu.accounting import BlockTotals, SliceAccount, SliceAccounting, VariantProcesses
from pgperf.runner.cpu.cgroups import ServerCgroup
from pgperf.runner.cpu.host import Host, HostInterval
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.cpu.schedstat import CpuTime, TicksAndSwitches
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute
from tests.runner.builders import definition

WORK = "import sys\nfor line in sys.stdin: sum(range(200_000)); print(flush=True)"


@contextmanager
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has worked, and waits for more until its stdin ends.

    Threads of the tests' own process may end in a slice, and its CPU time is unknown then.
    """
    with subprocess.Popen(
        [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        work(process)
        yield process
        process.communicate()


def work(process: subprocess.Popen[bytes]) -> None:
    """Let it work, and wait until it has."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.stdout.readline()


def account(**ticks_and_switches: TicksAndSwitches | None) -> SliceAccount:
    return SliceAccount(
        host=HostInterval(elapsed_ns=10, busy_ns=9, iowait_ns=0, steal_ns=0),
        runner_ns=1,
        cpu_time={},
        ticks_and_switches={"client": None, "server": None, "pooler": None} | ticks_and_switches,
    )


def test_a_slice_account_has_the_cpu_time_of_each_role() -> None:
    with worker() as client:
        processes = VariantProcesses(client=[client.pid], server=None, pooler=(), auxiliary=None)
        accounting = SliceAccounting(Host.here(), processes)
        sum(range(3_000_000))
        found = accounting.close().fields()
    names = {name for name in SliceRecord.__dataclass_fields__ if name.endswith("_ns")}
    phases = {"connect_ns", "operate_ns", "close_ns", "first_byte_ns", "receive_ns", "lag_ns", "service_ns"}
    percentiles = {"p50_ns", "p90_ns", "p99_ns"}
    by_the_clients = {"user_ns", "sys_ns", *phases, *percentiles}
    assert found.keys() == names - by_the_clients - {"window_ns", "started_ns"}
    assert found["runner_ns"] > 0
    assert found["client_ns"] == found["client_busiest_ns"] >= 0
    assert found["client_wait_ns"] is not None
    assert 0 < found["host_ns"] <= 2 * os.cpu_count() * found["elapsed_ns"]
    assert (found["server_ns"], found["server_wait_ns"], found["auxiliary_ns"]) == (None, None, None)
    assert (found["pooler_ns"], found["pooler_wait_ns"]) == (0, 0)  # there is none, and that is known


def test_the_relay_counts_as_the_runner() -> None:
    code = "input(); sum(range(3_000_000)); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as relay:
        assert relay.stdin
        assert relay.stdout
        processes = VariantProcesses(client=[], pooler=(), relay=[relay.pid])
        began_ns = time.process_time_ns()
        accounting = SliceAccounting(Host.here(), processes)
        relay.stdin.write(b"\n")
        relay.stdin.flush()
        relay.stdout.readline()
        account, own_ns = accounting.close(), time.process_time_ns() - began_ns
        relay.communicate(b"\n")
    assert processes.pids() == {relay.pid}
    assert account.runner_ns - own_ns > 10_000_000


def test_a_role_whose_process_ended_is_unknown() -> None:
    with worker() as server:
        with worker() as process:
            accounting = SliceAccounting(
                Host.here(), VariantProcesses(client=[process.pid], server=[server.pid], pooler=())
            )
        found = accounting.close()
    assert found.cpu_time["client"] is found.ticks_and_switches["client"] is None
    assert found.fields()["client_ns"] is found.fields()["client_busiest_ns"] is None
    assert found.fields()["server_ns"] is not None


def test_short_lived_processes_of_the_server_count_as_auxiliaries(tmp_path: Path) -> None:
    with worker() as server:
        (tmp_path / "cgroup.procs").write_text(f"{server.pid}\n")
        group = ServerCgroup(tmp_path, frozenset({server.pid}), iter((10**9, 10**12)).__next__)
        processes = VariantProcesses(server=[server.pid], auxiliary=(), server_cgroup=group)
        accounting = SliceAccounting(Host.here(), processes)
        work(server)
        account = accounting.close()
    assert account.cpu_time["server"]
    assert account.cpu_time["server"].run_ns > 0
    assert account.short_lived_ns == account.fields()["auxiliary_ns"]
    assert account.short_lived_ns == 10**12 - 10**9 - account.cpu_time["server"].run_ns


def test_connections_that_a_pooler_keeps_do_not_pass(tmp_path: Path) -> None:
    """They have processes that are known, so the whole machine's account has them already."""
    with worker() as kept:
        (tmp_path / "cgroup.procs").write_text(f"{kept.pid}\n")
        group = ServerCgroup(tmp_path, frozenset({kept.pid}), iter((10**9, 10**12)).__next__)
        processes = VariantProcesses(server=[kept.pid], auxiliary=(), server_cgroup=group, backends_pass=True)
        accounting = SliceAccounting(Host.here(), processes)
        work(kept)
        account = accounting.close()
    server = account.cpu_time["server"]
    assert server
    assert server.run_ns == 10**12 - 10**9
    assert 0 < server.run_ns - account.passing_ns < server.run_ns


def test_block_totals_add_up_and_a_missed_role_stays_unknown() -> None:
    totals = BlockTotals()
    totals.add(
        account(
            client=TicksAndSwitches(user=1, system=2, voluntary=3, involuntary=4),
            pooler=TicksAndSwitches(user=0, system=0, voluntary=0, involuntary=0),
            server=TicksAndSwitches(user=1, system=1, voluntary=1, involuntary=1),
        )
    )
    totals.add(
        account(
            client=TicksAndSwitches(user=10, system=20, voluntary=30, involuntary=40),
            pooler=TicksAndSwitches(user=0, system=0, voluntary=0, involuntary=0),
        )
    )
    nothing = {"user": 0, "system": 0, "voluntary": 0, "involuntary": 0}
    assert totals.to_json()["ticks_and_switches"] == {
        "client": {"user": 11, "system": 22, "voluntary": 33, "involuntary": 44},
        "server": None,
        "pooler": nothing,
        "web": nothing,
        "proxy": nothing,
    }


def test_short_lived_time_is_left_out_unless_known_for_all_slices() -> None:
    totals, told = BlockTotals(), account()
    totals.add(replace(told, short_lived_ns=20))
    totals.add(replace(told, short_lived_ns=3))
    assert totals.to_json()["short_lived_ns"] == totals.short_lived_ns == 23
    totals.add(told)
    assert "short_lived_ns" not in totals.to_json()
    assert totals.short_lived_ns == 23


def test_no_processes_use_zero_and_invisible_ones_an_unknown_time() -> None:
    assert accounting._cpu_time((), None, None) == CpuTime(0, 0, 0)
    assert accounting._cpu_time(None, None, None) is None


class Keeper:
    """An Observer that keeps the blocks."""

    def __init__(self) -> None:
        self.blocks: list[VariantBlock] = []

    def block_done(self, blocks: list[VariantBlock]) -> None:
        self.blocks += blocks

    def progress(self, share: float, message: str) -> None: ...

    def cancelled(self) -> bool:
        return False


def measured(what: Definition, routes: dict[str, Route]) -> list[VariantBlock]:
    keeper = Keeper()
    execute(make_plan(what), routes, RunSettings(build_dir="", run_id="cpu-account"), keeper)
    return keeper.blocks


def test_a_run_accounts_for_every_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgperf.runner.block_processes.slow_read_ns", lambda: None)
    here = {"here": Route("here", "localhost", 1, "none", "nobody", "")}
    for block in measured(definition(blocks=1, rounds=2, clients=(1, 2)), here):
        assert {
            "cpus",
            "source",
            "programs",
            "host_ns",
            "ours_ns",
            "others_ns",
            "elapsed_ns",
            "ticks_and_switches",
            "throttled_ns",
            "role_cpus",
        } == set(block.cpu_account)
        assert block.cpu_account["role_cpus"] == {**CpuPlacement("scheduler").role_cpus(), "pooler": 1}
        assert block.cpu_account["ticks_and_switches"]["client"] is not None
        for piece in block.slices:
            assert piece.elapsed_ns > piece.window_ns
            assert piece.client_ns >= piece.client_busiest_ns > 0
            assert piece.server_ns is piece.auxiliary_ns is None
            assert piece.runner_ns > 0


@pytest.mark.parametrize("route", ["socket", "pgbouncer"])
def test_the_servers_cpu_time_is_measured(routes: dict[str, Route], route: str) -> None:
    what = definition(
        layers=("psycopg",), routes=(route,), clients=(2,), blocks=1, rounds=2, slice_ms=50, lead_in_ms=20
    )
    for block in measured(what, routes):
        assert block.cpu_account["ticks_and_switches"]["server"] is not None
        for piece in block.slices:
            assert piece.server_ns >= piece.server_busiest_ns > 0
            assert piece.auxiliary_ns is not None
            assert piece.server_wait_ns is not None
            assert (piece.pooler_ns > 0) is (route == "pgbouncer")
            parts = piece.client_ns + piece.server_ns + piece.pooler_ns + piece.auxiliary_ns + piece.runner_ns
            assert parts <= 1.1 * piece.host_ns


def test_server_connections_of_a_transaction_pooler_count_for_the_variant_that_works(
    routes: dict[str, Route], stack: dict[str, str]
) -> None:
    """A server connection has the application_name of the last transaction, so any variant may have
    used it.
    """
    port = int(stack["PGPERF_PGBOUNCER_TRANSACTION_PORT"])
    lending = replace(routes["pgbouncer"], name="lending", port=port, pooler="transaction")
    what = definition(layers=("psycopg",), routes=("socket", "lending"), rounds=2, slice_ms=20)
    blocks = [
        block for block in measured(what, {**routes, "lending": lending}) if block.variant.route == "lending"
    ]
    assert len(blocks) == 2  # the variant and its control, which share what the pooler has
    for block in blocks:
        *earlier, last = block.slices
        assert all(piece.server_ns is None or piece.server_ns > 0 for piece in earlier), "never 0"
        assert last.server_ns > 0, "the backends were not looked up again"
        assert all(piece.pooler_ns > 0 for piece in block.slices)
