"""The bar for one input: CPU time, which other processes on the machine do not change, and memory."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MAX_CPU_S = 2.0
MAX_MB = 200.0

_PROCESS = Path("/proc/self")


@dataclass
class Cost:
    """CPU time of this process and its finished children, s; growth of resident memory at the
    peak, MB.
    """

    cpu_s: float = 0.0
    mb: float = 0.0

    def check(self) -> None:
        assert self.cpu_s <= MAX_CPU_S, f"{self.cpu_s:.2f} s of CPU time"
        assert self.mb <= MAX_MB, f"{self.mb:.0f} MB"


@contextmanager
def measured() -> Iterator[Cost]:
    """The cost of the block, known at its end, also after an exception."""
    cost = Cost()
    gc.collect()
    (_PROCESS / "clear_refs").write_text("5")  # the peak begins anew
    before_mb, before_s = _peak_mb(), _cpu_s()
    try:
        yield cost
    finally:
        cost.cpu_s, cost.mb = _cpu_s() - before_s, _peak_mb() - before_mb


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _peak_mb() -> float:
    lines = (_PROCESS / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
