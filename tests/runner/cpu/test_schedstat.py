"""CPU time: reading with real processes, subtraction with made-up ones."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pgperf.runner.cpu import schedstat
from pgperf.runner.cpu.schedstat import CpuTime, ThreadTime, TicksAndSwitches

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
DEADLINE_S = 30.0


def process(proc: Path, pid: int, schedstats: dict[int, str], user: int = 0, system: int = 0) -> None:
    """A process whose threads have these lines in schedstat ("": no such file), two and one
    switches each.
    """
    for tid, line in schedstats.items():
        task = proc / str(pid) / "task" / str(tid)
        task.mkdir(parents=True, exist_ok=True)
        text = "Name:\tx\nSpeculation:\tok\nvoluntary_ctxt_switches:\t2\nnonvoluntary_ctxt_switches:\t1\n"
        (task / "status").write_text(text)
        if line:
            (task / "schedstat").write_text(f"{line}\n")
    stat = f"{pid} (a) b) S 1 1 1 0 -1 0 9 0 0 0 {user} {system} 0 0 20 0 1 0 5 0 0\n"
    (proc / str(pid) / "stat").write_text(stat)


def run_ns(pid: int) -> int:
    """The CPU time of a process so far, all threads together."""
    return sum(task.run_ns for task in (schedstat.thread_times(pid) or {}).values())


def test_own_cpu_time_grows_with_work() -> None:
    before, deadline = run_ns(os.getpid()), time.monotonic() + DEADLINE_S
    while run_ns(os.getpid()) <= before:  # the kernel brings the book up to date at its tick
        assert time.monotonic() < deadline


def test_a_process_that_is_not_visible_is_unknown_not_zero() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert schedstat.read([gone.pid]) is None
    assert schedstat.read([]) is None
    assert schedstat.ticks_and_switches([gone.pid]) is None
    assert schedstat.ticks_and_switches([]) is None


def test_threads_are_included() -> None:
    code = (
        "import threading; t = threading.Thread(target=lambda: sum(range(3_000_000)));"
        "t.start(); t.join(); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout
        child.stdout.readline()
        assert run_ns(child.pid) > 0
        child.communicate(b"\n")


def test_all_threads_of_all_processes_are_read(tmp_path: Path) -> None:
    process(tmp_path, 7, {7: "100 10 3", 8: "200 20 3"})
    process(tmp_path, 9, {9: "1000 0 1"})
    assert schedstat.read([7, 9], str(tmp_path)) == {
        7: {7: ThreadTime(100, 10), 8: ThreadTime(200, 20)},
        9: {9: ThreadTime(1000, 0)},
    }
    assert schedstat.read([7, 9, 11], str(tmp_path)) is None


def test_a_thread_that_ends_while_they_are_read_is_left_out(tmp_path: Path) -> None:
    """Not the whole process in ticks, which count ended threads too."""
    process(tmp_path, 7, {7: "100 10 3"}, user=90)
    (tmp_path / "7/task/8").mkdir()
    assert schedstat.read([7], str(tmp_path)) == {7: {7: ThreadTime(100, 10)}}


def test_a_kernel_without_schedstat_gives_ticks_and_no_waits(tmp_path: Path) -> None:
    process(tmp_path, 7, {7: "0 0 0"}, user=3, system=2)
    process(tmp_path, 8, {8: ""}, user=1)
    process(tmp_path, 9, {9: "0 0 0"})
    process(tmp_path, 10, {10: ""})
    assert schedstat.read([7, 8, 9, 10], str(tmp_path)) == {
        7: {7: ThreadTime(5 * TICK_NS, None)},
        8: {8: ThreadTime(TICK_NS, None)},
        9: {9: ThreadTime(0, 0)},
        10: {10: ThreadTime(0, None)},
    }
    assert schedstat.read([11], str(tmp_path)) is None


def test_cpu_time_is_the_sum_with_the_busiest_process() -> None:
    before = {7: {7: ThreadTime(100, 10)}, 9: {9: ThreadTime(1000, 5)}}
    after = {7: {7: ThreadTime(150, 30), 8: ThreadTime(25, 1)}, 9: {9: ThreadTime(1020, 5)}}
    assert schedstat.cpu_time_between(before, after) == CpuTime(run_ns=95, wait_ns=21, busiest_ns=75)
    assert schedstat.cpu_time_between(before, before) == CpuTime(0, 0, 0)


def test_cpu_time_is_unknown_if_a_reading_is_or_a_process_ended() -> None:
    before = {7: {7: ThreadTime(100, 10), 8: ThreadTime(5, 0)}}
    assert schedstat.cpu_time_between(None, before) is None
    assert schedstat.cpu_time_between(before, None) is None
    assert (
        schedstat.cpu_time_between(before, {7: {7: ThreadTime(100, 10)}}) is None
    )  # a thread took its time along
    assert schedstat.cpu_time_between(before, {9: {9: ThreadTime(100, 10)}}) is None
    assert (
        schedstat.cpu_time_between(before, {7: {7: ThreadTime(90, 10), 8: ThreadTime(5, 0)}}) is None
    )  # another process by now


MS = 1_000_000


def test_threads_that_ended_count_by_the_clock_of_their_process() -> None:
    """A web server may have a thread for each request, which no reading sees."""
    one = ThreadTime(100 * MS, 10)
    before = {7: schedstat.with_ended({7: one, 8: ThreadTime(5 * MS, 0)}, 105 * MS)}
    after = {7: schedstat.with_ended({7: ThreadTime(110 * MS, 30)}, 175 * MS)}
    assert schedstat.cpu_time_between(before, after) == CpuTime(70 * MS, None, 70 * MS)
    assert schedstat.cpu_time_between(before, {7: {7: one, 8: ThreadTime(5 * MS, 0)}}) is None


@pytest.mark.parametrize(("ended_ms", "wait_ns"), [(0, 20), (9, 20), (11, None)])
def test_waits_are_known_where_ended_threads_have_little_of_the_time(
    ended_ms: int, wait_ns: int | None
) -> None:
    """The clock of a process is also ahead of its threads by up to a tick."""
    before = {7: schedstat.with_ended({7: ThreadTime(100 * MS, 10)}, 100 * MS)}
    after = {7: schedstat.with_ended({7: ThreadTime(150 * MS, 30)}, (150 + ended_ms) * MS)}
    run_ns = (50 + ended_ms) * MS
    assert schedstat.cpu_time_between(before, after) == CpuTime(run_ns, wait_ns, run_ns)


def test_a_thread_for_each_request_has_its_time_counted() -> None:
    code = (
        "import threading\n"
        "print(flush=True); input()\n"
        "for _ in range(3):\n"
        "    t = threading.Thread(target=lambda: sum(range(2_000_000))); t.start(); t.join()\n"
        "import time; print(time.process_time_ns(), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin
        assert child.stdout
        child.stdout.readline()
        before = schedstat.read([child.pid])
        own_ns = schedstat.process_clock_ns(child.pid) or 0
        child.stdin.write("\n")
        child.stdin.flush()
        spent_ns = int(child.stdout.readline()) - own_ns
        found = schedstat.cpu_time_between(before, schedstat.read([child.pid]))
        child.communicate("\n")
    assert found
    assert found.run_ns >= spent_ns > 0
    assert found.run_ns <= 1.2 * spent_ns + 2 * MS


def test_waits_that_the_kernel_does_not_count_are_unknown() -> None:
    found = schedstat.cpu_time_between({7: {7: ThreadTime(100, None)}}, {7: {7: ThreadTime(150, None)}})
    assert found == CpuTime(50, None, 50)


def test_ticks_and_switches_are_summed_over_processes_and_threads(tmp_path: Path) -> None:
    process(tmp_path, 7, {7: "1 1 1", 8: "1 1 1"}, user=5, system=7)
    process(tmp_path, 9, {9: "1 1 1"}, user=1)
    found = schedstat.ticks_and_switches([7, 9], str(tmp_path))
    assert found == TicksAndSwitches(user=6, system=7, voluntary=6, involuntary=3)
    assert schedstat.ticks_and_switches_between(
        found, TicksAndSwitches(user=16, system=8, voluntary=9, involuntary=3)
    ) == TicksAndSwitches(user=10, system=1, voluntary=3, involuntary=0)
    assert (
        schedstat.ticks_and_switches_between(
            found, TicksAndSwitches(user=0, system=8, voluntary=9, involuntary=3)
        )
        is None
    )
    assert schedstat.ticks_and_switches_between(found, None) is None
    assert schedstat.ticks_and_switches([7, 11], str(tmp_path)) is None


def test_own_ticks_and_switches_can_be_read() -> None:
    found = schedstat.ticks_and_switches([os.getpid()])
    assert found is not None
    assert found.voluntary > 0


def test_siblings_are_the_parent_and_its_children() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert {os.getpid(), child.pid} <= set(schedstat.siblings(child.pid))
        child.communicate(b"\n")
    assert schedstat.siblings(child.pid) == []


#: They end at once and stay in the list until their parent asks for them.
MANY_CHILDREN = """
import os, sys
for _ in range(1200):
    pid = os.fork()
    if not pid:
        os._exit(0)
print(pid, flush=True)
sys.stdin.read()
for _ in range(1200):
    os.wait()
"""


def test_all_of_many_children_are_seen() -> None:
    """The kernel's list of them is longer than a page."""
    argv = [sys.executable, "-I", "-S", "-c", MANY_CHILDREN]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        newest = int(process.stdout.readline())
        found = schedstat.children(process.pid)
        process.communicate()
    assert newest in found
    assert len(found) == 1200


def test_this_process_is_no_backend() -> None:
    assert not schedstat.backend_is_here(os.getpid())
    assert not schedstat.backend_is_here(0)
