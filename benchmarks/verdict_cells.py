"""The second axis of benchmarks.verdict_matrix: where each disturbance sits, and the right words.

The right word of a cell is fixed here, before pgperf measures it: that of the bottleneck or of the
disturbance, whichever shortens the response more when it is removed. `--truth` measures both without
pgperf (benchmarks.verdict_truth).

**A rival** works for half or all of the time on one CPU. Pages have no such columns. In `rival-half`
and `rival-full` the CPU is that of the role in which the bottleneck does not sit, so that the rival
can only lengthen the rest: the server's for bottlenecks of the client and for the pool, which shares
the clients' CPUs, and the clients' for those of the server and for the distance. There it costs a
process that wakes up once per operation less than the bottleneck. `competing process` has its
competitor on the clients' CPU already, so the column's rival takes the server's. One rival lets the
ORM have half of its CPU at least: removing both rivals saves at most half of the time, and libpq
instead of the ORM more. A rival that wins would be `disturbed`.

**A rival on the bottleneck's own CPU**, `rival-own-half` and `rival-own-full`, takes the other side's:
each CPU of that side has one, so that the bottleneck cannot go where there is none. The distance sits
on no CPU, and its rival is on the server's. Without a bottleneck of CPU time, the rest of its role's
work still shares the CPU. So the bottleneck wins where it is longer than that rest, or than twice the
rest beside the two rivals of `competing process`. Lock and distance are waits of milliseconds, in
which nothing works that a rival could keep from its CPU. The pool is the closest: its queue is of work
that the rival slows down, but without it the pooler's work is gone too. `--truth` has not been run for
these two columns.

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
#: The share of its CPU that a rival works, where the bottleneck sits elsewhere and where it sits.
RIVALS_ELSEWHERE = {"rival-half": 0.5, "rival-full": 1.0}
RIVALS_ON_OWN = {"rival-own-half": 0.5, "rival-own-full": 1.0}
RIVALS = {**RIVALS_ELSEWHERE, **RIVALS_ON_OWN}
#: The replayed share of the host's CPU time.
STOLEN = {"steal-5": 0.05, "steal-12": 0.12}
COLUMNS = (QUIET, *RIVALS, QUOTA, *STOLEN)


@dataclass(frozen=True)
class Design:
    """`rival_on`: whose CPU a rival takes that is not on the bottleneck's own. `quota`: the CPUs that
    the processes of role `throttled` may use together. `words`: the right words of all columns but
    quiet.
    """

    rival_on: str
    throttled: str
    quota: float
    words: Mapping[str, str] = field(default_factory=dict)

    def rival_side(self, column: str) -> str:
        """Whose CPU the rival of that column takes."""
        return _OTHER_SIDE[self.rival_on] if column in RIVALS_ON_OWN else self.rival_on


_OTHER_SIDE = {"clients": "server", "server": "clients"}


def _design(rival_on: str, throttled: str, quota: float, *words: str) -> Design:
    return Design(rival_on, throttled, quota, dict(zip(COLUMNS[1:], words, strict=True)))


_CLIENT, _SERVER = "client_cpu", "server_cpu"
_POOL, _LATENCY, _LOCK = "pool_queue", "latency", "server_lock"
#: By case: whose CPU a rival elsewhere takes; the throttled role and its quota; the right words with a
#: rival at half and at all of a CPU, elsewhere and on the bottleneck's own, with the quota, and with 5
#: and 12 % of replayed steal.
DESIGNS = {
    "client spinning": _design("server", "client", 0.25, *[_CLIENT] * 7),
    "ORM client": _design("server", "client", 0.15, *[_CLIENT] * 7),
    "pool of 1": _design("server", "client", 0.01, *[_POOL] * 4, _CLIENT, _POOL, _POOL),
    "heavy query": _design("clients", "server", 0.25, *[_SERVER] * 7),
    "5 ms distance": _design("clients", "server", 0.01, *[_LATENCY] * 4, _SERVER, _LATENCY, _LATENCY),
    "competing process": _design("server", "client", 0.15, *[_CLIENT] * 7),
    "lock contention": _design("clients", "client", 0.01, *[_LOCK] * 4, _CLIENT, _LOCK, _LOCK),
}


def chosen(text: str) -> tuple[str, ...]:
    """The columns of the option: `all`, or names with commas. Raises ArgumentTypeError for others."""
    names = COLUMNS if text == "all" else tuple(text.split(","))
    if unknown := set(names) - set(COLUMNS):
        raise ArgumentTypeError(
            f"no such column: {', '.join(sorted(unknown))}; there are {', '.join(COLUMNS)}"
        )
    return names
