"""The hosts that a variant's roles run on: which processors they have there, and who else uses them. Pure.

All are on the host that makes the load, or the server and perhaps its pooler on another. A role that cannot be seen may
be on either.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pgperf.analysis.time_breakdown import ROLES, Known

Row = Mapping[str, Any]

_HERE, _AWAY, _UNSEEN = "here", "away", "unseen"
#: Role -> what the books call it.
_BOOKED = {"client": "clients", "pooler": "pooler", "server": "server"}


@dataclass(frozen=True)
class Side:
    """Roles that share processors, and how many; None is not known.

    `host`: how many the server's own processes may use, where these are others than its backends'.
    """

    roles: tuple[str, ...]
    seats: float | None
    host: int | None = None


@dataclass(frozen=True)
class Host:
    """A host and the roles that are, or may be, on it. `others`: the processors that nobody known to work here uses.

    Roles that are `unseen` may be among those others; `strangers` are those of them that a census saw to be
    strangers. `steal` is a share of the host's time. None is not known.
    """

    title: str
    roles: tuple[str, ...]
    steal: float | None
    others: float | None
    unseen: tuple[str, ...] = ()
    strangers: float | None = None

    @property
    def outsiders(self) -> float | None:
        """Processors that others use, for sure."""
        return None if self.unseen else self.others


def hosts(row: Row, cpu: Known) -> tuple[Host, ...]:
    """The host that makes the load, and the server's if that is another and was seen. `cpu`: as in TimeBreakdown."""
    books, where = row.get("cpu_account") or {}, _where(row, cpu)
    here = tuple(role for role in ROLES if where[role] != _AWAY)
    unseen = tuple(role for role in ROLES if where[role] == _UNSEEN)
    steal, seen = _share(books, "steal"), _others(books, ("other",))
    found = [Host("host", here, steal, _others(books), unseen, seen)]
    if far := books.get("server_host"):
        away = tuple(role for role in ROLES if where[role] == _AWAY)
        found.append(Host("server's host", away, _share(far, "steal"), _others(far), unseen))
    return tuple(found)


def sides(row: Row, cpu: Known) -> dict[str, Side]:
    """The roles that share CPUs, by placement; nothing where the host's CPUs are not known.

    `clients` and `server` have their own, `host` is what all share.
    """
    books = row.get("cpu_account") or {}
    cpus, seats = books.get("cpus"), books.get("role_cpus") or {}
    if not cpus:
        return {}
    if row.get("placement") == "apart":
        return {
            "clients": Side(("client", "pooler"), seats.get("clients")),
            "server": Side(("server",), seats.get("server"), host=cpus),
        }
    there = 1 if row.get("placement") == "together" else cpus
    return _bounded(_left_alone(books, _where(row, cpu), there), seats.get("clients"))


def _left_alone(books: Row, where: Mapping[str, str], cpus: int) -> dict[str, Side]:
    """All share the host's, or a server that is not known to be here has its own."""
    if where["server"] == _HERE:
        return {"host": Side(tuple(role for role in ROLES if where[role] != _AWAY), cpus)}
    here = tuple(role for role in ROLES if role != "server" and where[role] != _AWAY)
    far = books.get("server_host") or {}
    return {
        "clients": Side(here, cpus),
        "server": Side(tuple(role for role in ROLES if role not in here), far.get("cpus")),
    }


def _bounded(found: dict[str, Side], seats: float | None) -> dict[str, Side]:
    """Clients have the processors of the worker that starts them, which may be fewer than there are for others."""
    shared = found.get("clients") or found["host"]
    if not shared.seats or seats is None or seats >= shared.seats:
        return found
    return {**found, "host": shared, "clients": Side(("client",), seats)}


def _where(row: Row, cpu: Known) -> dict[str, str]:
    share = (row.get("cpu_account") or {}).get("share") or {}
    return {role: _whereabouts(role, cpu[role], share.get(_BOOKED[role], 0.0)) for role in ROLES}


def _whereabouts(role: str, us: float | None, share: float | None) -> str:
    """A role whose time is known, but no share of this host, is on another. Clients never are."""
    if us is None or (share is None and role == "client"):
        return _UNSEEN
    return _AWAY if share is None else _HERE


def _others(account: Row, whose: tuple[str, ...] = ("other", "unattributed")) -> float | None:
    """The CPUs that other processes used: CPU time without a known process counts, the runner's does not."""
    cpus, shares = account.get("cpus"), [_share(account, name) for name in whose]
    known = [share for share in shares if share is not None]
    if cpus is None or not known:
        return None
    return float(max(0.0, sum(known) - (account.get("runner") or 0.0)) * cpus)


def _share(account: Row, name: str) -> float | None:
    share: float | None = (account.get("share") or {}).get(name)
    return share
