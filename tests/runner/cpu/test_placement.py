"""CPU placement: the CPUs of each role, and the fallback where a placement is not possible."""

import os
import subprocess
import sys

import pytest

from pgperf.runner.cpu import cgroups, placement


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
def test_placements(wish: str, cpus: range, clients: set[int] | None, server: set[int] | None) -> None:
    got = placement.place(wish, cpus, "")
    assert (got.clients and set(got.clients), got.server and set(got.server)) == (clients, server)
    assert got.placement == wish
    assert got.note == ""


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


def test_pinning_a_process_that_is_gone_returns_false() -> None:
    assert placement.pin(2**22 + 1, frozenset({0})) is False
    assert placement.may_pin(2**22 + 1) is False
