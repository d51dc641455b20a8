"""A process that competes for one CPU: it works for a share of each period of a few milliseconds.

with rival(cpu=1, share=0.5) as running:
    ...
    running.had()  # the share of the CPU that it got so far
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pgperf.runner.cpu import placement, schedstat

#: Its work is CPU time: where it has to wait for the CPU, it works for longer.
PERIOD_MS = 4
_PROGRAM = """
import os, time
os.sched_setaffinity(0, {{{cpu}}})
print("ready", flush=True)
parent = os.getppid()
while os.getppid() == parent:
    begin, until = time.perf_counter(), time.thread_time_ns() + {work_ns}
    while time.thread_time_ns() < until: pass
    if (rest := begin + {period_s} - time.perf_counter()) > 0 and {sleeps}: time.sleep(rest)
"""


@dataclass
class Rival:
    """A running rival."""

    process: subprocess.Popen[str]
    _since: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self._since = self._now()

    def had(self) -> float:
        """The share of its CPU that it got so far."""
        moment, ran = (now - before for now, before in zip(self._now(), self._since, strict=True))
        return ran / max(1, moment)

    def _now(self) -> tuple[int, int]:
        threads = schedstat.thread_times(self.process.pid) or {}
        return time.monotonic_ns(), sum(each.run_ns for each in threads.values())


@contextmanager
def rival(cpu: int, share: float = 1.0) -> Iterator[Rival]:
    """One that is at work when the block begins, and has ended after it."""
    process = subprocess.Popen([sys.executable, "-c", program(cpu, share)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        process.stdout.readline()
        yield Rival(process)
    finally:
        process.kill()
        process.communicate()


@contextmanager
def rivals(cpus: Iterable[int], share: float = 1.0) -> Iterator[dict[int, Rival]]:
    """One on each of these CPUs, by CPU."""
    with ExitStack() as running:
        yield {cpu: running.enter_context(rival(cpu, share)) for cpu in cpus}


def program(cpu: int, share: float) -> str:
    """Its source. With all of the CPU it never sleeps."""
    work_ns = round(share * PERIOD_MS * 1_000_000)
    return _PROGRAM.format(cpu=cpu, work_ns=work_ns, period_s=PERIOD_MS / 1000, sleeps=share < 1)


def halves() -> tuple[list[int], list[int]]:
    """The CPUs of the clients and of the server where pgperf places them apart; one CPU is of both."""
    cpus = os.sched_getaffinity(0)
    placed = placement.place("apart", cpus, refusal="")
    return sorted(placed.clients or cpus), sorted(placed.server or cpus)
