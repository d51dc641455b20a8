"""The rules for verdicts: what each finds in the facts of a variant, or None. Pure.

A resource that is used up bounds a variant; where none is, the largest part of its response time
does. Time that others took withdraws that word only where the word could be another without them.
Where a figure is missing, the verdict is "unknown" with its name, unless the known ones suffice.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from pgperf.analysis.cpu_account import ROLES, CpuAccount, Known
from pgperf.analysis.disturbances import FAIR, OTHER_CPUS, disturbances, grade, waits_for_others
from pgperf.analysis.grade import Disturbance, Grade, Source
from pgperf.analysis.hosts import HostRoles, Side, hosts, sides
from pgperf.analysis.load_hosts import CPU, NETWORK, LoadHostUse, busiest
from pgperf.analysis.open_loop import OpenLoop
from pgperf.analysis.time_breakdown import TimeBreakdown
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import Basis, Capacity, Finding, HostUse, VerdictNumbers
from pgperf.core.records import RECONNECTING

#: A CPU, or all of a role's CPUs, are used up from this utilisation on.
SATURATED = 0.90
#: Sessions for each client from which on some of them are parallel workers.
_PARALLEL = 1.05
#: With a load host so busy, a run does not show how much the server could do.
HOST_BUSY = 0.80
#: Share of the response time in the pool's queue while the pool has no free server connection.
POOL_QUEUE = 0.20
#: With several clients and more than this share of the response time on CPUs, waiting alone
#: explains nothing.
BUSY = 0.70
#: The roles whose work keeps a process of the web servers busy with a request.
_BEHIND_REQUESTS = ("web", "pooler", "server")
#: Work and waits at the same time, for each process of the web servers, from which on a process serves
#: several requests at once, or a statement has parallel workers: sampled figures vary.
_SEVERAL_AT_ONCE = 1.1
#: The beginnings of the names of figures that the server's sessions show.
_IN_SESSIONS = ("server ", "wait events")
_WAIT_EVENTS, _POOL_COUNTERS = "wait events", "pooler's counters"
#: The names of figures that diagnostic slices show.
IN_DIAGNOSTICS = (_WAIT_EVENTS, _POOL_COUNTERS)


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
    waits_for_others: Mapping[str, float]  # the most that a role waited for other processes, µs
    disturbances: tuple[Disturbance, ...]  # the largest first
    parallel_workers: bool  # were there parallel workers, of unknown CPU time?
    pooler_busy: float | None
    not_working: float | None  # share of the CPUs of the clients' machine that were idle or waited
    sv_idle: int | None  # the fewest idle server connections of the pool
    web_workers: int | None = None  # processes of the web servers; None: no requests go to one
    per_s: float | None = None  # operations per second
    mean_ratio: float = 1.0  # the mean time of all operations over that in `time`
    missing_grant: str = ""  # the GRANT that would show the server's sessions
    open_loop: OpenLoop | None = None
    requests_failed: bool = False  # in every slice, so that none counts
    load_hosts: tuple[LoadHostUse, ...] = ()  # those that made the load; none: the run's own worker

    @classmethod
    def of(cls, variant: VariantSummary) -> Self:
        time, account = TimeBreakdown.of(variant), variant.cpu_account
        per_s, auxiliaries = variant.ops_per_s, variant.cpu_us_per_op.auxiliaries
        shared, on_hosts = sides(variant, time.cpu), hosts(variant, time.cpu)
        cpu = {role: variant.cpu_us_per_op.of(role) for role in ROLES}
        throttled = _throttled(variant)
        waits = waits_for_others(on_hosts, time, throttled)
        return cls(
            clients=variant.connections,
            workers=variant.workers,
            process_busy=variant.process_busy,
            time=time,
            utilisation={name: _used(per_s, cpu, side, auxiliaries) for name, side in shared.items()},
            sides=shared,
            hosts=on_hosts,
            waits_for_others=waits,
            disturbances=disturbances(
                on_hosts,
                time,
                waits,
                variant.top,
                throttled,
                account.clock_read_ns if account else None,
                account.load_hosts if account else (),
                account.programs if account else (),
            ),
            parallel_workers=_parallel_workers(variant),
            pooler_busy=_used(per_s, cpu, _pooler(variant), auxiliaries),
            not_working=account.share.not_working if account else None,
            sv_idle=_sv_idle(variant),
            web_workers=account.web_workers if account else None,
            per_s=per_s,
            mean_ratio=variant.mean_ratio,
            missing_grant=account.missing_grant if account else "",
            open_loop=variant.open_loop,
            requests_failed=bool(variant.http and variant.http.errors) and variant.us_per_op is None,
            load_hosts=account.load_hosts if account else (),
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
                found.setdefault(role, (role, used, self._whose(side)))
        if (one := self.limiting_host(CPU)) and "client" not in found:
            found["client"] = ("client", one.used(CPU), f"load host {one.name}")
        if self.pooler_busy is not None and self.pooler_busy >= SATURATED:
            found["pooler"] = ("pooler", self.pooler_busy, "pooler")
        return max(found.values(), key=lambda each: self.time.of_part(each[0]) or 0.0, default=None)

    def _whose(self, side: str) -> str:
        """The side, or "shared" where all roles have the same single CPU."""
        return "shared" if side == "host" and self.sides[side].cpus == 1 else side

    def limiting_host(self, resource: str) -> LoadHostUse | None:
        """The load host whose CPUs or network are used up; None if none is."""
        found = busiest(self.load_hosts, resource)
        return found if found and found.used(resource) >= SATURATED else None

    @property
    def interpreter_busy(self) -> float | None:
        """How busy the one CPU was that the workers of a client process share, if it was used up."""
        used_up = self.workers > 1 and self.process_busy is not None and self.process_busy >= SATURATED
        return self.process_busy if used_up else None

    @property
    def waits_for_workers(self) -> bool:
        """May requests wait until a process of the web servers is free?"""
        return self.web_workers is not None and self.clients > self.web_workers

    @property
    def web_busy(self) -> float | None:
        """How busy each process of the web servers was with a request, at least: the time that it
        works itself, and waits for the pooler and the server to work, or for what a statement in the
        server waits for. What these may have waited for other programs is not the request's.
        """
        return self._web_busy({role: self._own_at(role) for role in _BEHIND_REQUESTS})

    def _web_busy(self, behind: Known) -> float | None:
        if not self.web_workers or self.per_s is None:
            return None
        work = self._per_web_worker(behind.values())
        waits = self._per_web_worker(self.time.waits[name] for name in self._waits_behind())
        return work + waits if work + waits < _SEVERAL_AT_ONCE else work

    def _waits_behind(self) -> tuple[str, ...]:
        """The waits in the server that keep a process of the web servers busy. Several processes may
        wait for a lock that one of them holds, which more processes would not shorten.
        """
        waits = ("server_io", "server_wait")
        return ("server_lock", *waits) if self.web_workers == 1 else waits

    def _per_web_worker(self, times_us: Iterable[float | None]) -> float:
        """How busy these times (per operation) keep each process of the web servers."""
        mean_us = self.mean_ratio * sum(us for us in times_us if us is not None)
        return (self.per_s or 0.0) * mean_us / 1e6 / (self.web_workers or 1)

    @property
    def _others_fill_workers(self) -> bool:
        """Is each process of the web servers busy only because others kept their CPUs from them?"""
        busy = self._web_busy({role: self.time.at(role) for role in _BEHIND_REQUESTS})
        if not self.waits_for_workers or busy is None or self.web_busy is None:
            return False
        return self.web_busy < SATURATED <= busy

    def largest(self) -> str | None:
        """The part where an operation spends most of its time; None where a hidden part may be
        larger.
        """
        ranked = self._ranked()
        return ranked[0][1] if ranked and ranked[0][1] else None

    @property
    def no_connection_is_free(self) -> bool:
        """Whether clients spent much of their time in the queue of a pool without free connections."""
        queue, response = self.time.waits["pool_queue"], self.time.response
        long = queue is not None and response and queue / response >= POOL_QUEUE
        return self.clients > 1 and bool(long) and self.sv_idle == 0

    def overturned(self) -> Disturbance | None:
        """The largest disturbance, if all of them could change the word: given to the part that
        comes second, their time would make that the first. Or that in run queues, if it alone keeps
        the processes of web servers busy.
        """
        if filling := self._filling_workers():
            return filling
        others = [each for each in self.disturbances if each.source in (Source.STEAL, Source.RUN_QUEUE)]
        doubt = sum(each.us or 0.0 for each in others)
        if not doubt or doubt < self._fair_us:
            return None
        return others[0] if self._lead() < doubt else None

    def _filling_workers(self) -> Disturbance | None:
        """The time in run queues that alone keeps the processes of web servers busy, of their own host
        first; None if it is too short to count.
        """
        if not self._others_fill_workers:
            return None
        own = {host.title for host in self.hosts if "web" in host.roles}
        queues = [each for each in self.disturbances if each.source == Source.RUN_QUEUE]
        long = [each for each in queues if (each.us or 0.0) >= self._fair_us]
        return min(long, key=lambda each: each.where not in own, default=None)

    @property
    def _fair_us(self) -> float:
        """From this time on, disturbances count."""
        return FAIR * (self.time.response or 0.0)

    def _lead(self) -> float:
        """How much longer the leading part is than the next one, µs."""
        if self.no_connection_is_free:
            return self.time.waits["pool_queue"] or 0.0
        times = [us for us, _ in self._ranked()] + [0.0, 0.0]
        return times[0] - times[1]

    def _ranked(self) -> list[tuple[float, str]]:
        """The parts by their time without waits for other processes, the longest first; "" is the
        time that is hidden.
        """
        hidden = (self.time.waiting or 0.0) + (self.time.unseen or 0.0)
        parts = [(self._own(part), part) for part in self.time.rivals()]
        known = [(us, part) for us, part in parts if us is not None]
        return sorted([*known, (hidden, "")], key=lambda each: -each[0]) if known else []

    def _own(self, part: str) -> float | None:
        return self._without_others(part, self.time.of_part(part))

    def _own_at(self, role: str) -> float | None:
        return self._without_others(role, self.time.at(role))

    def _without_others(self, part: str, us: float | None) -> float | None:
        return None if us is None else us - self.waits_for_others.get(part, 0.0)

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
            web_workers=self.web_workers,
            run_queue=self.queued(),
            load_host=uses[0],
            server_host=uses[1] if len(uses) > 1 else None,
        )

    def grade(self) -> Grade:
        return grade(self.hosts, self.time, self.disturbances)

    def capacity(self) -> Capacity:
        """Withheld where the CPUs of clients, their interpreter, or their machine were used up; of
        several load hosts, where one was the limit.
        """
        used = self.utilisation.get("clients", self.utilisation.get("host"))
        if self.clients > 1 and used is not None and used >= SATURATED:
            return Capacity(True, "clients", used)
        if self.interpreter_busy is not None:
            return Capacity(True, "interpreter", self.interpreter_busy)
        for resource, busy in ((CPU, "one_host"), (NETWORK, "network")):
            if one := self.limiting_host(resource):
                return Capacity(True, busy, one.used(resource), one.name)
        if self.not_working is None:
            return Capacity()
        used = 1 - self.not_working
        return Capacity(True, "host", used) if used >= HOST_BUSY else Capacity(False)


def _throttled(variant: VariantSummary) -> dict[str, float]:
    """How long CPU quotas kept each role from working while an operation waited, µs: the operations of
    all connections wait at the same time. The kernel adds up the time of each CPU that stands still.
    """
    account = variant.cpu_account
    if account is None:
        return {}
    return {
        role: us * variant.connections / max(1.0, min(variant.connections, _cpus_of(variant, account, role)))
        for role, us in account.throttled_us_per_op.items()
        if us
    }


def _cpus_of(variant: VariantSummary, account: CpuAccount, role: str) -> float:
    """The CPUs that a role's processes run on at the same time, whatever its quota."""
    if variant.placement == "together":
        return 1.0
    far = account.server_host
    cpus = account.cpus if role == "client" or far is None else far.cpus
    server = account.role_cpus.server if account.role_cpus and variant.placement == "apart" else None
    if not cpus or not server:
        return cpus or 1.0
    return cpus - server if role == "client" else server


#: What a rule finds in the facts of a variant; None if it finds nothing.
Rule = Callable[[Facts], Finding | None]


def disturbed(facts: Facts) -> Finding | None:
    """The hypervisor or other processes took so much time that the word could be another."""
    found = facts.overturned()
    if found is None or _unseen_behind(found, facts):
        return None
    return Finding(Basis(found.source), found.where, found.share, found.cpus)


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


def web_workers(facts: Facts) -> Finding | None:
    """Each process of the web servers is busy with a request, and more clients wait for one."""
    busy = facts.web_busy
    if not facts.waits_for_workers or busy is None or busy < SATURATED:
        return None
    return Finding(Basis.WEB_WORKERS, where="web", share=min(1.0, busy))


def network(facts: Facts) -> Finding | None:
    """The network of a load host carries as much as its interface can."""
    full = facts.limiting_host(NETWORK)
    return Finding(Basis.NETWORK, f"load host {full.name}", full.used(NETWORK)) if full else None


def pool_queue(facts: Facts) -> Finding | None:
    """The pool has no free server connection and clients wait for one, or that wait is most of the
    time.
    """
    if facts.no_connection_is_free:
        share = (facts.time.waits["pool_queue"] or 0.0) / (facts.time.response or 1.0)
        return Finding(Basis.NO_FREE_CONNECTION, share=share)
    return _largest(facts, "pool_queue")


def schedule(facts: Facts) -> Finding | None:
    """The clients of an open loop hold their rate: what bounds them is the schedule."""
    found = facts.open_loop
    return Finding(Basis.RATE_HELD, per_s=found.achieved_per_s) if found and found.is_held else None


def latency(facts: Facts) -> Finding | None:
    """The network and wake-up are most of the time, unless busy clients may wait for each other, or
    requests for a free process of the web servers.
    """
    hidden = _wait_in_turn(facts) or facts.waits_for_workers
    return None if hidden else _largest(facts, "latency")


def unknown(facts: Facts) -> Finding:
    """Names the figures without which no other verdict can be given, and the GRANT that shows them."""
    found = _not_known(facts)
    hidden = any(name.startswith(_IN_SESSIONS) for name in found.missing)
    return replace(found, grant=facts.missing_grant) if hidden else found


def _not_known(facts: Facts) -> Finding:
    time = facts.time
    if facts.requests_failed:
        return Finding(Basis.FAILED_REQUESTS)
    inputs = {"time per operation": time.response, "client CPU": time.cpu["client"]}
    if lacking := tuple(name for name, value in inputs.items() if value is None):
        return Finding(Basis.INPUTS, missing=lacking)
    if (found := facts.overturned()) and (missing := _unseen_behind(found, facts)):
        return Finding(Basis.RUN_QUEUE, found.where, found.share, missing=missing)
    if _wait_in_turn(facts):
        return Finding(Basis.IN_TURN, missing=("what the clients wait for in turn",))
    return Finding(Basis.UNEXPLAINED, missing=_missing(facts))


def _largest(facts: Facts, part: str) -> Finding | None:
    return Finding(Basis.LARGEST) if facts.largest() == part else None


def _unseen_behind(found: Disturbance, facts: Facts) -> tuple[str, ...]:
    """What else may have used the CPUs that the roles waited for: figures of the variant's own."""
    if found.source != Source.RUN_QUEUE:
        return ()
    return next(_unseen_on(host, facts) for host in facts.hosts if host.title == found.where)


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
    in_turn = busy or facts.waits_for_workers
    return facts.clients > 1 and in_turn and facts.largest() == "latency"


def _missing(facts: Facts) -> tuple[str, ...]:
    """The figures that would have to be known to say more."""
    time = facts.time
    lacking = [f"{role} CPU" for role in ROLES if time.cpu[role] is None]
    lacking += [
        f"{role} run queue" for role in ROLES if time.cpu[role] is not None and time.queue[role] is None
    ]
    if time.unseen is None and time.waiting is not None:
        lacking += [_WAIT_EVENTS] if time.waits["server_lock"] is None else []
        lacking += [_POOL_COUNTERS] if time.waits["pool_queue"] is None else []
    return tuple(lacking) or ("anything that took time",)


def _used(per_s: float | None, cpu: Known, side: Side, auxiliaries: float | None) -> float | None:
    """Utilisation law: operations per second times the mean CPU time of each on these CPUs.

    Where a part of that is not known, the sum is known only if the known parts alone use the CPUs
    up: then it is a lower bound.
    """
    if per_s is None or not side.cpus:
        return None
    parts = [(cpu[role], side.cpus) for role in side.roles]
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
