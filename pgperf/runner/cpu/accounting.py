"""CPU accounting of one slice: how much CPU time the client, server and pooler processes used.

The accounting is opened just before a slice and closed right after it. All other clients of the
run are idle meanwhile, so it reads only the processes of one variant, about ten microseconds each.
`process_cpu` accounts for all processes of the machine over a whole block. `cgroups` accounts for
server processes that start and end within a slice.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pgperf.runner.cpu import cgroups, schedstat
from pgperf.runner.cpu.cgroups import ServerCgroup
from pgperf.runner.cpu.host import Host, HostCounters, HostInterval
from pgperf.runner.cpu.schedstat import CpuTime, TicksAndSwitches, Times

ROLES = ("client", "server", "pooler", "web", "proxy")
_NOT_STORED = ("auxiliary_wait_ns", "auxiliary_busiest_ns", "pooler_busiest_ns")


@dataclass(frozen=True)
class VariantProcesses:
    """The pids that work for a variant, by role.

    None: not visible from here; empty: there are none.
    """

    client: Sequence[int] | None = None
    server: Sequence[int] | None = None
    pooler: Sequence[int] | None = None
    web: Sequence[int] | None = ()  # the servers that run the site, with all their processes
    proxy: Sequence[int] | None = ()  # what passes the requests on to them
    auxiliary: Sequence[int] | None = None  # PostgreSQL's own, which serve no connection
    relay: Sequence[int] = ()  # pgperf's delay relay; its CPU time counts as the runner's
    server_cgroup: ServerCgroup | None = None  # None: the server has no control group of its own
    backends_pass: bool = False  # backends begin and end in a slice: only the control group has all of them

    def of(self, role: str) -> Sequence[int] | None:
        found: Sequence[int] | None = getattr(self, role)
        return found

    def pids(self) -> set[int]:
        return {pid for role in (*ROLES, "auxiliary", "relay") for pid in self.of(role) or ()}


@dataclass(frozen=True, kw_only=True)
class SliceAccount:
    """The CPU time used during one slice, by role. Times in ns; None is unknown."""

    host: HostInterval
    runner_ns: int
    cpu_time: Mapping[str, CpuTime | None]
    ticks_and_switches: Mapping[str, TicksAndSwitches | None]
    short_lived_ns: int | None = (
        None  # included in the auxiliaries: processes that started and ended in the slice
    )
    throttled_ns: Mapping[str, int | None] = field(default_factory=dict)  # by role
    passing_ns: int = 0  # included in the server: backends that started or ended in the slice

    def fields(self) -> dict[str, int | None]:
        """The fields of a slice's record.

        To save space, all but the roles' run times are rounded to µs.
        """
        found: dict[str, int | None] = {
            "elapsed_ns": _rounded(self.host.elapsed_ns),
            "host_ns": _rounded(self.host.busy_ns),
            "iowait_ns": self.host.iowait_ns,
            "steal_ns": self.host.steal_ns,
            "runner_ns": _rounded(self.runner_ns),
        }
        for role, used in self.cpu_time.items():
            found[f"{role}_ns"] = used.run_ns if used else None
            found[f"{role}_wait_ns"] = _rounded(used.wait_ns) if used else None
            found[f"{role}_busiest_ns"] = used.busiest_ns if used else None
        return {name: ns for name, ns in found.items() if name not in _NOT_STORED}


class SliceAccounting:
    """Reads counters when it is made and again in `close`.

    The host's total is read closest to the slice. The time of backends that pass is what the
    server's control group used beyond its other processes; without a group it is unknown.
    """

    def __init__(self, host: Host, processes: VariantProcesses) -> None:
        self._machine, self._processes = host, processes
        self._other_sessions = self._read_other_sessions()
        self._counts = self._read_counts()
        self._throttled = self._read_throttled()
        self._times = self._read_times()
        self._kept = self._read_kept()
        self._relay = schedstat.read(processes.relay)
        self._runner_ns = time.process_time_ns()
        self._cgroup_ns = self._read_cgroup()
        self._host: HostCounters = host.read()

    def close(self) -> SliceAccount:
        host = self._machine.read()
        cgroup_ns = self._read_cgroup()
        runner_ns = time.process_time_ns()
        relay = schedstat.cpu_time_between(self._relay, schedstat.read(self._processes.relay))
        times = self._read_times()
        throttled = self._read_throttled()
        counts = self._read_counts()
        used = {role: _cpu_time(self._steady(role), self._times[role], times[role]) for role in times}
        short_lived_ns = None
        if self._processes.backends_pass:
            used["server"] = self._passing_backends(cgroup_ns, used["auxiliary"])
        else:
            others = cgroups.other_sessions_cpu_time(self._other_sessions, self._read_other_sessions())
            own = [used["server"], used["auxiliary"]]
            short_lived_ns = cgroups.short_lived_ns(self._cgroup_ns, cgroup_ns, own, others)
        kept = schedstat.cpu_time_between(self._kept, self._read_kept())
        passing = used["server"] if self._processes.backends_pass else None
        return SliceAccount(
            host=self._machine.between(self._host, host),
            runner_ns=runner_ns - self._runner_ns + (relay.run_ns if relay else 0),
            cpu_time={**used, "auxiliary": _increased(used["auxiliary"], short_lived_ns)},
            ticks_and_switches={
                role: schedstat.ticks_and_switches_between(self._counts[role], counts[role]) for role in ROLES
            },
            short_lived_ns=short_lived_ns,
            throttled_ns={role: _less(throttled[role], self._throttled[role]) for role in ROLES},
            passing_ns=max(0, passing.run_ns - (kept.run_ns if kept else 0)) if passing else 0,
        )

    def new_processes(self) -> bool:
        """Has the server processes that it did not have when the slice began?"""
        before, after = self._other_sessions, self._read_other_sessions()
        return before is not None and after is not None and not after.keys() <= before.keys()

    def lost_processes(self, account: SliceAccount) -> bool:
        """Has a process ended, so that the account lacks the CPU time of its role?"""
        unknown = (role for role, used in account.cpu_time.items() if used is None)
        return not all(schedstat.started(pid) for role in unknown for pid in self._steady(role) or ())

    def _passing_backends(self, cgroup_ns: int | None, auxiliary: CpuTime | None) -> CpuTime | None:
        if cgroup_ns is None or self._cgroup_ns is None:
            return None
        others = cgroups.of_those_before(self._other_sessions, self._read_other_sessions())
        return cgroups.passing_backends(cgroup_ns - self._cgroup_ns, auxiliary, others)

    def _read_counts(self) -> dict[str, TicksAndSwitches | None]:
        return {role: _ticks_and_switches(self._steady(role)) for role in ROLES}

    def _read_times(self) -> dict[str, Times | None]:
        return {role: schedstat.read(self._steady(role) or ()) for role in (*ROLES, "auxiliary")}

    def _read_kept(self) -> Times | None:
        """Of the server's connections that a pooler keeps where backends pass: they are known."""
        return schedstat.read(self._processes.server or ()) if self._processes.backends_pass else None

    def _read_throttled(self) -> dict[str, int | None]:
        """How long control groups of each role have been throttled so far, ns; None is not visible."""
        pids = {role: self._steady(role) for role in ROLES}
        groups = {role: cgroups.quota_groups(frozenset(found or ())) for role, found in pids.items()}
        return {role: None if pids[role] is None else cgroups.throttled_ns(groups[role]) for role in ROLES}

    def _steady(self, role: str) -> Sequence[int] | None:
        """The processes of a role that last for the whole slice."""
        passing = role == "server" and self._processes.backends_pass
        return None if passing else self._processes.of(role)

    def _read_cgroup(self) -> int | None:
        cgroup = self._processes.server_cgroup
        return cgroup.read_ns() if cgroup else None

    def _read_other_sessions(self) -> Times | None:
        cgroup = self._processes.server_cgroup
        return cgroup.other_sessions() if cgroup else None


class BlockTotals:
    """Ticks and switches of a variant's processes, summed over the slices of a block.

    A role is unknown from the first slice in which it was not visible. `short_lived_ns` is summed
    over the slices where it is known.
    """

    def __init__(self) -> None:
        self._counts: dict[str, TicksAndSwitches | None] = dict.fromkeys(ROLES, TicksAndSwitches.zero())
        self._throttled: dict[str, int | None] = dict.fromkeys(ROLES, 0)
        self.short_lived_ns = 0
        self.passing_ns = 0
        self.tools_ns = 0  # programs that a client started for one slice
        self._short_lived_known = True

    def add(self, account: SliceAccount) -> None:
        for role, counts in account.ticks_and_switches.items():
            before = self._counts[role]
            self._counts[role] = before.plus(counts) if before and counts else None
        for role, ns in account.throttled_ns.items():
            so_far = self._throttled[role]
            self._throttled[role] = None if so_far is None or ns is None else so_far + ns
        self.short_lived_ns += account.short_lived_ns or 0
        self.passing_ns += account.passing_ns
        self._short_lived_known = self._short_lived_known and account.short_lived_ns is not None

    def lack_a_slice(self) -> None:
        """The account of a slice is void: what all of them have together is unknown."""
        self._counts, self._throttled = dict.fromkeys(ROLES), dict.fromkeys(ROLES)
        self._short_lived_known = False

    @property
    def of_short_lived_ns(self) -> int:
        """The CPU time of all processes that came and went."""
        return self.short_lived_ns + self.passing_ns + self.tools_ns

    def to_json(self) -> dict[str, Any]:
        """For a block's CPU account; without `short_lived_ns` if one of the slices lacks it."""
        counts = {role: found._asdict() if found else None for role, found in self._counts.items()}
        short_lived = {"short_lived_ns": self.short_lived_ns} if self._short_lived_known else {}
        return {"ticks_and_switches": counts, "throttled_ns": dict(self._throttled), **short_lived}


def _rounded(ns: int | None) -> int | None:
    return None if ns is None else round(ns, -3)


def _less(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else max(0, after - before)


def _is_empty(processes: Sequence[int] | None) -> bool:
    return processes is not None and not processes


def _cpu_time(processes: Sequence[int] | None, before: Times | None, after: Times | None) -> CpuTime | None:
    """Zero where there are no processes: that is known. None where they are not visible."""
    return CpuTime.zero() if _is_empty(processes) else schedstat.cpu_time_between(before, after)


def _increased(used: CpuTime | None, ns: int | None) -> CpuTime | None:
    return replace(used, run_ns=used.run_ns + (ns or 0)) if used else None


def _ticks_and_switches(processes: Sequence[int] | None) -> TicksAndSwitches | None:
    if _is_empty(processes):
        return TicksAndSwitches.zero()
    return schedstat.ticks_and_switches(processes or ())
