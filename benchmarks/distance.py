"""How exact is the simulated distance? The same statement near and far, turn by turn.

    python -m benchmarks.distance [--rounds N] [--quick]

For each round trip: one connection straight to the embedded PostgreSQL and one through a relay with that round trip, in
random order within each round; a round's difference of medians is a pair. Prints what was added with its 95 % interval,
how single operations scatter, what the relay's own work costs, and how fast big answers come.
The bar: the added time is within 50 µs + 1 % of the round trip that was asked for. `--quick`: under a minute, and
within 150 µs + 2 %.
"""

import argparse
import os
import random
import sys
import time
from dataclasses import dataclass, field

import numpy as np
import psycopg
from psycopg.conninfo import make_conninfo

from benchmarks.example_site import ROOT
from example.stack import Stack
from pgperf.analysis.paired_statistics import Estimate, signed_rank_interval
from pgperf.delay.relay import HOST, DelayRelay
from pgperf.runner.cpu import idle, schedstat

RTTS_MS = (0.5, 5.0, 45.0)
CONFIDENCE = 0.95
TURN_S = 0.25
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
    """Medians (µs) of each round, single operations far away (µs), and processor time of the relay per operation."""

    near: list[float] = field(default_factory=list)
    far: list[float] = field(default_factory=list)
    single: list[float] = field(default_factory=list)
    relay_us: float = 0.0
    near_mb_s: float = 0.0
    far_mb_s: float = 0.0

    def added(self) -> Estimate:
        return signed_rank_interval(np.array(self.far) - np.array(self.near), CONFIDENCE)


def main() -> int:
    options = _options()
    bar = WIDER if options.quick else FULL
    rounds = options.rounds or (8 if options.quick else 30)
    print(f"load average {os.getloadavg()[0]:.1f}, {rounds} rounds")
    print(_LINE.format("asked µs", "added µs", "interval", "off by", "p5", "p95", "relay µs", "MB/s"))
    with (
        Stack(ROOT / ".stack" / "distance", parts=["postgres"], keep=False) as stack,
        idle.keep_awake("awake"),
    ):
        keep_awake = [_row(stack.env, rtt_ms, rounds, bar) for rtt_ms in RTTS_MS]
    print("verdict: " + ("the bar holds" if all(keep_awake) else "the bar does NOT hold"))
    return 0 if all(keep_awake) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, help="turns of each side per round trip (30; quick: 8)")
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


def _row(env: dict[str, str], rtt_ms: float, rounds: int, bar: Bar) -> bool:
    """Prints one line of the table; does the bar hold?"""
    measured = _measure(env, rtt_ms, rounds)
    added, asked = measured.added(), rtt_ms * 1000
    interval = (
        "unknown" if added.low is None or added.high is None else f"{added.low:.0f} to {added.high:.0f}"
    )
    p5, p95 = np.percentile(measured.single, (5, 95)) - np.median(measured.near)
    off = (f"{value - asked:+.0f}" for value in (added.centre, p5, p95))
    speeds = f"{measured.near_mb_s:.0f} → {measured.far_mb_s:.0f}"
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
        psycopg.connect(env["PGPERF_DSN_TCP"], autocommit=True) as near,
        psycopg.connect(
            make_conninfo(env["PGPERF_DSN_TCP"], host=HOST, port=relay.port), autocommit=True
        ) as far,
    ):
        for connection in (near, far):
            _repeat(connection, WARM_UP, 2.0)
        before = schedstat.read([relay.pid])
        for _ in range(rounds):
            for connection in random.sample((near, far), 2):
                took = _repeat(connection, 10_000, TURN_S)
                (found.near if connection is near else found.far).append(float(np.median(took)))
                found.single += took if connection is far else []
        spent = schedstat.cpu_time_between(before, schedstat.read([relay.pid]))
        found.relay_us = spent.run_ns / 1000 / len(found.single) if spent else np.nan
        found.near_mb_s, found.far_mb_s = _speed(near), _speed(far)
    return found


def _repeat(connection: psycopg.Connection, most: int, most_s: float) -> list[float]:
    """µs of each operation, until there are `most` or the time is over."""
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
    """MB/s of a big answer."""
    began = time.monotonic()
    connection.execute(BIG).fetchall()
    return BIG_MB / (time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
