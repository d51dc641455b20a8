"""Seats: who runs on which processors, and what happens when a wish cannot be granted."""

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
def test_seats(wish: str, cpus: range, clients: set[int] | None, server: set[int] | None) -> None:
    got = placement.seats(wish, cpus, "")
    assert (got.clients and set(got.clients), got.server and set(got.server)) == (clients, server)
    assert got.placement == wish
    assert got.note == ""


def test_how_many_processors_each_has() -> None:
    here = len(os.sched_getaffinity(0))
    assert placement.seats("apart", range(5), "").sizes() == {"clients": 2, "server": 3}
    assert placement.seats("together", range(5), "").sizes() == {"clients": 1, "server": 1}
    assert placement.seats("scheduler", range(5), "").sizes() == {"clients": here, "server": None}


def test_clients_left_alone_have_the_processors_of_who_starts_them() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:1])
    try:
        assert placement.Seats("scheduler").sizes() == {"clients": 1, "server": None}
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(("quota", "clients"), [(1.5, 1.5), (2.0, 2), (16.0, 2)])
def test_a_quota_leaves_clients_less(quota: float, clients: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "quota", lambda pid: quota)
    assert placement.seats("apart", range(4), "").sizes() == {"clients": clients, "server": 2}


def test_a_server_that_may_not_be_pinned_leaves_all_to_the_scheduler_and_says_why() -> None:
    got = placement.seats("apart", range(4), "the server is not on this machine")
    assert got.placement == "scheduler"
    assert got.note == "apart not possible: the server is not on this machine"


def test_one_processor_cannot_be_apart() -> None:
    assert placement.seats("apart", [3], "").placement == "scheduler"


def test_a_process_that_ends_meanwhile_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    monkeypatch.setattr(placement, "may_pin", lambda pid: True)
    borrowed = placement.Borrowed()
    pinned: list[int] = []
    monkeypatch.setattr(placement, "pin", lambda pid, cpus: pinned.append(pid))
    borrowed.pin(gone.pid, frozenset({0}))
    borrowed.give_back()
    assert pinned == []


def test_borrowed_processes_get_their_processors_back() -> None:
    before = os.sched_getaffinity(0)
    borrowed = placement.Borrowed()
    borrowed.pin(os.getpid(), frozenset(sorted(before)[:1]))
    assert os.sched_getaffinity(0) == set(sorted(before)[:1])
    borrowed.give_back()
    assert os.sched_getaffinity(0) == before


def test_what_a_killed_run_left_pinned_gets_all_processors_back() -> None:
    before = os.sched_getaffinity(0)
    one = frozenset(sorted(before)[:1])
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        placement.pin(other.pid, one)
        borrowed = placement.Borrowed()
        borrowed.pin(other.pid, one)
        borrowed.give_back()
        assert os.sched_getaffinity(other.pid) == before
        other.communicate(b"\n")


def test_pinning_a_process_that_is_gone_says_so() -> None:
    assert placement.pin(2**22 + 1, frozenset({0})) is False
    assert placement.may_pin(2**22 + 1) is False
