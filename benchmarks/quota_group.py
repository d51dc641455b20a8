"""A control group with a CPU quota, for the processes of one role.

    with quota_group("name") as group:
        group.allow(0.25)  # of one CPU
        group.enter(pids)
        group.throttled()  # how often, and for how long

cgroup v1 with the controller `cpu`, or v2 where the groups below this process's own have it. Only
root may make one, or the owner of a delegated group.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pgperf.core.exceptions import PgperfError
from pgperf.runner.cpu import cgroups

#: The kernel allows a quota of a millisecond or more, and a period of a second at most.
_LEAST_US, _PERIOD_US, _LONGEST_US = 1000, 10_000, 1_000_000


class NoQuota(PgperfError):
    """No control group with a CPU quota can be made here."""


class Throttled(NamedTuple):
    """In how many periods a group was throttled, and for how long."""

    periods: int
    seconds: float

    def since(self, before: "Throttled") -> "Throttled":
        return Throttled(self.periods - before.periods, self.seconds - before.seconds)


@dataclass(frozen=True)
class QuotaGroup:
    directory: Path

    def allow(self, cpus: float | None) -> None:
        """Set the quota; None lifts it."""
        quota_us, period_us = times_us(cpus) if cpus else (None, _PERIOD_US)
        if (self.directory / "cpu.max").exists():
            self._write("cpu.max", f"{quota_us or 'max'} {period_us}")
            return
        self._write("cpu.cfs_quota_us", -1)
        self._write("cpu.cfs_period_us", period_us)
        self._write("cpu.cfs_quota_us", quota_us or -1)

    def enter(self, pids: Iterable[int]) -> None:
        """Move processes into the group; one that has ended stays out."""
        for pid in pids:
            with suppress(ProcessLookupError):
                self._write("cgroup.procs", pid)

    def throttled(self) -> Throttled:
        return throttled_of((self.directory / "cpu.stat").read_text())

    def remove(self) -> None:
        """Move what is still in it to the group above."""
        for pid in cgroups.members(self.directory):
            with suppress(OSError):
                (self.directory.parent / "cgroup.procs").write_text(str(pid))
        with suppress(OSError):
            self.directory.rmdir()

    def _write(self, name: str, value: object) -> None:
        (self.directory / name).write_text(str(value))


@contextmanager
def quota_group(name: str) -> Iterator[QuotaGroup]:
    """Raises NoQuota with the reason."""
    group = QuotaGroup(_made(f"{name}-{os.getpid()}"))
    try:
        yield group
    finally:
        group.remove()


def times_us(cpus: float) -> tuple[int, int]:
    """Quota and period: the usual period, or a longer one where the quota would be too short."""
    period_us = min(_LONGEST_US, max(_PERIOD_US, round(_LEAST_US / cpus)))
    return max(_LEAST_US, round(cpus * period_us)), period_us


def throttled_of(cpu_stat: str) -> Throttled:
    """From a cpu.stat file: `throttled_time` is in ns (v1), `throttled_usec` in µs (v2)."""
    counters = dict(line.split() for line in cpu_stat.splitlines())
    microseconds = int(counters.get("throttled_usec", 0))
    ns = int(counters.get("throttled_time", 1000 * microseconds))
    return Throttled(int(counters.get("nr_throttled", 0)), ns / 1e9)


def _made(name: str) -> Path:
    why = "no control groups are mounted"
    for parent in cgroups.groups_of(os.getpid(), controller="cpu"):
        directory = parent / name
        try:
            directory.mkdir()
        except OSError as error:
            why = f"{directory}: {error.strerror}"
            continue
        if any((directory / file).exists() for file in ("cpu.cfs_quota_us", "cpu.max")):
            return directory
        directory.rmdir()
        why = f"groups below {parent} have no controller `cpu`"
    raise NoQuota(why)
