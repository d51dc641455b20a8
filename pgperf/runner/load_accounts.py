"""CPU accounts of variants whose clients are on load hosts: what each machine counted, put together.

Hosts may share a machine, with each other or with the owner of the run. Each machine counts once.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pgperf.analysis.known_sum import known_sum
from pgperf.analysis.load_hosts import SUMS
from pgperf.core.records import SliceRecord
from pgperf.runner.cpu.accounting import SliceAccount
from pgperf.runner.host_slices import HostSlice

Cpu = Mapping[str, int | None]

_OF_MACHINE = ("host_ns", "iowait_ns", "steal_ns")
_SERVER_ROLES = ("server", "auxiliaries", "pooler")
_SERVER_PARTS = ("elapsed_ns", "busy_ns", "iowait_ns", "steal_ns")


class HostBlock(NamedTuple):
    """The totals of a block on one load host: of all processes, and by the place of a variant those of
    its clients, with the number of CPUs that they may use.
    """

    counted: Mapping[str, Any]
    totals: Mapping[int, Mapping[str, Any]]


class CountingHost(NamedTuple):
    """A load host, its machine, what its network could take (Mbit/s), and its totals of a block."""

    name: str
    machine: str
    network_mbit: int | None
    block: HostBlock


# Slices


def cpu_together(
    record: SliceRecord, slices: Sequence[HostSlice], machines: Sequence[str], own_machine: str
) -> dict[str, Any]:
    """The fields of a slice: CPU time of all clients, and that of the load hosts' machines.

    `record` has what the owner saw of its own machine.
    """
    here = own_machine in machines
    others = {machine: each.cpu for machine, each in zip(machines, slices, strict=True)}
    others.pop(own_machine, None)
    runners = [record.runner_ns if here else 0, *(each.cpu["runner_ns"] for each in slices)]
    return {
        **{name: _of_machines(record, others.values(), name, here) for name in _OF_MACHINE},
        "elapsed_ns": record.elapsed_ns if here else _mean(each.cpu["elapsed_ns"] for each in slices),
        "runner_ns": known_sum(runners),
        "client_ns": known_sum(each.cpu["client_ns"] for each in slices),
        "client_wait_ns": known_sum(each.cpu["client_wait_ns"] for each in slices),
        "client_busiest_ns": _most(each.cpu["client_busiest_ns"] for each in slices),
    }


def _of_machines(record: SliceRecord, others: Iterable[Cpu], name: str, here: bool) -> int | None:
    return known_sum([getattr(record, name) if here else 0, *(cpu[name] for cpu in others)])


def server_slice(account: SliceAccount | None, record: SliceRecord) -> dict[str, int] | None:
    """What the server's host did in a slice, where that is the owner's and no load host is there."""
    if account is None:
        return None
    fields = account.fields()
    found = {
        "elapsed_ns": fields["elapsed_ns"],
        "busy_ns": fields["host_ns"],
        "iowait_ns": fields["iowait_ns"],
        "steal_ns": fields["steal_ns"],
        "server": record.server_ns,
        "auxiliaries": record.auxiliary_ns,
        "pooler": record.pooler_ns,
    }
    known = {name: ns for name, ns in found.items() if ns is not None}
    return known if len(known) == len(found) else None


# Blocks


def server_account(slices: Iterable[Mapping[str, int] | None], cpus: int) -> dict[str, Any]:
    """The account of the server's host over a block, as an agent gives it; {} where there is none."""
    known = [each for each in slices if each is not None]
    if not known:
        return {}
    return {
        "cpus": cpus,
        "roles": {role: sum(each[role] for each in known) for role in _SERVER_ROLES},
        **{name: sum(each[name] for each in known) for name in _SERVER_PARTS},
    }


def variant_account(
    at: int,
    totals: Mapping[str, Any],
    hosts: Sequence[CountingHost],
    own_machine: str,
    own: Mapping[str, Any],
) -> dict[str, Any]:
    """A block's account of the variant at that place in its cohort: what the hosts that have clients
    of it counted. `totals` is what the owner counted of its processes, `own` of all its machine's.
    """
    mine = [host for host in hosts if at in host.block.totals]
    client_cpus = {host.machine: host.block.totals[at]["client_cpus"] for host in mine}
    there = [host for host in hosts if host.machine in client_cpus]  # also those that stand by
    return {
        **_of_all_processes(there, own_machine, own),
        **_with_clients(totals, [host.block.totals[at] for host in mine]),
        "role_cpus": {"clients": sum(client_cpus.values()), "server": own["role_cpus"]["server"]},
        "own_cpus": own["cpus"],
        "load_hosts": [_described(host, at) for host in mine],
    }


def owner_account(
    totals: Mapping[str, Any], hosts: Iterable[CountingHost], own_machine: str, own: Mapping[str, Any]
) -> dict[str, Any]:
    """The same of a variant whose clients are the owner's: load hosts may be on its machine."""
    here = [host.block.counted for host in hosts if host.machine == own_machine]
    return {**_machine(here, own), **totals}


def _with_clients(totals: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The variant's totals with those of its clients."""
    switches = _added(part["ticks_and_switches"]["client"] for part in parts)
    throttled = known_sum(part["throttled_ns"]["client"] for part in parts)
    return {
        **totals,
        "ticks_and_switches": {**totals["ticks_and_switches"], "client": switches},
        "throttled_ns": {**totals["throttled_ns"], "client": throttled},
    }


def _described(host: CountingHost, at: int) -> dict[str, Any]:
    return {
        "name": host.name,
        "cpus": host.block.counted["cpus"],
        "client_cpus": host.block.totals[at]["client_cpus"],
        "network_mbit": host.network_mbit,
    }


def _of_all_processes(
    hosts: Sequence[CountingHost], own_machine: str, own: Mapping[str, Any]
) -> dict[str, Any]:
    """The processes of all machines that take part."""
    by_machine: dict[str, list[Mapping[str, Any]]] = {}
    for host in hosts:
        by_machine.setdefault(host.machine, []).append(host.block.counted)
    machines = [
        _machine(counted, own if machine == own_machine else None) for machine, counted in by_machine.items()
    ]
    return {
        "cpus": sum(each["cpus"] for each in machines),
        "source": machines[0]["source"],
        "elapsed_ns": _mean(each["elapsed_ns"] for each in machines),
        **{name: known_sum(each[name] for each in machines) for name in ("host_ns", "ours_ns", "others_ns")},
    }


def _machine(hosts: Sequence[Mapping[str, Any]], own: Mapping[str, Any] | None) -> dict[str, Any]:
    """One machine. Each host on it, and the owner, counts the clients of the others among other
    programs.
    """
    first = own or hosts[0]
    also_ours = sum(each["ours_ns"] for each in hosts if each is not first)
    others_ns = max(0, first["others_ns"] - also_ours)
    return {**first, "ours_ns": first["ours_ns"] + also_ours, "others_ns": others_ns}


def by_host(counted: Mapping[str, Any], slices: Sequence[Sequence[Cpu]]) -> dict[str, Any]:
    """What each load host counted in the slices of a block; {} without load hosts."""
    found = [
        {**host, **{name: known_sum(each[at][name] for each in slices if at < len(each)) for name in SUMS}}
        for at, host in enumerate(counted.get("load_hosts", ()))
    ]
    return {"load_hosts": found} if found else {}


def _added(counts: Iterable[Mapping[str, int] | None]) -> dict[str, int] | None:
    known = list(counts)
    if not known or None in known:
        return None
    return {name: sum((each or {})[name] for each in known) for name in known[0] or {}}


def _mean(values: Iterable[int | None]) -> int | None:
    known = [ns for ns in values if ns is not None]
    return round(sum(known) / len(known)) if known else None


def _most(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else max((ns or 0 for ns in known), default=None)
