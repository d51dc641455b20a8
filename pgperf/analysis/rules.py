"""The rules for verdicts: what each finds in the facts of a variant, or None. Pure.

A resource that is used up bounds a variant; where none is, the largest part of its response time
does. Where a figure is missing, the verdict is "unknown" with its name, unless the known ones
suffice.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from pgperf.analysis.cpu_account import ROLES, Known
from pgperf.analysis.hosts import HostRoles, Side, hosts, sides
from pgperf.analysis.time_breakdown import WAITS, TimeBreakdown
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import Basis, Capacity, Finding, HostUse, VerdictNumbers
from pgperf.core.records import RECONNECTING

#: A CPU, or all of a role's CPUs, are used up from this utilisation on.
SATURATED = 0.90
#: Sessions for each client from which on some of them are parallel workers.
_PARALLEL = 1.05
#: With a load host so busy, a run does not show how much the server could do.
HOST_BUSY = 0.80
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
#: The beginnings of the names of figures that the server's sessions show.
_IN_SESSIONS = ("server ", "wait events")


@dataclass(frozen=True)
class Facts:
    """Utilisations are shares of the CPUs that a side may use; None is not known."""

    clients: int  # connections at the same time
    workers: int  # of them, in each client process
    process_busy: float | None  # share of one CPU that each client process kept busy
    time: TimeBreakdown
    utilisation: Known  # by side
    sides: Mapping[str, Side]
    hosts: tuple[HostRoles, ...]  # the load host first
    parallel_workers: bool  # were there parallel workers, of unknown CPU time?
    pooler_busy: float | None
    not_working: float | None  # share of the load host's CPUs that were idle or waited for disks
    sv_idle: int | None  # the fewest idle server connections of the pool
    missing_grant: str = ""  # the GRANT that would show the server's sessions

    @classmethod
    def of(cls, variant: VariantSummary) -> Self:
        time, account = TimeBreakdown.of(variant), variant.cpu_account
        per_s, auxiliaries = variant.ops_per_s, variant.cpu_us_per_op.auxiliaries
        shared = sides(variant, time.cpu)
        return cls(
            clients=variant.connections,
            workers=variant.workers,
            process_busy=variant.process_busy,
            time=time,
            utilisation={name: _used(per_s, time, side, auxiliaries) for name, side in shared.items()},
            sides=shared,
            hosts=hosts(variant, time.cpu),
            parallel_workers=_parallel_workers(variant),
            pooler_busy=_used(per_s, time, _pooler(variant), auxiliaries),
            not_working=account.share.not_working if account else None,
            sv_idle=_sv_idle(variant),
            missing_grant=account.missing_grant if account else "",
        )

    def queued(self, roles: Iterable[str] = ROLES) -> float | None:
        """The share of the time in run queues, at least: of the roles whose waits are known.

        The server's work after an answer is in the whole too.
        """
        seen = [us for role in roles if (us := self.time.queue[role]) is not None]
        whole = max(self.time.response or 0.0, sum(us for us in self.time.parts().values() if us is not None))
        return sum(seen) / whole if seen and whole else None

    def saturated(self) -> tuple[str, float, str] | None:
        """The role that is bound by its CPUs, their utilisation, and whose they are; None if none
        is.

        Of several roles, the one where an operation spends most of its time. One client alone
        cannot use up a CPU that it shares with nothing.
        """
        if self.clients == 1:
            return None
        found: dict[str, tuple[str, float, str]] = {}
        for side, used in self.utilisation.items():
            if used is not None and used >= SATURATED:
                role = max(self.sides[side].roles, key=lambda role: self.time.of_part(role) or 0.0)
                found.setdefault(role, (role, used, side))
        if self.pooler_busy is not None and self.pooler_busy >= SATURATED:
            found["pooler"] = ("pooler", self.pooler_busy, "pooler")
        return max(found.values(), key=lambda each: self.time.of_part(each[0]) or 0.0, default=None)

    @property
    def interpreter_busy(self) -> float | None:
        """How busy the one CPU was that the workers of a client process share, if it was used up."""
        used_up = self.workers > 1 and self.process_busy is not None and self.process_busy >= SATURATED
        return self.process_busy if used_up else None

    def largest(self) -> str | None:
        """The part where an operation spends most of its time; None where a hidden part may be
        larger.
        """
        known = {part: us for part in (*ROLES, *WAITS) if (us := self.time.of_part(part)) is not None}
        part = max(known, key=lambda name: known[name], default=None)
        hidden = (self.time.waiting or 0.0) + (self.time.unseen or 0.0)
        return part if part and known[part] > hidden else None

    def numbers(self) -> VerdictNumbers:
        """The numbers to keep with the verdict."""
        uses = [HostUse(host.other_cpus, host.steal) for host in self.hosts]
        return VerdictNumbers(
            clients=self.clients,
            workers=self.workers,
            response_us=self.time.response,
            parts_us=self.time.parts(),
            shares=self.time.shares(),
            queue_us=dict(self.time.queue),
            utilisation=dict(self.utilisation),
            pooler_busy=self.pooler_busy,
            run_queue=self.queued(),
            load_host=uses[0],
            server_host=uses[1] if len(uses) > 1 else None,
        )

    def capacity(self) -> Capacity:
        """Withheld where the clients' CPUs, their interpreter's, or the load host's were used up."""
        used = self.utilisation.get("clients", self.utilisation.get("host"))
        if self.clients > 1 and used is not None and used >= SATURATED:
            return Capacity(True, "clients", used)
        if self.interpreter_busy is not None:
            return Capacity(True, "interpreter", self.interpreter_busy)
        if self.not_working is None:
            return Capacity()
        busy = 1 - self.not_working
        return Capacity(True, "host", busy) if busy >= HOST_BUSY else Capacity(False)


#: What a rule finds in the facts of a variant; None if it finds nothing.
Rule = Callable[[Facts], Finding | None]


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


def interpreter(facts: Facts) -> Finding | None:
    """The workers of a process use up the one CPU that they can use, and the clients have more.

    Where the clients have no more, those CPUs are used up, which `cpu` finds first.
    """
    busy = facts.interpreter_busy
    return None if busy is None else Finding(Basis.INTERPRETER, where="process", share=busy)


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
    """Names the figures without which no other verdict can be given, and the GRANT that shows them."""
    found = _not_known(facts)
    hidden = any(name.startswith(_IN_SESSIONS) for name in found.missing)
    return replace(found, grant=facts.missing_grant) if hidden else found


def _not_known(facts: Facts) -> Finding:
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


def _used(per_s: float | None, time: TimeBreakdown, side: Side, auxiliaries: float | None) -> float | None:
    """Utilisation law: operations per second times the CPU time of each on these CPUs.

    Where a part of that is not known, the sum is known only if the known parts alone use the CPUs
    up: then it is a lower bound.
    """
    if per_s is None or not side.cpus:
        return None
    parts = [(time.cpu[role], side.cpus) for role in side.roles]
    parts += [(auxiliaries, side.host or side.cpus)] if "server" in side.roles else []
    used = per_s * sum(us / cpus for us, cpus in parts if us is not None) / 1e6
    return used if all(us is not None for us, _ in parts) or used >= SATURATED else None


def _pooler(variant: VariantSummary) -> Side:
    """PgBouncer uses one CPU, whatever the host has; how many another pooler may use is not known."""
    account = variant.cpu_account
    return Side(("pooler",), account.role_cpus.pooler if account and account.role_cpus else None)


def _parallel_workers(variant: VariantSummary) -> bool:
    """More sessions than clients on a direct route, while the time of short-lived processes is not
    told.

    Clients that reconnect have more as well: one session begins while another one ends.
    """
    if variant.connect in RECONNECTING:
        return False
    account, diagnostics = variant.cpu_account, variant.diagnostics
    if not variant.cpu_us_per_op.is_direct or (account and account.short_lived_us_per_op is not None):
        return False
    backends = diagnostics.backends if diagnostics else None
    return (backends or 0.0) > _PARALLEL * variant.connections


def _sv_idle(variant: VariantSummary) -> int | None:
    pooler = variant.diagnostics.pooler if variant.diagnostics else None
    return pooler.sv_idle_min if pooler else None
