"""Accuracy of the delay relay: the same statement with and without it, alternating.

    python -m benchmarks.distance [--rounds N] [--quick]

For each round trip time, one connection goes directly to the embedded PostgreSQL and one through a
relay with that delay, in random order within each round. The difference of a round's medians is a
pair. The table shows the added time with its 95 % interval, the scatter of single operations, the
relay's CPU time per operation, and the throughput of large results.
The bar: the added time is within 50 µs + 1 % of the requested round trip time. `--quick`: under a
minute, and within 150 µs + 2 %.
"""

import argparse
import os
import random
import time
from dataclasses import dataclass, field

import numpy as np
import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks.example_site import ROOT
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack
from pgperf.analysis.paired_statistics import Estimate, signed_rank_interval
from pgperf.delay.relay import HOST, DelayRelay
from pgperf.runner.cpu import idle, schedstat

RTTS_MS = (0.5, 5.0, 45.0)
CONFIDENCE = 0.95
SIDE_S = 0.25
WARM_UP = 40
BIG = "SELECT repeat('x', 1000000) FROM generate_series(1, 50)"
BIG_MB = 50

_LINE = "{:>9} {:>9} {:>18} {:>8} {:>8} {:>8} {:>9} {:>12}"


@dataclass(frozen=True)
class Bar:
    us: float
    share: float

    def allowed_us(self, rtt_ms: float) -> float:
        return self.us + self.share * rtt_ms * 1000


FULL, WIDER = Bar(50, 0.01), Bar(150, 0.02)


@dataclass
class Measured:
    """Medians of each round (µs), single delayed operations (µs), CPU time of the relay per
    operation.
    """

    direct: list[float] = field(default_factory=list)
    delayed: list[float] = field(default_factory=list)
    single: list[float] = field(default_factory=list)
    relay_us: float = 0.0
    direct_mb_s: float = 0.0
    delayed_mb_s: float = 0.0

    def added(self) -> Estimate:
        return signed_rank_interval(np.array(self.delayed) - np.array(self.direct), CONFIDENCE)


def main() -> int:
    options = _options()
    bar = WIDER if options.quick else FULL
    rounds = options.rounds
    print(f"load average {os.getloadavg()[0]:.1f}, {rounds} rounds")
    print(_LINE.format("asked µs", "added µs", "interval", "off by", "p5", "p95", "relay µs", "MB/s"))
    with (
        Stack(ROOT / ".stack" / "distance", parts=["postgres"], keep=False) as stack,
        idle.keep_awake("awake"),
    ):
        held = [_row(stack.env, rtt_ms, rounds, bar) for rtt_ms in RTTS_MS]
    print("verdict: " + ("the bar holds" if all(held) else "the bar does NOT hold"))
    return 0 if all(held) else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--rounds", "rounds per round trip time", full=30, quick=8)
    return parser.options()


def _row(env: dict[str, str], rtt_ms: float, rounds: int, bar: Bar) -> bool:
    """Print one line of the table; return whether the bar holds."""
    measured = _measure(env, rtt_ms, rounds)
    added, asked = measured.added(), rtt_ms * 1000
    interval = (
        "unknown" if added.low is None or added.high is None else f"{added.low:.0f} to {added.high:.0f}"
    )
    p5, p95 = np.percentile(measured.single, (5, 95)) - np.median(measured.direct)
    off = (f"{value - asked:+.0f}" for value in (added.centre, p5, p95))
    speeds = f"{measured.direct_mb_s:.0f} → {measured.delayed_mb_s:.0f}"
    print(
        _LINE.format(
            f"{asked:.0f}", f"{added.centre:.0f}", interval, *off, f"{measured.relay_us:.0f}", speeds
        )
    )
    return abs(added.centre - asked) <= bar.allowed_us(rtt_ms)


def _measure(env: dict[str, str], rtt_ms: float, rounds: int) -> Measured:
    found, port = Measured(), int(env["PGPERF_DB_PORT"])
    with (
        DelayRelay("127.0.0.1", port, rtt_ms) as relay,
        psycopg.connect(env["PGPERF_DSN_TCP"], autocommit=True) as direct,
        psycopg.connect(
            make_conninfo(env["PGPERF_DSN_TCP"], host=HOST, port=relay.port), autocommit=True
        ) as delayed,
    ):
        for connection in (direct, delayed):
            _repeat(connection, WARM_UP, 2.0)
        before = schedstat.read([relay.pid])
        for _ in range(rounds):
            for connection in random.sample((direct, delayed), 2):
                took = _repeat(connection, 10_000, SIDE_S)
                (found.direct if connection is direct else found.delayed).append(float(np.median(took)))
                found.single += took if connection is delayed else []
        spent = schedstat.cpu_time_between(before, schedstat.read([relay.pid]))
        found.relay_us = spent.run_ns / 1000 / len(found.single) if spent else np.nan
        found.direct_mb_s, found.delayed_mb_s = _speed(direct), _speed(delayed)
    return found


def _repeat(connection: psycopg.Connection, most: int, most_s: float) -> list[float]:
    """µs of each operation, for at most `most` operations and `most_s` seconds."""
    cursor = connection.cursor()
    took: list[float] = []
    end = time.monotonic() + most_s
    while len(took) < most and time.monotonic() < end:
        began = time.monotonic_ns()
        cursor.execute("SELECT 1")
        cursor.fetchall()
        took.append((time.monotonic_ns() - began) / 1000)
    return took


def _speed(connection: psycopg.Connection) -> float:
    """MB/s of a large result."""
    began = time.monotonic()
    connection.execute(BIG).fetchall()
    return BIG_MB / (time.monotonic() - began)


if __name__ == "__main__":
    run_script(main)
