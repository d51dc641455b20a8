"""What a login costs: `pgbench -C` by SCRAM and without a password, directly and through PgBouncer.

    python -m benchmarks.connect_cost [--repeats N] [--seconds N] [--clients N] [--plain-file]

Each transaction connects, runs SELECT 1 and closes. The four routes take turns, in random order
within a repeat; pgbench has as many threads as clients, because with one thread connects are made
one after the other. Printed are the transactions per second (median, smallest and largest), how
many times as many they are through PgBouncer, and the CPU time of one transaction: of pgbench, of
PgBouncer, and of the server with all its short-lived backends (its control group; "not known"
without one). PostgreSQL's build in the example stack has no TLS; no route uses it.

`--plain-file` gives the PgBouncer with SCRAM a file of plain passwords instead of verifiers.
"""

import argparse
import os
import random
import re
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil
from psycopg.conninfo import conninfo_to_dict

from benchmarks.options import ScriptParser, run_script
from example.stack import pgbouncer, postgres
from example.stack.stack import Stack
from pgperf.runner.cpu.cgroups import group_ns

ROOT = Path(__file__).resolve().parent.parent
#: Title, the variable with the DSN, the part that is the pooler.
ROUTES = (
    ("SCRAM, direct", "PGPERF_DSN_TCP", ""),
    ("SCRAM, PgBouncer", "PGPERF_DSN_PGBOUNCER", "pgbouncer"),
    ("trust, direct", "PGPERF_DSN_TCP_TRUST", ""),
    ("trust, PgBouncer", "PGPERF_DSN_PGBOUNCER_TRUST", "pgbouncer_trust"),
)
_TPS = re.compile(r"tps = ([0-9.]+) \(including reconnection times\)")
_PROCESSED = re.compile(r"transactions actually processed: ([0-9]+)")


@dataclass
class Route:
    """One route and its measurements: tps and CPU ms per transaction, one number per repeat."""

    title: str
    dsn: str
    pooler: psutil.Process | None
    tps: list[float] = field(default_factory=list)
    cpu_ms: dict[str, list[float]] = field(default_factory=dict)


def main() -> int:
    options = _options()
    parts = ["postgres", "pgbouncer", "pgbouncer_trust"]
    with _passwords(options.plain_file), Stack(ROOT / ".stack" / "connect_cost", parts, keep=False) as stack:
        script = stack.place.own / "select.sql"
        script.write_text("SELECT 1;\n")
        routes = [_route(stack, *each) for each in ROUTES]
        server_ns = _server_ns(stack)
        for _ in range(options.repeats):
            for route in random.sample(routes, len(routes)):
                _measure(route, script, stack.env["PGPERF_PGBENCH"], server_ns, options)
    print(_table(routes))
    for kind in ("SCRAM", "trust"):
        direct, pooled = (route for route in routes if route.title.startswith(kind))
        ratios = [two / one for one, two in zip(direct.tps, pooled.tps, strict=True)]
        print(
            f"{kind}: through PgBouncer {median(ratios):.1f} times ({min(ratios):.1f} to {max(ratios):.1f})"
        )
    return 0


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__, quick=False)
    parser.add_argument("--repeats", type=int, default=5, help="of each route (5)")
    parser.add_argument("--seconds", type=int, default=5, help="of each call of pgbench (5)")
    parser.add_argument("--clients", type=int, default=20, help="clients and threads of pgbench (20)")
    parser.add_argument("--plain-file", action="store_true", help="PgBouncer has plain passwords")
    return parser.options()


@contextmanager
def _passwords(plain: bool) -> Iterator[None]:
    """PgBouncer's file of users has passwords instead of verifiers, if asked for."""
    before = pgbouncer.verifiers
    if plain:
        pgbouncer.verifiers = lambda place, state, roles: {
            role: {postgres.ROLE: state.site_password, postgres.READER: state.reader_password}.get(role, "")
            for role in roles
        }
    try:
        yield
    finally:
        pgbouncer.verifiers = before


def _route(stack: Stack, title: str, variable: str, part: str) -> Route:
    started = {each.name: each.process for each in stack.running}
    process = started[pgbouncer.POOLINGS[part].title] if part else None
    return Route(title, stack.env[variable], psutil.Process(process.pid) if process else None)


def _server_ns(stack: Stack) -> Callable[[], int | None]:
    group = stack.running[0].cgroup
    return group_ns(group) if group else lambda: None


def _measure(
    route: Route,
    script: Path,
    pgbench: str,
    server_ns: Callable[[], int | None],
    options: argparse.Namespace,
) -> None:
    before = _cpu_s(route, server_ns)
    text = _pgbench(route, script, pgbench, options)
    after = _cpu_s(route, server_ns)
    tps, processed = _TPS.search(text), _PROCESSED.search(text)
    if not tps or not processed:
        raise SystemExit(f"verdict: cannot measure: pgbench said\n{text}")
    route.tps.append(float(tps[1]))
    for role, first in before.items():
        last = after[role]
        if first is not None and last is not None:
            route.cpu_ms.setdefault(role, []).append(1000 * (last - first) / int(processed[1]))


def _pgbench(route: Route, script: Path, pgbench: str, options: argparse.Namespace) -> str:
    login = conninfo_to_dict(route.dsn)
    argv = [pgbench, "-n", "-C", f"-c{options.clients}", f"-j{options.clients}", f"-T{options.seconds}"]
    argv += ["-f", str(script), "-h", str(login["host"]), "-p", str(login["port"]), "-U", str(login["user"])]
    password = {"PGPASSWORD": str(login["password"])} if "password" in login else {}
    environment = {"PATH": os.defpath, "PGSSLMODE": "disable", **password}
    done = subprocess.run(
        [*argv, str(login["dbname"])], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"verdict: cannot measure: pgbench ended with {done.returncode}\n{done.stderr}")
    return done.stdout


def _cpu_s(route: Route, server_ns: Callable[[], int | None]) -> dict[str, float | None]:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    server = server_ns()
    return {
        "pgbench": used.ru_utime + used.ru_stime,
        "PgBouncer": sum(route.pooler.cpu_times()[:2]) if route.pooler else None,
        "server": None if server is None else server / 1e9,
    }


def _table(routes: list[Route]) -> str:
    roles = ("pgbench", "PgBouncer", "server")
    lines = [
        "| route | tps | smallest to largest | " + " | ".join(f"{role}, CPU ms" for role in roles) + " |"
    ]
    lines.append("|---|" + "---|" * (2 + len(roles)))
    for route in routes:
        cells = [f"{median(route.tps):,.0f}", f"{min(route.tps):,.0f} to {max(route.tps):,.0f}"]
        cells += [_ms(route, role) for role in roles]
        lines.append(f"| {route.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _ms(route: Route, role: str) -> str:
    if role in route.cpu_ms:
        return f"{median(route.cpu_ms[role]):.2f}"
    return "–" if role == "PgBouncer" else "not known"


if __name__ == "__main__":
    run_script(main)
