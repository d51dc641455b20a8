"""Seven queries through pgperf's clients and through a bare loop of the same driver calls.

    python -m benchmarks.driver_loop [--quick] [--processes N] [--pairs N] [--slice-ms N] [--query Q]
        [--driver D] [--out FILE]

Each cell is a query of the benchmark driver-suite through one driver: its client, and a process of
its own that only calls the driver (benchmarks/bare_driver_loop.py). Both have one connection, their
processes the same CPU and their backends another one. They take turns in random order; both run the
same number of operations. Tables that a query fills are empty before each turn. Eight pairs of
processes follow each other, and an interval is over these, because a process may be fast or slow for
as long as it lives.

The bar: the ratio of the times, client over bare loop, is at most 1.02 in each cell; its 95 % interval
is printed. The ratio of the processes' CPU times is printed beside it, because other load disturbs it
less. `--quick`: two pairs of processes with short slices, in a few minutes. `--out` keeps each cell
under its conditions, and cells that the file has are not measured again.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import json_lines, process_pairs
from benchmarks.bare_driver_loop import Work
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
    units,
)
from benchmarks.options import ScriptParser, run_script
from benchmarks.resident import routes_of
from example.stack.stack import Stack
from pgperf.analysis.paired_statistics import Estimate
from pgperf.catalog.driver_suite import DRIVER_SUITE
from pgperf.core import protocol, sql_parameters
from pgperf.core.records import Route
from pgperf.runner.cpu import placement

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(__file__).with_name("bare_driver_loop.py")
BAR = 1.02
_TRIED = 3


class Taken(NamedTuple):
    """Wall time and CPU time of the process, µs per operation."""

    us: float
    cpu_us: float


#: Slices by process, each with those of its pair.
Slices = list[list[Taken]]


class BareLoop:
    """The bare loop of a cell, a process that runs inside of this context."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __enter__(self) -> "BareLoop":
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment(),
        )  # fmt: skip
        (self._backend_pid,) = self._asked(json.dumps(asdict(self._work)))
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # closes its pipes, at which it ends
            pass

    def place_beside(self, client: Connected) -> None:
        """On the client's CPU, and its backend on the CPU of the client's backend."""
        placement.pin(self._process.pid, _cpus(client.group.clients[0].pid))
        placement.pin(self._backend_pid, _cpus(client.group.server_pids[0]))

    def taken(self, count: int) -> "Taken":
        """What one of so many operations took."""
        ns, cpu_ns = self._asked(str(count))
        return Taken(ns / count / 1000, cpu_ns / count / 1000)

    def _asked(self, request: str) -> list[int]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("verdict: cannot measure: the bare loop has ended, see above")
        return [int(number) for number in answer.split()]


def main() -> int:
    options = _options()
    held = []
    print(HEADER)
    asked = units(options, "processes", "pairs", "slice_ms")
    for line in json_lines.resumed(options.out, asked, partial(_all, options)):
        ours, bare = (_slices(line[side]) for side in ("ours", "bare"))
        print(row(cell_of(line), ours, bare), flush=True)
        held.append(holds(time_ratio(ours, bare)))
    print(f"verdict: the bar {'holds' if all(held) else 'does NOT hold'} (at most {BAR} in each cell)")
    return 0 if all(held) else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--processes", "processes of each cell and program", full=8, quick=2)
    parser.add_size("--pairs", "slices of each process", full=5, quick=4)
    parser.add_size("--slice-ms", "length of a slice, about", full=200, quick=80)
    parser.add_argument("--query", choices=WORKS, action="append", help="this query alone")
    parser.add_argument("--driver", choices=MODES, action="append", help="this driver alone")
    parser.add_out()
    return parser.options()


def _all(options: argparse.Namespace, asked: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    """The cells, in turn."""
    with Stack(ROOT / ".stack" / "driver_loop", parts=["postgres"], keep=False) as stack:
        create_tables(stack)
        for unit in asked:
            ours, bare = _measured(stack, cell_of(unit), options)
            yield {"ours": ours, "bare": bare}


def _slices(kept: Sequence[Sequence[Sequence[float]]]) -> Slices:
    return [[Taken(*each) for each in own] for own in kept]


def _measured(stack: Stack, cell: Cell, options: argparse.Namespace) -> tuple[Slices, Slices]:
    """The slices of the clients and of the bare loops, one pair of processes after the other."""
    pairs = [_of_a_pair(stack, cell, number, options) for number in range(options.processes)]
    return [ours for ours, _ in pairs], [bare for _, bare in pairs]


def _of_a_pair(
    stack: Stack, cell: Cell, number: int, options: argparse.Namespace
) -> tuple[list[Taken], list[Taken]]:
    """The slices of a new client and a new bare loop, pair by pair. A process that starts earlier has
    other memory, so chance decides which of the two it is.
    """
    definition, route = definition_of(DRIVER_SUITE, cell), routes_of(stack)["socket"]
    name = f"loop-{cell.query}-{cell.driver}-{number}".replace("_", "-")
    ours: list[Taken] = []
    theirs: list[Taken] = []
    bare, first = BareLoop(work_of(cell, route)), random.random() < 0.5
    with (
        connected(stack, definition, name, earlier=bare if first else nullcontext()) as client,
        nullcontext() if first else bare,
    ):
        bare.place_beside(client)
        count = _operations(client, bare, options.slice_ms)
        for _ in range(options.pairs):
            for side in random.sample((ours, theirs), 2):
                side.append(_of_client(client, count) if side is ours else _of_bare(client, bare, count))
    return ours, theirs


def _operations(client: Connected, bare: BareLoop, slice_ms: int) -> int:
    """How many operations a slice has, by a second try of the bare loop."""
    us = [_of_bare(client, bare, _TRIED).us for _ in range(2)][-1]
    return max(1, round(slice_ms * 1000 / us))


def _of_client(client: Connected, count: int) -> Taken:
    window, cpu_ns = client.measure(protocol.Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=count))
    return Taken(window.length_ns / window.ops / 1000, cpu_ns / window.ops / 1000)


def _of_bare(client: Connected, bare: BareLoop, count: int) -> Taken:
    taken = bare.taken(count)
    client.written.empty()
    return taken


def _environment() -> dict[str, str]:
    """This one without libpq's variables, as a client has it."""
    kept = {name: value for name, value in os.environ.items() if not protocol.is_libpq_variable(name)}
    return {**kept, "PGTZ": "UTC"}


def _cpus(pid: int) -> frozenset[int]:
    return frozenset(os.sched_getaffinity(pid))


def work_of(cell: Cell, route: Route) -> Work:
    """The work of a cell as its driver takes it."""
    work = WORKS[cell.query]
    login = {"host": route.host, "port": route.port, "user": route.user, "password": route.password}
    login["database" if cell.driver == "asyncpg" else "dbname"] = route.dbname
    insert = work.bulk
    if not insert:
        statement = sql_parameters.statement(work.sql, work.args)
        text = statement.numbered if cell.driver == "asyncpg" else statement.sql
        return Work(cell.driver, "read", login, text, list(work.args))
    statement = sql_parameters.row_statement(insert.sql, insert.row)
    text = statement.numbered if cell.driver == "asyncpg" else statement.sql
    return Work(
        cell.driver, insert.kind, login, text, list(insert.row),
        insert.table, insert.columns, insert.types, insert.rows,
    )  # fmt: skip


HEADER = (
    f"{'query':<16} {'driver':<14} {'client µs':>10} {'bare µs':>10} {'time':>6} {'95 % interval':>15}"
    f" {'CPU time':>9} {'95 % interval':>15} {'processes':>9}"
)


def row(cell: Cell, ours: Slices, bare: Slices) -> str:
    """The cell's line of the table."""
    time, cpu = time_ratio(ours, bare), process_pairs.ratio(_cpu_us(ours), _cpu_us(bare))
    figures = " ".join(f"{np.median(np.concatenate(_us(side))):>10.1f}" for side in (ours, bare))
    ratios = f"{time.centre:>6.3f} {interval(time):>15} {cpu.centre:>9.3f} {interval(cpu):>15}"
    outside = "" if holds(time) else "  outside"
    return f"{cell.query:<16} {cell.driver:<14} {figures} {ratios} {time.n:>9}{outside}"


def time_ratio(ours: Slices, bare: Slices) -> Estimate:
    """The client's time over the bare loop's."""
    return process_pairs.ratio(_us(ours), _us(bare))


def _us(slices: Slices) -> list[list[float]]:
    return [[each.us for each in own] for own in slices]


def _cpu_us(slices: Slices) -> list[list[float]]:
    return [[each.cpu_us for each in own] for own in slices]


def holds(estimate: Estimate) -> bool:
    """Is the client at most as much slower as the bar permits?"""
    return estimate.centre <= BAR


if __name__ == "__main__":
    run_script(main)
