"""Processor time: reading is real, subtracting is pure."""

import os
import socket
import subprocess
import sys

from pgperf.runner import cpu


def test_own_time_grows_with_work() -> None:
    before = cpu.run_ns([os.getpid()])
    while not cpu.elapsed(
        before, cpu.run_ns([os.getpid()])
    ):  # the kernel brings the book up to date at its tick
        pass
    assert (cpu.elapsed(before, cpu.run_ns([os.getpid()])) or 0) > 0


def test_the_unseen_is_unknown_not_zero() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert cpu.run_ns([gone.pid]) is None
    assert cpu.run_ns([]) is None


def test_threads_count() -> None:
    code = (
        "import threading; t = threading.Thread(target=lambda: sum(range(3_000_000)));"
        "t.start(); t.join(); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout
        child.stdout.readline()
        assert (cpu.run_ns([child.pid]) or 0) > 0
        child.communicate(b"\n")


def test_elapsed_is_unknown_when_either_end_is_or_it_ran_backwards() -> None:
    assert cpu.elapsed(1, 5) == 4
    assert cpu.elapsed(None, 5) is None
    assert cpu.elapsed(5, None) is None
    assert cpu.elapsed(5, 1) is None


def test_listener_finds_this_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert cpu.listener(server.getsockname()[1]) == os.getpid()


def test_this_process_is_no_backend() -> None:
    assert not cpu.backend_is_here(os.getpid())
    assert not cpu.backend_is_here(0)
