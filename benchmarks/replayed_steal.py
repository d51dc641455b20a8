"""Readings of a host whose hypervisor steals a share of its CPU time, replayed on this host.

    with replayed_steal(0.12):
        ...  # pgperf reads 12 % more steal in /proc/stat than there is

No time is stolen: only the readings change. Stolen time comes out of idle time, as far as there is
any.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from pgperf.runner.cpu import host, top

_PATH = "/proc/stat"
_IDLE, _STEAL = 3, 7
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class StolenShare:
    """Adds to each reading what has been stolen since it was made."""

    def __init__(self, share: float, cpus: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = share * cpus * _TICKS_PER_S
        self._clock, self._begin = clock, clock()
        self._idle = 0

    def of(self, ticks: Sequence[int]) -> list[int]:
        """The counters of the first line of /proc/stat. None of them ever decreases."""
        stolen = int(self._rate * (self._clock() - self._begin))
        self._idle = max(self._idle or ticks[_IDLE] - stolen, ticks[_IDLE] - stolen)
        changed = list(ticks)
        changed[_IDLE], changed[_STEAL] = self._idle, ticks[_STEAL] + stolen
        return changed

    def text(self, real: str) -> str:
        """The whole file."""
        first, _, rest = real.partition("\n")
        name, *ticks = first.split()
        return f"{name}  {' '.join(map(str, self.of([int(each) for each in ticks])))}\n{rest}"


@contextmanager
def replayed_steal(share: float) -> Iterator[None]:
    """The host's account and the diagnostic slices read the same replay."""
    stolen = StolenShare(share, os.cpu_count() or 1)
    with ExitStack() as patches:
        patches.enter_context(patch.object(host, "read_text", _reading(stolen, host.read_text)))
        patches.enter_context(patch.object(top, "host_ticks", _ticks(stolen, top.host_ticks)))
        yield


def _reading(stolen: StolenShare, read_text: Callable[..., str]) -> Callable[..., str]:
    def changed(path: str, *more: int) -> str:
        found = read_text(path, *more)
        return stolen.text(found) if path == _PATH else found

    return changed


def _ticks(
    stolen: StolenShare, host_ticks: Callable[..., tuple[int, ...] | None]
) -> Callable[..., tuple[int, ...] | None]:
    def changed(proc: Path = Path("/proc")) -> tuple[int, ...] | None:
        found = host_ticks(proc)
        return tuple(stolen.of(found)) if found else None

    return changed
