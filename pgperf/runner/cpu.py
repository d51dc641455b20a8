"""Processor time of processes, from the scheduler's own books (/proc/PID/task/*/schedstat, nanoseconds).

Reading and subtracting are apart, so that the subtraction can be tested. What cannot be read is None, never 0.
"""

from collections.abc import Iterable
from pathlib import Path

import psutil

_PROC = Path("/proc")


def run_ns(pids: Iterable[int]) -> int | None:
    """Time on a processor so far, summed over all tasks of the processes; None if there are none or one is unseen."""
    total, seen = 0, False
    for pid in pids:
        own = _process_ns(pid)
        if own is None:
            return None
        total, seen = total + own, True
    return total if seen else None


def elapsed(before: int | None, after: int | None) -> int | None:
    """`after - before`; None when either is unknown or a process was replaced in between."""
    if before is None or after is None or after < before:
        return None
    return after - before


def backend_is_here(pid: int) -> bool:
    """Is this pid, as a server reports it, a PostgreSQL backend of this machine?"""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().startswith(b"postgres:")
    except OSError:
        return False


def listener(port: int) -> int | None:
    """The process that listens on a TCP port of this machine, if it can be seen from here."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return None
    for connection in connections:
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
            return int(connection.pid)
    return None


def _process_ns(pid: int) -> int | None:
    """schedstat of the process itself covers its leader only, hence the sum over tasks."""
    try:
        tasks = list((_PROC / str(pid) / "task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)
    except (OSError, ValueError, IndexError):
        return None
