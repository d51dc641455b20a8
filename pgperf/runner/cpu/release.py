"""Gives processes and their children their CPUs back, also when the run that pinned them was killed.

As a program (standard library only) it reads what to release, and waits for the end of its standard
input, which the kernel closes with the process that holds the other end. It uses no CPU time
meanwhile.

Later children of a pinned process inherit its CPUs: backends of the postmaster's, workers of a web
server's. So they are released as well, if they have just these.
"""

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

#: The message by which the process that pinned them says that it has released them itself.
DONE = b"done\n"


class Pinned(NamedTuple):
    """A process that has been pinned: what it had before, and what it and its later children have
    now. `started` tells it from a later process of the same number.
    """

    pid: int
    started: int | None
    before: frozenset[int]
    given: frozenset[int]

    def line(self) -> bytes:
        cpus = {"before": sorted(self.before), "given": sorted(self.given)}
        return json.dumps({"pid": self.pid, "started": self.started, **cpus}).encode() + b"\n"

    @classmethod
    def of_line(cls, line: bytes) -> "Pinned":
        told = json.loads(line)
        return cls(told["pid"], told["started"], frozenset(told["before"]), frozenset(told["given"]))


def release(pinned: Iterable[Pinned]) -> None:
    """Give each process that still runs its CPUs, and its descendants those of the one that has
    started them, as far as they have the CPUs that they inherited.
    """
    alive = [each for each in pinned if started(each.pid) == each.started is not None]
    for each in alive:
        give(each.pid, each.before)
    children, own = _children(), {each.pid for each in alive}  # later children inherit what is right
    for each in alive:
        for heir in _heirs(each.pid, each.given, children):
            if heir not in own:
                give(heir, each.before)


def give(pid: int, cpus: Iterable[int]) -> bool:
    """Give all threads of a process these CPUs; False if the system forbids it or the process is
    gone.
    """
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                os.sched_setaffinity(int(task), cpus)
            except ProcessLookupError:
                pass  # a thread that has ended
    except OSError:
        return False
    return True


def cpus_of(pid: int) -> frozenset[int] | None:
    try:
        return frozenset(os.sched_getaffinity(pid))
    except OSError:
        return None


def started(pid: int) -> int | None:
    """When a process started, in ticks since the boot; None if it has ended."""
    words = _stat(pid)
    return int(words[19]) if words else None


def _heirs(pid: int, inherited: frozenset[int], children: Mapping[int, list[int]]) -> Iterator[int]:
    """The descendants of a process that have just these CPUs."""
    for child in children.get(pid, ()):
        if cpus_of(child) == inherited:
            yield child
            yield from _heirs(child, inherited, children)


def _children() -> dict[int, list[int]]:
    """Of all processes: pid -> its children."""
    found: dict[int, list[int]] = {}
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        if words := _stat(pid):
            found.setdefault(int(words[1]), []).append(pid)
    return found


def _stat(pid: int) -> list[str]:
    """What /proc says of a process after its name; nothing if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:  # its name may be any bytes
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def main() -> None:
    """Read what to release, a line for each, until the end or DONE. The last line of a process
    counts. One that was cut off is of a process that has not been pinned.
    """
    for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(stop, signal.SIG_IGN)
    pinned: dict[tuple[int, int | None], Pinned] = {}
    for line in sys.stdin.buffer:
        if line == DONE:
            return
        if not line.endswith(b"\n"):
            break
        each = Pinned.of_line(line)
        pinned[each.pid, each.started] = each
    release(pinned.values())


if __name__ == "__main__":
    main()
