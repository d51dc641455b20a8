"""The processes that work for the variants of a block, and the CPU time of all in it."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from pgperf.core.layers import over_http
from pgperf.runner.client_group import ClientGroup, find_server_cgroup
from pgperf.runner.cpu import release
from pgperf.runner.cpu.cgroups import quota_groups
from pgperf.runner.cpu.clock import slow_read_ns
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.placement import CpuPlacement, Sides
from pgperf.runner.cpu.process_cpu import ProcessCpu
from pgperf.runner.load_hosts import HostedGroup, in_time
from pgperf.runner.run_context import RunContext


def find_processes(context: RunContext, groups: list[ClientGroup]) -> None:
    """Find the server, pooler and relay processes of the groups. Clients of web servers work
    meanwhile, also on load hosts.
    """
    working = next((group for group in groups if isinstance(group, HostedGroup)), groups[0])
    in_time(working, partial(context.find_servers, groups))
    find_server_cgroup(groups)
    for group in groups:
        group.relay_pid = context.relays.get(group.variant.route, group.relay_pid)
        group.look_again = False


def process_cpu_of(host: Host, groups: Iterable[ClientGroup]) -> ProcessCpu:
    """Begin the accounts of a block. CPU quotas may have changed since the last one."""
    quota_groups.cache_clear()
    return ProcessCpu(host, _pids(groups))


def _pids(groups: Iterable[ClientGroup]) -> set[int]:
    return {pid for group in groups for pid in group.pids()}


def close_process_cpu(process_cpu: ProcessCpu, groups: list[ClientGroup]) -> dict[str, Any]:
    """The CPU time of all processes in the block; short-lived processes of the server count as
    ours.
    """
    counted = process_cpu.close(_pids(groups))
    short_lived_ns = sum(group.totals.of_short_lived_ns for group in groups)
    clock = {"clock_read_ns": ns} if (ns := slow_read_ns()) else {}
    return {**counted, **clock, "ours_ns": counted["ours_ns"] + short_lived_ns}


def bound_sides(placed: CpuPlacement, groups: Iterable[ClientGroup]) -> dict[bool, Sides]:
    """The CPUs of each side, by whether clients request pages. None of either where a process of such
    a variant is not bound to them now: the system may not let the run pin each.
    """
    found: dict[bool, Sides] = {}
    for group in groups:
        over = over_http(group.variant.layer)
        sides = found.setdefault(over, placed.sides(over))
        if not _is_bound(group, sides):
            found[over] = Sides(None, None)
    return found


def _is_bound(group: ClientGroup, sides: Sides) -> bool:
    """Have the processes of all roles that are visible here only the CPUs of their side?"""
    found = group.processes()
    pooler, server = found.pooler or (), [*(found.proxy or ()), *(found.web or ()), *(found.server or ())]
    clients = [client.pid for client in group.clients]
    beside_server = group.pooler_beside_server or over_http(group.variant.layer)
    (server if beside_server else clients).extend(pooler)
    return _are_within(clients, sides.clients) and _are_within(server, sides.server)


def _are_within(pids: Sequence[int], cpus: frozenset[int] | None) -> bool:
    """Those that have ended run nowhere."""
    return not cpus or all(own is None or own <= cpus for own in map(release.cpus_of, pids))


def others_by_side(process_cpu: ProcessCpu, sides: Sides) -> dict[str, Any]:
    """Where roles are bound to CPUs: the most that others ran on those of each side until the account
    was closed, ns.
    """
    found = {side: process_cpu.others_on(cpus) for side, cpus in sides._asdict().items() if cpus}
    return {"others_by_side": found} if found and None not in found.values() else {}
