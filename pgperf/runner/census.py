"""All processes of a machine over a block: how much of its processors' time was whose.

Reading every process takes milliseconds, so a census is taken at the edges of a block. A process that ends in between
leaves its time with the process that reaped it, in clock ticks; what began and ended without either being there at an
edge is not seen.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import psutil

from pgperf.runner import cpu
from pgperf.runner.cpu import Life
from pgperf.runner.host import Host

Lives = Mapping[int, Life]


class Census:
    """Opened when made. `ours`: the processes whose time pages account for; this one is among them.

    `everybody` lists the processes that the host's account is of.
    """

    def __init__(
        self, host: Host, ours: Iterable[int], everybody: Callable[[], Iterable[int]] = psutil.pids
    ) -> None:
        self._machine, self._ours, self._everybody = host, {*ours, os.getpid()}, everybody
        self._lives = self._read()
        self._host = host.read()

    def close(self) -> dict[str, Any]:
        """`cpus`, `source`; ns of the stretch: `elapsed_ns`, `host_ns`, `ours_ns`, `others_ns`. None is unknown."""
        stretch = self._machine.between(self._host, self._machine.read())
        lives = self._read()
        return {
            "cpus": self._machine.cpus,
            "source": self._machine.source,
            "elapsed_ns": stretch.elapsed_ns,
            "host_ns": stretch.busy_ns,
            "ours_ns": _spent(self._lives, lives, self._ours),
            "others_ns": _spent(self._lives, lives, lives.keys() - self._ours)
            + _ended(self._lives, lives, self._ours),
        }

    def _read(self) -> Lives:
        return {pid: life for pid in self._everybody() if (life := cpu.life(pid))}


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
