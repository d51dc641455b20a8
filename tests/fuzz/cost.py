"""The bar for one input: CPU time and memory.

A neighbour on the same core slows a CPU down, so the bar is for the CPU time of a quiet machine. The
CPU time of an input that exceeds it is measured again, and the least is judged by how much slower a
reference loop is at that moment. Memory is never judged by the repetition alone: what the first
call freed may be used again.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MAX_CPU_S = 2.0
MAX_MB = 200.0
#: CPU time of `_reference` on a quiet machine, s.
REFERENCE_S = 0.04
#: However slow the machine is, an input that takes 12 s on a quiet one fails.
MAX_SLOWNESS = 4.0

_REPEATS = 3

_PROCESS = Path("/proc/self")


@dataclass
class Cost:
    """CPU time of this process, s; growth of its resident memory at the peak, MB."""

    cpu_s: float = 0.0
    mb: float = 0.0

    def most(self, other: "Cost") -> "Cost":
        return Cost(max(self.cpu_s, other.cpu_s), max(self.mb, other.mb))

    @property
    def is_slow(self) -> bool:
        return self.cpu_s > MAX_CPU_S

    def check(self) -> None:
        if self.is_slow:
            most_s = MAX_CPU_S * slowness()
            assert self.cpu_s <= most_s, f"{self.cpu_s:.2f} s of CPU time, of {most_s:.2f} s allowed now"
        assert self.mb <= MAX_MB, f"{self.mb:.0f} MB"


def slowness() -> float:
    """How many times longer than on a quiet machine a loop takes now; from 1 to MAX_SLOWNESS."""
    times = []
    for _ in range(5):
        before_s = time.process_time()
        _reference()
        times.append(time.process_time() - before_s)
    return min(MAX_SLOWNESS, max(1.0, statistics.median(times) / REFERENCE_S))


def _reference() -> None:
    seen: dict[str, int] = {}
    for number in range(100_000):
        seen[str(number)] = seen.get(str(number - 1), 0) + 1


def cost_of(action: Callable[[], object]) -> Cost:
    """What an action costs. One that takes too long is repeated, as a neighbour's burst may be over by
    then, and the least of its CPU times counts.
    """
    cost = _once(action)
    for _ in range(_REPEATS):
        if cost.is_slow:
            again = _once(action)
            cost = Cost(min(cost.cpu_s, again.cpu_s), max(cost.mb, again.mb))
    return cost


def _once(action: Callable[[], object]) -> Cost:
    with measured() as cost:
        action()
    return cost


@contextmanager
def measured() -> Iterator[Cost]:
    """The cost of the block, known at its end, also after an exception."""
    cost = Cost()
    (_PROCESS / "clear_refs").write_text("5")  # the peak begins anew
    before_mb, before_s = _peak_mb(), time.process_time()
    try:
        yield cost
    finally:
        cost.cpu_s, cost.mb = time.process_time() - before_s, _peak_mb() - before_mb


def _peak_mb() -> float:
    lines = (_PROCESS / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
