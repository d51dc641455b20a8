"""The original suite's own Python harness beside the benchmark driver-suite-published.

    python -m benchmarks.driver_suite_peer --suite DIR [--quick] [--repeats N] [--seconds N]
        [--loop uvloop|asyncio] [--query Q] [--driver D] [--without CAUSE] [--out FILE]

DIR is a clone of the public repository MagicStack/pgbench. Its harness imports more than this
comparison uses. Install that first: pip install --no-deps aiopg async-timeout py-postgresql uvloop.
(With its dependencies, aiopg would replace psycopg2.) The script runs the harness with this Python,
so both sides have the same drivers, and makes one change in memory: the harness gets its event loop
from asyncio.new_event_loop(), because current versions of uvloop refuse get_event_loop().

A cell is a query through a driver. In each repeat the harness and pgperf take turns in random
order: the same server and socket, 10 connections in one process on the same CPU, backends on
another, empty tables and a checkpoint before, the same warm-up and length. The bar: the ratio of
queries per second, pgperf over the harness, is within 0.9 to 1.1 in each cell, from at least six
repeats; and both read the same number of rows for a query. Both run the asynchronous drivers on the
event loop of `--loop`: on uvloop, as the suite does, or on asyncio's own, which also takes uvloop
from the harness. `--quick`: two short repeats, and no bar for the ratios. `--out` keeps each cell
under its conditions, and cells that the file has are not measured again.

`--without` removes from the harness what pgperf does not do either, to see what it counts for:
`lookup` (asyncpg looks its statement up in each query), `garbage` (Python's garbage collector looks
through all that was made before the measurement) and `bookkeeping` (its own around each query).

Autovacuum is off for both, because pgperf's tables have none. Slots of COPY and batch are three
times as long: the harness starts all 10 operations at once and waits for the last one, and the CPU
of one side is idle meanwhile. An operation of COPY or batch takes up to seconds, so in a short slot
these ends would count for much.
"""

import argparse
import importlib.util
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import json_lines, peer_harness
from benchmarks.driver_cells import (
    MODES,
    WORKS,
    Cell,
    Connected,
    cell_of,
    connected,
    create_tables,
    definition_of,
    interval,
    ratio,
    units,
)
from benchmarks.options import ScriptParser, run_script
from benchmarks.peer_harness import Harness, Slot
from benchmarks.resident import pin_new_backends, routes_of
from example.stack.postgres import connect_superuser
from example.stack.stack import Stack
from pgperf.analysis.paired_statistics import Estimate
from pgperf.catalog.driver_suite import DRIVER_SUITE_PUBLISHED
from pgperf.core import protocol

ROOT = Path(__file__).resolve().parent.parent
LOW, HIGH = 0.9, 1.1
LEAST_REPEATS = 6
NEEDS = {
    "aiopg": "aiopg",
    "postgresql": "py-postgresql",
    "uvloop": "uvloop",
    "async_timeout": "async-timeout",
}
#: How many times as long the slots of COPY and batch are.
_LONGER = 3


def main() -> int:
    options = _options()
    found: dict[Cell, Estimate] = {}
    unlike: list[Cell] = []
    asked = units(options, "harness", "loop", "repeats", "seconds", "warm_up")
    for kept in json_lines.resumed(options.out, asked, partial(_all, options)):
        cell, ours, theirs = cell_of(kept), _slots(kept["ours"]), _slots(kept["theirs"])
        found[cell] = ratio([slot.per_s for slot in ours], [slot.per_s for slot in theirs])
        if len(_rows(ours, theirs)) > 1:
            unlike.append(cell)
        print(line(cell, ours, theirs, found[cell]), flush=True)
    print("\n" + table(found))
    print(f"\n{verdict(found, unlike, options.repeats)}")
    judged = options.repeats >= LEAST_REPEATS
    return 1 if unlike or (judged and not all(map(holds, found.values()))) else 0


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--suite", type=Path, required=True, help="folder of MagicStack/pgbench")
    parser.add_size("--repeats", "slots of each cell and side", full=7, quick=2)
    parser.add_size("--seconds", "length of a slot, s; three times that for COPY and batch", full=5, quick=1)
    parser.add_argument("--warm-up", type=int, default=1, help="seconds before each slot (1)")
    parser.add_argument(
        "--loop", choices=("uvloop", "asyncio"), default="uvloop", help="of both sides (uvloop)"
    )
    parser.add_argument(
        "--without", choices=peer_harness.CAUSES, action="append", default=[], help="a cause of a difference"
    )
    parser.add_argument("--query", choices=WORKS, action="append", help="this query alone")
    parser.add_argument("--driver", choices=MODES, action="append", help="this driver alone")
    parser.add_out()
    options = parser.options()
    if not peer_harness.file_of(options.suite).is_file():
        parser.error(f"--suite: {options.suite} has no _python/pgbench_python.py; clone MagicStack/pgbench")
    digest = peer_harness.digest(options.suite)
    options.harness = "-".join([digest, *sorted(options.without)])
    print(f"harness: {digest}, the first digits of its SHA-256", flush=True)
    return options


def _check_needs() -> None:
    lacking = [package for module, package in NEEDS.items() if not importlib.util.find_spec(module)]
    if lacking:
        raise SystemExit(f"verdict: cannot measure: pip install --no-deps {' '.join(lacking)}")


def _slots(kept: Sequence[Mapping[str, Any]]) -> list[Slot]:
    return [Slot(**slot) for slot in kept]


def _all(options: argparse.Namespace, asked: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    """The cells, in turn."""
    _check_needs()
    text = peer_harness.changed(
        peer_harness.file_of(options.suite).read_text(), options.loop, options.without
    )
    with Stack(ROOT / ".stack" / "driver_suite_peer", parts=["postgres"], keep=False) as stack:
        create_tables(stack)
        _stop_autovacuum(stack)
        harness = Harness(options.suite, routes_of(stack)["socket"], text)
        for unit in asked:
            ours, theirs = _measured(stack, harness, cell_of(unit), options)
            yield {"ours": [*map(asdict, ours)], "theirs": [*map(asdict, theirs)]}


def _measured(
    stack: Stack, harness: Harness, cell: Cell, options: argparse.Namespace
) -> tuple[list[Slot], list[Slot]]:
    """The slots of pgperf and of the harness, repeat by repeat."""
    definition = definition_of(DRIVER_SUITE_PUBLISHED, cell, options.loop)
    name = f"peer-{cell.query}-{cell.driver}".replace("_", "-")
    seconds = slot_s(cell, options.seconds)
    ours: list[Slot] = []
    theirs: list[Slot] = []
    with connected(stack, definition, name) as client:
        pin_new_backends(stack, client.group)
        cpus = frozenset(os.sched_getaffinity(client.group.clients[0].pid))
        for _ in range(options.repeats):
            for side in random.sample((ours, theirs), 2):
                client.written.begin_block()
                if side is ours:
                    side.append(_client_slot(client, seconds, options.warm_up))
                else:
                    side.append(harness.measure(cell, seconds, options.warm_up, cpus))
    if not all(slot.per_s for slot in (*ours, *theirs)):
        raise SystemExit(
            f"verdict: cannot measure: no operation ended in a slot of {cell}; choose more --seconds"
        )
    return ours, theirs


def slot_s(cell: Cell, seconds: int) -> int:
    """The length of a slot of that cell."""
    return seconds * (_LONGER if WORKS[cell.query].bulk else 1)


def _stop_autovacuum(stack: Stack) -> None:
    with connect_superuser(stack.place, stack.state) as connection:
        connection.execute("ALTER SYSTEM SET autovacuum = off")
        connection.execute("SELECT pg_reload_conf()")


def _client_slot(client: Connected, seconds: int, warm_up: int) -> Slot:
    request = protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=warm_up * 10**9, window_ns=seconds * 10**9)
    window, _ = client.measure(request)
    return Slot(window.ops / window.length_ns * 1e9, client.rows_per_op)


def line(cell: Cell, ours: list[Slot], theirs: list[Slot], estimate: Estimate) -> str:
    """A cell's medians and ratio, and whether both sides read the same number of rows."""
    per_s = [float(np.median([slot.per_s for slot in side])) for side in (ours, theirs)]
    rows = _rows(ours, theirs)
    differing = "" if len(rows) == 1 else f"  rows per query differ: {sorted(map(str, rows))}"
    figures = f"pgperf {per_s[0]:>9.1f}/s  suite {per_s[1]:>9.1f}/s  ratio {estimate.centre:.3f}"
    return f"{cell.query:<16} {cell.driver:<14} {figures} ({interval(estimate)}){differing}"


def _rows(ours: Sequence[Slot], theirs: Sequence[Slot]) -> set[float | None]:
    """The numbers of rows of one query: more than one if the sides do different work."""
    return {slot.rows for slot in (*ours, *theirs)}


def table(found: Mapping[Cell, Estimate]) -> str:
    """Markdown: the ratio of queries per second of each query (rows) and driver (columns)."""
    queries, drivers = (list(dict.fromkeys(each[at] for each in found)) for at in (0, 1))
    head = [f"| pgperf over suite | {' | '.join(drivers)} |", "|---" * (len(drivers) + 1) + "|"]
    body = [
        f"| {query} | {' | '.join(_entry(found.get(Cell(query, driver))) for driver in drivers)} |"
        for query in queries
    ]
    return "\n".join(head + body)


def _entry(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    text = f"{estimate.centre:.2f} ({interval(estimate)})"
    return text if holds(estimate) else f"**{text}**"


def holds(estimate: Estimate) -> bool:
    return LOW <= estimate.centre <= HIGH


def verdict(found: Mapping[Cell, Estimate], unlike: Sequence[Cell], repeats: int) -> str:
    """One line: does the bar hold, and where not? `unlike`: the cells whose sides read other rows."""
    if unlike:
        return f"verdict: the bar does NOT hold: other rows per query: {_names(unlike)}"
    outside = [cell for cell, each in found.items() if not holds(each)]
    if repeats < LEAST_REPEATS:
        count = f"{len(outside)} of {len(found)}"
        return f"verdict: none with {repeats} repeats, it needs {LEAST_REPEATS}; outside: {count}"
    if not outside:
        return f"verdict: the bar holds ({LOW} to {HIGH} in each cell)"
    return f"verdict: the bar does NOT hold ({LOW} to {HIGH} in each cell): {_names(outside)}"


def _names(cells: Sequence[Cell]) -> str:
    return ", ".join(f"{cell.query} through {cell.driver}" for cell in cells)


if __name__ == "__main__":
    run_script(main)
