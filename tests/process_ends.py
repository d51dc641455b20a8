"""Processes that end: what they are, and waits until they have ended."""

import os
import select
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

import psutil


def argv(process: psutil.Process) -> str:
    """The words of its command; "" if it has ended."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def open_pidfds(processes: Iterable[psutil.Process]) -> list[int]:
    """A pidfd of each process that has not ended since it was listed."""
    pidfds = []
    for process in processes:
        try:
            pidfds.append(os.pidfd_open(process.pid))
        except ProcessLookupError:
            continue
    return pidfds


def await_ends(pidfds: Sequence[int], seconds: float) -> int:
    """Wait up to `seconds`; the number of processes that are still running."""
    deadline, waiting = time.monotonic() + seconds, set(pidfds)
    while waiting:
        poll = select.poll()
        for pidfd in waiting:
            poll.register(pidfd, select.POLLIN)
        ended = poll.poll(max(0, int((deadline - time.monotonic()) * 1000)))
        if not ended:
            break
        waiting -= {pidfd for pidfd, _ in ended}
    return len(waiting)
