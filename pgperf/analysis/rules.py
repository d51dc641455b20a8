"""The rules for verdicts: what each finds in the facts of a variant, or None. Pure.

A resource that is used up bounds a variant; where none is, the largest part of its response time
does. Where a figure is missing, the verdict is "unknown" with its name, unless the known ones
suffice.
"""

from collections.abc import Callable

from pgperf.analysis.cpu_account import ROLES
from pgperf.analysis.facts import Facts
from pgperf.analysis.hosts import HostRoles
from pgperf.analysis.verdict import Basis, Finding

Rule = Callable[[Facts], Finding | None]

#: From these shares on a variant is disturbed: of its time in run queues, and of a host's CPU time
#: stolen.
RUN_QUEUE, STEAL = 0.05, 0.02
#: So many CPUs that other processes use disturb those that wait for a CPU.
OTHER_CPUS = 0.10
#: Share of the response time in the pool's queue while the pool has no free server connection.
POOL_QUEUE = 0.20
#: With several clients and more than this share of the response time on CPUs, waiting alone
#: explains nothing.
BUSY = 0.70


def disturbed(facts: Facts) -> Finding | None:
    """The hypervisor or other processes take CPU time from the variant."""
    worst = max(facts.hosts, key=lambda host: host.steal or 0.0)
    if worst.steal is not None and worst.steal >= STEAL:
        return Finding(Basis.STEAL, worst.title, worst.steal)
    return next(
        (found for host in facts.hosts if (found := _crowded(facts, host)) and not found.missing), None
    )


def cpu(role: str) -> Rule:
    """A role whose CPUs are used up by several clients, or where most of the time is spent."""

    def rule(facts: Facts) -> Finding | None:
        if (used_up := facts.saturated()) and used_up[0] == role:
            return Finding(Basis.SATURATED, where=used_up[2], share=used_up[1])
        return _largest(facts, role)

    return rule


def wait(part: str) -> Rule:
    """A kind of wait that is most of the time."""
    return lambda facts: _largest(facts, part)


def pool_queue(facts: Facts) -> Finding | None:
    """The pool has no free server connection and clients wait for one, or that wait is most of the
    time.
    """
    queue, response = facts.time.waits["pool_queue"], facts.time.response
    share = queue / response if queue is not None and response else None
    if facts.clients > 1 and share is not None and share >= POOL_QUEUE and facts.sv_idle == 0:
        return Finding(Basis.NO_FREE_CONNECTION, share=share)
    return _largest(facts, "pool_queue")


def latency(facts: Facts) -> Finding | None:
    """The network and waking up are most of the time, unless busy clients may wait for each other."""
    return None if _wait_in_turn(facts) else _largest(facts, "latency")


def unknown(facts: Facts) -> Finding:
    """Names the figures without which no other verdict can be given."""
    time = facts.time
    inputs = {"time per operation": time.response, "client CPU": time.cpu["client"]}
    if lacking := tuple(name for name, value in inputs.items() if value is None):
        return Finding(Basis.INPUTS, missing=lacking)
    for host in facts.hosts:
        if (found := _crowded(facts, host)) and found.missing:
            return found
    if _wait_in_turn(facts):
        return Finding(Basis.IN_TURN, missing=("what the clients wait for in turn",))
    return Finding(Basis.UNEXPLAINED, missing=_missing(facts))


def _largest(facts: Facts, part: str) -> Finding | None:
    return Finding(Basis.LARGEST) if facts.largest() == part else None


def _crowded(facts: Facts, host: HostRoles) -> Finding | None:
    """Roles of a host wait for a CPU while other processes use it, or may use it: then that is
    `missing`.
    """
    queued = facts.queued(host.roles)
    if queued is None or queued < RUN_QUEUE or (host.others is not None and host.others < OTHER_CPUS):
        return None
    return Finding(Basis.RUN_QUEUE, host.title, queued, host.others, _unseen_on(host, facts))


def _unseen_on(host: HostRoles, facts: Facts) -> tuple[str, ...]:
    """What may have used the host's CPUs, of the roles and the server's own, and is not known."""
    if host.others is None:
        return ("other processes' CPU",)
    if host.unseen:
        return tuple(f"{role} CPU" for role in host.unseen)
    known = (host.other_processes or 0.0) >= OTHER_CPUS
    own = facts.parallel_workers and "server" in host.roles and not known
    return ("CPU of the server's parallel workers",) if own else ()


def _wait_in_turn(facts: Facts) -> bool:
    """Most of the time is latency, but the CPUs are too busy for that: clients may wait for each
    other.
    """
    time = facts.time
    busy = (time.busy or 0.0) >= BUSY * (time.response or 0.0)
    return facts.clients > 1 and busy and facts.largest() == "latency"


def _missing(facts: Facts) -> tuple[str, ...]:
    """The figures that would have to be known to say more."""
    time = facts.time
    lacking = [f"{role} CPU" for role in ROLES if time.cpu[role] is None]
    lacking += [
        f"{role} run queue" for role in ROLES if time.cpu[role] is not None and time.queue[role] is None
    ]
    if time.unseen is None and time.waiting is not None:
        lacking += ["wait events"] if time.waits["server_lock"] is None else []
        lacking += ["pooler's counters"] if time.waits["pool_queue"] is None else []
    return tuple(lacking) or ("anything that took time",)
