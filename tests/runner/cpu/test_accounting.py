"""A slice's page, a variant's tally, a block's census: on real processes, and subtracting on made-up ones."""

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
from pgperf.runner.cpu.accounting import Entry, Page, Staff, Tally
from pgperf.runner.cpu.cgroups import ServerGroup
from pgperf.runner.cpu.host import Host, Stretch
from pgperf.runner.cpu.placement import Seats
from pgperf.runner.cpu.schedstat import Habits, Spent
from pgperf.runner.plan import make_plan
from pgperf.runner.run import Machine, execute
from tests.runner.builders import definition

WORK = "import sys; sum(range(200_000)); print(flush=True); sys.stdin.read()"


@contextmanager
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has worked, and now waits until its stdin ends."""
    with subprocess.Popen(
        [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.communicate()


def entry(**habits: Habits | None) -> Entry:
    return Entry(Stretch(10, 9, 0, 0), 1, {}, {"client": None, "server": None, "pooler": None} | habits)


def test_a_page_has_what_each_role_spent() -> None:
    page = Page(Host.here(), Staff(client=[os.getpid()], server=None, pooler=(), auxiliary=None))
    sum(range(3_000_000))
    found = page.close().fields()
    names = {name for name in SliceRecord.__dataclass_fields__ if name.endswith("_ns")}
    assert found.keys() == names - {"window_ns", "started_ns", "user_ns", "sys_ns"}
    assert found["runner_ns"] > 0
    assert found["client_ns"] == found["client_busiest_ns"] >= 0
    assert found["client_wait_ns"] is not None
    assert 0 < found["host_ns"] <= 2 * os.cpu_count() * found["elapsed_ns"]
    assert (found["server_ns"], found["server_wait_ns"], found["auxiliary_ns"]) == (None, None, None)
    assert (found["pooler_ns"], found["pooler_wait_ns"]) == (0, 0)  # there is none, and that is known


def test_a_relay_of_ours_counts_with_the_process_that_measures() -> None:
    code = "input(); sum(range(3_000_000)); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as relay:
        assert relay.stdin
        assert relay.stdout
        staff = Staff(client=[], pooler=(), relay=[relay.pid])
        began_ns = time.process_time_ns()
        page = Page(Host.here(), staff)
        relay.stdin.write(b"\n")
        relay.stdin.flush()
        relay.stdout.readline()
        entry, own_ns = page.close(), time.process_time_ns() - began_ns
        relay.communicate(b"\n")
    assert staff.everybody() == {relay.pid}
    assert entry.runner_ns - own_ns > 10_000_000


def test_a_role_that_ends_is_unknown() -> None:
    with worker() as process:
        page = Page(Host.here(), Staff(client=[process.pid], server=[os.getpid()], pooler=()))
    found = page.close()
    assert found.spent["client"] is found.habits["client"] is None
    assert found.fields()["client_ns"] is found.fields()["client_busiest_ns"] is None
    assert found.fields()["server_ns"] is not None


def test_what_came_and_went_in_the_servers_group_is_the_auxiliaries(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    group = ServerGroup(tmp_path, frozenset({os.getpid()}), iter((10**9, 10**12)).__next__)
    entry = Page(Host.here(), Staff(server=[os.getpid()], auxiliary=(), server_group=group)).close()
    assert entry.spent["server"]
    assert entry.short_lived_ns == entry.fields()["auxiliary_ns"]
    assert entry.short_lived_ns == 10**12 - 10**9 - entry.spent["server"].run_ns


def test_a_tally_adds_up_and_knows_what_it_missed() -> None:
    tally = Tally()
    tally.add(entry(client=Habits(1, 2, 3, 4), pooler=Habits(0, 0, 0, 0), server=Habits(1, 1, 1, 1)))
    tally.add(entry(client=Habits(10, 20, 30, 40), pooler=Habits(0, 0, 0, 0)))
    nothing = {"user": 0, "system": 0, "voluntary": 0, "involuntary": 0}
    assert tally.to_json()["ticks_and_switches"] == {
        "client": {"user": 11, "system": 22, "voluntary": 33, "involuntary": 44},
        "server": None,
        "pooler": nothing,
    }


def test_a_tally_of_who_came_and_went_has_them_all_or_says_so() -> None:
    tally, told = Tally(), entry()
    tally.add(replace(told, short_lived_ns=20))
    tally.add(replace(told, short_lived_ns=3))
    assert tally.to_json()["short_lived_ns"] == tally.short_lived_ns == 23
    tally.add(told)
    assert "short_lived_ns" not in tally.to_json()
    assert tally.short_lived_ns == 23


def test_nobody_spends_nothing_and_the_unseen_spend_they_do_not_say_what() -> None:
    assert accounting._spent((), None, None) == Spent(0, 0, 0)
    assert accounting._spent(None, None, None) is None


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
    execute(make_plan(what), routes, Machine(build_dir="", run_id="cpu-account"), keeper)
    return keeper.blocks


def test_a_run_keeps_books_of_every_slice() -> None:
    here = {"here": Route("here", "localhost", 1, "none", "nobody", "")}
    for block in measured(definition(blocks=1, rounds=2, clients=(1, 2)), here):
        assert {
            "cpus",
            "source",
            "host_ns",
            "ours_ns",
            "others_ns",
            "elapsed_ns",
            "ticks_and_switches",
            "role_cpus",
        } == set(block.cpu_account)
        assert block.cpu_account["role_cpus"] == {**Seats("scheduler").sizes(), "pooler": 1}
        assert block.cpu_account["ticks_and_switches"]["client"] is not None
        for piece in block.slices:
            assert piece.elapsed_ns > piece.window_ns
            assert piece.client_ns >= piece.client_busiest_ns > 0
            assert piece.server_ns is piece.auxiliary_ns is None
            assert piece.runner_ns > 0


@pytest.mark.parametrize("route", ["socket", "pgbouncer"])
def test_the_servers_part_is_seen(routes: dict[str, Route], route: str) -> None:
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


def test_a_pooler_that_lends_connections_lends_them_to_whoever_works(
    routes: dict[str, Route], stack: dict[str, str]
) -> None:
    """Whose name a server connection has is whose transaction was the last: it is each variant's in its slices."""
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
        assert last.server_ns > 0, "who was not known was looked for again"
        assert all(piece.pooler_ns > 0 for piece in block.slices)
