"""Gives a process and its children their CPUs back, also when the run that pinned them was killed.

As a program (standard library only) it waits for the end of its standard input, which the kernel
closes with the process that holds the other end. It uses no CPU time meanwhile.

The children of a server's postmaster inherit its CPUs. So they are released as well, if they have
just these.
"""

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator

#: The message by which the process that pinned them says that it has released them itself.
DONE = b"done\n"


def release(pid: int, cpus: Iterable[int], inherited: Iterable[int]) -> None:
    """Give a process those CPUs, and each of its children that has the inherited ones."""
    cpus, inherited = frozenset(cpus), frozenset(inherited)
    _give(pid, cpus)
    for child in _children(pid):
        if cpus_of(child) == inherited:
            _give(child, cpus)


def _give(pid: int, cpus: frozenset[int]) -> None:
    try:
        os.sched_setaffinity(pid, cpus)
    except OSError:
        pass  # it has ended


def cpus_of(pid: int) -> frozenset[int] | None:
    try:
        return frozenset(os.sched_getaffinity(pid))
    except OSError:
        return None


def _children(pid: int) -> Iterator[int]:
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", errors="replace") as file:  # its name may be any bytes
                parent = file.read().rpartition(")")[2].split()[1]
        except (OSError, ValueError, IndexError):
            continue
        if parent == str(pid):
            yield int(name)


def main() -> None:
    """Read what to release, as JSON on a line, then wait for the end or for DONE."""
    for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(stop, signal.SIG_IGN)
    wanted = json.loads(sys.stdin.buffer.readline())
    if sys.stdin.buffer.readline() != DONE:
        release(**wanted)


if __name__ == "__main__":
    main()
