"""The second axis of benchmarks.verdict_matrix: where each disturbance sits, and the right words.

The right word of a cell is fixed here, before pgperf measures it: that of the bottleneck or of the
disturbance, whichever shortens the response more when it is removed. `--truth` measures both without
pgperf (benchmarks.verdict_truth).

**A rival** works for half or all of the time on one CPU. Pages have no such columns. The CPU is that
of the role in which the bottleneck does not sit, so that the rival can only lengthen the rest: the
server's for bottlenecks of the client and for the pool, which shares the clients' CPUs, and the
clients' for those of the server and for the distance. There it costs a process that wakes up once per
operation less than the bottleneck. `competing process` has its competitor on the clients' CPU
already, so the column's rival takes the server's. One rival lets the ORM have half of its CPU at
least: removing both rivals saves at most half of the time, and libpq instead of the ORM more. A rival
that wins would be `disturbed`.

**A quota** far below what a role needs limits the throughput of a closed loop to quota / CPU time of
an operation. Removing a bottleneck that is not that CPU time leaves the limit, so the quota wins in
the pool, the distance and the lock, and the word is that of the role's CPU. Where the bottleneck is
that CPU time the word is the same, whichever wins. Throttling is part of the word's grade.

**Replayed steal** takes no time. A hypervisor that really stole that share of two CPUs would add a
quarter to the response at most, and each bottleneck is more than half of it.
"""

from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass, field

QUIET, QUOTA = "quiet", "quota"
#: The share of its CPU that a rival works.
RIVALS = {"rival-half": 0.5, "rival-full": 1.0}
#: The replayed share of the host's CPU time.
STOLEN = {"steal-5": 0.05, "steal-12": 0.12}
COLUMNS = (QUIET, *RIVALS, QUOTA, *STOLEN)


@dataclass(frozen=True)
class Design:
    """`rival_on`: whose CPU the rival takes. `quota`: the CPUs that the processes of role
    `throttled` may use together. `words`: the right words of all columns but quiet.
    """

    rival_on: str
    throttled: str
    quota: float
    words: Mapping[str, str] = field(default_factory=dict)


def _design(rival_on: str, throttled: str, quota: float, *words: str) -> Design:
    return Design(rival_on, throttled, quota, dict(zip(COLUMNS[1:], words, strict=True)))


_CLIENT, _SERVER = "client_cpu", "server_cpu"
#: By case: whose CPU the rival takes; the throttled role and its quota; the right words with a rival
#: at half and at all of a CPU, with the quota, and with 5 and 12 % of replayed steal.
DESIGNS = {
    "client spinning": _design("server", "client", 0.25, _CLIENT, _CLIENT, _CLIENT, _CLIENT, _CLIENT),
    "ORM client": _design("server", "client", 0.15, _CLIENT, _CLIENT, _CLIENT, _CLIENT, _CLIENT),
    "pool of 1": _design(
        "server", "client", 0.01, "pool_queue", "pool_queue", _CLIENT, "pool_queue", "pool_queue"
    ),
    "heavy query": _design("clients", "server", 0.25, _SERVER, _SERVER, _SERVER, _SERVER, _SERVER),
    "5 ms distance": _design("clients", "server", 0.01, "latency", "latency", _SERVER, "latency", "latency"),
    "competing process": _design("server", "client", 0.15, _CLIENT, _CLIENT, _CLIENT, _CLIENT, _CLIENT),
    "lock contention": _design(
        "clients", "client", 0.01, "server_lock", "server_lock", _CLIENT, "server_lock", "server_lock"
    ),
}  # fmt: skip


def chosen(text: str) -> tuple[str, ...]:
    """The columns of the option: `all`, or names with commas. Raises ArgumentTypeError for others."""
    names = COLUMNS if text == "all" else tuple(text.split(","))
    if unknown := set(names) - set(COLUMNS):
        raise ArgumentTypeError(
            f"no such column: {', '.join(sorted(unknown))}; there are {', '.join(COLUMNS)}"
        )
    return names
