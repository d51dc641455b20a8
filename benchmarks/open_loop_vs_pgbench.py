"""The C client at a given rate against `pgbench --rate`: the same rates on the same CPUs, alternating.

    python -m benchmarks.open_loop_vs_pgbench [--quick] [--rounds N] [--slot-s N]

Each program is first asked for more than it can do. The slower one's throughput is the capacity:
pgbench writes its log meanwhile. The rates are 10, 50 and 90 % of it, with exponential gaps, from one
connection. Both programs have the C client's timer slack: with the default of Linux, pgbench wakes up
50 µs late. A round measures every rate once with both programs, without the first half
second. Latency is from the intended start in both, and lag a part of it. A figure is the median of
those of all slots, because one interruption decides a slot's 99th percentile.

The bars: mean, p50 and p99 of the latency and the mean lag of both programs are within 5 % of each
other, or within 25 µs, because a program with the default timer slack must fail. At 90 % they are
within 50 µs, because waiting multiplies each difference there. At 10 %, the C client's lag is at
most 100 µs at the 99th percentile of the operations that found it idle: they were due when the one
before had ended.
"""

import math
import random
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.options import ScriptParser, run_script
from benchmarks.resident import on_cpus_of, pin_new_backends, resident
from example.stack.stack import Stack
from pgperf.core import protocol
from pgperf.core.records import Definition, WorkloadDefinition
from pgperf.core.schedule import due_in
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.timed_slice import measure

ROOT = Path(__file__).resolve().parent.parent
SQL = "select relname, relkind from pg_class where oid = 1259"
#: Share of the capacity -> the time within which both programs agree.
ABSOLUTE_US = {0.1: 25.0, 0.5: 25.0, 0.9: 50.0}
SHARES = tuple(ABSOLUTE_US)
#: Or they agree within this share.
RELATIVE = 0.05
IDLE_LAG_US = 100.0
_S = 1_000_000_000
LEAD_IN_NS = _S // 2
OURS, THEIRS = "C client", "pgbench"


class Timed(NamedTuple):
    """Of the operations of a slot in their order, µs: when each was due, its latency and its lag."""

    due_us: np.ndarray
    latency_us: np.ndarray
    lag_us: np.ndarray

    def figures(self) -> dict[str, float]:
        p50, p99 = np.percentile(self.latency_us, [50, 99])
        return {
            "mean": float(self.latency_us.mean()),
            "p50": float(p50),
            "p99": float(p99),
            "lag": float(self.lag_us.mean()),
        }

    def idle_lag_us(self) -> float:
        """The 99th percentile of the lag of operations that found the client idle; inf if none did."""
        ended_us = self.due_us + self.latency_us
        idle_us = self.lag_us[1:][self.due_us[1:] >= ended_us[:-1]]
        return float(np.percentile(idle_us, 99)) if len(idle_us) else math.inf


def main() -> int:
    parser = ScriptParser(__doc__)
    parser.add_size("--rounds", "slots of each rate and program", full=20, quick=3)
    parser.add_argument("--slot-s", type=int, default=5, help="length of a slot in whole seconds (5)")
    options = parser.options()
    what = Definition(
        benchmark="open-loop",
        workloads=(WorkloadDefinition("read", SQL),),
        layers=("libpq",),
        routes=("socket",),
    )
    with (
        Stack(ROOT / ".stack" / "open_loop_vs_pgbench", parts=["postgres"], keep=False) as stack,
        resident(stack, what, "open-loop") as (group,),
    ):
        pin_new_backends(stack, group)
        capacity = _capacity(group, stack, options.slot_s)
        rates = {share: round(share * capacity, 1) for share in SHARES}
        programs = {
            OURS: lambda rate, at: _pgperf(group, rate, at, options.slot_s),
            THEIRS: lambda rate, _at: _pgbench(group, stack, rate, options.slot_s),
        }
        slots = [(share, at) for share in SHARES for at in range(options.rounds)]
        found: dict[tuple[str, float], list[Timed]] = {key: [] for key in product(programs, SHARES)}
        for share, at in random.sample(slots, len(slots)):
            for program in random.sample([*programs], len(programs)):
                found[program, share].append(programs[program](rates[share], at))
    print(f"capacity of one connection, of the slower program: {capacity:,.0f} operations/s")
    passed = [_row(share, rates[share], found[OURS, share], found[THEIRS, share]) for share in SHARES]
    idle_us = median(slot.idle_lag_us() for slot in found[OURS, SHARES[0]])
    print(f"lag of idle clients, p99: {idle_us:.0f} µs (bar: {IDLE_LAG_US:.0f} µs)")
    holds = all(passed) and idle_us <= IDLE_LAG_US
    print(f"verdict: the bars {'hold' if holds else 'do NOT hold'}")
    return 0 if holds else 1


def _capacity(group: ClientGroup, stack: Stack, slot_s: int) -> float:
    """Operations per second of one connection, by the program that manages fewer."""
    ours = measure(group, protocol.Slice(seq=0, window_ns=_S), -1, 0)[0].ops_per_s
    ended = len(_pgbench(group, stack, 10 * ours, slot_s).lag_us)
    return min(ours, ended / (slot_s - LEAD_IN_NS / _S))


def _pgperf(group: ClientGroup, rate: float, seed: int, slot_s: int) -> Timed:
    request = protocol.Slice(
        seq=1, lead_in_ns=LEAD_IN_NS, window_ns=slot_s * _S, rate=rate, schedule="exponential", seed=seed
    )
    window = measure(group, request, 0, 0)[1]
    due_ns = [due for due in due_in(request, protocol.MAX_PHASED_SAMPLES) if due >= LEAD_IN_NS]
    ran = len(window.durations)
    return Timed(np.array(due_ns[:ran]) / 1000, window.durations / 1000, window.by_phase()["lag"] / 1000)


def _pgbench(group: ClientGroup, stack: Stack, rate: float, slot_s: int) -> Timed:
    """The transactions of its log: latency in the third column, µs; the time of the end in the fifth
    and sixth; lag in the seventh, µs.
    """
    env = stack.env
    login = {
        "PGHOST": env["PGPERF_DB_SOCKET"],
        "PGPORT": env["PGPERF_DB_PORT"],
        "PGDATABASE": env["PGPERF_DB_NAME"],
        "PGUSER": env["PGPERF_DB_USER"],
        "PGPASSWORD": env["PGPERF_DB_PASSWORD"],
    }
    with tempfile.TemporaryDirectory(prefix="pgperf-open-loop-") as directory:
        script = Path(directory, "read.sql")
        script.write_text(f"{SQL};\n")
        words = [
            f"--rate={rate}",
            f"--time={slot_s}",
            f"--file={script}",
            "--log",
            f"--log-prefix={directory}/log",
        ]
        command = [env["PGPERF_PGBENCH"], "--no-vacuum", *words]
        with on_cpus_of(group), _exact_timers():
            done = subprocess.run(command, env=login, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"pgbench failed:\n{done.stdout}{done.stderr}")
        (log,) = Path(directory).glob("log.*")
        latency, seconds, microseconds, lag = np.loadtxt(log, usecols=(2, 4, 5, 6), unpack=True)
    ended_us = (seconds - seconds[0]) * 1e6 + microseconds
    counts = ended_us >= ended_us[0] + LEAD_IN_NS / 1000
    return Timed((ended_us - latency)[counts], latency[counts], lag[counts])


@contextmanager
def _exact_timers() -> Iterator[None]:
    """What this process starts meanwhile inherits the timer slack of the C client."""
    slack = Path("/proc/self/timerslack_ns")
    before = slack.read_text()
    slack.write_text("1")
    try:
        yield
    finally:
        slack.write_text(before)


def _medians(slots: Sequence[Timed]) -> dict[str, float]:
    """Each figure's median over slots, µs."""
    figures = [slot.figures() for slot in slots]
    return {name: median(each[name] for each in figures) for name in figures[0]}


def _row(share: float, rate: float, ours: Sequence[Timed], theirs: Sequence[Timed]) -> bool:
    own, other = _medians(ours), _medians(theirs)
    bound_us = {name: max(ABSOLUTE_US[share], RELATIVE * us) for name, us in other.items()}
    close = {name: abs(us - other[name]) <= bound_us[name] for name, us in own.items()}
    said = ", ".join(
        f"{name} {us:.0f} / {other[name]:.0f}{'' if close[name] else ' outside'}" for name, us in own.items()
    )
    operations = sum(len(slot.lag_us) for slot in ours)
    print(f"{share:.0%} of it, {rate:g}/s: µs of the C client / of pgbench: {said}; {operations} operations")
    return all(close.values())


if __name__ == "__main__":
    run_script(main)
