"""Where an operation's time is spent, by the resource that would have to be faster or freer to
shorten it. Pure.

The parts of `scheduler_states`, with the waiting divided as far as diagnostic rounds tell: into the
pool's queue, the server's locks, its disks and its other waits, and latency, which is the rest: the
network and wake-up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pgperf.analysis.cpu_account import ROLES, Known
from pgperf.analysis.diagnostics import Diagnostics
from pgperf.analysis.scheduler_states import queue_us
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.core.translation import gettext_noop

WAITS = ("interpreter", "pool_queue", "server_lock", "server_io", "server_wait", "latency")
#: The time that cannot be divided: it hides how long some parts are.
HIDDEN = ("waiting", "unseen")
#: All parts, in the order of charts and tables.
PARTS = (*ROLES, "run_queue", *WAITS, *HIDDEN)
#: How sentences, charts and tables name the parts.
PART_TITLES = {
    "client": gettext_noop("client"),
    "proxy": gettext_noop("proxy"),
    "web": gettext_noop("web server"),
    "pooler": gettext_noop("pooler"),
    "server": gettext_noop("server"),
    "run_queue": gettext_noop("run queue"),
    "interpreter": gettext_noop("waiting for the GIL or event loop"),
    "pool_queue": gettext_noop("waiting for a pool connection"),
    "server_lock": gettext_noop("locks in the server"),
    "server_io": gettext_noop("server I/O"),
    "server_wait": gettext_noop("other waits in the server"),
    "latency": gettext_noop("network and wake-up"),
    "waiting": gettext_noop("waiting"),
    "unseen": gettext_noop("unattributed"),
}
#: Wait event types of pg_stat_activity by part; all types but these are `server_wait`.
_LOCKS = ("Lock", "LWLock", "BufferPin")
_NO_WAITS = ("CPU", "Client", "Activity")
_SERVER_WAITS = ("server_lock", "server_io", "server_wait")
#: Shares of fewer samples of pg_stat_activity are not used.
LEAST_SAMPLES = 10


@dataclass(frozen=True)
class TimeBreakdown:
    """All in µs per operation; None is not known. `cpu` and `queue` (run queues) are by role,
    `waits` by kind.

    `waiting` is the part of the waiting that cannot be divided. Where a role's CPU time is not
    known, `unseen` holds both.
    """

    response: float | None
    cpu: Known
    queue: Known
    waits: Known
    waiting: float | None = None
    unseen: float | None = None

    @classmethod
    def of(cls, variant: VariantSummary) -> Self:
        waited = variant.run_queue_us()
        parts = variant.time_parts()
        cpu = {role: parts[role] for role in ROLES}
        queue = {role: 0.0 if cpu[role] == 0 else waited.get(role) for role in ROLES}
        kinds = _kinds(variant, pooled=cpu["pooler"] != 0)
        seen = parts["unseen"] is None
        waits, rest = _divided(parts["waiting"] if seen else parts["unseen"], kinds, seen=seen)
        waits = {"interpreter": parts["interpreter"], **waits}
        return cls(variant.us_per_op, cpu, queue, waits, rest if seen else None, None if seen else rest)

    def at(self, role: str) -> float | None:
        """The time that a faster or freer CPU could save in that role: on a CPU and in the run
        queue.
        """
        used, queued = self.cpu[role], self.queue[role]
        return None if used is None else used + (queued or 0.0)

    def of_part(self, part: str) -> float | None:
        """The time of a role, as `at`, or of a kind of wait.

        A faster client CPU also shortens the wait for the interpreter.
        """
        if part == "client" and (own := self.at(part)) is not None:
            return own + (self.waits["interpreter"] or 0.0)
        return self.at(part) if part in ROLES else self.waits[part]

    def rivals(self) -> tuple[str, ...]:
        """The parts that `of_part` tells apart: the wait for the interpreter is in the client's, where
        that is known.
        """
        waits = (
            WAITS if self.cpu["client"] is None else tuple(name for name in WAITS if name != "interpreter")
        )
        return (*ROLES, *waits)

    @property
    def busy(self) -> float | None:
        """Time on a CPU, of all roles."""
        return _whole(self.cpu)

    @property
    def run_queue(self) -> float | None:
        """Of the roles where it is known; `unseen` holds the others'."""
        return queue_us(self.cpu, self.queue)

    def parts(self) -> dict[str, float | None]:
        """All parts by name, those that are not known too."""
        rest = {"run_queue": self.run_queue, **self.waits, "waiting": self.waiting, "unseen": self.unseen}
        return {**self.cpu, **rest}

    def shares(self) -> dict[str, float]:
        """The known parts as shares of their sum, which is the response time unless parts overlap."""
        known = {name: us for name, us in self.parts().items() if us is not None}
        total = sum(known.values())
        return {name: us / total for name, us in known.items()} if total else {}


def _whole(by_role: Known) -> float | None:
    known = [us for us in by_role.values() if us is not None]
    return sum(known) if len(known) == len(ROLES) else None


def _divided(hidden: float | None, kinds: Known, *, seen: bool) -> tuple[Known, float | None]:
    """The waits by kind, and the rest of the `hidden` time: the waiting, with a role that is not
    `seen`.

    Diagnostic rounds sample the kinds, so these never exceed the time that the timed rounds leave.
    The rest is latency if every kind is known. Behind a pooler without counters even one client may
    wait for the pooler's other clients.
    """
    if hidden is None:
        return dict.fromkeys((*kinds, "latency")), None
    known = sum(us for us in kinds.values() if us is not None)
    fits = min(1.0, hidden / known) if known else 1.0
    found = {name: None if us is None else us * fits for name, us in kinds.items()}
    rest = max(0.0, hidden - known * fits)
    if not seen or None in kinds.values():
        return {**found, "latency": None}, rest
    return {**found, "latency": rest}, None


def _kinds(variant: VariantSummary, *, pooled: bool) -> dict[str, float | None]:
    queue = _pool_queue(variant.diagnostics) if pooled else 0.0
    return {"pool_queue": queue, **_server_waits(variant)}


def _pool_queue(diagnostics: Diagnostics | None) -> float | None:
    """µs that an operation's queries waited for a server connection; an operation has at least one
    query.
    """
    pooler = diagnostics.pooler if diagnostics else None
    if pooler is None or pooler.wait_us_per_query is None:
        return None
    return pooler.wait_us_per_query * max(1.0, pooler.queries_per_op or 1.0)


def _server_waits(variant: VariantSummary) -> dict[str, float | None]:
    """µs per operation that server processes waited: their share of the samples, of all processes'
    time.
    """
    shares, backends = _sampled(variant.diagnostics), _backends(variant)
    if not shares or backends is None or variant.us_per_op is None:
        return dict.fromkeys(_SERVER_WAITS)
    kinds: dict[str, float | None] = {}
    for name in _SERVER_WAITS:
        share = sum(share or 0.0 for event, share in shares.items() if _kind(event) == name)
        kinds[name] = share * _turn_us(variant) * backends / max(1, variant.connections)
    return kinds


def _turn_us(variant: VariantSummary) -> float:
    """From the begin of one operation of a connection to that of its next, µs: in a closed loop the
    time of the operation.
    """
    if variant.rate is None or not variant.ops_per_s:
        return variant.us_per_op or 0.0
    return 1e6 * variant.connections / variant.ops_per_s


def _sampled(diagnostics: Diagnostics | None) -> Mapping[str, float] | None:
    """The shares of wait events; None of too few samples."""
    if diagnostics is None or diagnostics.samples is None or diagnostics.samples < LEAST_SAMPLES:
        return None
    return diagnostics.wait_events


def _kind(event: str) -> str:
    if event in _NO_WAITS:
        return ""
    return "server_lock" if event in _LOCKS else "server_io" if event == "IO" else "server_wait"


def _backends(variant: VariantSummary) -> float | None:
    """How many server processes the samples are of: as sampled, else one for each client of a
    direct route.
    """
    if variant.diagnostics and variant.diagnostics.backends is not None:
        return variant.diagnostics.backends
    return float(variant.connections) if variant.cpu_us_per_op.is_direct else None
