"""What two attacks take: small files that are costly to import, and results that fill the memory.

    python -m benchmarks.exhaustion [--tree DIR] [--quick]

Files: a fresh process reads each file as an import does. Printed are its CPU time and by how much
its resident memory grows at the peak. The bar: 2 s and 200 MB each. `--tree DIR` reads them with
the pgperf of another checkout, such as an older one, and measures nothing else.

Results: psycopg clients, started as in a run, read a large result. Printed is the peak of resident
memory (VmHWM), of the largest client and of all together: without a limit, and with each client's
share of a run that may take 1 GiB. The bar: with the share, all clients end with the error "out of
memory" and stay within 1 GiB together. Without it, no client gets more than 3 GiB.

`--quick`: half the rows.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.example_site import ROOT
from benchmarks.options import ScriptParser, run_script
from benchmarks.resident import routes_of
from example.stack.stack import Stack
from pgperf.core import protocol, sql_parameters
from pgperf.core.exceptions import OutOfMemory
from pgperf.core.records import Definition, Route, WorkloadDefinition
from pgperf.install import launch
from pgperf.runner.client_process import ClientProcess, login
from pgperf.runner.memory import MIB, RunMemory
from pgperf.runner.plan import make_plan

MAX_CPU_S, MAX_MB = 2.0, 200.0
_NAMES = [f"{number:x}" for number in range(20_000)]
_REPEATED = [*_NAMES[:-1], _NAMES[-2]]
_PAIRS = ",".join(f'"{name}":1' for name in _REPEATED)
#: The attacks as they were, and others of their class. In YAML, `1:1:1` is a number in base 60.
FILES: dict[str, tuple[str, str]] = {
    "JSON, 20,000 keys, the last twice": ("x.json", "[{" + _PAIRS + "}]"),
    "the same in a value": ("x.json", '[{"name":"a","lookup":{' + _PAIRS + "}}]"),
    "CSV, 20,000 columns, the last twice": ("x.csv", ",".join(_REPEATED) + "\n"),
    "the same, all columns different": ("x.csv", ",".join(_NAMES) + "\n"),
    "YAML, 20,000 keys, the last twice": ("x.yaml", "- {" + ", ".join(f"{key}: 1" for key in _REPEATED) + "}\n"),
    "YAML, a number in base 60": ("x.yaml", "- {name: a, blocks: 1" + ":1" * 200_000 + "}\n"),
}  # fmt: skip
#: Reads the file on its stdin and prints its cost as JSON.
_READER = """
import json, sys, time
from pathlib import Path
from pgperf.core.exceptions import TransferError
from pgperf.transfer import files

def peak_kb():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

content = sys.stdin.buffer.read()
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before_kb, before_s = peak_kb(), time.process_time()
try:
    files.read(sys.argv[1], content)
    refused = ""
except TransferError as error:
    refused = str(error)
print(json.dumps([time.process_time() - before_s, (peak_kb() - before_kb) * 1.024e-3, refused]))
"""

ALLOWED = RunMemory(free_bytes=2 * 1024 * MIB, allowed_bytes=1024 * MIB, is_set=True)
_MOST_BYTES = 3 * 1024 * MIB
_LOOK_S = 0.005
_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Result:
    """A statement, and the number of clients that read its result at the same time."""

    title: str
    sql: str
    clients: int = 1


@dataclass(frozen=True)
class Peaks:
    """Peaks of resident memory, one per client, and how many clients ran out of memory."""

    mib: list[float]
    refused: int


def main() -> int:
    options = _options()
    files_hold = _print_files(options.tree)
    if options.tree != ROOT:
        return 0
    with Stack(ROOT / ".stack" / "exhaustion", parts=["postgres"], keep=False) as stack:
        results_hold = _print_results(routes_of(stack)["socket"], options.rows)
    held = files_hold and results_hold
    print(f"\nverdict: the bar {'holds' if held else 'does NOT hold'}")
    return 0 if held else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--rows", "rows of 1 kB in a result", full=700_000, quick=350_000)
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose pgperf reads the files")
    return parser.options()


def _print_files(tree: Path) -> bool:
    """Does every file stay within the bar?"""
    print(f"{'file':<36} {'kB':>5} {'CPU, s':>8} {'MB':>6}  refused")
    held = True
    for title, (name, content) in FILES.items():
        cpu_s, mb, refused = _cost(tree, name, content.encode())
        print(f"{title:<36} {len(content) / 1000:>5.0f} {cpu_s:>8.2f} {mb:>6.0f}  {refused[:60]}")
        held = held and cpu_s <= MAX_CPU_S and mb <= MAX_MB
    return held


def _cost(tree: Path, name: str, content: bytes) -> tuple[float, float, str]:
    """CPU time in s, growth of the memory in MB, and why the file is refused."""
    reading = [sys.executable, "-c", _READER, name]
    done = subprocess.run(reading, input=content, stdout=subprocess.PIPE, cwd=tree, check=True)
    cpu_s, mb, refused = json.loads(done.stdout)
    return cpu_s, mb, refused


def _print_results(route: Route, rows: int) -> bool:
    """Do all clients with a limit end within it?"""
    print(
        f"\n{'result':<28} {'clients':>7} {'share, MiB':>10} {'largest, MiB':>12} {'together, MiB':>13}  ended"
    )
    held = True
    for result in _results(rows):
        for share in (0, ALLOWED.client_bytes(make_plan(_definition(result)))):
            peaks = _read(route, result, share)
            _print_result(result, share, peaks)
            if share:
                within = sum(peaks.mib) <= ALLOWED.allowed_bytes / MIB
                held = held and within and peaks.refused == result.clients
    return held


def _results(rows: int) -> list[Result]:
    """The attack as it was, and others of its class."""
    text = f"{rows:,} rows of 1 kB"
    sql = f"SELECT repeat('x', 1000) FROM generate_series(1, {rows})"
    return [
        Result(text, sql),
        Result(text, sql, clients=2),
        Result(
            f"{rows // 1000:,} rows of 1 MB",
            f"SELECT repeat('x', 1000000) FROM generate_series(1, {rows // 1000})",
        ),
        Result(f"one row of {rows // 2000} MB", f"SELECT repeat('x', {rows * 500})"),
    ]


def _definition(result: Result) -> Definition:
    work = WorkloadDefinition("rows", result.sql)
    return Definition(
        "exhaustion", (work,), layers=("psycopg",), routes=("socket",), clients=(result.clients,)
    )


def _print_result(result: Result, share: int, peaks: Peaks) -> None:
    limit = f"{share // MIB:,}" if share else "none"
    ended = f"out of memory: {peaks.refused} of {result.clients}" if peaks.refused else "result read"
    print(
        f"{result.title:<28} {result.clients:>7} {limit:>10} {max(peaks.mib):>12,.0f} {sum(peaks.mib):>13,.0f}  {ended}"
    )


def _read(route: Route, result: Result, share: int) -> Peaks:
    """Let the clients run the statement once, at the same time, as they do before they are ready."""
    with ExitStack() as stack:
        clients = [
            stack.enter_context(ClientProcess("psycopg", launch.command("psycopg", ""), route.password))
            for _ in range(result.clients)
        ]
        with _peaks_of(clients) as peaks:
            for client in clients:
                resource.prlimit(client.pid, resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
                client.send(_spec(route, result, client, share))
            refused = sum(not _is_ready(client) for client in clients)
        return Peaks(peaks(), refused)


def _spec(route: Route, result: Result, client: ClientProcess, share: int) -> protocol.Spec:
    return protocol.Spec(
        layer="psycopg",
        **login(route),
        statements=sql_parameters.statements(result.sql, ()),
        spawned_ns=client.spawned_ns,
        runner_pid=os.getpid(),
        cold=False,
        memory_bytes=share,
    )


def _is_ready(client: ClientProcess) -> bool:
    """False if it ran out of memory."""
    try:
        client.expect(protocol.Ready, _TIMEOUT_S)
    except OutOfMemory:
        return False
    return True


@contextmanager
def _peaks_of(clients: list[ClientProcess]) -> Iterator[Callable[[], list[float]]]:
    """The peaks of the clients so far in MiB. A client that ends takes its peak with it, so a thread
    reads them all the time.
    """
    seen, over = [0.0] * len(clients), threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_S):
            seen[:] = [
                max(before, _peak_mib(client.pid)) for before, client in zip(seen, clients, strict=True)
            ]

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield lambda: seen
    finally:
        over.set()
        thread.join()
        look()


def _peak_mib(pid: int) -> float:
    """0 for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


if __name__ == "__main__":
    run_script(main)
