"""The C client's speed against pgbench's: the same statement on the same CPUs, alternating.

    python -m benchmarks.libpq_vs_pgbench [--quick] [--rounds N] [--slot-s N]

The cases are simple and prepared mode with 1 and 8 clients; pgbench has as many threads as clients.
Each slot starts new processes on one CPU, while the server has another; the time to connect is not
counted. A round measures every case once with both programs, in random order. Throughput is defined
as in pgbench: operations that ended within the slot, over its length. The bar: each ratio of
throughputs, C client over pgbench, is within 0.98 to 1.05. `--quick`: under a minute, with a wider
tolerance.
"""

import argparse
import os
import random
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
import psutil

from benchmarks.options import ScriptParser, run_script
from example.stack.stack import Stack
from pgperf.analysis.number_text import in_percent
from pgperf.analysis.paired_statistics import Estimate, log_ratios, signed_rank_interval
from pgperf.core import protocol
from pgperf.install.c_client import build
from pgperf.runner.cpu import placement
from pgperf.runner.slice_window import SliceWindow

ROOT = Path(__file__).resolve().parent.parent
SQL = "select relname, relkind from pg_class where oid = {}"
OID = "1259"  # pg_class itself: present in every database and every cache
ARM_NS = 20_000_000

M = TypeVar("M", bound=protocol.Message)


@dataclass(frozen=True)
class Bar:
    low: float
    high: float
    confidence: float

    def holds(self, ratio: Estimate) -> bool:
        return self.low <= ratio.centre <= self.high


FULL = Bar(0.98, 1.05, 0.95)
WIDER = Bar(0.95, 1.08, 0.90)


@dataclass(frozen=True)
class Case:
    mode: str
    clients: int


CASES = [Case(mode, clients) for mode, clients in product(("simple", "prepared"), (1, 8))]

#: A program to measure: (case, seconds of the slot) -> operations per second.
Side = Callable[[Case, int], float]


def main() -> int:
    options = _options()
    bar = WIDER if options.quick else FULL
    with Stack(ROOT / ".stack" / "libpq_vs_pgbench", parts=["postgres"], keep=False) as stack:
        cpu_placement = _place(stack)
        sides = [_libpq(stack), _pgbench(stack)]
        others = _OtherProcesses(stack, cpu_placement)
        measured = _measure(sides, options.rounds, options.slot_s)
        share = others.share()
    passed = _table(measured, bar)
    print(
        f"other processes took about {in_percent(share)} of the two CPUs{'; repeat on a quiet machine' * (share > 0.1)}"
    )
    print(f"verdict: the bar {'holds' if passed else 'does NOT hold'} ({bar.low} to {bar.high})")
    return 0 if passed else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--rounds", "slots of each case and program", full=25, quick=5)
    parser.add_argument("--slot-s", type=int, default=1, help="length of a slot in whole seconds (1)")
    return parser.options()


def _place(stack: Stack) -> placement.CpuPlacement:
    """Pin this process and its clients to one CPU, the server and its future backends to another."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    cpu_placement = placement.place("apart", cpus, refusal="")
    if not cpu_placement.clients:
        raise SystemExit(f"verdict: cannot measure: {cpu_placement.note}")
    os.sched_setaffinity(0, cpu_placement.clients)
    postmaster = stack.running[0].process
    assert postmaster
    for process in (server := psutil.Process(postmaster.pid), *server.children()):
        placement.pin(process.pid, cpu_placement.server)
    return cpu_placement


class _OtherProcesses:
    """CPU time of other processes on our two CPUs; rough, because the kernel counts it in ticks."""

    def __init__(self, stack: Stack, cpu_placement: placement.CpuPlacement) -> None:
        assert stack.running[0].process
        self._ours = [psutil.Process(), psutil.Process(stack.running[0].process.pid)]
        self._cpus = (cpu_placement.clients or frozenset()) | (cpu_placement.server or frozenset())
        self._busy_before, self._began = self._busy_s(), time.monotonic()

    def share(self) -> float:
        """Share of the CPUs since this object was created, 0 to 1."""
        passed = (time.monotonic() - self._began) * len(self._cpus)
        return max(0.0, self._busy_s() - self._busy_before) / passed

    def _busy_s(self) -> float:
        """Busy seconds of the CPUs without those of this process, the server and their children."""
        times = psutil.cpu_times(percpu=True)
        busy = sum(times[number].user + times[number].nice + times[number].system for number in self._cpus)
        return busy - sum(sum(process.cpu_times()[:4]) for process in self._ours)


def _measure(sides: list[Side], rounds: int, slot_s: int) -> dict[Case, np.ndarray]:
    """Operations per second of each case, one row per round, one column per side."""
    measured: dict[Case, list[list[float]]] = defaultdict(list)
    for case in _shuffled(CASES, rounds):
        row = [0.0] * len(sides)
        for column in random.sample(range(len(sides)), len(sides)):
            row[column] = sides[column](case, slot_s)
        measured[case].append(row)
    return {case: np.array(measured[case]) for case in CASES}


def _shuffled(cases: list[Case], rounds: int) -> Iterator[Case]:
    for _ in range(rounds):
        yield from random.sample(cases, len(cases))


def _libpq(stack: Stack) -> Side:
    """Run all clients in this process's session, as pgbench's threads are in one session.

    The runner gives each client a separate session. A kernel that divides a busy CPU by sessions
    would then give eight clients eight shares against one of pgbench's.
    """
    program = build(stack.place.own / "build", pg_config=stack.env["PGPERF_PG_CONFIG"]).path

    def measure(case: Case, slot_s: int) -> float:
        with ExitStack() as running:
            clients = [running.enter_context(_started(program)) for _ in range(case.clients)]
            _ask(clients, _spec(stack.env, case), protocol.Ready)
            request = protocol.Slice(
                seq=1,
                start_ns=time.monotonic_ns() + ARM_NS,
                lead_in_ops=0,
                lead_in_ns=0,
                window_ns=slot_s * 1_000_000_000,
            )
            _ask(clients, request, protocol.Armed)
            replies = [client.receive(protocol.SliceReply) for client in clients]
            raw = [client.replies.read(reply.nbytes) for client, reply in zip(clients, replies, strict=True)]
            window = SliceWindow.of(request, replies, [np.frombuffer(data, "<u8") for data in raw])
        return window.ops / window.length_ns * 1e9

    return measure


@dataclass(frozen=True)
class Client:
    """The pipes of a running C client; it exits when they are closed."""

    requests: IO[bytes]
    replies: IO[bytes]

    def send(self, message: protocol.Message) -> None:
        self.requests.write(protocol.encode(message))
        self.requests.flush()

    def receive(self, answer: type[M]) -> M:
        message = protocol.decode(self.replies.readline())
        if not isinstance(message, answer):
            raise SystemExit(f"the C client failed: {message}")
        return message


@contextmanager
def _started(program: Path) -> Iterator[Client]:
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        yield Client(process.stdin, process.stdout)


def _ask(clients: list[Client], message: protocol.Message, answer: type[protocol.Message]) -> None:
    """Send the message to all clients, then wait for all replies."""
    for client in clients:
        client.send(message)
    for client in clients:
        client.receive(answer)


def _spec(env: dict[str, str], case: Case) -> protocol.Spec:
    return protocol.Spec(
        layer="libpq",
        mode=case.mode,
        host=env["PGPERF_DB_SOCKET"],
        port=int(env["PGPERF_DB_PORT"]),
        dbname=env["PGPERF_DB_NAME"],
        user=env["PGPERF_DB_USER"],
        password=env["PGPERF_DB_PASSWORD"],
        statements=[
            protocol.Statement(
                literal=SQL.format(OID), numbered=SQL.format("$1"), args_text=[OID], arg_oids=[0]
            )
        ],
        runner_pid=os.getpid(),
        cold=False,
    )


def _pgbench(stack: Stack) -> Side:
    scripts = {"simple": SQL.format(OID), "prepared": SQL.format(":oid")}
    for mode, script in scripts.items():
        (stack.place.own / f"{mode}.sql").write_text(f"{script};\n")

    def measure(case: Case, slot_s: int) -> float:
        script = str(stack.place.own / f"{case.mode}.sql")
        load = [f"--client={case.clients}", f"--jobs={case.clients}", f"--time={slot_s}"]
        command = ["--no-vacuum", f"--protocol={case.mode}", f"--define=oid={OID}", f"--file={script}", *load]
        return _tps(_run_pgbench(stack.env, command))

    return measure


def _run_pgbench(env: dict[str, str], options: list[str]) -> str:
    login = {
        "PGHOST": env["PGPERF_DB_SOCKET"],
        "PGPORT": env["PGPERF_DB_PORT"],
        "PGDATABASE": env["PGPERF_DB_NAME"],
        "PGUSER": env["PGPERF_DB_USER"],
        "PGPASSWORD": env["PGPERF_DB_PASSWORD"],
    }
    done = subprocess.run([env["PGPERF_PGBENCH"], *options], env=login, capture_output=True, text=True)
    if done.returncode or "number of failed transactions: 0 " not in done.stdout:
        raise SystemExit(f"pgbench failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _tps(report: str) -> float:
    found = re.search(r"^tps = ([\d.]+) \(without initial connection time\)$", report, re.MULTILINE)
    if not found:
        raise SystemExit(f"pgbench says no tps:\n{report}")
    return float(found[1])


def _table(measured: dict[Case, np.ndarray], bar: Bar) -> bool:
    print(f"{'case':<20} {'libpq/s':>9} {'pgbench/s':>9} {'ratio':>7} {'interval':>18} {'pairs':>6}")
    passed = True
    for case, rows in measured.items():
        libpq, pgbench = rows.T
        ratio = signed_rank_interval(log_ratios(libpq, pgbench), bar.confidence).exp()
        interval = f"[{ratio.low:.3f}, {ratio.high:.3f}]" if ratio.low and ratio.high else "too few pairs"
        label = f"{case.mode}, {case.clients} client{'s' * (case.clients > 1)}"
        figures = f"{np.median(libpq):>9.0f} {np.median(pgbench):>9.0f} {ratio.centre:>7.3f}"
        print(f"{label:<20} {figures} {interval:>18} {ratio.n:>6}{'' if bar.holds(ratio) else '  outside'}")
        passed = passed and bar.holds(ratio)
    print(
        f"intervals: Hodges-Lehmann, signed rank, {in_percent(bar.confidence)}; throughput: medians over the slots"
    )
    return passed


if __name__ == "__main__":
    run_script(main)
