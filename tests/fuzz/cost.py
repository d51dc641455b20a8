"""The bar for one input: CPU time, which other processes on the machine do not change, and memory."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MAX_CPU_S = 2.0
MAX_MB = 200.0

_PROCESS = Path("/proc/self")


@dataclass
class Cost:
    """CPU time of this process, s; growth of its resident memory at the peak, MB."""

    cpu_s: float = 0.0
    mb: float = 0.0

    def most(self, other: "Cost") -> "Cost":
        return Cost(max(self.cpu_s, other.cpu_s), max(self.mb, other.mb))

    def check(self) -> None:
        assert self.cpu_s <= MAX_CPU_S, f"{self.cpu_s:.2f} s of CPU time"
        assert self.mb <= MAX_MB, f"{self.mb:.0f} MB"


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
