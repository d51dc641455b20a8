"""What bounds a variant, in a word of a closed set, with the numbers that say so. Pure.

A resource that is used up bounds it; where none is, whatever an operation spends most of its time at. What is not known
gives "unknown" with what is missing, unless what is known suffices whatever the rest may be. A verdict is "likely"
until an intervention (`pgperf.analysis.interventions`) has put it to the test.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from pgperf.analysis import interventions
from pgperf.analysis.hosts import Host, Side, hosts, sides
from pgperf.analysis.time_breakdown import ROLES, WAITS, TimeBreakdown

#: Word -> what it says.
WORDS = {
    "client_cpu": "client CPU",
    "pooler_cpu": "pooler CPU",
    "server_cpu": "server CPU",
    "pool_queue": "queue for the pool",
    "server_lock": "locks in the server",
    "server_io": "server I/O",
    "server_wait": "other waits in the server",
    "latency": "network and waking up",
    "disturbed": "disturbed",
    "unknown": "unknown",
}
LIKELY = "likely"

#: A processor, or all of a role's, that is busy for so large a share has nothing left to give.
SATURATED = 0.90
#: A host that also makes the load says nothing of what a server could do once it is so busy.
HOST_BUSY = 0.80
#: Of the response time in run queues, and of a host's time stolen or (in processors) used by others: disturbed.
RUN_QUEUE, STEAL, OUTSIDERS = 0.05, 0.02, 0.10
#: So many sessions for each client are more than one: some are parallel workers.
_CROWD = 1.05
#: Of the response time in the pool's queue while no server connection is free.
POOL_QUEUE = 0.20
#: With several clients and more than this share of the response time on processors, waiting alone explains nothing.
BUSY = 0.70
#: Smaller parts of the response time are not in the sentence.
_WORTH_SAYING = 0.01

_CPU_WORDS = {"client_cpu": "client", "pooler_cpu": "pooler", "server_cpu": "server"}
_PART_TITLES = {
    "client": "client", "pooler": "pooler", "server": "server", "run_queue": "run queue",
    "pool_queue": "queue for the pool", "server_lock": "locks", "server_io": "I/O", "server_wait": "other server waits",
    "latency": "waiting", "waiting": "waiting", "unseen": "not seen",
}  # fmt: skip


def judge(row: Mapping[str, Any], checks: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The verdict on a variant's row (`us_per_op`, `ops_per_s`, `cpu_us_per_op`, `cpu_account`, `diagnostics`, ...).

    `word`, `certainty`, `evidence`, `numbers`, `checks` (those given and `capacity`), `missing`, `intervention`.
    """
    facts = Facts.of(row)
    found = _found(facts)
    return {
        "word": found.word,
        "certainty": LIKELY if found.word not in ("disturbed", "unknown") else None,
        "evidence": found.evidence,
        "numbers": facts.numbers(),
        "checks": {**(checks or {}), "capacity": _capacity(facts)},
        "missing": list(found.missing),
        "intervention": interventions.choose(found.word, row, used_up=found.used_up),
    }


@dataclass(frozen=True)
class Found:
    """`used_up`: the word is a resource that has nothing left to give."""

    word: str
    evidence: str
    missing: tuple[str, ...] = ()
    used_up: bool = False


@dataclass(frozen=True)
class Facts:
    """What the rules look at. Utilisations are shares of the processors that a side may use; None is not known."""

    clients: int
    time: TimeBreakdown
    utilisation: Mapping[str, float | None]  # by side
    sides: Mapping[str, Side]
    hosts: tuple[Host, ...]  # that of the clients first
    workers: bool  # were parallel workers seen, of which nobody knows what they used?
    pooler_busy: float | None
    idle: float | None
    sv_idle: float | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        time, books = TimeBreakdown.of(row), row.get("cpu_account") or {}
        share, shared = books.get("share") or {}, sides(row, time.cpu)
        per_s, auxiliaries = row.get("ops_per_s"), (row.get("cpu_us_per_op") or {}).get("auxiliaries")
        return cls(
            clients=row.get("clients", 1),
            time=time,
            utilisation={name: _used(per_s, time, side, auxiliaries) for name, side in shared.items()},
            sides=shared,
            hosts=hosts(row, time.cpu),
            workers=_workers(row, books),
            pooler_busy=_used(per_s, time, _pooler(books), auxiliaries),
            idle=_sum(share.get("idle"), share.get("iowait")),
            sv_idle=((row.get("diagnostics") or {}).get("pooler") or {}).get("sv_idle_min"),
        )

    def queued(self, roles: Iterable[str] = ROLES) -> float | None:
        """Share of the time in run queues, at least: of those of the roles whose waits are seen. What a server does
        after it has answered is in the whole too."""
        seen = [us for role in roles if (us := self.time.queue[role]) is not None]
        whole = max(self.time.response or 0.0, sum(us for us in self.time.parts().values() if us is not None))
        return sum(seen) / whole if seen and whole else None

    def saturated(self) -> dict[str, float]:
        """Role -> utilisation of what it has used up; among those on one side the one that takes most of its time."""
        found: dict[str, float] = {}
        for side, used in self.utilisation.items():
            if used is not None and used >= SATURATED:
                found.setdefault(
                    max(self.sides[side].roles, key=lambda role: self.time.at(role) or 0.0), used
                )
        if self.pooler_busy is not None and self.pooler_busy >= SATURATED:
            found["pooler"] = self.pooler_busy
        return found

    def numbers(self) -> dict[str, Any]:
        """What the verdict stands on, as plain JSON."""
        return {
            "response_us": self.time.response,
            "parts_us": self.time.parts(),
            "shares": self.time.shares(),
            "queue_us": dict(self.time.queue),
            "utilisation": dict(self.utilisation),
            "pooler_busy": self.pooler_busy,
            "run_queue": self.queued(),
            **_taken(self.hosts[0]),
            "server_host": _taken(self.hosts[1]) if len(self.hosts) > 1 else None,
        }


def _used(per_s: float | None, time: TimeBreakdown, side: Side, auxiliaries: float | None) -> float | None:
    """Utilisation law: operations per second times what each takes of these processors.

    Where a part of that is not known, nor is the sum, unless what is known uses them up: then it is that at least.
    """
    if per_s is None or not side.seats:
        return None
    parts = [(time.cpu[role], side.seats) for role in side.roles]
    parts += [(auxiliaries, side.host or side.seats)] if "server" in side.roles else []
    used = per_s * sum(us / seats for us, seats in parts if us is not None) / 1e6
    return used if all(us is not None for us, _ in parts) or used >= SATURATED else None


def _pooler(books: Mapping[str, Any]) -> Side:
    """PgBouncer uses one CPU, whatever the host has; how many another pooler may use is not known."""
    return Side(("pooler",), (books.get("role_cpus") or {}).get("pooler"))


def _workers(row: Mapping[str, Any], books: Mapping[str, Any]) -> bool:
    """More sessions than clients on a direct route, while what came and went is not told."""
    at_work = (row.get("diagnostics") or {}).get("backends") or 0.0
    direct = (row.get("cpu_us_per_op") or {}).get("pooler") == 0
    return direct and books.get("short_lived_us_per_op") is None and at_work > _CROWD * row.get("clients", 1)


def _taken(host: Host) -> dict[str, float | None]:
    return {"outsiders": host.outsiders, "steal": host.steal}


def _found(facts: Facts) -> Found:
    """The rules, in their order."""
    time = facts.time
    if time.response is None or time.cpu["client"] is None:
        lacking = tuple(
            name for name, value in (("time per operation", time.response), ("client CPU", time.cpu["client"]))
            if value is None
        )  # fmt: skip
        return _unknown(facts, lacking)
    rules = (_stolen, _used_up, _crowded, _queued, _most)
    return next(found for rule in rules if (found := rule(facts)))


def _stolen(facts: Facts) -> Found | None:
    worst = max(facts.hosts, key=lambda host: host.steal or 0.0)
    if worst.steal is None or worst.steal < STEAL:
        return None
    taken = f"steal: the hypervisor took {worst.steal:.0%} of the {worst.title}'s time"
    return Found("disturbed", f"{taken}; {_split(facts)}")


def _used_up(facts: Facts) -> Found | None:
    """Several clients, and a role has used up its processors: the one where an operation spends most time."""
    saturated = facts.saturated() if facts.clients > 1 else {}
    if not saturated:
        return None
    role = max(saturated, key=lambda name: facts.time.at(name) or 0.0)
    word = f"{role}_cpu"
    said = f"{facts.clients} clients, {_whose(facts, role)} {saturated[role]:.0%} busy"
    return Found(word, f"{said}: {_split(facts, first=word)}", used_up=True)


def _crowded(facts: Facts) -> Found | None:
    """Who waits for a processor while others use it. What is known of one host may suffice."""
    found = [crowd for host in facts.hosts if (crowd := _crowd(facts, host))]
    return min(found, key=lambda crowd: crowd.word == "unknown", default=None)


def _crowd(facts: Facts, host: Host) -> Found | None:
    queued = facts.queued(host.roles)
    if queued is None or queued < RUN_QUEUE or (host.others is not None and host.others < OUTSIDERS):
        return None
    before = f"run queue: {queued:.0%} of the time"
    if host.others is None:
        return _unknown(facts, ("other processes' CPU",), before)
    if host.unseen:
        return _unknown(facts, tuple(f"{role} CPU" for role in host.unseen), before)
    if facts.workers and "server" in host.roles and (host.strangers or 0.0) < OUTSIDERS:
        return _unknown(facts, ("CPU of the server's parallel workers",), before)
    busy = f"others kept {host.others:.1f} of the {host.title}'s processors busy"
    return Found("disturbed", f"{before}, while {busy}; {_split(facts)}")


def _queued(facts: Facts) -> Found | None:
    """The pool has no server connection free, and clients wait for one."""
    queue = _over(facts.time.waits["pool_queue"], facts.time.response)
    if facts.clients == 1 or queue is None or queue < POOL_QUEUE or facts.sv_idle != 0:
        return None
    return Found("pool_queue", f"no server connection free: {_split(facts, first='pool_queue')}")


def _most(facts: Facts) -> Found:
    """What an operation spends most of its time at."""
    time = facts.time
    known = {word: us for word, us in _at(time).items() if us is not None}
    word = max(known, key=lambda name: known[name])
    hidden = (time.waiting or 0.0) + (time.unseen or 0.0)
    if known[word] <= hidden or not known[word]:
        return _unknown(facts, _missing(facts))
    if word == "latency" and facts.clients > 1 and (time.busy or 0.0) >= BUSY * (time.response or 0.0):
        return _unknown(facts, ("what the clients wait for in turn",), "no resource is used up")
    return Found(word, _split(facts, first=word))


def _at(time: TimeBreakdown) -> dict[str, float | None]:
    return {word: time.at(role) for word, role in _CPU_WORDS.items()} | {
        wait: time.waits[wait] for wait in WAITS
    }


def _missing(facts: Facts) -> tuple[str, ...]:
    """What would have to be known to say more."""
    time = facts.time
    lacking = [f"{role} CPU" for role in ROLES if time.cpu[role] is None]
    lacking += [
        f"{role} run queue" for role in ROLES if time.cpu[role] is not None and time.queue[role] is None
    ]
    if time.unseen is None and time.waiting is not None:
        lacking += ["wait events"] if time.waits["server_lock"] is None else []
        lacking += ["pooler's counters"] if time.waits["pool_queue"] is None else []
    return tuple(lacking) or ("anything that took time",)


def _unknown(facts: Facts, missing: tuple[str, ...], before: str = "") -> Found:
    split = _split(facts) if facts.time.response is not None else ""
    said = "; ".join(part for part in (before, f"not known: {', '.join(missing)}", split) if part)
    return Found("unknown", said, missing)


def _capacity(facts: Facts) -> dict[str, Any]:
    """May anything be said of what the server could do? Not where the clients, or the host they share, were used up."""
    used = facts.utilisation.get("clients", facts.utilisation.get("host"))
    if facts.clients > 1 and used is not None and used >= SATURATED:
        return {"withheld": True, "why": f"the clients' processors were {used:.0%} busy"}
    if facts.idle is not None and 1 - facts.idle >= HOST_BUSY:
        return {"withheld": True, "why": f"the host that makes the load was {1 - facts.idle:.0%} busy"}
    return {"withheld": None if facts.idle is None else False, "why": ""}


def _whose(facts: Facts, role: str) -> str:
    if role == "pooler" and facts.pooler_busy is not None and facts.pooler_busy >= SATURATED:
        return "the pooler's one processor"
    used = facts.utilisation
    side = next(at for at, own in facts.sides.items() if role in own.roles and (used[at] or 0.0) >= SATURATED)
    return {
        "clients": "the clients' processors",
        "server": "the server's processors",
        "host": "the host's processors",
    }[side]


def _split(facts: Facts, first: str = "") -> str:
    """ "client CPU: 165 of 211 µs; server 21 µs, waiting 25 µs": what it is about first, then the rest by size."""
    time = facts.time
    parts = {name: us for name, us in time.parts().items() if us}
    response, least = _us(time.response or 0.0), _WORTH_SAYING * (time.response or 0.0)
    if not first:
        rest = _listed(parts, least)
        return f"of {response} µs: {rest}" if rest else f"{response} µs"
    role = _CPU_WORDS.get(first)
    lead = f"{WORDS[first]}: {_us(parts.pop(role or first, 0.0))} of {response} µs"
    if role and (queued := time.queue[role] or 0.0) >= least:
        parts["run_queue"] = (time.run_queue or queued) - queued
        lead += f" and {_us(queued)} µs in the queue for it"
    rest = _listed(parts, least)
    return f"{lead}; {rest}" if rest else lead


def _listed(parts: Mapping[str, float], least: float) -> str:
    """The parts that are worth saying, largest first."""
    seen: Iterator[tuple[str, float]] = ((name, us) for name, us in parts.items() if us and us >= least)
    return ", ".join(
        f"{_PART_TITLES[name]} {_us(us)} µs" for name, us in sorted(seen, key=lambda each: -each[1])
    )


def _us(value: float) -> str:
    return f"{value:,.{0 if value >= 10 else 1 if value >= 1 else 2}f}"


def _over(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _sum(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
