"""Cost of pg_stat_statements per statement: loaded but switched off, and counting.

    python -m benchmarks.statements_cost [--rounds 100] [--quick]

One server runs without the module; another has it loaded with the stack's settings (track none,
compute_query_id off). A C client on each runs one short statement over the local socket. A second
client of the latter has its sessions counted, as in a diagnostic slice. Slices alternate in random
order; CPUs are placed apart and kept awake. Ratios are time per operation over the server without
the module: the Hodges-Lehmann centre of the pairs, with its signed-rank interval. `server` is the
CPU time of the backend per operation, which is meaningful on a busy machine too. The bar: the whole
interval of loaded but switched off is within 1 % of not loaded. `--quick`: under a minute, within 5
%.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import numpy as np

from benchmarks.example_site import ROOT
from benchmarks.options import ScriptParser, run_script
from benchmarks.resident import resident
from example.stack import postgres
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.paired_statistics import Estimate, log_ratios, signed_rank_interval
from pgperf.core import protocol
from pgperf.core.records import Definition, WorkloadDefinition
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu.host import Host
from pgperf.runner.server.pg_stat_statements import switch_on
from pgperf.runner.timed_slice import measure

WORK = WorkloadDefinition("pg_class", "select relname, relkind from pg_class where oid = 1259")
REQUEST = protocol.Slice(seq=1, lead_in_ops=10, lead_in_ns=50_000_000, window_ns=100_000_000)
WITHOUT, OFF, COUNTING = "not loaded", "loaded, switched off", "counting"

#: By kind of server: (µs per operation, the server's CPU time per operation in µs) of each round.
Slices = dict[str, list[tuple[float, float]]]


def main() -> int:
    options = _options()
    with _groups() as groups:
        slices = _measure(groups, options.rounds)
    tolerance = 0.05 if options.quick else 0.01
    heads = ("pg_stat_statements", "µs per op.", "over not loaded", "95 % interval", "server, µs")
    print("{:<22} {:>10} {:>16} {:>18} {:>11}".format(*heads))
    ratios = {name: _print_row(name, slices) for name in (WITHOUT, OFF, COUNTING)}
    low, high = ratios[OFF].low, ratios[OFF].high
    holds = low is not None and high is not None and 1 - tolerance <= low <= high <= 1 + tolerance
    print(
        f"\nverdict: the bar {'holds' if holds else 'does NOT hold'} (switched off within {in_percent(tolerance)})"
    )
    return 0 if holds else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--rounds", "slices of each kind", full=100, quick=15)
    return parser.options()


@contextmanager
def _groups() -> Iterator[dict[str, ClientGroup]]:
    """One connected client for each kind of server."""
    definition = Definition("statements-cost", (WORK,), layers=("libpq",), routes=("socket",))
    with ExitStack() as stack:
        loaded = stack.enter_context(_stack("loaded"))
        (off,) = stack.enter_context(resident(loaded, definition, "off"))
        (counting,) = stack.enter_context(resident(loaded, definition, "counting"))
        postgres.SETTINGS["shared_preload_libraries"] = ""
        bare = stack.enter_context(_stack("bare"))
        (without,) = stack.enter_context(resident(bare, definition, "without"))
        if not switch_on(counting.clients, counting.ready[0].server_version):
            sys.exit("the stack's login has no permission to switch counting on")
        yield {WITHOUT: without, OFF: off, COUNTING: counting}


def _stack(name: str) -> Stack:
    return Stack(ROOT / ".stack" / f"statements-{name}", parts=["postgres"], keep=False)


def _measure(groups: Mapping[str, ClientGroup], rounds: int) -> Slices:
    host, slices = Host.here(), {name: list[tuple[float, float]]() for name in groups}
    for round_ in range(rounds):
        for name in random.sample(list(groups), len(groups)):
            record = measure(groups[name], REQUEST, round_, 0, host)[0]
            server_us = (record.server_ns or 0) / (record.ops + record.lead_in_ops) / 1000
            slices[name].append((record.us_per_op, server_us))
    return slices


def _print_row(name: str, slices: Slices) -> Estimate:
    own, bare = np.array(slices[name]), np.array(slices[WITHOUT])
    ratio = signed_rank_interval(log_ratios(own[:, 0], bare[:, 0]), 0.95).exp()
    known = name != WITHOUT and ratio.low is not None and ratio.high is not None
    interval = f"{ratio.low:.4f} to {ratio.high:.4f}" if known else ""
    us, server_us = statistics.median(own[:, 0]), statistics.median(own[:, 1])
    print(f"{name:<22} {us:>10.2f} {ratio.centre:>16.4f} {interval:>18} {server_us:>11.2f}")
    return ratio


if __name__ == "__main__":
    run_script(main)
