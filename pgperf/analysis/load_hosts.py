"""How busy each load host of a variant was: its clients' CPUs, its network, and what was stolen. Pure.

None is not known, never 0.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pgperf.analysis.known_sum import known_sum

CPU, NETWORK = "cpu", "network"
#: What is summed up over the slices of a block.
SUMS = ("elapsed_ns", "client_ns", "host_ns", "steal_ns", "network_bytes")
_BITS = 8
_MBIT = 1e6


@dataclass(frozen=True)
class LoadHostUse:
    """Shares of the CPUs that the clients of a load host may use (`clients`), of all CPUs of its
    machine (`busy`, `steal`) and of what its network could take (`network`).
    """

    name: str
    cpus: float
    clients: float | None = None
    busy: float | None = None
    steal: float | None = None
    network: float | None = None
    machine_cpus: float | None = None  # all of its machine; None in a run of an earlier version

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        known: dict[str, Any] = {name: stored.get(name) for name in cls.__dataclass_fields__}
        return cls(**known)

    def used(self, resource: str) -> float:
        """The share of its CPU or its network that is used; 0 where that is not known."""
        return (self.clients if resource == CPU else self.network) or 0.0


def load_hosts(blocks: Iterable[Sequence[Mapping[str, Any]] | None]) -> tuple[LoadHostUse, ...]:
    """Each load host over all blocks in which it took part."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for block in blocks:
        for host in block or ():
            by_name.setdefault(str(host["name"]), []).append(host)
    return tuple(_use(name, own) for name, own in by_name.items())


def blocks_by_number(parts: Iterable[tuple[int, int]]) -> dict[str, int]:
    """How many blocks had each number of load hosts. `parts`: a block, and how many hosts took part in
    it; a block of several cohorts counts once, with the fewest.
    """
    fewest: dict[int, int] = {}
    for block, hosts in parts:
        if hosts:
            fewest[block] = min(hosts, fewest.get(block, hosts))
    return {str(hosts): blocks for hosts, blocks in sorted(Counter(fewest.values()).items())}


def busiest(hosts: Iterable[LoadHostUse], resource: str) -> LoadHostUse | None:
    """The host that used most of its CPUs or its network; None where there is none."""
    return max(hosts, key=lambda host: host.used(resource), default=None)


def _use(name: str, blocks: Sequence[Mapping[str, Any]]) -> LoadHostUse:
    sums = {part: known_sum(block[part] for block in blocks) for part in SUMS}
    last = blocks[-1]
    elapsed_ns, speed = sums["elapsed_ns"] or 0, last.get("network_mbit")
    could = elapsed_ns / 1e9 * speed * _MBIT / _BITS if speed else 0.0
    return LoadHostUse(
        name,
        last["client_cpus"],
        clients=_share(sums["client_ns"], elapsed_ns * last["client_cpus"]),
        busy=_share(sums["host_ns"], elapsed_ns * last["cpus"]),
        steal=_share(sums["steal_ns"], elapsed_ns * last["cpus"]),
        network=_share(sums["network_bytes"], could),
        machine_cpus=last["cpus"],
    )


def _share(part: int | None, whole: float) -> float | None:
    return None if part is None or not whole else part / whole
