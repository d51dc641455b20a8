"""All processes of a machine over a block: how much of its processors' time was whose.

Reading every process takes milliseconds, so a census is taken at the edges of a block. A process that ends in between
leaves its time with the process that reaped it, in clock ticks; what began and ended without either being there at an
edge is not seen.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import psutil

from pgperf.runner.cpu import schedstat
from pgperf.runner.cpu.host import Counters, Host
from pgperf.runner.cpu.schedstat import Life

Lives = Mapping[int, Life]


class Census:
    """Opened when made. `ours`: the processes whose time pages account for; this one is among them.

    `everybody` lists the processes that the host's account is of.
    """

    def __init__(
        self, host: Host, ours: Iterable[int], everybody: Callable[[], Iterable[int]] = psutil.pids
    ) -> None:
        self._machine, self._ours, self._everybody = host, {*ours, os.getpid()}, everybody
        self._look = self._looked()

    def close(self) -> dict[str, Any]:
        """`cpus`, `source`; ns of the stretch: `elapsed_ns`, `host_ns`, `ours_ns`, `others_ns`. None is unknown."""
        before, after = self._look, self._looked()
        stretches = [self._machine.between(*pair) for pair in zip(before.hosts, after.hosts, strict=True)]
        others = after.lives.keys() - self._ours
        return {
            "cpus": self._machine.cpus,
            "source": self._machine.source,
            "elapsed_ns": _mean(stretch.elapsed_ns for stretch in stretches),
            "host_ns": _mean(stretch.busy_ns for stretch in stretches),
            "ours_ns": _spent(before.lives, after.lives, self._ours),
            "others_ns": _spent(before.lives, after.lives, others)
            + _ended(before.lives, after.lives, self._ours),
        }

    def _looked(self) -> "_Look":
        first = self._machine.read()
        lives = {pid: life for pid in self._everybody() if (life := schedstat.life(pid))}
        return _Look(lives, (first, self._machine.read()))


class _Look(NamedTuple):
    """All processes, and the host before and after they were read: on the average at the same time."""

    lives: Lives
    hosts: tuple[Counters, Counters]


def _mean(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else round(sum(value or 0 for value in known) / len(known))


def _spent(before: Lives, after: Lives, whose: Iterable[int]) -> int:
    """What these processes spent in between; who began meanwhile spent all it has."""
    return sum(_since(before.get(pid), after[pid], "run_ns") for pid in whose if pid in after)


def _ended(before: Lives, after: Lives, ours: set[int]) -> int:
    """What processes spent in between that ended, and whose parents are not ours.

    Their parents have all of it; what those had before that were there before is taken off.
    """
    reaped = sum(_since(before.get(pid), life, "reaped_ns") for pid, life in after.items() if pid not in ours)
    gone = [
        life for pid, life in before.items() if not _same(life, after.get(pid)) and life.parent not in ours
    ]
    return max(0, reaped - sum(life.run_ns + life.reaped_ns for life in gone))


def _since(before: Life | None, after: Life, name: str) -> int:
    total = int(getattr(after, name))
    return max(0, total - int(getattr(before, name))) if before and _same(before, after) else total


def _same(before: Life, after: Life | None) -> bool:
    """Is it still that process, not a later one with its pid?"""
    return after is not None and before.born == after.born
