"""The effect of CPU accounting on the measured times: the same slices with and without it,
alternating.

    python -m benchmarks.observer_cost [--rounds 200] [--quick]

The variants are those of the C client, which has the shortest operations: 1 and 8 clients, over the
local socket and through PgBouncer. CPUs are placed apart and kept awake; windows are as in a run.
In each round every variant has one slice with and one without readings of CPU time, in random
order, by the code that measures a run's slices. The ratio is the time per operation with over
without: the Hodges-Lehmann centre of the pairs, with its signed-rank interval. `account` is the
additional wall time of a slice; it is spent between slices, not within them. The bar: every
interval within 1 % of 1. `--quick`: under a minute, within 10 %.
"""

import argparse
import random
import statistics
import time
from collections import defaultdict

import numpy as np

from benchmarks.example_site import ROOT
from benchmarks.options import ScriptParser, run_script
from benchmarks.resident import resident
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.paired_statistics import Estimate, log_ratios, signed_rank_interval
from pgperf.core import protocol
from pgperf.core.records import Definition, WorkloadDefinition
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu.host import Host
from pgperf.runner.timed_slice import measure

WORK = WorkloadDefinition("pg_class", "select relname, relkind from pg_class where oid = 1259")
#: The lengths in a run of these variants.
LEAD_IN_NS, WINDOW_NS = 50_000_000, 50_000_000
CLIENTS = (1, 8)

#: (variant, with CPU accounting) -> (µs per operation, seconds of wall time) of each round.
Slices = dict[tuple[str, bool], list[tuple[float, float]]]


def main() -> int:
    options = _options()
    definition = Definition(
        "observer-cost", (WORK,), layers=("libpq",), routes=("socket", "pgbouncer"), clients=CLIENTS
    )
    own = Stack(ROOT / ".stack" / "observer-cost", parts=["postgres", "pgbouncer"], keep=False)
    with own as stack, resident(stack, definition, "observer") as groups:
        slices = _measure(groups, options.rounds)
        labels = [group.variant.label for group in groups]
    print(
        f"{'time per operation':<28} {'without, µs':>11} {'with/without':>12} {'95 % interval':>18} {'account, ms':>11}"
    )
    inside = [_print_row(label, slices, options.tolerance) for label in labels]
    holds = all(inside)
    print(
        f"\nverdict: the bar {'holds' if holds else 'does NOT hold'} (within {in_percent(options.tolerance)} of 1)"
    )
    return 0 if holds else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--rounds", "pairs of slices of each variant", full=200, quick=12)
    options = parser.options()
    options.tolerance = 0.10 if options.quick else 0.01
    return options


def _measure(groups: list[ClientGroup], rounds: int) -> Slices:
    host = Host.here()
    slices: Slices = defaultdict(list)
    request = protocol.Slice(seq=1, lead_in_ops=10, lead_in_ns=LEAD_IN_NS, window_ns=WINDOW_NS)
    for round_ in range(rounds):
        for group in random.sample(groups, len(groups)):
            for accounted in random.sample((True, False), 2):
                began = time.monotonic()
                record = measure(group, request, round_, 0, host if accounted else None)[0]
                seconds = time.monotonic() - began
                slices[group.variant.label, accounted].append((record.us_per_op, seconds))
    return slices


def _print_row(label: str, slices: Slices, tolerance: float) -> bool:
    accounted, without = np.array(slices[label, True]), np.array(slices[label, False])
    ratio = _ratio(accounted[:, 0], without[:, 0])
    longer_ms = 1000 * statistics.median(accounted[:, 1] - without[:, 1])
    interval = "none" if ratio.low is None or ratio.high is None else f"{ratio.low:.4f} to {ratio.high:.4f}"
    us = statistics.median(without[:, 0])
    print(f"{label:<28} {us:>11.2f} {ratio.centre:>12.4f} {interval:>18} {longer_ms:>11.2f}")
    return (
        ratio.low is not None
        and ratio.high is not None
        and 1 - tolerance <= ratio.low <= ratio.high <= 1 + tolerance
    )


def _ratio(accounted: np.ndarray, without: np.ndarray) -> Estimate:
    return signed_rank_interval(log_ratios(accounted, without), 0.95).exp()


if __name__ == "__main__":
    run_script(main)
