"""The cost of a clock read. Clients read the clock once per operation.

Where the kernel distrusts the CPUs' own counters, it reads a timer of the machine instead (clock
source `hpet` or `acpi_pm`), which takes a system call and a microsecond or more.
"""

import time
from collections.abc import Callable
from functools import cache

#: A read of a CPU's counter takes 20 to 40 ns, and from Python less than 100.
SLOW_NS = 300.0
_ROUNDS, _READS = 20, 100


@cache
def slow_read_ns() -> float | None:
    """The cost of a clock read, ns, if that is slow; else None. Measured once in a process."""
    cost_ns = read_ns(time.monotonic_ns)
    return cost_ns if cost_ns >= SLOW_NS else None


def read_ns(read: Callable[[], int]) -> float:
    """The cost of one read, ns, in the fastest of some rounds: others slow the rest down."""
    return min(_round_ns(read) for _ in range(_ROUNDS))


def _round_ns(read: Callable[[], int]) -> float:
    begin_ns = read()
    for _ in range(_READS - 1):
        read()
    return (read() - begin_ns) / _READS
