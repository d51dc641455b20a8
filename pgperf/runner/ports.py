"""The TCP ports that clients use up when they reconnect, compared with those that this machine has.

The side that closes a connection first keeps its port in TIME_WAIT for 60 s, and that is the client.
Where the kernel may reuse such ports (tcp_tw_reuse, with timestamps), it does so after 1 s. A client
that finds no free port fails, and its error has the same remedies.
"""

import ipaddress
import math
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pgperf.core.connection_errors import PORT_REMEDIES
from pgperf.core.exceptions import PreflightRefused
from pgperf.core.records import Cohort, Plan, Route, Variant
from pgperf.runner import run_time
from pgperf.runner.authentication import LoginConditions

_TIME_WAIT_S, _REUSE_S = 60.0, 1.0
#: How many clients of each variant are on a machine.
Clients = Mapping[Variant, int]
#: Values of net.ipv4.tcp_tw_reuse.
_EVERYWHERE, _ON_LOOPBACK = 1, 2
#: CPU time of a client for a login by SCRAM with 4,096 iterations.
_SCRAM_S = 0.005
#: The least time for a connection without a password and SELECT 1, by route; and how many a second
#: the one process can start that has a part in all of them, the postmaster or PgBouncer.
_DIRECT_S, _DIRECT_PER_S = 0.0015, 3_000
_POOLED_S, _POOLED_PER_S = 0.0001, 10_000
#: A prediction above this share of the ports is worth a note.
_NOTABLE = 0.5


@dataclass(frozen=True)
class LocalPorts:
    """The ports of this machine for outgoing connections, and the rules for TIME_WAIT."""

    ports: int
    time_wait: int  # sockets that wait now
    tw_reuse: int
    timestamps: bool

    @classmethod
    def read(cls, proc: Path = Path("/proc")) -> Self | None:
        """Those of this network namespace; None if the system does not tell."""
        try:
            names = ("ip_local_port_range", "tcp_tw_reuse", "tcp_timestamps")
            settings = [(proc / "sys/net/ipv4" / name).read_text().split() for name in names]
            (low, high), (reuse,), (timestamps,) = [[int(word) for word in words] for words in settings]
            return cls(high - low + 1, _waiting(proc), reuse, bool(timestamps))
        except (OSError, ValueError):
            return None

    @property
    def free(self) -> int:
        return max(0, self.ports - self.time_wait)

    def hold_s(self, host: str) -> float:
        """How long a connection to this host keeps its port after it was closed."""
        reusable = self.tw_reuse == _EVERYWHERE or (self.tw_reuse == _ON_LOOPBACK and _is_loopback(host))
        return _REUSE_S if reusable and self.timestamps else _TIME_WAIT_S


@dataclass(frozen=True)
class PortNeed:
    """The ports that the connections to one address keep at the same time, at most."""

    address: str
    predicted: int
    hold_s: float


def needs(
    plan: Plan,
    routes: Mapping[str, Route],
    logins: Mapping[str, LoginConditions],
    local: LocalPorts,
    here: Clients | None = None,
) -> list[PortNeed]:
    """The need for each TCP address to which clients reconnect. The ports of two addresses do not
    add up. `here`: the clients of this machine; those of the run's own worker by default.
    """
    addresses: dict[tuple[str, int], list[Variant]] = {}
    own = _own(plan) if here is None else here
    for variant in own:
        route = routes[variant.route]
        if uses_ports(variant, route):
            addresses.setdefault((route.host, route.port), []).append(variant)
    prediction = _Prediction(plan, routes, logins, own)
    held = {address: local.hold_s(address[0]) for address in addresses}
    return [
        PortNeed(f"{host}:{port}", prediction.ports(variants, held[host, port]), held[host, port])
        for (host, port), variants in addresses.items()
    ]


def uses_ports(variant: Variant, route: Route) -> bool:
    return variant.reconnects and not route.host.startswith("/")


def _own(plan: Plan) -> Clients:
    return {variant: variant.clients for variant in plan.variants if not variant.hosts}


def check(
    plan: Plan,
    routes: Mapping[str, Route],
    logins: Mapping[str, LoginConditions],
    local: LocalPorts | None,
    here: Clients | None = None,
) -> dict[str, Any]:
    """The facts for the run's environment; empty if no client reconnects over TCP.

    Raises PreflightRefused with the numbers and the remedies if the ports would not last.
    """
    found = needs(plan, routes, logins, local, here) if local else []
    if not found or not local:
        return {}
    worst = max(found, key=lambda need: need.predicted)
    if worst.predicted > local.free:
        raise PreflightRefused(f"ports: {_numbers(worst, local)}; {PORT_REMEDIES}")
    facts = {**asdict(local), **asdict(worst)}
    note = f"{_numbers(worst, local)}: more than half"
    return {**facts, "note": note} if worst.predicted > _NOTABLE * local.free else facts


def _numbers(need: PortNeed, local: LocalPorts) -> str:
    return (
        f"connections to {need.address} would keep up to {need.predicted:,} ports for {need.hold_s:g} s each, "
        f"{local.free:,} are free ({local.ports:,} less {local.time_wait:,} in TIME_WAIT; "
        f"tcp_tw_reuse {local.tw_reuse})"
    )


@dataclass(frozen=True)
class _Prediction:
    """The connections that a plan makes, at most, as fast as its clients could be alone."""

    plan: Plan
    routes: Mapping[str, Route]
    logins: Mapping[str, LoginConditions]
    here: Clients

    def ports(self, variants: Collection[Variant], hold_s: float) -> int:
        """The connections of these variants that keep their ports at the same time."""
        return round(max(self._of_cohort(cohort, variants, hold_s) for cohort in self.plan.cohorts))

    def _of_cohort(self, cohort: Cohort, variants: Collection[Variant], hold_s: float) -> float:
        """The variants of a cohort take turns: within `hold_s` each works for its share of the rounds,
        or one of them all the time, and for no longer than its slices of the run.
        """
        definition = self.plan.definition
        slices_s = run_time.predicted_slice_s(definition, cohort)
        round_s, rounds = sum(slices_s.values()), definition.most_blocks * definition.rounds
        most, fastest = 0.0, 0.0
        for variant, slice_s in slices_s.items():
            if variant in variants:
                works_s = min(max(min(slice_s, hold_s), hold_s * slice_s / round_s), rounds * slice_s)
                most += self._per_s(variant) * works_s
                fastest = max(fastest, self._per_s(variant))
        return min(most, fastest * hold_s)

    def _per_s(self, variant: Variant) -> float:
        """Of the clients that are here, who have their share of what the server can start."""
        route, login = self.routes[variant.route], self.logins.get(variant.route)
        scram = login and login.scram_iterations
        here = self.here[variant]
        clients = here * variant.workers
        least_s, most_per_s = (_POOLED_S, _POOLED_PER_S) if route.pooler else (_DIRECT_S, _DIRECT_PER_S)
        by_cpu = min(clients, len(os.sched_getaffinity(0))) / _SCRAM_S if scram else math.inf
        return min(clients / least_s, most_per_s * here / variant.clients, by_cpu)


def _waiting(proc: Path) -> int:
    for line in (proc / "net/sockstat").read_text().splitlines():
        name, *words = line.split()
        if name == "TCP:":
            return int(words[words.index("tw") + 1])
    return 0


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
