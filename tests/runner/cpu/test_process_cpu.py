"""Whose time a machine's was, over a block: on real processes, and subtracting on made-up ones."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pgperf.runner.cpu import schedstat
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.process_cpu import Census, _ended, _spent
from pgperf.runner.cpu.schedstat import Life

WORK = "[sum(range(200_000)) for _ in range(20)]"
WAIT = "import sys; print(flush=True); sys.stdin.read()"


@contextmanager
def python(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has said that it is there; it ends with the context."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()


def test_a_census_tells_ours_from_others() -> None:
    host = Host.here()
    with python(f"{WORK}; {WAIT}") as ours:
        began_ns = time.process_time_ns()
        census = Census(host, [ours.pid])
        with python(f"{WORK}; {WAIT}") as other:
            found = census.close()
            own_ns = time.process_time_ns() - began_ns
            other_ns = (schedstat.life(other.pid) or Life(0, 0, 0, 0)).run_ns
    assert found["others_ns"] >= other_ns > 10_000_000
    assert found["ours_ns"] < own_ns + other_ns // 2
    assert (found["cpus"], found["source"]) == (host.cpus, host.source)
    assert found["elapsed_ns"] > 0


def test_a_process_that_ends_leaves_its_time_with_its_parent() -> None:
    code = f"import subprocess, sys; print(flush=True); input(); subprocess.run([sys.executable, '-c', {WORK!r}])"
    with python(f"{code}; print(flush=True); input()") as parent:
        everybody = [parent.pid]
        census = Census(Host.here(), [], lambda: everybody)
        assert parent.stdin
        assert parent.stdout
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        parent.stdout.readline()
        found = census.close()
        reaped_ns = (schedstat.life(parent.pid) or Life(0, 0, 0, 0)).reaped_ns
    assert reaped_ns > 10_000_000
    assert found["others_ns"] >= reaped_ns


def test_who_began_in_between_spent_all() -> None:
    before = {1: Life(1, 0, 100, 0), 2: Life(2, 0, 50, 0), 3: Life(3, 0, 9, 0)}
    after = {1: Life(1, 0, 130, 0), 2: Life(7, 0, 20, 0), 4: Life(8, 0, 1000, 0)}
    assert _spent(before, after, {1, 2, 3, 4}) == 30 + 20 + 1000
    assert _spent(before, after, {3}) == 0  # it is gone: its parent has its time


def test_who_ended_is_with_its_parent_less_what_it_had_before() -> None:
    shell, job, maker = Life(1, 0, 10, 500), Life(2, 10, 70, 30), Life(3, 0, 1, 0)
    before = {10: shell, 20: job, 30: maker}
    after = {10: shell._replace(reaped_ns=500 + 100 + 25), 30: maker._replace(reaped_ns=8)}
    assert _ended(before, after, ours=set()) == 25 + 8
    assert _ended(before, after, ours={30}) == 25
    assert _ended(before, after, ours={10, 30}) == 0
    assert _ended(before, {30: maker}, ours=set()) == 0  # and so is its parent: nobody seen has it


def test_a_life_is_told_from_a_later_one_with_its_pid() -> None:
    own = schedstat.life(os.getpid())
    assert own is not None
    assert own.parent == os.getppid()
    assert own.run_ns > 0
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert schedstat.life(gone.pid) is None
