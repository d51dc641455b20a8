"""Which processors clients, pooler and server run on. Of the server only our own backends are pinned."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

from pgperf.runner.cpu import cgroups


@dataclass(frozen=True)
class Seats:
    """Processor numbers per role; None leaves the role to the scheduler. `note` says why a wish was not granted."""

    placement: str
    clients: frozenset[int] | None = None
    server: frozenset[int] | None = None
    note: str = ""

    def to_json(self) -> dict[str, object]:
        return {
            "placement": self.placement,
            "clients": sorted(self.clients) if self.clients else None,
            "server": sorted(self.server) if self.server else None,
            "note": self.note,
        }

    def sizes(self) -> dict[str, float | None]:
        """How many processors each has; None: as many as the host, for all that is known of a server left alone.

        Clients that are left alone have those of this process, which starts them; a quota of its control group may
        leave them less, and not a whole number.
        """
        here = len(self.clients or os.sched_getaffinity(0))
        return {
            "clients": min(here, cgroups.quota(os.getpid()) or here),
            "server": len(self.server) if self.server else None,
        }


def seats(wish: str, processors: Iterable[int], refusal: str) -> Seats:
    """Seats for a placement. `refusal`: why the server may not be pinned, "" if it may."""
    cpus = sorted(processors)
    if wish == "scheduler":
        return Seats("scheduler")
    if refusal:
        return Seats("scheduler", note=f"{wish} not possible: {refusal}")
    if wish == "together":
        return Seats("together", frozenset(cpus[-1:]), frozenset(cpus[-1:]))
    if len(cpus) < 2:
        return Seats("scheduler", note="apart needs two processors, this machine has one")
    half = len(cpus) // 2
    return Seats("apart", frozenset(cpus[:half]), frozenset(cpus[half:]))


def pin(pid: int, cpus: frozenset[int] | None) -> bool:
    """Bind all tasks of a process; False when the system does not let us or the process is gone."""
    if not cpus:
        return True
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(task), cpus)
    except OSError:
        return False
    return True


def may_pin(pid: int) -> bool:
    """Would the system let us bind that process? Tried with the binding it has."""
    try:
        os.sched_setaffinity(pid, os.sched_getaffinity(pid))
    except OSError:
        return False
    return True


class Borrowed:
    """Processes that are not ours (a pooler, the backends it keeps), pinned for a run and given back as they were."""

    def __init__(self) -> None:
        self._before: dict[int, frozenset[int]] = {}

    def pin(self, pid: int, cpus: frozenset[int] | None) -> None:
        """Bind it, remembering what it had; silently left alone when it is gone or not ours to bind."""
        if not cpus or not may_pin(pid):
            return
        try:
            had = frozenset(os.sched_getaffinity(pid))
        except OSError:
            return
        # A run that was killed could not give it back: what it had is then what runs like this one give.
        self._before.setdefault(pid, frozenset(os.sched_getaffinity(0)) if had == cpus else had)
        pin(pid, cpus)

    def give_back(self) -> None:
        for pid, cpus in self._before.items():
            pin(pid, cpus)
        self._before.clear()
