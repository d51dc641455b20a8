"""The CPU account of a variant: whose CPU time it was, as records between the sums and JSON.

`pgperf.analysis.cpu_accounting` makes the account from slices. None is not known, never 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from pgperf.analysis.load_hosts import LoadHostUse
from pgperf.analysis.top import Process
from pgperf.core.layers import over_http

Known = Mapping[str, float | None]
Json = Mapping[str, Any]

#: Who serves an operation.
ROLES = ("client", "proxy", "web", "pooler", "server")
#: Who serves it only where its clients request pages.
WEB_ROLES = ("proxy", "web")
#: What results of versions without web servers lack.
_NO_WEB_SERVER = dict.fromkeys(WEB_ROLES, 0.0)
#: Whose CPUs every variant has.
_SEATS = ("clients", "server", "pooler")
#: What is kept of other programs.
_OF_PROGRAM = ("role", "pid", "name", "user", "cpu_percent")
SWITCHES = tuple(f"{role}_{kind}" for role in ROLES for kind in ("voluntary", "involuntary"))


def roles_of(layer: str) -> tuple[str, ...]:
    """Those of `ROLES` that may serve the operations of a layer."""
    return ROLES if over_http(layer) else tuple(role for role in ROLES if role not in WEB_ROLES)


@dataclass(frozen=True)
class CpuPerOperation:
    """CPU time per operation by role, µs. `proxy` and `web` are 0 where no web server takes part."""

    client_user: float | None = None
    client_sys: float | None = None
    proxy: float | None = 0.0
    web: float | None = 0.0
    pooler: float | None = None
    server: float | None = None
    auxiliaries: float | None = None
    other: float | None = None
    unattributed: float | None = None

    @classmethod
    def from_json(cls, stored: Json) -> Self:
        return cls(**_picked(cls.__dataclass_fields__, {**_NO_WEB_SERVER, **stored}))

    @property
    def client(self) -> float | None:
        """User and system time of the clients; None unless both are known."""
        if self.client_user is None or self.client_sys is None:
            return None
        return self.client_user + self.client_sys

    def of(self, role: str) -> float | None:
        """The time of one of `ROLES`."""
        found: float | None = getattr(self, role)
        return found

    @property
    def is_direct(self) -> bool:
        """Is it known that no pooler worked?"""
        return self.pooler == 0


@dataclass(frozen=True)
class CpuShares:
    """Shares of the CPU time of all CPUs of a host. They sum to 1 where all are known."""

    clients: float | None = None
    proxy: float | None = None
    web: float | None = None
    pooler: float | None = None
    server: float | None = None
    auxiliaries: float | None = None
    other: float | None = None
    unattributed: float | None = None
    idle: float | None = None
    iowait: float | None = None
    steal: float | None = None

    @classmethod
    def from_json(cls, stored: Json | None) -> Self:
        return cls(**_picked(cls.__dataclass_fields__, {**_NO_WEB_SERVER, **stored} if stored else {}))

    def of(self, role: str) -> float | None:
        """The share of one of `ROLES`, which this record names in the plural where it is the
        clients.
        """
        found: float | None = getattr(self, "clients" if role == "client" else role)
        return found

    @property
    def not_working(self) -> float | None:
        """Idle and waiting for disks."""
        return None if self.idle is None or self.iowait is None else self.idle + self.iowait


@dataclass(frozen=True)
class RoleCpus:
    """How many CPUs each side may use; None is not known, or as many as the host has.

    `pooler_beside_server`: does the pooler of clients share the server's CPUs, and not theirs?
    `database`: those of pooler and PostgreSQL, where web servers have more; None where they do not.
    """

    clients: float | None = None
    server: float | None = None
    pooler: float | None = None
    pooler_beside_server: bool = False
    database: float | None = None

    @classmethod
    def from_json(cls, stored: Json) -> Self:
        beside = bool(stored.get("pooler_beside_server"))
        return cls(**_picked((*_SEATS, "database"), stored), pooler_beside_server=beside)

    def to_json(self) -> dict[str, Any]:
        """Without what holds for few variants only, where it does not."""
        found = asdict(self)
        return {name: value for name, value in found.items() if name in _SEATS or value}


@dataclass(frozen=True)
class ServerHost:
    """The account of the server's host where that is another than the load host."""

    cpus: int | None
    elapsed_s: float | None
    share: CpuShares

    @classmethod
    def from_json(cls, stored: Json) -> Self:
        return cls(stored.get("cpus"), stored.get("elapsed_s"), CpuShares.from_json(stored.get("share")))


@dataclass(frozen=True)
class CpuAccount:
    """A variant's CPU account on the load host.

    `runner` is the share of the process that measures and of the relay on the route, a part of
    `share.other`. `busiest` is the share of one CPU that the busiest process of a role kept busy.
    `mean_us_per_op` is the mean time of an operation in the windows, of which the CPU times and waits
    per operation are parts.
    """

    cpus: float | None
    elapsed_s: float | None
    source: str | None
    share: CpuShares
    runner: float | None
    role_cpus: RoleCpus | None
    wait_us_per_op: Known  # in run queues, by role
    switches_per_op: Known
    system_share: Known  # of a role's CPU time, by role
    busiest: Known
    short_lived_us_per_op: float | None
    server_host: ServerHost | None
    missing_grant: str = ""  # the GRANT that would show the server's sessions; "": none is missing
    web_workers: int | None = None  # processes of the web servers that serve requests
    throttled_us_per_op: Known = field(default_factory=lambda: _picked(ROLES, None))  # by CPU quotas, by role
    mean_us_per_op: float | None = None
    server_unknown: str = ""  # why the server's part of clients that reconnect is unknown; "": it is known
    clock_read_ns: float | None = None  # the cost of a clock read where that is slow
    load_hosts: tuple[LoadHostUse, ...] = ()  # each of those that made the load
    load_host_blocks: Mapping[str, int] = field(default_factory=dict)  # blocks by how many they were
    programs: tuple[Process, ...] = ()  # of others, the busiest ones of all blocks
    #: The most of the time of others that was on the CPUs of each side; empty: not known.
    others_by_side: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: Json | None) -> Self | None:
        """None where nothing was accounted."""
        if not stored:
            return None
        cpus, far = stored.get("role_cpus"), stored.get("server_host")
        return cls(
            cpus=stored.get("cpus"),
            elapsed_s=stored.get("elapsed_s"),
            source=stored.get("source"),
            share=CpuShares.from_json(stored.get("share")),
            runner=stored.get("runner"),
            role_cpus=RoleCpus.from_json(cpus) if cpus else None,
            wait_us_per_op=_picked(ROLES, stored.get("wait_us_per_op")),
            switches_per_op=_picked(SWITCHES, stored.get("switches_per_op")),
            system_share=_picked(ROLES, stored.get("system_share")),
            busiest=_picked(ROLES, stored.get("busiest")),
            short_lived_us_per_op=stored.get("short_lived_us_per_op"),
            server_host=ServerHost.from_json(far) if far else None,
            missing_grant=stored.get("missing_grant") or "",
            web_workers=stored.get("web_workers"),
            throttled_us_per_op=_picked(ROLES, stored.get("throttled_us_per_op")),
            mean_us_per_op=stored.get("mean_us_per_op"),
            server_unknown=stored.get("server_unknown") or "",
            clock_read_ns=stored.get("clock_read_ns"),
            load_hosts=tuple(LoadHostUse.from_json(each) for each in stored.get("load_hosts") or ()),
            load_host_blocks=stored.get("load_host_blocks") or {},
            programs=tuple(map(Process.from_json, stored.get("programs") or ())),
            others_by_side=stored.get("others_by_side") or {},
        )

    def to_json(self) -> dict[str, Any]:
        """Without `programs` and `others_by_side` where none is known."""
        programs = [{name: getattr(each, name) for name in _OF_PROGRAM} for each in self.programs]
        rare = {"programs": programs, "others_by_side": dict(self.others_by_side)}
        found = {name: part for name, part in asdict(self).items() if name not in rare}
        role_cpus = self.role_cpus.to_json() if self.role_cpus else None
        return {**found, "role_cpus": role_cpus, **{name: part for name, part in rare.items() if part}}


def _picked(names: Iterable[str], stored: Json | None) -> dict[str, Any]:
    """The values of these names; None for those that are not stored."""
    return {name: (stored or {}).get(name) for name in names}
