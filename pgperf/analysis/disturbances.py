"""The time that others took from a variant's operations, and the grade that follows. Pure.

The hypervisor takes a CPU away (steal), or other processes use a CPU that the variant's processes
wait for (run queue). Both lengthen an operation and say nothing about it. Each disturbance is an
upper bound: the most that it can have added to one operation.

A CPU quota throttles a role. That lengthens an operation too, but the quota belongs to the role, so
it never takes a verdict away.

A clock whose reads take long lengthens each operation by one read, which is known, so it takes no
verdict away either.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from pgperf.analysis.cpu_account import ROLES, Known
from pgperf.analysis.grade import Disturbance, Grade, GradeWord, Source
from pgperf.analysis.hosts import Crowd, HostRoles
from pgperf.analysis.load_hosts import LoadHostUse
from pgperf.analysis.time_breakdown import TimeBreakdown
from pgperf.analysis.top import Process, Top

#: Fewer CPUs that other processes use on a whole host are the background of any.
OTHER_CPUS = 0.10
#: From these shares of the response time on, the grade is fair, or poor.
FAIR, POOR = 0.02, 0.15
#: Programs that are named behind a disturbance: those above this share of one CPU, at most so many.
_LEAST_PERCENT, _MOST_PROGRAMS = 5.0, 3


def waits_for_others(
    hosts: Iterable[HostRoles], time: TimeBreakdown, throttled: Known = MappingProxyType({})
) -> dict[str, float]:
    """The most that each role's processes waited in run queues for other processes, µs per operation.

    A process waits for others no longer than they work: `others` CPUs for the response time, and only
    those that it may use itself, where that is known. Where `others` is not known, they may have been
    all that it waited for. The kernel counts the time in which a quota stops a process as time in run
    queues, so `throttled`, as in `disturbances`, is left out.
    """
    waits = dict.fromkeys(ROLES, 0.0)
    for host in hosts:
        queued = {role: _queued(role, time, throttled) for role in host.roles}
        for crowd in (*host.crowds, Crowd(host.roles, _above_background(host.others))):
            queued |= _bounded({role: queued[role] for role in crowd.roles}, crowd.others, time.response)
        waits |= queued
    return waits


def _bounded(queued: dict[str, float], others: float | None, response: float | None) -> dict[str, float]:
    """These waits of roles, together no longer than so many CPUs of others worked."""
    whole = sum(queued.values())
    most = _most_wait(others, response, whole)
    return {role: us * most / whole for role, us in queued.items()} if whole else queued


def disturbances(
    hosts: Iterable[HostRoles],
    time: TimeBreakdown,
    waits: Mapping[str, float],
    top: Top | None,
    throttled: Known = MappingProxyType({}),
    clock_read_ns: float | None = None,
    load_hosts: Sequence[LoadHostUse] = (),
    programs: Sequence[Process] = (),
) -> tuple[Disturbance, ...]:
    """Those of all hosts, the largest first; none where the response time is not known. Of several
    load hosts, the hypervisor of each. `top` and the `programs` of all blocks are of the owner's host,
    so they name no program of load hosts.

    `throttled`: how long CPU quotas kept each role from working while an operation waited, µs.
    `clock_read_ns`: the cost of a clock read where that is slow.
    """
    if not time.response:
        return ()
    queued = {role: _queued(role, time, throttled) for role in ROLES}
    seen = () if load_hosts else _busiest(top, programs)
    found = [each for host in hosts for each in _of_host(host, time.response, queued, waits, seen)]
    if len(load_hosts) > 1:
        found = [each for each in found if (each.source, each.where) != (Source.STEAL, "host")]
        found += _stolen(load_hosts, time.response)
    found += [*_throttling(throttled, time.response), *_clock(clock_read_ns, time.response)]
    return tuple(sorted(found, key=lambda each: -(each.us or 0.0)))


def grade(hosts: Iterable[HostRoles], time: TimeBreakdown, found: tuple[Disturbance, ...]) -> Grade:
    """Unknown where steal or the clients' run queue is not known, unless the rest is already poor."""
    if not time.response:
        return Grade()
    share = min(1.0, sum(each.us or 0.0 for each in found) / time.response)
    complete = time.queue["client"] is not None and all(host.steal is not None for host in hosts)
    if not complete and share < POOR:
        return Grade(GradeWord.UNKNOWN, None, found)
    word = GradeWord.POOR if share >= POOR else GradeWord.FAIR if share >= FAIR else GradeWord.GOOD
    return Grade(word, share, found)


def _queued(role: str, time: TimeBreakdown, throttled: Known) -> float:
    """The time in the run queue without that for which a quota stopped the role, µs."""
    return max(0.0, (time.queue[role] or 0.0) - (throttled.get(role) or 0.0))


def _of_host(
    host: HostRoles,
    response: float,
    queued: Mapping[str, float],
    waits: Mapping[str, float],
    programs: tuple[str, ...],
) -> Iterator[Disturbance]:
    if host.steal and host.cpus and host.roles:
        us = min(1.0, host.steal * host.cpus) * response
        yield Disturbance(Source.STEAL, host.title, us, host.steal)
    waited = sum(waits[role] for role in host.roles)
    if waited:
        share = min(1.0, sum(queued[role] for role in host.roles) / response)
        seen = programs if host.title == "host" else ()
        yield Disturbance(Source.RUN_QUEUE, host.title, waited, share, host.other_cpus, seen)


def _stolen(load_hosts: Sequence[LoadHostUse], response: float) -> Iterator[Disturbance]:
    """Each load host has its part of the clients, whose operations it can have lengthened."""
    for host in load_hosts:
        if host.steal:
            us = min(1.0, host.steal * (host.machine_cpus or host.cpus)) * response / len(load_hosts)
            yield Disturbance(Source.STEAL, f"load host {host.name}", us, host.steal)


def _throttling(throttled: Known, response: float) -> Iterator[Disturbance]:
    """Of the role that was throttled most: roles may share a control group, and so its time."""
    known = {role: us for role, us in throttled.items() if us}
    if known:
        role = max(known, key=lambda each: known[each])
        us = min(known[role], response)
        yield Disturbance(Source.THROTTLING, role, us, us / response)


def _clock(read_ns: float | None, response: float) -> Iterator[Disturbance]:
    if read_ns:
        us = min(read_ns / 1000, response)
        yield Disturbance(Source.CLOCK, "host", us, us / response)


def _most_wait(others: float | None, response: float | None, queued: float) -> float:
    if others is None:
        return queued
    return min(queued, min(1.0, others) * (response or 0.0))


def _above_background(others: float | None) -> float | None:
    return 0.0 if others is not None and others < OTHER_CPUS else others


def _busiest(top: Top | None, programs: Sequence[Process]) -> tuple[str, ...]:
    """The busiest other programs of all blocks, and those of the diagnostic slice and of the disturbed
    one that it replaced. A run may end before it has a diagnostic slice.
    """
    seen = (*programs, *top.processes, *top.disturbed_by) if top else programs
    others = [each for each in seen if each.role == "other" and each.name]
    busy = [each for each in others if (each.cpu_percent or 0.0) >= _LEAST_PERCENT]
    busiest = sorted(busy, key=lambda each: -(each.cpu_percent or 0.0))
    return tuple(dict.fromkeys(map(_title, busiest)))[:_MOST_PROGRAMS]


def _title(process: Process) -> str:
    """Its name, and what finds it on the machine."""
    known = {"pid": process.pid, "user": process.user}
    told = ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)
    return f"{process.name} ({told})" if told else str(process.name)
