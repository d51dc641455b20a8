"""CPU placement: the CPUs of each role, and the fallback where a placement is not possible."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from pgperf.core.records import Route
from pgperf.runner.cpu import cgroups, placement, release, schedstat
from pgperf.runner.cpu.release import Pinned
from pgperf.runner.processes import pooler_process


@pytest.fixture(autouse=True)
def no_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "quota", lambda pid: None)


@pytest.mark.parametrize(
    ("wish", "cpus", "clients", "server"),
    [
        ("apart", range(2), {0}, {1}),
        ("apart", range(8), {0, 1, 2, 3}, {4, 5, 6, 7}),
        ("together", range(4), {3}, {3}),
        ("scheduler", range(4), None, None),
    ],
)
def test_placements(
    wish: str, cpus: range, clients: set[int] | None, server: set[int] | None, tmp_path: Path
) -> None:
    got = placement.place(wish, cpus, "", tmp_path)
    assert (got.clients and set(got.clients), got.server and set(got.server)) == (clients, server)
    assert got.placement == wish
    assert got.note == ""


def topology(siblings: list[str], folder: Path) -> None:
    """The siblings of each CPU, as /sys has them."""
    for cpu, text in enumerate(siblings):
        own = folder / f"cpu{cpu}" / "topology"
        own.mkdir(parents=True)
        (own / "thread_siblings_list").write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("siblings", "clients"),
    [
        (["0,4", "1,5", "2,6", "3,7"] * 2, {0, 4, 1, 5}),
        (["0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7"], {0, 1, 2, 3}),
        ([""] * 8, {0, 1, 2, 3}),
    ],
)
def test_the_two_cpus_of_a_core_have_one_role(siblings: list[str], clients: set[int], tmp_path: Path) -> None:
    topology(siblings, tmp_path)
    got = placement.place("apart", range(8), "", tmp_path)
    assert got.clients == clients
    assert got.server == set(range(8)) - clients


@pytest.mark.parametrize(
    ("siblings", "generator"),
    [
        ([str(cpu) for cpu in range(8)], {0}),
        ([""] * 8, {0}),
        (["0,4", "1,5", "2,6", "3,7"] * 2, {0, 4}),
        (["0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7"], {0, 1}),
        (["0-7"] * 8, {0, 1, 2, 3}),
        (["0", "1", "2", "3"], {0}),
        (["0-1", "0-1", "2"], {0}),
        (["0-1", "0-1"], {0}),
        (["0", "1"], {0}),
    ],
)
def test_who_requests_pages_has_one_core_and_what_serves_them_all_others(
    siblings: list[str], generator: set[int], tmp_path: Path
) -> None:
    topology(siblings, tmp_path)
    cpus = set(range(len(siblings)))
    got = placement.place("apart", cpus, "", tmp_path, pages=True)
    assert got.sides(over_http=True) == (generator, cpus - generator)
    assert got.sides() == placement.place("apart", cpus, "", tmp_path).sides()
    assert got.server
    assert got.server <= cpus - generator, "what both kinds of clients share runs where neither does"
    roles = {"clients": len(generator), "server": len(cpus - generator)}
    assert got.role_cpus(over_http=True) == roles
    assert ("pages" in got.to_json()) is (got.sides(over_http=True) != got.sides())


@pytest.mark.parametrize("wish", ["together", "scheduler"])
def test_other_placements_are_the_same_for_all_clients(wish: str, tmp_path: Path) -> None:
    got = placement.place(wish, range(8), "", tmp_path, pages=True)
    assert got.sides(over_http=True) == got.sides()
    assert "pages" not in got.to_json()


def test_cpus_by_role() -> None:
    here = len(os.sched_getaffinity(0))
    assert placement.place("apart", range(5), "").role_cpus() == {"clients": 2, "server": 3}
    assert placement.place("together", range(5), "").role_cpus() == {"clients": 1, "server": 1}
    assert placement.place("scheduler", range(5), "").role_cpus() == {"clients": here, "server": None}


def test_clients_that_are_not_pinned_have_the_cpus_of_the_runner() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:1])
    try:
        assert placement.CpuPlacement("scheduler").role_cpus() == {"clients": 1, "server": None}
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(("quota", "clients"), [(1.5, 1.5), (2.0, 2), (16.0, 2)])
def test_a_quota_limits_the_clients(quota: float, clients: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "quota", lambda pid: quota)
    assert placement.place("apart", range(4), "").role_cpus() == {"clients": clients, "server": 2}


def test_a_server_that_may_not_be_pinned_leaves_all_to_the_scheduler() -> None:
    got = placement.place("apart", range(4), "the server is not on this machine")
    assert got.placement == "scheduler"
    assert got.note == "apart not possible: the server is not on this machine"


def test_one_cpu_cannot_be_apart() -> None:
    assert placement.place("apart", [3], "").placement == "scheduler"


def test_a_process_that_ends_meanwhile_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    monkeypatch.setattr(placement, "may_pin", lambda pid: True)
    pinning = placement.TemporaryPinning()
    pinned: list[int] = []
    monkeypatch.setattr(placement, "pin", lambda pid, cpus: pinned.append(pid))
    pinning.pin(gone.pid, frozenset({0}))
    pinning.restore()
    assert pinned == []


def test_temporarily_pinned_processes_get_their_cpus_back() -> None:
    before = os.sched_getaffinity(0)
    pinning = placement.TemporaryPinning()
    pinning.pin(os.getpid(), frozenset(sorted(before)[:1]))
    assert os.sched_getaffinity(0) == set(sorted(before)[:1])
    pinning.restore()
    assert os.sched_getaffinity(0) == before


def test_a_process_left_pinned_by_a_killed_run_gets_all_cpus_back() -> None:
    before = os.sched_getaffinity(0)
    one = frozenset(sorted(before)[:1])
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        placement.pin(other.pid, one)
        pinning = placement.TemporaryPinning()
        pinning.pin(other.pid, one)
        pinning.restore()
        assert os.sched_getaffinity(other.pid) == before
        other.communicate(b"\n")


PARENT = """
import subprocess, sys
before = subprocess.Popen(["sleep", "60"])
print(before.pid, flush=True)
for line in sys.stdin:
    print(subprocess.Popen(["sleep", "60"]).pid, flush=True)

"""


@contextmanager
def parent() -> Iterator[tuple["subprocess.Popen[str]", Callable[[], int]]]:
    """A process with a child, and a function by which it starts another one, with its pid."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        children = [int(process.stdout.readline())]

        def fork() -> int:
            process.stdin.write("\n")
            process.stdin.flush()
            children.append(int(process.stdout.readline()))
            return children[-1]

        try:
            yield process, fork
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
            process.communicate()


def test_a_thread_that_ends_meanwhile_leaves_the_others_no_cpus_of_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[int] = []

    def give(task: int, _cpus: frozenset[int]) -> None:
        if task == 8:
            raise ProcessLookupError
        given.append(task)

    monkeypatch.setattr(os, "listdir", lambda _path: ["7", "8", "9"])
    monkeypatch.setattr(os, "sched_setaffinity", give)
    assert placement.pin(7, frozenset({0}))
    assert given == [7, 9]


def test_later_children_inherit_the_cpus_and_lose_them_again() -> None:
    before = os.sched_getaffinity(0)
    one = frozenset(sorted(before)[:1])
    with parent() as (process, fork):
        pinning = placement.TemporaryPinning()
        pinning.pin(process.pid, one)
        child = fork()
        assert os.sched_getaffinity(process.pid) == os.sched_getaffinity(child) == one
        pinning.restore()
        assert os.sched_getaffinity(process.pid) == os.sched_getaffinity(child) == before


def test_a_process_that_a_pinned_one_starts_is_released_with_it() -> None:
    """As gunicorn and Apache start workers: none of them is looked for by itself."""
    before = os.sched_getaffinity(0)
    one = frozenset(sorted(before)[:1])
    with parent() as (process, fork):
        pinning = placement.TemporaryPinning()
        pinning.pin(process.pid, one)
        child = fork()
        assert os.sched_getaffinity(child) == one
        pinning.restore()
        assert os.sched_getaffinity(process.pid) == os.sched_getaffinity(child) == before


RUN = """
import os, sys
from pgperf.runner.cpu.placement import TemporaryPinning
pinning = TemporaryPinning()
for line in sys.stdin:
    pid, cpu = map(int, line.split())
    pinning.pin(pid, frozenset({cpu}))
    print(flush=True)
"""


@contextmanager
def killed_after_pinning(
    cpu: int, *pids: int, end: signal.Signals = signal.SIGKILL
) -> Iterator[Callable[[int, int], None]]:
    """A run that pins these processes, and others by the function, and is killed at the end of the
    context; then all is released.

    The guard ends when it has released all; its end closes the pipe that it inherited.
    """
    reading, writing = os.pipe()
    argv = [sys.executable, "-c", RUN]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writing, text=True
    ) as run:
        os.close(writing)
        assert run.stdin
        assert run.stdout

        def pin(pid: int, cpu: int) -> None:
            run.stdin.write(f"{pid} {cpu}\n")
            run.stdin.flush()
            run.stdout.readline()

        for pid in pids:
            pin(pid, cpu)
        yield pin
        run.send_signal(end)
        with open(reading) as until_both_have_ended:
            assert until_both_have_ended.read() == ""


THREADED = """
import os, sys, threading
threading.Thread(target=sys.stdin.read).start()
print(*os.listdir("/proc/self/task"), flush=True)
"""


@contextmanager
def threaded() -> Iterator[tuple[int, list[int]]]:
    """A process with two threads, as web servers have; its pid, and its threads' numbers."""
    argv = [sys.executable, "-c", THREADED]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        yield process.pid, [int(task) for task in process.stdout.readline().split()]
        process.communicate()


NAMED = """
import sys
open("/proc/self/comm", "wb").write(b"\\xff\\xfe")
print(flush=True)
sys.stdin.read()
"""


def test_a_process_with_a_name_that_is_no_text_keeps_none_from_its_cpus() -> None:
    """Any user may start one, so it is there for everyone who reads all processes."""
    before = os.sched_getaffinity(0)
    one = frozenset(sorted(before)[:1])
    argv = [sys.executable, "-c", NAMED]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        placement.pin(child.pid, one)
        here = os.getpid()
        release.release([Pinned(here, release.started(here), frozenset(before), one)])
        assert os.sched_getaffinity(child.pid) == before
        child.communicate()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_nothing_pinned(end: signal.Signals) -> None:
    before = os.sched_getaffinity(0)
    cpu = min(before)
    with parent() as (process, fork), threaded() as (other, threads):
        with killed_after_pinning(cpu, process.pid, other, end=end):
            found = [process.pid, fork(), *threads]
            assert len(threads) == 2
            assert [os.sched_getaffinity(pid) for pid in found] == [{cpu}] * len(found)
        assert [os.sched_getaffinity(pid) for pid in found] == [before] * len(found)


def test_a_killed_run_leaves_no_child_that_was_pinned_elsewhere_on_what_it_inherited() -> None:
    before = os.sched_getaffinity(0)
    with parent() as (process, fork):
        with killed_after_pinning(min(before), process.pid) as pin:
            child = fork()
            pin(child, max(before))
            assert os.sched_getaffinity(child) == {max(before)}
        assert os.sched_getaffinity(process.pid) == os.sched_getaffinity(child) == before


def test_a_killed_run_leaves_neither_a_pooler_nor_its_backends_pinned(routes: dict[str, Route]) -> None:
    over = routes["pgbouncer"]
    pooler = pooler_process.process(over.port)
    login = {name: getattr(over, name) for name in ("host", "port", "dbname", "user", "password")}
    with psycopg.connect(**login) as client:
        (backend,) = client.execute("SELECT pg_backend_pid()").fetchone() or ()
        found = [pooler, backend, schedstat.parent(backend)]
        if not all(pid and placement.may_pin(pid) for pid in found):
            pytest.skip("the stack runs as another user")
        before = [os.sched_getaffinity(pid) for pid in found]
        cpu = min(before[0])
        with killed_after_pinning(cpu, *found):
            assert [os.sched_getaffinity(pid) for pid in found] == [{cpu}] * 3
        assert [os.sched_getaffinity(pid) for pid in found] == before


def test_a_process_that_was_moved_gets_the_cpus_that_it_had_at_first() -> None:
    """A pooler that web servers were seen to reach later."""
    before = os.sched_getaffinity(0)
    first, last = (frozenset({cpu}) for cpu in (min(before), max(before)))
    with parent() as (process, fork):
        pinning = placement.TemporaryPinning()
        pinning.pin(process.pid, first)
        pinning.pin(process.pid, last)
        child = fork()
        assert os.sched_getaffinity(process.pid) == os.sched_getaffinity(child) == last
        pinning.restore()
        assert os.sched_getaffinity(process.pid) == os.sched_getaffinity(child) == before


def test_a_child_that_is_pinned_elsewhere_gets_the_cpus_that_its_parent_had_at_first() -> None:
    """A backend of a pinned postmaster, behind web servers, which have other CPUs than clients."""
    before = os.sched_getaffinity(0)
    first, last = (frozenset({cpu}) for cpu in (min(before), max(before)))
    with parent() as (process, fork):
        pinning = placement.TemporaryPinning()
        pinning.pin(process.pid, first)
        child = fork()
        pinning.pin(child, last)
        assert os.sched_getaffinity(child) == last
        pinning.restore()
        assert os.sched_getaffinity(process.pid) == os.sched_getaffinity(child) == before


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="its own CPUs are fewer than all")
def test_a_child_gets_no_more_cpus_than_its_parent_had() -> None:
    """A postmaster that its service binds to some CPUs."""
    own, other = (frozenset({cpu}) for cpu in sorted(os.sched_getaffinity(0))[:2])
    with parent() as (process, fork):
        placement.pin(process.pid, own)
        pinning = placement.TemporaryPinning()
        pinning.pin(process.pid, other)
        child = fork()
        pinning.pin(child, other)
        pinning.restore()
        assert os.sched_getaffinity(process.pid) == os.sched_getaffinity(child) == own


def test_a_later_process_of_the_same_number_is_left_alone() -> None:
    """Backends end while a run goes on, and the system gives their numbers away again."""
    before = os.sched_getaffinity(0)
    one = frozenset({min(before)})
    with parent() as (process, _fork):
        placement.pin(process.pid, one)
        ended = Pinned(process.pid, (release.started(process.pid) or 0) - 1, frozenset(before), one)
        release.release([ended])
        assert os.sched_getaffinity(process.pid) == one


def test_a_line_that_was_cut_off_keeps_the_others_from_nothing() -> None:
    """The run was killed while it told of a process, which it had not pinned yet."""
    before = os.sched_getaffinity(0)
    one = frozenset({min(before)})
    with parent() as (process, _fork):
        placement.pin(process.pid, one)
        line = Pinned(process.pid, release.started(process.pid), frozenset(before), one).line()
        done = subprocess.run([sys.executable, "-I", release.__file__], input=line + line[:20], check=True)
        assert done.returncode == 0
        assert os.sched_getaffinity(process.pid) == before


def is_guard(process: psutil.Process) -> bool:
    """False of another test's process that has just ended."""
    with suppress(psutil.NoSuchProcess):
        return release.__file__ in process.cmdline()
    return False


def test_one_guard_is_there_for_all_and_ends_with_them() -> None:
    with parent() as (process, fork):
        pinning = placement.TemporaryPinning()
        one = frozenset({min(os.sched_getaffinity(0))})
        for pid in (process.pid, fork(), process.pid):
            pinning.pin(pid, one)
        guards = [child.pid for child in psutil.Process().children() if is_guard(child)]
        assert len(guards) == 1
        pinning.restore()
        assert not psutil.pid_exists(guards[0])


def test_pinning_a_process_that_is_gone_returns_false() -> None:
    assert placement.pin(2**22 + 1, frozenset({0})) is False
    assert placement.may_pin(2**22 + 1) is False
