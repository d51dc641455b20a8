"""Waits until the backends of a slice have left the server.

A client that closes its connection does not wait for the end of its backend, which goes on for a
millisecond or more. Without the wait the next slice would pay for it.
"""

import os
import re
import select
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from pgperf.core.answers import PID, TEXT, TRUTH, ControlQuery
from pgperf.runner.cpu import schedstat

TIMEOUT_S = 5.0
#: Between two queries, where no event tells that a backend has left.
_POLL_S = 0.005
#: Between two queries, where events do.
_AGAIN_S = 0.05
#: How long a process that the server does not list may be one of the slice.
_UNLISTED_S = 1.0

# A session whose state is hidden from this login counts as idle.
_SESSIONS = ControlQuery(
    "its backends",
    "SELECT pid, application_name, coalesce(state <> 'idle', false) FROM pg_stat_activity",
    (PID, TEXT.or_null, TRUTH),
)

#: The title of a process of the server: "postgres: " and, if it has a client, the client's address.
#: Until it knows that, it has the title of the server's main process, or an empty one.
_TITLED = re.compile(r"postgres: *(?P<rest>\S.*)")
_CLIENT = re.compile(r" (\[local\]|\S+\(\d+\))( |$)")

Ask = Callable[[ControlQuery], list[tuple[Any, ...]]]


def of_backends(
    ask: Ask,
    applications: Collection[str],
    postmaster: int | None,
    timeout_s: float = TIMEOUT_S,
    since_ticks: int = 0,
) -> str:
    """Wait until the connections with these application names have no process any more.

    `postmaster`: its pid if the server is on this machine; then the kernel reports the end of each
    process. `since_ticks`: none of them began before that, in ticks since boot. Returns why the
    wait ended early, else "".
    """
    deadline = time.monotonic() + timeout_s
    if postmaster:
        left = _left_here(lambda: leaving(ask, applications, postmaster, since_ticks), deadline)
        return _said(left, timeout_s)
    return _said(_polled(lambda: _named(ask, applications), deadline), timeout_s)


def of_statements(ask: Ask, applications: Collection[str], timeout_s: float = TIMEOUT_S) -> str:
    """Wait until the server connections of a pooler are idle: it resets them after each client.

    Returns why the wait ended early, else "".
    """
    deadline = time.monotonic() + timeout_s
    return _said(_polled(lambda: _named(ask, applications, only_busy=True), deadline), timeout_s)


class Leaving(NamedTuple):
    """Processes of the slice: those of its connections that the server still lists by name, and those
    that it does not list, which may be on their way out, or another's that has not logged in yet.
    """

    named: set[int]
    unlisted: set[int]


def leaving(ask: Ask, applications: Collection[str], postmaster: int, since_ticks: int = 0) -> Leaving:
    """The processes of these connections, and those that the server does not list any more.

    The server never lists some that stay: the log writer, the statistics collector up to version 14,
    and background workers without a database, such as pg_prewarm's. They have no client, and most
    are older than any connection of the run.
    """
    children = set(schedstat.children(postmaster))  # first: one that starts later is not of the slice
    rows = ask(_SESSIONS)
    unlisted = children - {pid for pid, _name, _busy in rows}
    stays = {pid for pid in unlisted if schedstat.started(pid) < since_ticks or _has_no_client(_title(pid))}
    return Leaving({pid for pid, name, _busy in rows if name in applications}, unlisted - stays)


def _left_here(found: Callable[[], Leaving], deadline: float) -> int:
    """Wait for processes on this machine; how many are still there at the deadline.

    The server is asked again and again: a login of another user that it did not list has a name
    then. What it does not list for long has sent no login, while those of the slice have.
    """
    listed_by = time.monotonic() + _UNLISTED_S
    named, unlisted = found()
    pids = named | unlisted
    while pids and (left := _remaining(pids, min(deadline, time.monotonic() + _AGAIN_S))):
        if (now := time.monotonic()) >= deadline:
            return left
        named, unlisted = found()
        pids &= named | unlisted if now < listed_by else named
    return 0


def _has_no_client(title: str) -> bool:
    """Is it surely that of a process without a client?"""
    titled = _TITLED.fullmatch(title)
    return titled is not None and not _CLIENT.search(titled["rest"])


def _title(pid: int) -> str:
    """How the server names one of its processes; "" where it has ended."""
    try:
        return schedstat.read_text(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
    except OSError:
        return ""


def _named(ask: Ask, applications: Collection[str], only_busy: bool = False) -> Sequence[int]:
    return [pid for pid, name, busy in ask(_SESSIONS) if name in applications and (busy or not only_busy)]


def _remaining(pids: Iterable[int], deadline: float) -> int:
    """Wait for the end of processes; how many are still there at the deadline. Where the kernel
    reports no ends (before 5.3, or a container that forbids it), it asks again and again.
    """
    known = list(pids)
    try:
        return _awaited(known, deadline)
    except OSError:
        return _polled(lambda: [pid for pid in known if _runs(pid)], deadline)


def _runs(pid: int) -> bool:
    """Is it still at work? A dead process is listed until its parent has noticed."""
    try:
        return schedstat.read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _awaited(pids: Iterable[int], deadline: float) -> int:
    """Raises OSError where the kernel does not report the ends of processes."""
    with ExitStack() as stack:
        running = select.poll()
        left = 0
        for pid in pids:
            with suppress(ProcessLookupError):
                descriptor = os.pidfd_open(pid)
                stack.callback(os.close, descriptor)
                running.register(descriptor, select.POLLIN)
                left += 1
        while left and (ms := (deadline - time.monotonic()) * 1000) > 0:
            for descriptor, _event in running.poll(ms):
                running.unregister(descriptor)
                left -= 1
        return left


def _polled(pids: Callable[[], Sequence[int]], deadline: float) -> int:
    """Query until none is left; how many are still there at the deadline."""
    while (left := len(pids())) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return left


def _said(left: int, timeout_s: float) -> str:
    return f"{left} of its backends had not left the server after {timeout_s:g} s" if left else ""
