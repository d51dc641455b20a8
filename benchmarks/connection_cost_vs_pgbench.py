"""The layers libpq and pgbench in one run, on the same CPUs: a connection for each operation, and kept
connections.

    python -m benchmarks.connection_cost_vs_pgbench [--quick] [--processes N] [--rounds N] [--slot-s N]
        [--only CASE] [--out FILE]

Case `connect`: 20 clients connect, run SELECT 1 and close (pgbench: -C), over the Unix socket
(login by SCRAM). Operations per second, and the mean time of one connection with its statement. There
pgbench also runs by itself, `pgbench -C -c 20 -j 20`, and its figures are those that it prints. Case
`kept`: the statement of benchmarks.libpq_vs_pgbench, simple and prepared, with 1 and 8 clients. A
client of libpq is a process, and one of pgbench is a thread; so with 8 clients pgbench also runs as
eight processes with one client each. Slices of all of them alternate in random order; no slice begins
before the backends of the last one have left. Each case is measured with eight sets of client
processes, one after the other. An interval is over these, because a process may be fast or slow for
as long as it lives.

The bar for `connect`: each ratio, libpq over pgbench, within 0.95 to 1.05, and the half of its
interval at most 3 %. For `kept`: within 0.98 to 1.05, as benchmarks.libpq_vs_pgbench has it, over
pgbench's threads and over as many processes. `--out` keeps what each set of processes measured, under
its conditions. A set that the file has is not measured again, so a larger `--processes` adds sets.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import json_lines, process_pairs
from benchmarks.options import ScriptParser, run_script
from benchmarks.process_pairs import Figures
from benchmarks.resident import departing, on_cpus_of
from example.stack.stack import Stack
from pgperf.analysis.paired_statistics import Estimate
from pgperf.clients.pgbench.process import Pgbench
from pgperf.clients.pgbench.report import Summary
from pgperf.core import protocol, sql_parameters
from pgperf.core.pgbench import script
from pgperf.core.records import Definition, Variant, WorkloadDefinition
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.slice_window import SliceWindow
from pgperf.runner.timed_slice import AwaitDeparture, armed

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("libpq", "pgbench")
PLAIN = "pgbench -C"
PROCESSES = "pgbench processes"
SIDES = (*LAYERS, PLAIN, PROCESSES)
LIGHT = WorkloadDefinition("select-1", "SELECT 1")
LOOKUP = WorkloadDefinition("lookup", "select relname, relkind from pg_class where oid = %s", (1259,))
_LEAD_IN_NS = 1_000_000_000  # until the clients do not connect in step any more


@dataclass(frozen=True)
class Case:
    """A definition, and the bar for the ratios of its layers."""

    definition: Definition
    low: float
    high: float
    half: float | None  # the largest half-width of an interval; None: any

    def holds(self, ratio: Estimate) -> bool:
        half = half_width(ratio)
        within = self.low <= ratio.centre <= self.high
        return within and (self.half is None or (half is not None and half <= self.half))


def half_width(ratio: Estimate) -> float | None:
    """Half of the interval, relative to its centre; None without an interval."""
    return (ratio.high - ratio.low) / 2 / ratio.centre if ratio.low and ratio.high else None


CASES = {
    "connect": Case(
        Definition(
            "connect", (LIGHT,), LAYERS, ("socket",), clients=(20,), connection_modes=("per_operation",)
        ),
        0.95, 1.05, 0.03,
    ),
    "kept": Case(
        Definition("kept", (LOOKUP,), LAYERS, ("socket",), modes=("simple", "prepared"), clients=(1, 8)),
        0.98, 1.05, None,
    ),
}  # fmt: skip

#: What differs between the pairs of a case: mode and number of clients.
Pair = tuple[str, int]


@dataclass(frozen=True)
class Slot:
    """One slice: operations per second, and per operation the time of one client and the part of it
    that connecting and closing took.
    """

    per_s: float
    us: float
    connecting_us: float


#: A slice of a group's variant, by its clients or by pgbench in their place.
Slice = Callable[[ClientGroup, protocol.Slice], Slot]
#: The slots of each pair by layer, or side.
Rounds = dict[Pair, dict[str, list[Slot]]]
#: The same by side and set of processes.
Measured = dict[Pair, dict[str, list[list[Slot]]]]
#: The figures of a slot that are compared, by title; some only where operations connect.
FIGURES = {"operations/s": attrgetter("per_s")}
CONNECTING = {
    "µs, connection with its statement": attrgetter("us"),
    "µs, connect and close": attrgetter("connecting_us"),
}
#: Those of kept connections, over pgbench with as many processes.
BY_PROCESSES = {"operations/s, as many processes": attrgetter("per_s")}
#: Those that pgbench prints.
PRINTED = {
    "operations/s, as pgbench prints": attrgetter("per_s"),
    "µs, connect and close, printed": attrgetter("connecting_us"),
}


def main() -> int:
    options = _options()
    passed = True
    conditions = json_lines.conditions(options, "rounds", "slot_s")
    sets = range(options.processes)
    units = [{"case": name, "set": n, **conditions} for name in options.only or CASES for n in sets]
    lines = json_lines.resumed(options.out, units, _all)
    for name, own in groupby(lines, itemgetter("case")):
        passed &= _table(name, CASES[name], measured_of(own))
    print(f"verdict: the bars {'hold' if passed else 'do NOT hold'}")
    return 0 if passed else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--processes", "sets of client processes", full=8, quick=7)
    parser.add_size("--rounds", "slices of each layer and pair with one set", full=3, quick=1)
    parser.add_argument("--slot-s", type=int, default=4, help="length of a slice in seconds (4)")
    parser.add_argument("--only", choices=CASES, action="append", help="this case alone")
    parser.add_out()
    return parser.options()


def _all(units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    """The sets of processes, one after the other."""
    with Stack(ROOT / ".stack" / "connection_cost_vs_pgbench", parts=["postgres"], keep=False) as stack:
        for unit in units:
            yield line_of(_measured(stack, unit))


def _measured(stack: Stack, unit: json_lines.Unit) -> Rounds:
    """The slices of a case with a set of processes of its own."""
    case = unit["case"]
    alone = {PLAIN: partial(_printed, stack.env), PROCESSES: partial(_by_processes, stack.env)}
    with departing(stack, CASES[case].definition, f"{case}-{unit['set']}") as (groups, departed):
        return _measure(groups, departed, unit["rounds"], unit["slot_s"], alone)


def line_of(rounds: Rounds) -> dict[str, Any]:
    """What a campaign's file keeps of a set of processes."""
    return {
        "pairs": [
            {"pair": pair} | {side: [*map(asdict, slots)] for side, slots in by_side.items()}
            for pair, by_side in rounds.items()
        ]
    }


def measured_of(lines: Iterable[json_lines.Line]) -> Measured:
    """The slices of a case from the file's lines of its sets."""
    found: Measured = defaultdict(lambda: defaultdict(list))
    for each in (pair for line in lines for pair in line["pairs"]):
        for side in (side for side in SIDES if side in each):
            found[tuple(each["pair"])][side].append([Slot(**slot) for slot in each[side]])
    return found


def _measure(
    groups: Sequence[ClientGroup],
    departed: AwaitDeparture,
    rounds: int,
    slot_s: int,
    alone: Mapping[str, Slice],
) -> Rounds:
    """The slices of each pair by side, in the order of the rounds. `alone`: what takes the slices of
    pgbench by itself.
    """
    request = protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=_LEAD_IN_NS, window_ns=slot_s * 10**9)
    found: Rounds = defaultdict(lambda: defaultdict(list))
    for _ in range(rounds):
        for side, group in _shuffled(groups):
            take = alone.get(side, _slot)
            found[_pair(group.variant)][side].append(take(group, request))
            if why := departed(group):
                raise SystemExit(f"verdict: cannot measure: {group.variant.label}: {why}")
    return found


def _slot(group: ClientGroup, request: protocol.Slice) -> Slot:
    request = armed(group, request)
    recorded = group.run(request)
    window = SliceWindow.of(request, *recorded)
    phases = window.by_phase()
    connecting_ns = float(sum(phases[name].sum() for name in ("connect", "close") if name in phases))
    timed = len(window.durations) > 0  # pgbench times no operation over kept connections
    return Slot(
        window.ops / window.length_ns * 1e9,
        us=float(window.durations.mean()) / 1000 if timed else window.mean_us(group.variant.clients),
        connecting_us=connecting_ns / window.ops / 1000,
    )


def _printed(env: Mapping[str, str], group: ClientGroup, request: protocol.Slice) -> Slot:
    """pgbench by itself, on the CPUs of the group's clients and with their application_name, by which
    its backends are awaited.
    """
    clients, seconds = group.variant.clients, request.window_ns // 10**9
    load = ["--connect", f"--client={clients}", f"--jobs={clients}", f"--time={seconds}"]
    with on_cpus_of(group):
        done = _pgbench(env, group).run(f"{LIGHT.sql};\n", load, seconds)
    return _as_printed(done.summary, clients)


def _by_processes(env: Mapping[str, str], group: ClientGroup, request: protocol.Slice) -> Slot:
    """pgbench by itself, a process for each client, on the CPUs of the group. Its backends start where
    the server is bound, as those of the layer pgbench do.
    """
    clients, seconds = group.variant.clients, request.window_ns // 10**9
    code = script([sql_parameters.statement(LOOKUP.sql, LOOKUP.args)], group.variant.mode)
    variables = [f"--define={name}={value}" for name, value in code.variables.items()]
    load = [f"--time={seconds}", f"--protocol={group.variant.mode}", *variables]
    pgbench = _pgbench(env, group)
    with on_cpus_of(group), ThreadPoolExecutor(clients) as pool:
        done = pool.map(lambda _: pgbench.run(code.text, load, seconds), range(clients))
        per_s = sum(each.summary.tps for each in done)
    return Slot(per_s, us=clients / per_s * 1e6, connecting_us=0.0)


def _pgbench(env: Mapping[str, str], group: ClientGroup) -> Pgbench:
    spec = protocol.Spec(
        host=env["PGPERF_DB_SOCKET"], port=int(env["PGPERF_DB_PORT"]), dbname=env["PGPERF_DB_NAME"],
        user=env["PGPERF_DB_USER"], password=env["PGPERF_DB_PASSWORD"], application_name=group.application,
    )  # fmt: skip
    return Pgbench(env["PGPERF_PGBENCH"], spec)


def _as_printed(summary: Summary, clients: int) -> Slot:
    if not summary.connection_ms:
        raise SystemExit("verdict: cannot measure: pgbench printed no average connection time")
    return Slot(summary.tps, summary.mean_s(clients) * 1e6, summary.connection_ms * 1000)


def _shuffled(groups: Sequence[ClientGroup]) -> list[tuple[str, ClientGroup]]:
    """All sides in random order, those of a pair next to each other."""
    pairs: dict[Pair, list[tuple[str, ClientGroup]]] = defaultdict(list)
    for group in groups:
        pairs[_pair(group.variant)] += [(side, group) for side in _sides(group.variant)]
    order = random.sample(list(pairs.values()), len(pairs))
    return [each for pair in order for each in random.sample(pair, len(pair))]


def _sides(variant: Variant) -> list[str]:
    """The layer; beside pgbench as a layer, pgbench by itself: where it connects each time, and where
    several clients keep their connections.
    """
    if variant.layer != "pgbench":
        return [variant.layer]
    if variant.reconnects:
        return [variant.layer, PLAIN]
    return [variant.layer, PROCESSES] if variant.clients > 1 else [variant.layer]


def _pair(variant: Variant) -> Pair:
    return variant.mode, variant.clients


def _table(name: str, case: Case, measured: Measured) -> bool:
    passed = True
    figures = FIGURES | (CONNECTING if "per_operation" in case.definition.connection_modes else {})
    for (mode, clients), slots in measured.items():
        sets, rounds = len(slots["libpq"]), len(slots["libpq"][0])
        print(
            f"{name}: {mode}, {clients} client{'s' * (clients > 1)}, {rounds} slices of each layer"
            f" with each of {sets} sets of processes"
        )
        beside = {"pgbench": figures, PLAIN: PRINTED, PROCESSES: BY_PROCESSES}
        compared = [(other, *each) for other in beside if other in slots for each in beside[other].items()]
        for each in compared:
            passed &= _compared(case, slots, *each)
    return passed


def _compared(
    case: Case, slots: Mapping[str, list[list[Slot]]], other: str, what: str, figure: Callable[[Slot], float]
) -> bool:
    """The row of one figure of libpq and the other side."""
    return _row(what, case, *([[*map(figure, own)] for own in slots[side]] for side in ("libpq", other)))


def _row(what: str, case: Case, libpq: Figures, pgbench: Figures) -> bool:
    ratio = process_pairs.ratio(libpq, pgbench)
    holds = case.holds(ratio)
    interval = f"[{ratio.low:.3f}, {ratio.high:.3f}]" if ratio.low and ratio.high else "too few pairs"
    medians = " ".join(f"{np.median(np.concatenate(side)):>10.1f}" for side in (libpq, pgbench))
    figures = f"{medians} {ratio.centre:>7.3f} {interval:>16}"
    print(f"  {what:<34} {figures}{'' if holds else '  outside'}", flush=True)
    return holds


if __name__ == "__main__":
    run_script(main)
