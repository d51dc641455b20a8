"""CPU time of all processes over a block: with real processes, and subtraction with made-up ones."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgperf.runner.block_processes import bound_sides, others_by_side
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu import release, schedstat
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.placement import CpuPlacement, Sides
from pgperf.runner.cpu.process_cpu import ProcessCpu, _ended, _run_ns
from pgperf.runner.cpu.schedstat import ProcessStat
from pgperf.runner.plan import make_plan
from pgperf.runner.processes.web_processes import WebProcesses
from tests.runner.builders import definition

WORK = "[sum(range(200_000)) for _ in range(20)]"
WAIT = "import sys; print(flush=True); sys.stdin.read()"


@contextmanager
def python(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has printed a line; it ends with the context."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()


def test_own_processes_are_separate_from_others() -> None:
    host = Host.here()
    with python(f"{WORK}; {WAIT}") as ours:
        began_ns = time.process_time_ns()
        process_cpu = ProcessCpu(host, [ours.pid])
        with python(f"{WORK}; {WAIT}") as other:
            found = process_cpu.close()
            own_ns = time.process_time_ns() - began_ns
            other_ns = (
                schedstat.process_stat(other.pid)
                or ProcessStat(start_ticks=0, parent=0, run_ns=0, reaped_ns=0)
            ).run_ns
    assert found["others_ns"] >= other_ns > 10_000_000
    assert found["ours_ns"] < own_ns + other_ns // 2
    assert (found["cpus"], found["source"]) == (host.cpus, host.source)
    assert found["elapsed_ns"] > 0


def test_processes_that_are_found_within_the_block_are_own_ones() -> None:
    """As what a pooler or a web server starts in the place of what has ended."""
    listed: list[int] = []
    process_cpu = ProcessCpu(Host.here(), [], lambda: listed)
    with python(f"{WORK}; {WAIT}") as later:
        listed.append(later.pid)
        used = schedstat.process_stat(later.pid)
        found = process_cpu.close([later.pid])
    assert used
    assert found["ours_ns"] >= used.run_ns > 10_000_000
    assert found["others_ns"] == 0


def test_the_busiest_other_programs_are_named() -> None:
    """Also one that ran for a part of the block, with its ended children."""
    listed: list[int] = []
    process_cpu = ProcessCpu(Host.here(), [], lambda: listed)
    compile_ = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WORK!r}]); {WAIT}"
    with python(compile_) as other, python(f"{WORK}; {WAIT}") as ours:
        listed += [other.pid, ours.pid]
        found = process_cpu.close([ours.pid])
    (program,) = found["programs"]
    assert (program["role"], program["pid"]) == ("other", other.pid)
    assert program["name"].startswith("python")
    assert program["user"]
    assert program["cpu_percent"] == pytest.approx(100 * found["others_ns"] / found["elapsed_ns"], rel=0.2)


def test_a_parent_has_the_time_of_children_without_that_from_before_the_block() -> None:
    before = {
        10: ProcessStat(start_ticks=1, parent=0, run_ns=10, reaped_ns=500),
        20: ProcessStat(start_ticks=2, parent=10, run_ns=70, reaped_ns=30),
    }
    after = {10: ProcessStat(start_ticks=1, parent=0, run_ns=14, reaped_ns=500 + 100 + 25)}
    assert _ended(before, after) == {10: 25}


def test_an_ancestor_has_no_time_from_before_the_block_of_a_line_that_ends_in_it() -> None:
    """cron, its child, a shell and a job that ran for half an hour; beside them, what disturbs."""
    half_an_hour, within = 1_800 * 10**9, 5 * 10**9
    before = {
        1: ProcessStat(start_ticks=0, parent=0, run_ns=9, reaped_ns=3),
        10: ProcessStat(start_ticks=1, parent=1, run_ns=2, reaped_ns=7),
        20: ProcessStat(start_ticks=2, parent=10, run_ns=30, reaped_ns=0),
        30: ProcessStat(start_ticks=2, parent=20, run_ns=40, reaped_ns=8),
        40: ProcessStat(start_ticks=3, parent=30, run_ns=half_an_hour, reaped_ns=0),
        50: ProcessStat(start_ticks=4, parent=1, run_ns=6, reaped_ns=0),
    }
    after = {
        1: before[1],
        10: before[10]._replace(reaped_ns=7 + 30 + 40 + 8 + half_an_hour + within),
        50: before[50]._replace(reaped_ns=within),
    }
    assert _ended(before, after) == {1: 0, 10: within, 50: within}


def test_a_number_that_was_given_away_again_ends_the_line() -> None:
    """Processes are read one after the other: two may seem to be the parents of each other."""
    each = ProcessStat(start_ticks=2, parent=0, run_ns=70, reaped_ns=30)
    round_about = {20: each._replace(parent=30), 30: each._replace(parent=20), 40: each._replace(parent=30)}
    before = {10: each, **round_about}
    after = {10: each._replace(reaped_ns=35), 30: each._replace(start_ticks=9)}
    assert _ended(before, after) == {10: 5, 30: 30}


def test_each_process_is_looked_up_a_few_times_however_long_the_line_is() -> None:
    class Counted(dict[int, ProcessStat]):
        looked_up = 0

        def __getitem__(self, pid: int) -> ProcessStat:
            self.looked_up += 1
            return super().__getitem__(pid)

    each = ProcessStat(start_ticks=1, parent=0, run_ns=1, reaped_ns=0)
    before = Counted({pid: each._replace(parent=pid - 1) for pid in range(1, 1_001)})
    assert _ended(before, {1: each._replace(reaped_ns=999 + 5)}) == {1: 5}
    assert before.looked_up <= 5 * len(before)


def test_the_time_of_an_ended_process_is_its_parents() -> None:
    code = f"import subprocess, sys; print(flush=True); input(); subprocess.run([sys.executable, '-c', {WORK!r}])"
    with python(f"{code}; print(flush=True); input()") as parent:
        list_pids = [parent.pid]
        process_cpu = ProcessCpu(Host.here(), [], lambda: list_pids)
        assert parent.stdin
        assert parent.stdout
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        parent.stdout.readline()
        found = process_cpu.close()
        reaped_ns = (
            schedstat.process_stat(parent.pid) or ProcessStat(start_ticks=0, parent=0, run_ns=0, reaped_ns=0)
        ).reaped_ns
    assert reaped_ns > 10_000_000
    assert found["others_ns"] >= reaped_ns


def test_a_process_that_started_in_between_counts_from_zero() -> None:
    before = {
        1: ProcessStat(start_ticks=1, parent=0, run_ns=100, reaped_ns=0),
        2: ProcessStat(start_ticks=2, parent=0, run_ns=50, reaped_ns=0),
        3: ProcessStat(start_ticks=3, parent=0, run_ns=9, reaped_ns=0),
    }
    after = {
        1: ProcessStat(start_ticks=1, parent=0, run_ns=130, reaped_ns=0),
        2: ProcessStat(start_ticks=7, parent=0, run_ns=20, reaped_ns=0),
        4: ProcessStat(start_ticks=8, parent=0, run_ns=1000, reaped_ns=0),
    }
    assert _run_ns(before, after, {1, 2, 3, 4}) == 30 + 20 + 1000
    assert _run_ns(before, after, {3}) == 0  # it is gone: its parent has its time


def test_an_ended_process_counts_less_its_earlier_time() -> None:
    shell, job, maker = (
        ProcessStat(start_ticks=1, parent=0, run_ns=10, reaped_ns=500),
        ProcessStat(start_ticks=2, parent=10, run_ns=70, reaped_ns=30),
        ProcessStat(start_ticks=3, parent=0, run_ns=1, reaped_ns=0),
    )
    before = {10: shell, 20: job, 30: maker}
    after = {10: shell._replace(reaped_ns=500 + 100 + 25), 30: maker._replace(reaped_ns=8)}
    assert _ended(before, after) == {10: 25, 30: 8}
    assert _ended(before, {30: maker}) == {30: 0}  # and so is its parent: nobody seen has it


def test_a_reused_pid_is_another_process() -> None:
    own = schedstat.process_stat(os.getpid())
    assert own is not None
    assert own.parent == os.getppid()
    assert own.run_ns > 0
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert schedstat.process_stat(gone.pid) is None


def test_others_on_some_cpus_are_what_the_runs_own_bound_processes_leave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In 10 s, CPU 0 was idle for 2 s and CPU 1 for 5 s. Process 7 may run on CPU 0 only."""
    stat, second = tmp_path / "stat", os.sysconf("SC_CLK_TCK")
    run_s = {7: 1, 8: 1}

    def idle(*seconds: int) -> None:
        lines = (f"cpu{cpu} 5 0 5 {own * second} 0 0 0 0\n" for cpu, own in enumerate(seconds))
        stat.write_text("".join(["cpu 10 0 10 0 0 0 0 0\n", *lines]))

    def process_stat(pid: int) -> ProcessStat:
        return ProcessStat(start_ticks=1, parent=0, run_ns=run_s[pid] * 10**9, reaped_ns=0)

    clock = SimpleNamespace(monotonic_ns=iter((10**10, 2 * 10**10)).__next__)
    monkeypatch.setattr("pgperf.runner.cpu.process_cpu.time", clock)
    monkeypatch.setattr(schedstat, "process_stat", process_stat)
    monkeypatch.setattr(release, "cpus_of", {7: frozenset({0}), 8: frozenset({0, 1})}.get)
    idle(100, 100)
    process_cpu = ProcessCpu(Host("idle", 2, None, str(stat)), [7, 8], lambda: [7, 8])
    idle(102, 105)
    run_s |= {7: 4, 8: 3}
    process_cpu.close()
    assert process_cpu.others_on(frozenset({0})) == (8 - 3) * 10**9
    assert process_cpu.others_on(frozenset({0, 1})) == (13 - 3 - 2) * 10**9
    assert process_cpu.others_on(frozenset({1, 2})) is None
    sides = Sides(frozenset({0}), frozenset({1}))
    assert others_by_side(process_cpu, sides) == {
        "others_by_side": {"clients": 5 * 10**9, "server": 5 * 10**9}
    }
    assert others_by_side(process_cpu, Sides(frozenset({2}), frozenset({1}))) == {}
    assert others_by_side(process_cpu, Sides(None, None)) == {}


HALVES = Sides(frozenset({0, 1}), frozenset({2, 3}))
OF_PAGES = Sides(frozenset({0}), frozenset({1, 2, 3}))
NOWHERE = Sides(None, None)


def on_cpus(layer: str, beside_server: bool = False) -> ClientGroup:
    """Client 1, pooler 2 and backend 3; behind a URL client 1, proxy 4, web server 5, pooler 7 and
    backend 3. 6 has ended.
    """
    (made, *_) = make_plan(definition(clients=(1,))).variants
    group = ClientGroup(replace(made, layer=layer), "app", server_pids=[3, 6], pooled=True, pooler_pid=2)
    group.clients = [SimpleNamespace(pid=1)]  # type: ignore[list-item]
    group.pooler_beside_server = beside_server
    if layer == "http":
        group.web, group.pooler_pid = WebProcesses(proxy=[4], web=[5]), 7
    return group


@pytest.mark.parametrize(
    ("groups", "free", "expected"),
    [
        ([("libpq", False)], None, {False: HALVES}),
        ([("libpq", False)], 1, {False: NOWHERE}),
        ([("libpq", False)], 2, {False: NOWHERE}),  # a pooler that the run may not pin
        ([("libpq", False)], 3, {False: NOWHERE}),
        ([("libpq", True)], None, {False: NOWHERE}),  # it has the clients' CPUs after all
        ([("http", True)], None, {True: OF_PAGES}),
        ([("http", True)], 4, {True: NOWHERE}),
        ([("http", True)], 5, {True: NOWHERE}),
        ([("http", True)], 7, {True: NOWHERE}),
        ([("libpq", False), ("http", True), ("libpq", False)], 5, {False: HALVES, True: NOWHERE}),
    ],
)
def test_sides_are_known_where_all_processes_are_bound_to_them(
    groups: list[tuple[str, bool]],
    free: int | None,
    expected: dict[bool, Sides],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = {1: {0}, 2: {0, 1}, 3: {2, 3}, 4: {2}, 5: {3}, 7: {1, 2}}
    pinned = {pid: frozenset(cpus) for pid, cpus in own.items()}
    if free:
        pinned[free] = frozenset(range(4))
    monkeypatch.setattr(release, "cpus_of", pinned.get)
    placed = CpuPlacement("apart", *HALVES, OF_PAGES)
    assert bound_sides(placed, [on_cpus(*each) for each in groups]) == expected


def test_without_a_placement_no_process_is_asked_for_its_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "cpus_of", None)
    assert bound_sides(CpuPlacement("scheduler"), [on_cpus("libpq")]) == {False: NOWHERE}
