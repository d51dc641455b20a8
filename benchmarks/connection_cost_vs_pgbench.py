"""The layers libpq and pgbench in one run, on the same CPUs: a connection for each operation, and kept
connections.

    python -m benchmarks.connection_cost_vs_pgbench [--quick] [--rounds N] [--slot-s N] [--only CASE]
        [--out FILE]

Case `connect`: 20 clients connect, run SELECT 1 and close (pgbench: -C), over the direct route
(login by SCRAM). Operations per second, and the mean time of one connection with its statement. Case
`kept`: the statement of benchmarks.libpq_vs_pgbench, simple and prepared, with 1 and 8 clients.
Slices of both layers alternate in random order; no slice begins before the backends of the last one
have left. The bar for `connect`: each ratio, libpq over pgbench, within 0.95 to 1.05, and the half
of its interval at most 3 %. For `kept`: within 0.98 to 1.05, as benchmarks.libpq_vs_pgbench has it.
`--out` keeps each case under its conditions, and a case that the file has is not measured again.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import json_lines
from benchmarks.options import ScriptParser, run_script
from benchmarks.resident import departing
from example.stack.stack import Stack
from pgperf.analysis.paired_statistics import Estimate, log_ratios, signed_rank_interval
from pgperf.core import protocol
from pgperf.core.records import Definition, Variant, WorkloadDefinition
from pgperf.runner.client_group import AwaitDeparture, ClientGroup, SliceWindow, armed

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("libpq", "pgbench")
LIGHT = WorkloadDefinition("select-1", "SELECT 1")
LOOKUP = WorkloadDefinition("lookup", "select relname, relkind from pg_class where oid = %s", (1259,))
CONFIDENCE = 0.95
_LEAD_IN_NS = 1_000_000_000  # until the clients do not connect in step any more


@dataclass(frozen=True)
class Case:
    """A definition, and the bar for the ratios of its layers."""

    definition: Definition
    low: float
    high: float
    half: float | None  # the largest half-width of an interval; None: any


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


#: The slots of each pair by layer.
Measured = dict[Pair, dict[str, list[Slot]]]


def main() -> int:
    options = _options()
    passed = True
    conditions = json_lines.conditions(options, "rounds", "slot_s")
    units = [{"case": name, **conditions} for name in options.only or CASES]
    for line in json_lines.resumed(options.out, units, partial(_all, options)):
        passed &= _table(line["case"], CASES[line["case"]], measured_of(line))
    print(f"verdict: the bars {'hold' if passed else 'do NOT hold'}")
    return 0 if passed else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--rounds", "slices of each layer and pair", full=25, quick=7)
    parser.add_argument("--slot-s", type=int, default=4, help="length of a slice in seconds (4)")
    parser.add_argument("--only", choices=CASES, action="append", help="this case alone")
    parser.add_out()
    return parser.options()


def _all(options: argparse.Namespace, units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    """The cases, in turn."""
    with Stack(ROOT / ".stack" / "connection_cost_vs_pgbench", parts=["postgres"], keep=False) as stack:
        for unit in units:
            name = unit["case"]
            with departing(stack, CASES[name].definition, name) as (groups, departed):
                yield line_of(_measure(groups, departed, options.rounds, options.slot_s))


def line_of(measured: Measured) -> dict[str, Any]:
    """What a campaign's file keeps of a case."""
    return {
        "pairs": [
            {"pair": pair, **{layer: [*map(asdict, slots)] for layer, slots in by_layer.items()}}
            for pair, by_layer in measured.items()
        ]
    }


def measured_of(line: json_lines.Line) -> Measured:
    """The same from the file."""
    return {
        tuple(each["pair"]): {layer: [Slot(**slot) for slot in each[layer]] for layer in LAYERS}
        for each in line["pairs"]
    }


def _measure(groups: Sequence[ClientGroup], departed: AwaitDeparture, rounds: int, slot_s: int) -> Measured:
    """The slices of each pair by layer, in the order of the rounds."""
    request = protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=_LEAD_IN_NS, window_ns=slot_s * 10**9)
    found: Measured = defaultdict(lambda: defaultdict(list))
    for _ in range(rounds):
        for group in _shuffled(groups):
            found[_pair(group.variant)][group.variant.layer].append(_slot(group, armed(group, request)))
            if why := departed(group):
                raise SystemExit(f"verdict: cannot measure: {group.variant.label}: {why}")
    return found


def _slot(group: ClientGroup, request: protocol.Slice) -> Slot:
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


def _shuffled(groups: Sequence[ClientGroup]) -> list[ClientGroup]:
    """All groups in random order, the two of a pair next to each other."""
    pairs: dict[Pair, list[ClientGroup]] = defaultdict(list)
    for group in groups:
        pairs[_pair(group.variant)].append(group)
    order = random.sample(list(pairs.values()), len(pairs))
    return [group for pair in order for group in random.sample(pair, len(pair))]


def _pair(variant: Variant) -> Pair:
    return variant.mode, variant.clients


def _table(name: str, case: Case, measured: Measured) -> bool:
    passed = True
    for (mode, clients), slots in measured.items():
        print(
            f"{name}: {mode}, {clients} client{'s' * (clients > 1)}, {len(slots['libpq'])} slices of each layer"
        )
        passed &= _row("operations/s", case, *([slot.per_s for slot in slots[layer]] for layer in LAYERS))
        if "per_operation" in case.definition.connection_modes:
            passed &= _row(
                "µs, connection with its statement", case, *([s.us for s in slots[layer]] for layer in LAYERS)
            )
            passed &= _row(
                "µs, connect and close", case, *([s.connecting_us for s in slots[layer]] for layer in LAYERS)
            )
    return passed


def _row(what: str, case: Case, libpq: Sequence[float], pgbench: Sequence[float]) -> bool:
    ratio = signed_rank_interval(log_ratios(np.array(libpq), np.array(pgbench)), CONFIDENCE).exp()
    half = _half_width(ratio)
    holds = case.low <= ratio.centre <= case.high and (
        case.half is None or (half is not None and half <= case.half)
    )
    interval = f"[{ratio.low:.3f}, {ratio.high:.3f}]" if ratio.low and ratio.high else "too few pairs"
    figures = f"{np.median(libpq):>10.1f} {np.median(pgbench):>10.1f} {ratio.centre:>7.3f} {interval:>16}"
    print(f"  {what:<34} {figures}{'' if holds else '  outside'}", flush=True)
    return holds


def _half_width(ratio: Estimate) -> float | None:
    return (ratio.high - ratio.low) / 2 / ratio.centre if ratio.low and ratio.high else None


if __name__ == "__main__":
    run_script(main)
