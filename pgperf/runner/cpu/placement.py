"""The CPUs that clients, pooler, web servers and server run on.

On the server, pgperf pins only the backends of its own connections, and the postmaster where
clients reconnect.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pgperf.runner.cpu import cgroups, release, schedstat
from pgperf.runner.cpu.release import Pinned

_CPUS = Path("/sys/devices/system/cpu")


class Sides(NamedTuple):
    """The CPUs of clients, and of what serves them; None leaves a side to the scheduler."""

    clients: frozenset[int] | None
    server: frozenset[int] | None

    def to_json(self) -> dict[str, object]:
        return {side: sorted(cpus) if cpus else None for side, cpus in self._asdict().items()}


@dataclass(frozen=True)
class CpuPlacement:
    """CPU numbers by role; None leaves the role to the scheduler.

    `pages`: the CPUs where clients request pages from web servers; None: no client does, or they have
    the same. `note` says why the placement is not the requested one.
    """

    placement: str
    clients: frozenset[int] | None = None
    server: frozenset[int] | None = None
    pages: Sides | None = None
    note: str = ""

    def sides(self, over_http: bool = False) -> Sides:
        """Those of a variant. `over_http`: its clients request pages."""
        return self.pages if over_http and self.pages else Sides(self.clients, self.server)

    def to_json(self) -> dict[str, object]:
        pages = {"pages": self.pages.to_json()} if self.pages else {}
        return {"placement": self.placement, **self.sides().to_json(), **pages, "note": self.note}

    def role_cpus(self, over_http: bool = False) -> dict[str, float | None]:
        """How many CPUs each role of a variant has; None: not limited, as far as is known.

        Clients that are not pinned have the CPUs of this process, which starts them, or the quota
        of its control group if that is lower (it may be a fraction).
        """
        clients, server = self.sides(over_http)
        here = len(clients or os.sched_getaffinity(0))
        return {
            "clients": min(here, cgroups.quota(os.getpid()) or here),
            "server": len(server) if server else None,
        }


def place(
    wish: str, available: Iterable[int], refusal: str, topology: Path = _CPUS, pages: bool = False
) -> CpuPlacement:
    """The CPUs for a requested placement.

    `refusal`: why the server may not be pinned, "" if it may. `pages`: do some clients request pages?
    """
    cpus = sorted(available)
    if wish == "scheduler":
        return CpuPlacement("scheduler")
    if refusal:
        return CpuPlacement("scheduler", note=f"{wish} not possible: {refusal}")
    if wish == "together":
        return CpuPlacement("together", frozenset(cpus[-1:]), frozenset(cpus[-1:]))
    if len(cpus) < 2:
        return CpuPlacement("scheduler", note="apart needs two CPUs, this machine has one")
    half = len(cpus) // 2
    cores = {cpu: _core(cpu, topology) for cpu in cpus}
    by_core = sorted(cpus, key=lambda cpu: (cores[cpu], cpu))
    halves = Sides(frozenset(by_core[:half]), frozenset(by_core[half:]))
    generator = min(half, list(cores.values()).count(cores[by_core[0]]))
    of_pages = Sides(frozenset(by_core[:generator]), frozenset(by_core[generator:]))
    return CpuPlacement("apart", *halves, of_pages if pages and of_pages != halves else None)


def _core(cpu: int, topology: Path) -> int:
    """The first CPU of its core: siblings share that core's units. Itself where that is unknown."""
    try:
        siblings = (topology / f"cpu{cpu}/topology/thread_siblings_list").read_text()
        return int(re.split("[,-]", siblings)[0])
    except (OSError, ValueError):
        return cpu


def pin(pid: int, cpus: frozenset[int] | None) -> bool:
    """Pin all threads of a process; False if the system forbids it or the process is gone."""
    return not cpus or release.give(pid, cpus)


def may_pin(pid: int) -> bool:
    """May this process pin that one? Tries it with the CPUs that it has already."""
    try:
        os.sched_setaffinity(pid, os.sched_getaffinity(pid))
    except OSError:
        return False
    return True


class TemporaryPinning:
    """Pins processes that pgperf did not start (a pooler, its backends, web servers, the postmaster),
    and restores their CPUs afterwards.

    If this process ends without doing so, because it was killed, another one restores them at once.
    """

    def __init__(self) -> None:
        self._pinned: dict[int, Pinned] = {}
        self._guard: _Guard | None = None

    def pin(self, pid: int, cpus: frozenset[int] | None) -> None:
        """Pin a process and remember its CPUs; does nothing if it is gone or may not be pinned.

        Its later children inherit the CPUs. Its present children keep theirs.
        """
        if cpus and (pinned := self._to_pin(pid, cpus)):
            if pinned != self._pinned.get(pid):
                self._tell(pinned)
            pin(pid, cpus)

    def restore(self) -> None:
        """Processes that were started meanwhile get the CPUs of those that have started them."""
        release.release(self._pinned.values())
        self._pinned.clear()
        if self._guard:
            self._guard.dismiss()
            self._guard = None

    def _to_pin(self, pid: int, cpus: frozenset[int]) -> Pinned | None:
        """None for a process that is gone or may not be pinned. One that was pinned before keeps the
        CPUs that it had at first.
        """
        started, known = release.started(pid), self._pinned.get(pid)
        if started is None or not may_pin(pid):
            return None
        if known and known.started == started:
            return known._replace(given=cpus)
        before = self._restorable(pid, cpus)
        return Pinned(pid, started, before, cpus) if before else None

    def _restorable(self, pid: int, cpus: frozenset[int]) -> frozenset[int] | None:
        """The CPUs to restore to a process that is about to be pinned; None if it is gone.

        One that was started meanwhile has inherited CPUs that its ancestor was given. An earlier run
        whose guard was killed with it may have left it pinned to the same CPUs.
        """
        now = release.cpus_of(pid)
        if now is None:
            return None
        pinned = (self._pinned.get(ancestor) for ancestor in _ancestors(pid))
        inherited = (each.before for each in pinned if each and each.given == now and _is_alive(each))
        left = frozenset(os.sched_getaffinity(0)) if now == cpus else now
        return next(inherited, left)

    def _tell(self, pinned: Pinned) -> None:
        """Note it here and with the guard, before the process is pinned."""
        self._pinned[pinned.pid] = pinned
        self._guard = self._guard or _Guard()
        self._guard.tell(pinned.line())


class _Guard:
    """A process that releases all that it was told of if this process ends without doing so."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", release.__file__], stdin=subprocess.PIPE, start_new_session=True
        )

    def tell(self, line: bytes) -> None:
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def dismiss(self) -> None:
        self.tell(release.DONE)
        self._process.communicate()


def _ancestors(pid: int) -> Iterator[int]:
    """The nearest first."""
    while parent := schedstat.parent(pid):
        yield parent
        pid = parent


def _is_alive(pinned: Pinned) -> bool:
    return release.started(pinned.pid) == pinned.started
