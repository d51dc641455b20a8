"""Moves the stack's PostgreSQL between control groups: one of its own, or that of this process."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from pgperf.runner.cpu.cgroups import groups_of, members


@contextmanager
def in_shared_groups(postmaster: psutil.Process) -> Iterator[None]:
    """The stack gives its server a group of its own, where it may: leave it meanwhile."""
    here, homes = list(groups_of(os.getpid())), list(groups_of(postmaster.pid))
    apart = [(own, home) for own, home in zip(here, homes, strict=True) if own != home]
    for own, _ in apart:
        move(postmaster, own)
    yield
    for _, home in apart:
        home.mkdir(exist_ok=True)  # another stack may have taken the empty group for stale
        move(postmaster, home)


@contextmanager
def in_group_of_its_own(postmaster: psutil.Process, first_version: bool) -> Iterator[Path]:
    parents = [each for each in groups_of(os.getpid()) if (each / "cpuacct.usage").exists() is first_version]
    if not parents:
        pytest.skip("this machine has no control groups of that version that count CPU time")
    directory = parents[0] / f"pgperf-test-{os.getpid()}"
    try:
        directory.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made below {parents[0]}: {error.strerror}")
    try:
        move(postmaster, directory)
        yield directory
    finally:
        move(postmaster, parents[0])
        remove(directory)


def move(postmaster: psutil.Process, directory: Path) -> None:
    """Move the server's processes into the group; those that it starts later begin there."""
    procs = directory / "cgroup.procs"
    procs.write_text(f"{postmaster.pid}\n")
    for child in postmaster.children():
        with suppress(ProcessLookupError):
            procs.write_text(f"{child.pid}\n")


def remove(directory: Path) -> None:
    deadline = time.monotonic() + 10
    while members(directory) and time.monotonic() < deadline:
        time.sleep(0.01)  # the last ones are on their way out
    directory.rmdir()
