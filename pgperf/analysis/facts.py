"""The facts that the rules for verdicts look at, made once from a variant's summary. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from pgperf.analysis.cpu_account import ROLES, Known
from pgperf.analysis.hosts import HostRoles, Side, hosts, sides
from pgperf.analysis.time_breakdown import WAITS, TimeBreakdown
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import HostUse, VerdictNumbers

#: A CPU, or all of a role's CPUs, are used up from this utilisation on.
SATURATED = 0.90
#: Sessions for each client from which on some of them are parallel workers.
_PARALLEL = 1.05


@dataclass(frozen=True)
class Facts:
    """Utilisations are shares of the CPUs that a side may use; None is not known."""

    clients: int
    time: TimeBreakdown
    utilisation: Known  # by side
    sides: Mapping[str, Side]
    hosts: tuple[HostRoles, ...]  # the load host first
    parallel_workers: bool  # were there parallel workers, of unknown CPU time?
    pooler_busy: float | None
    not_working: float | None  # share of the load host's CPUs that were idle or waited for disks
    sv_idle: int | None  # the fewest idle server connections of the pool

    @classmethod
    def of(cls, variant: VariantSummary) -> Self:
        time, account = TimeBreakdown.of(variant), variant.cpu_account
        per_s, auxiliaries = variant.ops_per_s, variant.cpu_us_per_op.auxiliaries
        shared = sides(variant, time.cpu)
        return cls(
            clients=variant.clients,
            time=time,
            utilisation={name: _used(per_s, time, side, auxiliaries) for name, side in shared.items()},
            sides=shared,
            hosts=hosts(variant, time.cpu),
            parallel_workers=_parallel_workers(variant),
            pooler_busy=_used(per_s, time, _pooler(variant), auxiliaries),
            not_working=account.share.not_working if account else None,
            sv_idle=_sv_idle(variant),
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
                role = max(self.sides[side].roles, key=lambda role: self.time.at(role) or 0.0)
                found.setdefault(role, (role, used, side))
        if self.pooler_busy is not None and self.pooler_busy >= SATURATED:
            found["pooler"] = ("pooler", self.pooler_busy, "pooler")
        return max(found.values(), key=lambda each: self.time.at(each[0]) or 0.0, default=None)

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
    """
    account, diagnostics = variant.cpu_account, variant.diagnostics
    if not variant.cpu_us_per_op.is_direct or (account and account.short_lived_us_per_op is not None):
        return False
    backends = diagnostics.backends if diagnostics else None
    return (backends or 0.0) > _PARALLEL * variant.clients


def _sv_idle(variant: VariantSummary) -> int | None:
    pooler = variant.diagnostics.pooler if variant.diagnostics else None
    return pooler.sv_idle_min if pooler else None
