"""What recording costs around a real query: a client's own loop, and a bare loop of the same calls, in
one process over one connection.

    python -m benchmarks.recording_cost [--quick] [--pairs N] [--operations N] [--driver D]

The statement is SELECT 1+1. benchmarks.driver_loop compares two processes; here nothing differs but
the loop, so the difference is what the clock, the stored time, the counted rows and the call of the
operation take. benchmarks.loop_cost measures them around an empty operation, with all caches warm; the
system calls of a query leave them cold. Each pair runs both loops in random order. The process has one
CPU and its backend another, as clients have. There is no bar: the script prints the cost per
operation with its 95 % interval, as time and as CPU time.
"""

import argparse
import gc
import io
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.bare_driver_loop import LOOPS, Work
from benchmarks.driver_cells import MODES, WORKS, Cell, interval
from benchmarks.driver_loop import work_of
from benchmarks.options import ScriptParser, run_script
from benchmarks.resident import routes_of
from example.stack.stack import Stack
from pgperf.analysis.paired_statistics import signed_rank_interval
from pgperf.clients import timed_loop
from pgperf.clients.programs.asyncpg_client import AsyncpgClient
from pgperf.clients.programs.psycopg2_client import Psycopg2Client
from pgperf.clients.programs.psycopg_async_client import PsycopgAsyncClient
from pgperf.clients.programs.psycopg_client import PsycopgClient
from pgperf.core import protocol, sql_parameters
from pgperf.core.records import Route
from pgperf.runner.cpu import idle, placement

ROOT = Path(__file__).resolve().parent.parent
QUERY = "oneplusone"
CLIENTS: dict[str, Callable[[io.BytesIO], Any]] = {
    "psycopg2": Psycopg2Client,
    "psycopg": PsycopgClient,
    "psycopg_async": PsycopgAsyncClient,
    "asyncpg": AsyncpgClient,
}


class Taken(NamedTuple):
    """Wall time and CPU time of the process, µs per operation."""

    us: float
    cpu_us: float


#: Runs so many operations.
Loop = Callable[[int], Taken]


def main() -> int:
    options = _options()
    print(HEADER)
    with (
        Stack(ROOT / ".stack" / "recording_cost", parts=["postgres"], keep=False) as stack,
        idle.keep_awake("awake"),
    ):
        places = placement.place("apart", os.sched_getaffinity(0), refusal="")
        for driver in options.driver or MODES:
            with _connected(driver, routes_of(stack)["socket"], places) as loops:
                print(row(driver, _measured(loops, options.pairs, options.operations)), flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--pairs", "pairs of both loops", full=100, quick=20)
    parser.add_size("--operations", "operations of a loop", full=5_000, quick=1_000)
    parser.add_argument("--driver", choices=MODES, action="append", help="this driver alone")
    return parser.options()


@contextmanager
def _connected(driver: str, route: Route, places: placement.CpuPlacement) -> Iterator[tuple[Loop, Loop]]:
    """The bare loop and the client's, over one connection."""
    spec = _spec(driver, route)
    client = CLIENTS[driver](io.BytesIO())
    client.load(spec)
    client.connect(spec)
    placement.pin(os.getpid(), places.clients)
    placement.pin(client.backend_pid, places.server)
    yield _bare(driver, client, route), _recorded(client.operation(spec))
    client.close()


def _spec(driver: str, route: Route) -> protocol.Spec:
    work = WORKS[QUERY]
    return protocol.Spec(
        layer=driver, mode=MODES[driver], host=route.host, port=route.port, dbname=route.dbname,
        user=route.user, password=route.password, statements=[sql_parameters.statement(work.sql, work.args)],
    )  # fmt: skip


def _bare(driver: str, client: Any, route: Route) -> Loop:
    work, connection = work_of(Cell(QUERY, driver), route), client._connection
    loop = LOOPS[driver, "read"]
    if not hasattr(client, "event_loop"):
        return lambda count: _timed(lambda: loop(connection, work, count), count)
    run = client.event_loop.run
    if driver == "asyncpg":
        work.statement = run(connection.prepare(work.sql))
    return lambda count: run(_timed_async(loop, connection, work, count))


def _timed(work: Callable[[], object], count: int) -> Taken:
    cpu, before = timed_loop.CpuTime.now(), timed_loop.monotonic_ns()
    work()
    ended = timed_loop.monotonic_ns()
    return _taken(ended - before, sum(timed_loop.CpuTime.now()) - sum(cpu), count)


async def _timed_async(loop: Callable[..., Any], connection: Any, work: Work, count: int) -> Taken:
    cpu, before = timed_loop.CpuTime.now(), timed_loop.monotonic_ns()
    await loop(connection, work, count)
    ended = timed_loop.monotonic_ns()
    return _taken(ended - before, sum(timed_loop.CpuTime.now()) - sum(cpu), count)


def _recorded(operation: timed_loop.Operation) -> Loop:
    stamps = timed_loop.new_stamps()

    def run(count: int) -> Taken:
        request = protocol.Slice(seq=1, lead_in_ops=0, lead_in_ns=0, count=count)
        timing = timed_loop.run_slice(operation, request, stamps)
        ns = int(np.frombuffer(timing.durations, "<u8").sum())
        return _taken(ns, timing.user_ns + timing.sys_ns, count)

    return run


def _taken(ns: int, cpu_ns: int, count: int) -> Taken:
    return Taken(ns / count / 1000, cpu_ns / count / 1000)


def _measured(loops: tuple[Loop, Loop], pairs: int, count: int) -> np.ndarray:
    """Shaped (pair, bare or recorded, µs or CPU µs)."""
    gc.collect()
    gc.freeze()
    for loop in loops:
        loop(count)
    found = np.empty((pairs, 2, 2))
    for pair in found:
        for side in random.sample((0, 1), 2):
            gc.collect()
            pair[side] = loops[side](count)
    return found


HEADER = (
    f"{'driver':<14} {'bare µs':>8} {'recorded':>8} {'adds µs':>8} {'95 % interval':>16}"
    f" {'CPU adds µs':>12} {'95 % interval':>16} {'pairs':>6}"
)


def row(driver: str, found: np.ndarray) -> str:
    """The driver's line of the table."""
    bare, recorded = np.median(found[:, :, 0], axis=0)
    wall, cpu = (signed_rank_interval(found[:, 1, kind] - found[:, 0, kind], 0.95) for kind in (0, 1))
    return (
        f"{driver:<14} {bare:>8.1f} {recorded:>8.1f} {wall.centre:>8.2f} {interval(wall):>16}"
        f" {cpu.centre:>12.2f} {interval(cpu):>16} {wall.n:>6}"
    )


if __name__ == "__main__":
    run_script(main)
