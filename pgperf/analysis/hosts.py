"""The hosts of a variant's roles: which CPUs the roles have there, and how many other processes
use. Pure.

All roles run on the load host, or the server and perhaps its pooler run on another one. A role that
cannot be seen may be on either.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pgperf.analysis.cpu_account import CpuAccount, CpuShares, Known, RoleCpus, roles_of
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.core.layers import over_http

_HERE, _AWAY, _UNSEEN = "here", "away", "unseen"


@dataclass(frozen=True)
class Side:
    """Roles that share CPUs, and how many; None is not known.

    `host`: how many the server's auxiliary processes may use, where these are more than its
    backends'.
    """

    roles: tuple[str, ...]
    cpus: float | None
    host: float | None = None


@dataclass(frozen=True)
class Crowd:
    """Roles that share CPUs, and how many of these others use at most; None is not known."""

    roles: tuple[str, ...]
    others: float | None


@dataclass(frozen=True)
class HostRoles:
    """A host and the roles that are, or may be, on it. None is not known.

    `others` are the CPUs that no known role or runner uses. Roles that are `unseen` may be among
    them; `other_processes` are those of them that processes seen to be of no role use. `steal` is a
    share of the host's CPU time. `crowds`: where roles are bound to CPUs, and it is known, how many
    of `others` are among these.
    """

    title: str
    roles: tuple[str, ...]
    steal: float | None
    others: float | None
    unseen: tuple[str, ...] = ()
    other_processes: float | None = None
    cpus: float | None = None
    crowds: tuple[Crowd, ...] = ()

    @property
    def other_cpus(self) -> float | None:
        """CPUs that other processes certainly used."""
        return None if self.unseen else self.others


def hosts(variant: VariantSummary, cpu: Known) -> tuple[HostRoles, ...]:
    """The load host, and the server's if that is another and was seen.

    `cpu`: as in TimeBreakdown.
    """
    account, where = variant.cpu_account, _where(variant, cpu)
    here = tuple(role for role in roles_of(variant.layer) if where[role] != _AWAY)
    unseen = tuple(role for role in roles_of(variant.layer) if where[role] == _UNSEEN)
    if account is None:
        return (HostRoles("host", here, None, None, unseen),)
    share, runner = account.share, account.runner or 0.0
    others = _cpus(account.cpus, runner, share.other, share.unattributed)
    seen = _cpus(account.cpus, runner, share.other)
    crowds = tuple(_crowds(variant, account, here, others))
    own = HostRoles("host", here, share.steal, others, unseen, seen, account.cpus, crowds)
    far = account.server_host
    if far is None:
        return (own,)
    away = tuple(role for role in roles_of(variant.layer) if where[role] == _AWAY)
    others = _cpus(far.cpus, 0.0, far.share.other, far.share.unattributed)
    return own, HostRoles("server's host", away, far.share.steal, others, unseen, cpus=far.cpus)


def sides(variant: VariantSummary, cpu: Known) -> dict[str, Side]:
    """The roles that share CPUs, by placement; nothing where the host's CPUs are not known.

    `clients` and `server` have their own, `host` is what all share. `database` is the part of the
    server's that pooler and PostgreSQL have, where web servers have more.
    """
    account = variant.cpu_account
    if account is None or not account.cpus:
        return {}
    seats = account.role_cpus or RoleCpus()
    if variant.placement == "apart":
        return {
            **_own_cpus(variant, seats.clients),
            "server": Side(_beside_server(variant), seats.server, host=account.cpus),
            **_database(seats, account.cpus),
        }
    there = 1 if variant.placement == "together" else account.cpus
    return _bounded(_unplaced(account, _where(variant, cpu), there), seats.clients)


def _crowds(
    variant: VariantSummary, account: CpuAccount, here: tuple[str, ...], others: float | None
) -> Iterator[Crowd]:
    """The roles of each side whose CPUs tell how many others used them."""
    beside = _beside_server(variant)
    for side, share in account.others_by_side.items():
        roles = tuple(role for role in here if (role in beside) == (side == "server"))
        if roles and others is not None:
            yield Crowd(roles, share * others)


def _database(seats: RoleCpus, host: float) -> dict[str, Side]:
    return {"database": Side(("pooler", "server"), seats.database, host)} if seats.database else {}


def _own_cpus(variant: VariantSummary, clients: float | None) -> dict[str, Side]:
    beside = _beside_server(variant)
    return {"clients": Side(("client",) if "pooler" in beside else ("client", "pooler"), clients)}


def _beside_server(variant: VariantSummary) -> tuple[str, ...]:
    """Who shares the server's CPUs: behind a web server, all but the clients; else a pooler too, if
    web servers reach it as well.
    """
    if over_http(variant.layer):
        return ("proxy", "web", "pooler", "server")
    cpus = variant.cpu_account.role_cpus if variant.cpu_account else None
    return ("pooler", "server") if cpus and cpus.pooler_beside_server else ("server",)


def _unplaced(account: CpuAccount, where: Mapping[str, str], cpus: float) -> dict[str, Side]:
    """All roles share these CPUs, or a server that is not known to be here has its own. The server's
    own processes are not pinned: they have all of the host's.
    """
    if where["server"] == _HERE:
        roles = tuple(role for role in where if where[role] != _AWAY)
        return {"host": Side(roles, cpus, account.cpus if cpus != account.cpus else None)}
    here = tuple(role for role in where if role != "server" and where[role] != _AWAY)
    away = tuple(role for role in where if role not in here)
    return {
        "clients": Side(here, cpus),
        "server": Side(away, account.server_host.cpus if account.server_host else None),
    }


def _bounded(found: dict[str, Side], clients: float | None) -> dict[str, Side]:
    """Clients have the CPUs of the worker that starts them, which may be fewer than the others
    have.
    """
    shared = found.get("clients") or found["host"]
    if not shared.cpus or clients is None or clients >= shared.cpus:
        return found
    return {**found, "host": shared, "clients": Side(("client",), clients)}


def _where(variant: VariantSummary, cpu: Known) -> dict[str, str]:
    share = (
        variant.cpu_account.share
        if variant.cpu_account
        else CpuShares(clients=0.0, proxy=0.0, web=0.0, pooler=0.0, server=0.0)
    )
    return {role: _whereabouts(role, cpu[role], share.of(role)) for role in roles_of(variant.layer)}


def _whereabouts(role: str, us: float | None, share: float | None) -> str:
    """A role with known CPU time but no share of this host is on another. Clients never are."""
    if us is None or (share is None and role == "client"):
        return _UNSEEN
    return _AWAY if share is None else _HERE


def _cpus(cpus: float | None, runner: float, *shares: float | None) -> float | None:
    """The CPUs of these shares without the runner's; None if none of them is known."""
    known = [share for share in shares if share is not None]
    return max(0.0, sum(known) - runner) * cpus if cpus is not None and known else None
