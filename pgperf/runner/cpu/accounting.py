"""The processor books: who used a machine's processors during a slice.

A page is opened just before a slice and closed right after it. The processes that work for the variant are known, and
all the others of the run stand by, so a page needs to look at few processes, some ten microseconds each. Who else was
there is for a census of the whole block (`process_cpu`). What came and went in between is auxiliaries where it
is known to be the server's (`cgroups`).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgperf.runner.cpu import cgroups, schedstat
from pgperf.runner.cpu.cgroups import ServerGroup
from pgperf.runner.cpu.host import Counters, Host, Stretch
from pgperf.runner.cpu.schedstat import Habits, Spent, Times

ROLES = ("client", "server", "pooler")
_NOT_KEPT = ("auxiliary_wait_ns", "auxiliary_busiest_ns", "pooler_busiest_ns")


@dataclass(frozen=True)
class Staff:
    """The processes that work for a variant. None: there are some that cannot be seen; nobody: there are none."""

    client: Sequence[int] | None = None
    server: Sequence[int] | None = None
    pooler: Sequence[int] | None = None
    auxiliary: Sequence[int] | None = None  # PostgreSQL's own, which serve no connection
    relay: Sequence[int] = ()  # ours, which makes the route longer: it counts with the process that measures
    server_group: ServerGroup | None = None  # if the server has one of its own

    def of(self, role: str) -> Sequence[int] | None:
        found: Sequence[int] | None = getattr(self, role)
        return found

    def everybody(self) -> set[int]:
        return {pid for role in (*ROLES, "auxiliary", "relay") for pid in self.of(role) or ()}


@dataclass(frozen=True)
class Entry:
    """What a page says. Times in ns; None is unknown."""

    host: Stretch
    runner_ns: int
    spent: Mapping[str, Spent | None]
    habits: Mapping[str, Habits | None]
    short_lived_ns: int | None = (
        None  # of the auxiliaries: those that came and went; None where that is not told
    )

    def fields(self) -> dict[str, int | None]:
        """The fields of a slice's record. All but what roles spent is rounded to µs: a digit takes room for ever."""
        found: dict[str, int | None] = {
            "elapsed_ns": _rounded(self.host.elapsed_ns),
            "host_ns": _rounded(self.host.busy_ns),
            "iowait_ns": self.host.iowait_ns,
            "steal_ns": self.host.steal_ns,
            "runner_ns": _rounded(self.runner_ns),
        }
        for role, spent in self.spent.items():
            found[f"{role}_ns"] = spent.run_ns if spent else None
            found[f"{role}_wait_ns"] = _rounded(spent.wait_ns) if spent else None
            found[f"{role}_busiest_ns"] = spent.busiest_ns if spent else None
        return {name: ns for name, ns in found.items() if name not in _NOT_KEPT}


class Page:
    """The books of one stretch: opened when made. What is closest to the stretch is read closest to it."""

    def __init__(self, host: Host, staff: Staff) -> None:
        self._machine, self._staff = host, staff
        self._guests = self._read_guests()
        self._habits = {role: _habits(staff.of(role)) for role in ROLES}
        self._times = self._read_times()
        self._relay = schedstat.read(staff.relay)
        self._runner_ns = time.process_time_ns()
        self._group_ns = self._read_group()
        self._host: Counters = host.read()

    def close(self) -> Entry:
        host = self._machine.read()
        group_ns = self._read_group()
        runner_ns = time.process_time_ns()
        relay = schedstat.spent(self._relay, schedstat.read(self._staff.relay))
        times = self._read_times()
        habits = {role: _habits(self._staff.of(role)) for role in ROLES}
        spent = {role: _spent(self._staff.of(role), self._times[role], times[role]) for role in times}
        guests = cgroups.guests_spent(self._guests, self._read_guests())
        ours = [spent["server"], spent["auxiliary"]]
        short_lived_ns = cgroups.short_lived_ns(self._group_ns, group_ns, ours, guests)
        return Entry(
            self._machine.between(self._host, host),
            runner_ns - self._runner_ns + (relay.run_ns if relay else 0),
            {**spent, "auxiliary": _more(spent["auxiliary"], short_lived_ns)},
            {role: schedstat.habits_between(self._habits[role], habits[role]) for role in ROLES},
            short_lived_ns,
        )

    def _read_times(self) -> dict[str, Times | None]:
        return {role: schedstat.read(self._staff.of(role) or ()) for role in (*ROLES, "auxiliary")}

    def _read_group(self) -> int | None:
        group = self._staff.server_group
        return group.busy() if group else None

    def _read_guests(self) -> Times | None:
        group = self._staff.server_group
        return group.guests() if group else None


class Tally:
    """Habits of a variant's processes, summed over its slices; unknown as soon as one slice did not see a role.

    `short_lived_ns`: of all slices that told what came and went.
    """

    def __init__(self) -> None:
        self._habits: dict[str, Habits | None] = dict.fromkeys(ROLES, Habits(0, 0, 0, 0))
        self.short_lived_ns = 0
        self._told = True

    def add(self, entry: Entry) -> None:
        for role, habits in entry.habits.items():
            before = self._habits[role]
            together = (
                None if before is None or habits is None else map(sum, zip(before, habits, strict=True))
            )
            self._habits[role] = Habits(*together) if together else None
        self.short_lived_ns += entry.short_lived_ns or 0
        self._told = self._told and entry.short_lived_ns is not None

    def to_json(self) -> dict[str, Any]:
        """For a block's books; without `short_lived_ns` if a slice did not tell."""
        habits = {role: habits._asdict() if habits else None for role, habits in self._habits.items()}
        return {
            "ticks_and_switches": habits,
            **({"short_lived_ns": self.short_lived_ns} if self._told else {}),
        }


def _rounded(ns: int | None) -> int | None:
    return None if ns is None else round(ns, -3)


def _spent(staff: Sequence[int] | None, before: Times | None, after: Times | None) -> Spent | None:
    """Nobody spends nothing, and that is known."""
    return Spent.nothing() if staff is not None and not staff else schedstat.spent(before, after)


def _more(spent: Spent | None, ns: int | None) -> Spent | None:
    return replace(spent, run_ns=spent.run_ns + (ns or 0)) if spent else None


def _habits(staff: Sequence[int] | None) -> Habits | None:
    return Habits(0, 0, 0, 0) if staff is not None and not staff else schedstat.habits(staff or ())
