"""A look at this machine: who else uses it, and how steady a fixed piece of work is, for seconds."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pgperf.analysis.machine_look import MachineLook, Program
from pgperf.core.exceptions import LookFailed
from pgperf.runner import fixed_work
from pgperf.runner.cpu import idle, placement, top
from pgperf.runner.cpu.schedstat import read_text

#: How long a look takes.
SECONDS = 5.0
_LATEST_S = 30.0  # beyond it, on a machine that hardly works
_ROLE = "pgperf"
_NOT_BUSY = tuple(top.HOST.index(name) for name in ("id", "wa", "st"))

#: CPU -> the seconds that it worked so far.
Busy = dict[int, float]


def look(seconds: float = SECONDS, proc: Path = Path("/proc")) -> MachineLook:
    """Look at this machine for so many seconds, on the CPUs that this process may use.

    The fixed work runs on one CPU of the clients and one of the server, as runs place them, and the
    CPUs are kept awake as in a run. Raises LookFailed.
    """
    cpus = os.sched_getaffinity(0)
    with idle.keep_awake("awake"):
        first, busy = top.TopSnapshot.take({_ROLE: [os.getpid()]}, proc), busy_s(proc)
        worked = _worked(cpus, seconds)
        later, last = busy_s(proc), top.TopSnapshot.take({_ROLE: [os.getpid()]}, proc)
    return summarised(top.between(first, last), others(busy, later, worked["cpu_s"], cpus), worked)


def summarised(
    shown: Mapping[str, Any], used: Mapping[int, float | None], worked: Mapping[str, Any]
) -> MachineLook:
    """The record of what `top` showed, of the CPUs that others used, and of what the work found."""
    late = worked["wake_ups_us"]
    steal = shown["host"]["st"]
    seconds = shown["seconds"]
    return MachineLook(
        seconds=seconds,
        steal=None if steal is None else steal / 100,
        others={cpu: None if own is None else min(1.0, own / seconds) for cpu, own in used.items()},
        programs=tuple(
            Program(each["name"], each["cpu_percent"] / 100)
            for each in shown["processes"]
            if each["role"] == top.OTHER
        ),
        wake_up_us=(statistics.median(late), statistics.quantiles(late, n=10)[-1]),
        slices_us=tuple(worked["slices_us"]),
        step_s=worked["step_s"],
    )


def others(
    before: Busy, after: Busy, own_s: Mapping[str, float], cpus: frozenset[int] | set[int]
) -> dict[int, float | None]:
    """CPU -> the seconds that others worked there; None where /proc/stat does not say."""
    found: dict[int, float | None] = {}
    for cpu in sorted(cpus):
        if cpu in before and cpu in after:
            worked_s = after[cpu] - before[cpu] - own_s.get(str(cpu), 0.0)
            found[cpu] = max(0.0, worked_s)
        else:
            found[cpu] = None
    return found


def busy_s(proc: Path) -> Busy:
    """Each CPU so far, by /proc/stat; empty where that cannot be read."""
    try:
        lines = [line.split() for line in read_text(str(proc / "stat"), 1 << 20).splitlines()]
        return {
            int(name[3:]): _busy([int(number) for number in numbers[: len(top.HOST)]])
            for name, *numbers in lines
            if name.startswith("cpu") and name != "cpu"
        }
    except (OSError, ValueError, IndexError):
        return {}


def _busy(ticks: list[int]) -> float:
    return top.TICK_S * sum(count for at, count in enumerate(ticks) if at not in _NOT_BUSY)


def _worked(cpus: set[int], seconds: float) -> dict[str, Any]:
    """What the fixed work found. Raises LookFailed."""
    placed = placement.place("apart", cpus, "")
    client, server = (min(own or cpus) for own in (placed.clients, placed.server))
    command = [sys.executable, "-I", fixed_work.__file__, str(client), str(server), str(seconds)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + _LATEST_S, check=True
        )
        return dict(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise LookFailed(f"the check of the machine failed ({type(error).__name__}); try again") from None
