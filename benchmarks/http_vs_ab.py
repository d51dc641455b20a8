"""The layer http against ab and wrk: the same page, the same connections, in turn.

    python -m benchmarks.http_vs_ab [--quick] [--rounds N] [--slot-s N] [--only CASE] [--step STEP]
        [--out FILE]

Case `kept`: connections that stay open, against `wrk`, which speaks HTTP/1.1 with keep-alive as the
layer does. Case `new`: a connection for each request, against `ab`, which closes each one (HTTP/1.0).
Each with 1 and 20 connections, on the list of books behind nginx and gunicorn, whose view connects to
PostgreSQL for each request. Slots of the two generators alternate in random order, and begin when the
servers have answered what the slot before has left. All generators run on one CPU, the servers on the
others.

The bar: requests per second of the layer over the other's within 0.95 to 1.05, on a page of at least
10 ms over one connection, without a failed request. ab and wrk themselves differ by 0.2 ms a request,
so a shorter page says nothing: the script tells and fails. The table also shows the CPU time that each
generator takes for a request, and how busy its CPU is: at 90 % or more the generator is the limit, and
the row says so. `--out` keeps each case and number of connections, and those that the file has are not
measured again.
"""

import argparse
import random
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks import json_lines, web_clients
from benchmarks.options import ScriptParser, run_script
from example.stack import certificates
from example.stack.stack import SERVERS, Stack
from example.stack.web_steps import STEPS, variable
from pgperf.analysis.paired_statistics import log_ratios, signed_rank_interval
from pgperf.core import protocol
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.slice_window import SliceWindow
from pgperf.runner.timed_slice import armed

ROOT = Path(__file__).resolve().parent.parent
PATH = "/books/?page=2"
LAYER = web_clients.LAYER
CONNECTIONS = (1, 20)
CONFIDENCE = 0.95
LOW, HIGH = 0.95, 1.05
LEAST_PAGE_MS = 10.0
BUSY = 0.9  # of the generator's CPU
#: Until each of 20 connections has had its first answer: the window counts those after it.
_LEAD_IN_NS = 3_000_000_000
#: Before each slot. `wrk` and `ab` leave at their end as many requests as they have connections, which
#: the servers still work on. These of the layer are answered after them.
_SETTLING = protocol.Slice(seq=0, lead_in_ops=1, lead_in_ns=0, count=1)


@dataclass(frozen=True)
class Case:
    """A connection mode of the layer, and the tool that uses its connections in the same way."""

    connection_mode: str
    tool: str
    package: str


CASES = {
    "kept": Case("persistent", "wrk", "wrk"),
    "new": Case("per_operation", "ab", "apache2-utils"),
}


@dataclass(frozen=True)
class Slot:
    """One slot of a generator: its requests, its length, its CPU time, and what failed."""

    requests: float
    seconds: float
    cpu_s: float
    failed: int

    @property
    def per_s(self) -> float:
        return self.requests / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU time of the generator per request."""
        return self.cpu_s / self.requests * 1e6 if self.requests else float("nan")

    @property
    def busy(self) -> float:
        return self.cpu_s / self.seconds


def main() -> int:
    options = _options()
    conditions = json_lines.conditions(options, "step", "rounds", "slot_s")
    asked = product(options.only or CASES, CONNECTIONS)
    conditions["lead_in_s"] = _LEAD_IN_NS / 1e9  # lines of the time when it was too short have none
    units = [{"case": name, "connections": connections, **conditions} for name, connections in asked]
    passed = True
    for line in json_lines.resumed(options.out, units, partial(_all, options)):
        measured = {name: [Slot(**slot) for slot in slots] for name, slots in line["slots"].items()}
        passed &= _table(line["case"], CASES[line["case"]], line["connections"], measured)
    print(f"verdict: the bars {'hold' if passed else 'do NOT hold'}")
    return 0 if passed else 1


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--rounds", "slots of each generator", full=25, quick=7)
    parser.add_argument("--slot-s", type=int, default=4, help="length of a slot in seconds (4)")
    parser.add_argument("--only", choices=CASES, action="append", help="this case alone")
    parser.add_argument("--step", choices=STEPS, default="web_nginx", help="the web servers (web_nginx)")
    parser.add_out()
    return parser.options()


def _all(options: argparse.Namespace, units: Sequence[json_lines.Unit]) -> json_lines.Measuring:
    """The slots of each case and number of connections, by generator."""
    _check_tools({unit["case"] for unit in units})
    generator, others = web_clients.processors()
    with Stack(ROOT / ".stack" / "http_vs_ab", [*SERVERS, options.step], keep=False) as stack:
        web_clients.place(stack.running, others)
        for unit in units:
            case = CASES[unit["case"]]
            with _clients(stack, options.step, case, unit["connections"], generator) as group:
                measured = _measure(group, _url(stack, options.step), case, options, generator)
            yield {"slots": {name: [*map(asdict, slots)] for name, slots in measured.items()}}


def _check_tools(names: Collection[str]) -> None:
    for case in (CASES[name] for name in names):
        if not shutil.which(case.tool):
            raise SystemExit(f"verdict: cannot measure: {case.tool} is missing: apt install {case.package}")


def _url(stack: Stack, step: str) -> str:
    return stack.env[variable(step)]


def _clients(
    stack: Stack, step: str, case: Case, connections: int, cpu: int
) -> AbstractContextManager[ClientGroup]:
    """The clients of the layer, connected and warm."""
    authority = str(stack.place.secrets() / certificates.AUTHORITY)
    return web_clients.connected(_url(stack, step), PATH, case.connection_mode, connections, cpu, authority)


def _measure(
    group: ClientGroup, url: str, case: Case, options: argparse.Namespace, cpu: int
) -> dict[str, list[Slot]]:
    """The slots of both generators, in the order of the rounds."""
    clients = group.variant.clients
    request = protocol.Slice(seq=1, lead_in_ops=1, lead_in_ns=_LEAD_IN_NS, window_ns=options.slot_s * 10**9)
    tool = TOOLS[case.tool]
    found: dict[str, list[Slot]] = {LAYER: [], case.tool: []}
    for _ in range(options.rounds):
        for name in random.sample([LAYER, case.tool], 2):
            group.run(_SETTLING)
            found[name].append(
                _slot(group, armed(group, request))
                if name == LAYER
                else tool(url + PATH, clients, options.slot_s, cpu)
            )
    return found


def _slot(group: ClientGroup, request: protocol.Slice) -> Slot:
    """A window of the layer. A client's CPU time covers its lead-in and its window."""
    recorded = group.run(request)
    window = SliceWindow.of(request, *recorded)
    if window.disturbed:
        raise SystemExit(f"verdict: cannot measure: {window.disturbed}")
    cpu_s = sum(reply.user_ns + reply.sys_ns for reply in recorded.replies) / 1e9
    own = sum(reply.lead_in_ops + reply.ops for reply in recorded.replies)
    failed = sum(sum(reply.errors.values()) for reply in recorded.replies)
    share = window.ops / own if own else 1.0
    return Slot(window.ops, window.length_ns / 1e9, cpu_s * share, failed)


def ab(url: str, connections: int, seconds: int, cpu: int) -> Slot:
    """ab without -k: HTTP/1.0, a connection for each request."""
    # -t alone sets -n to 50,000, which could end the slot early. -l: bodies may differ in length.
    command = ["ab", "-q", "-l", "-t", str(seconds), "-n", "10000000", "-c", str(connections), url]
    text, cpu_s = _run(command, cpu)
    failed = _number(r"Failed requests:\s+(\d+)", text) + _number(r"Non-2xx responses:\s+(\d+)", text, 0)
    return Slot(
        requests=_number(r"Complete requests:\s+(\d+)", text),
        seconds=_number(r"Time taken for tests:\s+([\d.]+)", text),
        cpu_s=cpu_s,
        failed=int(failed),
    )


def wrk(url: str, connections: int, seconds: int, cpu: int) -> Slot:
    """wrk with one thread: HTTP/1.1, connections that stay open."""
    text, cpu_s = _run(["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", url], cpu)
    requests = _number(r"(\d+) requests in", text)
    per_s = _number(r"Requests/sec:\s+([\d.]+)", text)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    failed = sum(map(int, errors.groups())) if errors else 0
    return Slot(
        requests=requests,
        seconds=requests / per_s if per_s else float(seconds),
        cpu_s=cpu_s,
        failed=failed + int(_number(r"Non-2xx or 3xx responses: (\d+)", text, 0)),
    )


#: URL, connections, seconds and CPU -> a slot.
Tool = Callable[[str, int, int, int], Slot]
TOOLS: dict[str, Tool] = {"ab": ab, "wrk": wrk}


def _run(command: Sequence[str], cpu: int) -> tuple[str, float]:
    """The output of a tool on this CPU, and its CPU time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["taskset", "-c", str(cpu), *command], capture_output=True, text=True, check=False, timeout=120
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"verdict: cannot measure: {command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _number(pattern: str, text: str, default: float | None = None) -> float:
    """The number in a tool's output. The script exits if it is not there and has no default."""
    found = re.search(pattern, text)
    if found:
        return float(found[1])
    if default is None:
        raise SystemExit(f"verdict: cannot measure: no {pattern!r} in this output:\n{text}")
    return default


def _table(name: str, case: Case, connections: int, measured: dict[str, list[Slot]]) -> bool:
    rates = {generator: np.array([slot.per_s for slot in slots]) for generator, slots in measured.items()}
    if not all(rate.all() for rate in rates.values()):
        raise SystemExit("verdict: cannot measure: no request ended in a slot; choose a longer --slot-s")
    ratio = signed_rank_interval(log_ratios(rates[LAYER], rates[case.tool]), CONFIDENCE).exp()
    page_ms = connections / float(np.median(rates[LAYER])) * 1000
    failed = sum(slot.failed for slots in measured.values() for slot in slots)
    is_short = connections == 1 and page_ms < LEAST_PAGE_MS  # more connections wait in line too
    holds = LOW <= ratio.centre <= HIGH and not failed and not is_short
    interval = f"[{ratio.low:.3f}, {ratio.high:.3f}]" if ratio.low and ratio.high else "too few pairs"
    plural = "s" * (connections > 1)
    print(f"{name}: {connections} connection{plural}, {len(measured[LAYER])} slots of each generator")
    print(f"  {LAYER} over {case.tool}: {ratio.centre:.3f} {interval}{'' if holds else '  outside'}")
    for generator, slots in measured.items():
        print(f"  {generator:<5} {_row(slots)}")
    if failed:
        print(f"  {failed} requests failed")
    if is_short:
        print(
            f"  a request takes {page_ms:.1f} ms, less than {LEAST_PAGE_MS:g} ms: too short for this comparison"
        )
    sys.stdout.flush()
    return holds


def _row(slots: Sequence[Slot]) -> str:
    rate, cpu_us, busy = (
        float(np.median([getattr(slot, name) for slot in slots])) for name in ("per_s", "cpu_us", "busy")
    )
    limit = "  the generator is the limit" if busy >= BUSY else ""
    return f"{rate:>9.1f} requests/s {cpu_us:>8.1f} µs CPU time each, its CPU {busy:>4.0%} busy{limit}"


if __name__ == "__main__":
    run_script(main)
