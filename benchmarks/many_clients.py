"""Memory of 32 C clients and start-up time of 32 ORM clients.

    python -m benchmarks.many_clients [--clients 32] [--starts 5] [--quick]

The clients run on the first two CPUs, against the embedded stack's PostgreSQL over the local
socket; the code that starts the clients of a run starts them. Memory is the proportional set size
(PSS) of each C client, from /proc/PID/smaps_rollup: after start-up, after a common slice of the
usual length, and after one of the greatest length (5 s). Start-up is the wall time from the first
spawn until all ORM clients are connected and have run the query; it is repeated. The clients' CPU
time shows how much of it they waited on a busy machine. The bars: no C client above 4 MiB after
either slice; every start of the ORM clients under 20 s. `--quick`: one start, under a minute.
"""

import argparse
import os
import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.example_site import ROOT
from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack
from pgperf.catalog import FIXTURES
from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN
from pgperf.core import protocol
from pgperf.core.records import Definition, Route, Variant
from pgperf.install.c_client import build
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_startup import started
from pgperf.runner.server.control_connection import ControlConnection

CPUS = 2
MAX_MIB, MAX_START_S = 4.0, 20.0
_MIB = 1 << 20
_USUAL_MS, _LONGEST_MS, _LEAD_IN_MS = 50, 5000, 50
_ARM_NS = 200_000_000


def main() -> int:
    options = _options()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CPUS])
    with Stack(ROOT / ".stack" / "many-clients", parts=["postgres"], keep=False) as stack:
        build_dir = str(build(stack.place.own / "build", pg_config=stack.env["PGPERF_PG_CONFIG"]).path.parent)
        clients = _Clients(_route(stack.env), build_dir, options.clients)
        memory = _memory_of_c(clients)
        cpu_before = _cpu_s()
        starts, orm_mib = _starts_of_orm(clients, options.starts)
        cpu_s = (_cpu_s() - cpu_before) / options.starts
    held = _print_memory(memory), _print_starts(starts, cpu_s, orm_mib)
    print(
        f"verdict: the bar {'holds' if all(held) else 'does NOT hold'} ({options.clients} clients: at most"
        f" {MAX_MIB:.0f} MiB for each C client, the ORM's ready in under {MAX_START_S:.0f} s)"
    )
    return 0 if all(held) else 1


class _Clients:
    """Starts clients of one layer as a run does."""

    def __init__(self, route: Route, build_dir: str, clients: int) -> None:
        self._route, self._build_dir, self._clients = route, build_dir, clients
        with ControlConnection(route, "pgperf-fixture") as control:
            for statement in FIXTURES[SITE_BY_DOMAIN.fixture].create:
                control.query(statement)

    @contextmanager
    def of(self, layer: str) -> Iterator[ClientGroup]:
        definition = Definition("many-clients", (SITE_BY_DOMAIN,), (layer,), (self._route.name,))
        variant = Variant(
            workload=SITE_BY_DOMAIN.name,
            layer=layer,
            mode="simple",
            route=self._route.name,
            clients=self._clients,
            connect="persistent",
            placement="scheduler",
        )
        routes = {self._route.name: self._route}
        named = [(variant, "pgperf-many")]
        with started(definition, named, routes, self._build_dir, cold=False, placed=None) as (group,):
            yield group


def _memory_of_c(clients: _Clients) -> dict[str, list[float]]:
    """MiB of each C client at each stage."""
    with clients.of("libpq") as group:
        found = {"after start-up": _pss_mib(group)}
        for words, slice_ms in (("after a usual slice", _USUAL_MS), ("after the longest", _LONGEST_MS)):
            start = time.monotonic_ns() + _ARM_NS
            group.run(
                protocol.Slice(
                    seq=1,
                    start_ns=start,
                    lead_in_ops=10,
                    lead_in_ns=_LEAD_IN_MS * 1_000_000,
                    window_ns=slice_ms * 1_000_000,
                )
            )
            found[f"{words}, {slice_ms} ms"] = _pss_mib(group)
    return found


def _starts_of_orm(clients: _Clients, times: int) -> tuple[list[float], float]:
    """Seconds of each start, and the total MiB of all clients of the last one."""
    seconds, mib = [], 0.0
    for _ in range(times):
        began = time.monotonic()
        with clients.of("django_orm") as group:
            seconds.append(time.monotonic() - began)
            mib = sum(_pss_mib(group))
    return seconds, mib


def _cpu_s() -> float:
    """CPU time of all child processes that have ended, seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _pss_mib(group: ClientGroup) -> list[float]:
    """The PSS of each client: shared pages count in proportion."""
    rolled = [Path(f"/proc/{client.pid}/smaps_rollup").read_text() for client in group.clients]
    lines = (line for text in rolled for line in text.splitlines() if line.startswith("Pss:"))
    return [int(line.split()[1]) * 1024 / _MIB for line in lines]


def _print_memory(found: dict[str, list[float]]) -> bool:
    print(f"{'PSS of a C client, MiB':<32} {'smallest':>9} {'median':>9} {'largest':>9} {'bar':>6}")
    for words, mib in found.items():
        print(f"{words:<32} {min(mib):>9.2f} {statistics.median(mib):>9.2f} {max(mib):>9.2f} {MAX_MIB:>6.0f}")
    return max(max(mib) for mib in found.values()) <= MAX_MIB


def _print_starts(seconds: Sequence[float], cpu_s: float, mib: float) -> bool:
    print(f"\n{'the ORM, all ready after, s':<32} {'shortest':>9} {'median':>9} {'longest':>9} {'bar':>6}")
    low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
    print(f"{f'{len(seconds)} starts':<32} {low:>9.2f} {middle:>9.2f} {high:>9.2f} {MAX_START_S:>6.0f}")
    print(f"the clients' CPU time for one start is {cpu_s:.1f} s; their memory in total is {mib:.0f} MiB\n")
    return high < MAX_START_S


def _route(env: dict[str, str]) -> Route:
    login = (env["PGPERF_DB_NAME"], env["PGPERF_DB_USER"], env["PGPERF_DB_PASSWORD"])
    return Route("socket", env["PGPERF_DB_SOCKET"], int(env["PGPERF_DB_PORT"]), *login)


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_size("--starts", "starts of the ORM clients", full=5, quick=1)
    return parser.options()


if __name__ == "__main__":
    run_script(main)
