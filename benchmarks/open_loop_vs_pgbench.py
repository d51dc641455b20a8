"""The C client at a given rate against `pgbench --rate`: the same rates on the same CPUs, alternating.

    python -m benchmarks.open_loop_vs_pgbench [--quick] [--rounds N] [--slot-s N]

In each round, each program is first asked for more than it can do. The slower one's throughput is
the capacity: pgbench writes its log meanwhile. It is taken anew in each round, because CPUs run faster
and slower for minutes at a time. The rates are 10, 50 and 90 % of it, with exponential gaps, from one
connection. Both programs have the C client's timer slack: with the default of Linux, pgbench wakes up
50 µs late. A round measures every rate once with both programs, without the first half second, in
random order. Latency is from the intended start in both, and lag a part of it. A figure is the median
of those of all slots, because one interruption decides a slot's 99th percentile.

The bars: mean, p50 and p99 of the latency and the mean lag of both programs are within 5 % of each
other, or within 25 µs, because a program with the default timer slack must fail. At 90 %, waiting
multiplies each difference in the CPUs' speed between two slots, so that two equal programs differ by
more than that. There the bar is for what waiting is made of: the time from an operation's start to its
end, and the delay of its start, which counts from when it was due and the one before had ended. At
10 %, this delay of the C client is at most 100 µs at the 99th percentile of the operations that found
it idle: they were due when the one before had ended.

A fourth rate is 110 % of the capacity, with a latency limit of 10 ms in both programs (pgbench:
`--latency-limit`). An operation that would begin later is skipped; one that ends later is late. At
such a rate the queue reaches the limit and stays there. Compared are the shares of skipped and of
late operations, of those that ran or were skipped. The bars, for the medians of all slots: within 2
points of a hundred (skipped) and 5 points (late). A capacity that differs by 2 % makes up to 2 and 3
points; a program that skips nothing differs by 9, one that counts no late ones by 18. What pgbench's
log has as skipped must be what its summary counts.
"""

import argparse
import math
import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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
#: Both programs agree within this time, or within this share.
ABSOLUTE_US, RELATIVE = 25.0, 0.05
#: Shares of the capacity. At the last one, what waiting is made of has the bar.
SHARES = (0.1, 0.5, 0.9)
IDLE_LAG_US = 100.0
_S = 1_000_000_000
LEAD_IN_NS = _S // 2
OURS, THEIRS = "C client", "pgbench"
#: Share of the capacity at which operations have a latency limit.
OVER = 1.1
LIMIT_MS = 10
SKIPPED_BAR, LATE_BAR = 0.02, 0.05


class Timed(NamedTuple):
    """Of the operations of a slot in their order, µs: when each was due, its latency and its lag."""

    due_us: np.ndarray
    latency_us: np.ndarray
    lag_us: np.ndarray

    def figures(self) -> dict[str, float]:
        return {**_summary(self.latency_us), "lag": float(self.lag_us.mean())}

    def parts(self) -> dict[str, float]:
        """What does not depend on the queue."""
        from_start = _summary(self.latency_us - self.lag_us)
        delays = _summary(self.lag_us[1:] - self._queue_us())
        return {
            **{f"{name} from the start": us for name, us in from_start.items()},
            **{f"{name} delay of the start": us for name, us in delays.items()},
        }

    def idle_lag_us(self) -> float:
        """The 99th percentile of the lag of operations that found the client idle; inf if none did."""
        idle_us = self.lag_us[1:][self._queue_us() == 0]
        return float(np.percentile(idle_us, 99)) if len(idle_us) else math.inf

    def _queue_us(self) -> np.ndarray:
        """By how much the operation before ended later than each was due, without the first one."""
        ended_us = self.due_us + self.latency_us
        return np.maximum(0.0, ended_us[:-1] - self.due_us[1:])


def _summary(values_us: np.ndarray) -> dict[str, float]:
    p50, p99 = np.percentile(values_us, [50, 99])
    return {"mean": float(values_us.mean()), "p50": float(p50), "p99": float(p99)}


class Limited(NamedTuple):
    """Of the operations of a slot with a latency limit: how many ran, how many of these were late, and
    how many were skipped.
    """

    ran: int
    late: int
    skipped: int

    @property
    def skipped_share(self) -> float:
        return self.skipped / (self.ran + self.skipped)

    @property
    def late_share(self) -> float:
        return self.late / (self.ran + self.skipped)


class Log(NamedTuple):
    """Of the operations of a pgbench run in their order, µs: when each ended or was skipped, its
    latency and its lag. A skipped one has the latency NaN.
    """

    at_us: np.ndarray
    latency_us: np.ndarray
    lag_us: np.ndarray

    @classmethod
    def parsed(cls, text: str) -> "Log":
        """Its columns: the client, a number, the latency or "skipped", the script, the time in seconds
        and the µs beside them, the lag.
        """
        rows = [line.split() for line in text.splitlines()]
        times = ["nan" if row[2] == "skipped" else row[2] for row in rows]
        seconds, micros, lag = np.array([row[4:7] for row in rows], dtype=float).T
        return cls((seconds - seconds[0]) * 1e6 + micros, np.array(times, dtype=float), lag)

    @property
    def skipped(self) -> np.ndarray:
        return np.isnan(self.latency_us)

    def after_lead_in(self) -> "Log":
        counts = self.at_us >= self.at_us[0] + LEAD_IN_NS / 1000
        return Log(*(column[counts] for column in self))

    def timed(self) -> Timed:
        return Timed(self.at_us - self.latency_us, self.latency_us, self.lag_us)

    def limited(self) -> Limited:
        skipped = int(np.count_nonzero(self.skipped))
        late = int(np.count_nonzero(self.latency_us > LIMIT_MS * 1000))
        return Limited(len(self.latency_us) - skipped, late, skipped)


class Measured(NamedTuple):
    """The capacity of each round, and the slots by program and share of it."""

    capacities: list[float]
    timed: dict[tuple[str, float], list[Timed]]
    limited: dict[str, list[Limited]]


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
        capacities, found, limited = _measured(group, stack, options)
    said = ", ".join(f"{of(capacities):,.0f}" for of in (min, median, max))
    print(f"capacity of one connection, of the slower program: {said} operations/s (least, median, most)")
    capacity = median(capacities)
    passed = [_row(share, share * capacity, found[OURS, share], found[THEIRS, share]) for share in SHARES]
    passed.append(_limited_row(OVER * capacity, limited[OURS], limited[THEIRS]))
    idle_us = median(slot.idle_lag_us() for slot in found[OURS, SHARES[0]])
    print(f"lag of idle clients, p99: {idle_us:.0f} µs (bar: {IDLE_LAG_US:.0f} µs)")
    holds = all(passed) and idle_us <= IDLE_LAG_US
    print(f"verdict: the bars {'hold' if holds else 'do NOT hold'}")
    return 0 if holds else 1


def _measured(group: ClientGroup, stack: Stack, options: argparse.Namespace) -> Measured:
    """Every round in turn, with rates by its own capacity."""
    programs: dict[str, Callable[[float, int], Timed]] = {
        OURS: lambda rate, at: _pgperf(group, rate, at, options.slot_s),
        THEIRS: lambda rate, _at: _pgbench(group, stack, rate, options.slot_s).timed(),
    }
    latency_limit = f"--latency-limit={LIMIT_MS}"
    limiting: dict[str, Callable[[float, int], Limited]] = {
        OURS: lambda rate, at: _pgperf_limited(group, rate, at, options.slot_s),
        THEIRS: lambda rate, _at: _pgbench(group, stack, rate, options.slot_s, latency_limit).limited(),
    }
    found = Measured(
        [], {key: [] for key in product(programs, SHARES)}, {program: [] for program in programs}
    )
    for at in range(options.rounds):
        capacity = _capacity(group, stack, options.slot_s)
        found.capacities.append(capacity)
        turns = [(share, random.sample([*programs], 2)) for share in random.sample([*SHARES, OVER], 4)]
        for share, program in ((share, program) for share, order in turns for program in order):
            rate = round(share * capacity, 1)
            if share == OVER:
                found.limited[program].append(limiting[program](rate, at))
            else:
                found.timed[program, share].append(programs[program](rate, at))
    return found


def _capacity(group: ClientGroup, stack: Stack, slot_s: int) -> float:
    """Operations per second of one connection, by the program that manages fewer."""
    ours = measure(group, protocol.Slice(seq=0, window_ns=_S), -1, 0)[0].ops_per_s
    ended = len(_pgbench(group, stack, 10 * ours, slot_s).lag_us)
    return min(ours, ended / (slot_s - LEAD_IN_NS / _S))


def _request(rate: float, seed: int, slot_s: int) -> protocol.Slice:
    return protocol.Slice(
        seq=1, lead_in_ns=LEAD_IN_NS, window_ns=slot_s * _S, rate=rate, schedule="exponential", seed=seed
    )


def _pgperf_limited(group: ClientGroup, rate: float, seed: int, slot_s: int) -> Limited:
    request = _request(rate, seed, slot_s)._replace(latency_limit_ns=LIMIT_MS * 1_000_000)
    window = measure(group, request, 0, 0)[1]
    assert window.scheduled
    return Limited(len(window.durations), window.scheduled.late or 0, window.scheduled.skipped)


def _pgperf(group: ClientGroup, rate: float, seed: int, slot_s: int) -> Timed:
    request = _request(rate, seed, slot_s)
    window = measure(group, request, 0, 0)[1]
    due_ns = [due for due in due_in(request, protocol.MAX_PHASED_SAMPLES) if due >= LEAD_IN_NS]
    ran = len(window.durations)
    return Timed(np.array(due_ns[:ran]) / 1000, window.durations / 1000, window.by_phase()["lag"] / 1000)


def _pgbench(group: ClientGroup, stack: Stack, rate: float, slot_s: int, *limit: str) -> Log:
    """The log of one connection."""
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
            *limit,
        ]
        command = [env["PGPERF_PGBENCH"], "--no-vacuum", *words]
        with on_cpus_of(group), _exact_timers():
            done = subprocess.run(command, env=login, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"pgbench failed:\n{done.stdout}{done.stderr}")
        (log,) = Path(directory).glob("log.*")
        found = Log.parsed(log.read_text())
    _check_skipped(found, done.stdout)
    return found.after_lead_in()


def _check_skipped(log: Log, summary: str) -> None:
    """Raises SystemExit unless pgbench's summary counts the skipped operations of its log."""
    said = re.search(r"number of transactions skipped: (\d+)", summary)
    counted, logged = int(said[1]) if said else 0, int(np.count_nonzero(log.skipped))
    if counted != logged:
        raise SystemExit(f"pgbench counts {counted} skipped operations, and its log has {logged}")


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


def _medians(slots: Iterable[dict[str, float]]) -> dict[str, float]:
    """Each figure's median over slots, µs."""
    figures = list(slots)
    return {name: median(each[name] for each in figures) for name in figures[0]}


def _row(share: float, rate: float, ours: Sequence[Timed], theirs: Sequence[Timed]) -> bool:
    """Prints the figures; do those agree that have the bar?"""
    operations = sum(len(slot.lag_us) for slot in ours)
    print(f"{share:.0%} of it, {rate:,.0f}/s: {operations} operations; µs of the C client / of pgbench:")
    whole = [_medians(slot.figures() for slot in slots) for slots in (ours, theirs)]
    if share != SHARES[-1]:
        return _close(*whole)
    print("  not judged:" + _beside(*whole))
    return _close(*(_medians(slot.parts() for slot in slots) for slots in (ours, theirs)))


def _close(own: dict[str, float], other: dict[str, float]) -> bool:
    """Prints both; are all figures within the bar?"""
    outside = [name for name, us in other.items() if abs(own[name] - us) > max(ABSOLUTE_US, RELATIVE * us)]
    print(" " + _beside(own, other, outside))
    return not outside


def _beside(own: dict[str, float], other: dict[str, float], outside: Collection[str] = ()) -> str:
    marks = {name: " outside" if name in outside else "" for name in own}
    return ",".join(f" {name} {us:.0f} / {other[name]:.0f}{marks[name]}" for name, us in own.items())


def _limited_row(rate: float, ours: Sequence[Limited], theirs: Sequence[Limited]) -> bool:
    skipped = [median(slot.skipped_share for slot in slots) for slots in (ours, theirs)]
    late = [median(slot.late_share for slot in slots) for slots in (ours, theirs)]
    close = abs(skipped[0] - skipped[1]) <= SKIPPED_BAR, abs(late[0] - late[1]) <= LATE_BAR
    said = ", ".join(
        f"{name} {own:.1%} / {other:.1%}{'' if within else ' outside'}"
        for name, (own, other), within in zip(("skipped", "late"), (skipped, late), close, strict=True)
    )
    print(f"{OVER:.0%} of it, {rate:,.0f}/s, limit {LIMIT_MS} ms: C client / pgbench: {said}")
    return all(close)


if __name__ == "__main__":
    run_script(main)
