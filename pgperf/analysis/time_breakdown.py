"""Where an operation's time is spent, by what would have to be faster or freer to shorten it. Pure.

The parts of `spent`, with the waiting told apart as far as diagnostic rounds tell it: the pool's queue, the server's
locks, its disks and its other waits, and what is left, which is latency: the network and waking up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pgperf.analysis.scheduler_states import spent

Known = Mapping[str, float | None]

ROLES = ("client", "pooler", "server")
WAITS = ("pool_queue", "server_lock", "server_io", "server_wait", "latency")
#: Wait event types of pg_stat_activity by the part they belong to; every other type but these is `server_wait`.
_LOCKS = ("Lock", "LWLock", "BufferPin")
_NO_WAITS = ("CPU", "Client", "Activity")
_SERVER_WAITS = ("server_lock", "server_io", "server_wait")
#: From fewer samplings of pg_stat_activity no share is made.
LEAST_SAMPLES = 10


@dataclass(frozen=True)
class TimeBreakdown:
    """All in µs per operation; None is not known. `cpu` and `queue` (for a processor) are by role, `waits` by kind.

    What of the waiting cannot be told apart is `waiting`; where a role cannot be seen it is `unseen`, and holds both.
    """

    response: float | None
    cpu: Known
    queue: Known
    waits: Known
    waiting: float | None = None
    unseen: float | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """From a variant's row: `us_per_op`, `cpu_us_per_op`, `cpu_account`, `diagnostics`, `clients`."""
        waited = (row.get("cpu_account") or {}).get("wait_us_per_op") or {}
        parts = spent(row.get("us_per_op"), row.get("cpu_us_per_op") or {}, waited)
        cpu = {role: parts[role] for role in ROLES}
        queue = {role: 0.0 if cpu[role] == 0 else waited.get(role) for role in ROLES}
        kinds = _kinds(row, pooled=cpu["pooler"] != 0)
        seen = parts["unseen"] is None
        waits, rest = _told_apart(parts["waiting"] if seen else parts["unseen"], kinds, seen=seen)
        return cls(row.get("us_per_op"), cpu, queue, waits, rest if seen else None, None if seen else rest)

    def at(self, role: str) -> float | None:
        """What a faster or freer processor of that role could save: its time on one and in the queue for it."""
        used, queued = self.cpu[role], self.queue[role]
        return None if used is None else used + (queued or 0.0)

    @property
    def busy(self) -> float | None:
        """Time on a processor, whoever's."""
        known = [us for us in self.cpu.values() if us is not None]
        return sum(known) if len(known) == len(ROLES) else None

    @property
    def run_queue(self) -> float | None:
        known = [us for us in self.queue.values() if us is not None]
        return sum(known) if len(known) == len(ROLES) else None

    def parts(self) -> dict[str, float | None]:
        """Every part by name, those that are not known too."""
        rest = {"run_queue": self.run_queue, **self.waits, "waiting": self.waiting, "unseen": self.unseen}
        return {**self.cpu, **rest}

    def shares(self) -> dict[str, float]:
        """The known parts as shares of their sum, which is the response time unless parts overlap."""
        known = {name: us for name, us in self.parts().items() if us is not None}
        total = sum(known.values())
        return {name: us / total for name, us in known.items()} if total else {}


def _told_apart(hidden: float | None, kinds: Known, *, seen: bool) -> tuple[Known, float | None]:
    """The waits by kind, and what is left of what is `hidden`: the waiting, or if a role is not `seen` that role too.

    What was sampled in a round of its own is never more than what the timed ones leave for it. What no kind explains
    is latency if every kind is known. Behind a pooler whose counters are not, even one client may wait for its others.
    """
    if hidden is None:
        return dict.fromkeys(WAITS), None
    known = sum(us for us in kinds.values() if us is not None)
    fits = min(1.0, hidden / known) if known else 1.0
    found = {name: None if us is None else us * fits for name, us in kinds.items()}
    rest = max(0.0, hidden - known * fits)
    if not seen or None in kinds.values():
        return {**found, "latency": None}, rest
    return {**found, "latency": rest}, None


def _kinds(row: Mapping[str, Any], *, pooled: bool) -> dict[str, float | None]:
    diagnostics = row.get("diagnostics") or {}
    return {"pool_queue": _pool_queue(diagnostics) if pooled else 0.0, **_server_waits(diagnostics, row)}


def _pool_queue(diagnostics: Mapping[str, Any]) -> float | None:
    """µs that an operation's queries waited for a server connection; an operation has one query at least."""
    pooler = diagnostics.get("pooler") or {}
    waited = pooler.get("wait_us_per_query")
    return None if waited is None else float(waited) * max(1.0, pooler.get("queries_per_op") or 1.0)


def _server_waits(diagnostics: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, float | None]:
    """µs per operation that server processes waited: their share of the samples, of all of the processes' time."""
    shares, samples = diagnostics.get("wait_events"), diagnostics.get("samples")
    backends, us = _backends(diagnostics, row), row.get("us_per_op")
    if not shares or samples is None or samples < LEAST_SAMPLES or backends is None or us is None:
        return dict.fromkeys(_SERVER_WAITS)
    kinds: dict[str, float | None] = {}
    for name in _SERVER_WAITS:
        share = sum(share or 0.0 for event, share in shares.items() if _kind(event) == name)
        kinds[name] = share * us * backends / max(1, row.get("clients", 1))
    return kinds


def _kind(event: str) -> str:
    if event in _NO_WAITS:
        return ""
    return "server_lock" if event in _LOCKS else "server_io" if event == "IO" else "server_wait"


def _backends(diagnostics: Mapping[str, Any], row: Mapping[str, Any]) -> float | None:
    """How many server processes the samples are of: as sampled, else one for each client of a direct route."""
    if (seen := diagnostics.get("backends")) is not None:
        return float(seen)
    direct = (row.get("cpu_us_per_op") or {}).get("pooler") == 0
    return float(row.get("clients", 1)) if direct else None
