"""Closure of CPU accounting: the sum over processes against an independent total of the kernel.

    python -m benchmarks.cpu_closure [--windows 3] [--reference group|root] [--quick]

This script, its clients, PostgreSQL and PgBouncer run in a separate control group. The kernel adds
up the group's CPU time, including that of processes that ended. In each window one variant works
for 5 seconds. Meanwhile the machine is otherwise idle (`quiet`), or spinning processes take half of
its CPUs (`half loaded`); these are in the group too. `parts / total` is the CPU time of all
processes that exist at both ends of the window, over the group's total. `--reference root` uses the
root of cgroup v1 instead, and so every process of the machine; the parts then miss processes that
begin and end within a window. The bar: in every window the parts are 98 to 102 % of the total.
`--quick`: windows of a second, 95 to 105 %.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import psutil

from benchmarks.example_site import ROOT
from benchmarks.options import ScriptParser, run_script
from benchmarks.resident import resident
from benchmarks.served_page import WEB, serving
from example.stack.stack import Stack
from pgperf.analysis.cpu_accounting import Account
from pgperf.analysis.number_text import in_percent
from pgperf.core import protocol
from pgperf.core.records import Definition, Page, VariantBlock, WorkloadDefinition
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu.cgroups import group_ns, groups_of, members
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.process_cpu import ProcessCpu
from pgperf.runner.timed_slice import measure

WORK = WorkloadDefinition("pg_class", "select relname, relkind from pg_class where oid = 1259")
PAGE = WorkloadDefinition("page", "", page=Page("/many-queries/?size=10"))
LAYERS, CLIENTS = ("libpq", "psycopg"), (1, 4)
LOADS = ("quiet", "half loaded")
ROLES = ("clients", "proxy", "web", "pooler", "server", "auxiliaries", "other")
_LEAD_IN_NS = 50_000_000
_GROUP = "pgperf-closure"
_SPIN = "while True: pass"
_LEAVE_S = 10.0


@dataclass(frozen=True)
class Reference:
    """A total of CPU time, and the processes that it covers."""

    name: str
    host: Host
    pids: Callable[[], Iterable[int]]


@dataclass(frozen=True)
class Window:
    """The result of one window: the parts over the total, the machine's load, the shares of the
    roles.
    """

    closure: float
    busy: float
    shares: dict[str, float | None]


def main() -> int:
    options = _options()
    with ExitStack() as stack:
        reference = stack.enter_context(_reference(options.reference))
        own = Stack(ROOT / ".stack" / "cpu-closure", parts=["postgres", "pgbouncer"], keep=False)
        groups = stack.enter_context(_groups(stack.enter_context(own)))
        print(f"total: {reference.name}, {reference.host.cpus} CPUs, windows of {options.window_s} s\n")
        print(f"{'':<44} {'parts / total':>13} {'busy':>6}" + "".join(f"{role:>12}" for role in ROLES))
        found = list(_windows(reference, groups, options))
    low, high = 1 - options.tolerance, 1 + options.tolerance
    holds = all(low <= window.closure <= high for window in found)
    least, most = (pick(window.closure for window in found) for pick in (min, max))
    print(f"\n{len(found)} windows: parts are {in_percent(least, 2)} to {in_percent(most, 2)} of the total")
    print(
        f"verdict: the bar {'holds' if holds else 'does NOT hold'} ({in_percent(low)} to {in_percent(high)})"
    )
    return 0 if holds else 1


@contextmanager
def _groups(stack: Stack) -> Iterator[list[ClientGroup]]:
    """Those of statements, and those of a page behind nginx."""
    statements = Definition(
        "cpu-closure", (WORK,), layers=LAYERS, routes=("socket", "pgbouncer"), clients=CLIENTS
    )
    pages = Definition(
        "cpu-closure", (PAGE,), layers=("http",), routes=(WEB,), web_routes={WEB: ""}, clients=CLIENTS
    )
    with (
        serving(stack, proxied=True) as web,
        resident(stack, statements, "closure") as own,
        resident(stack, pages, "closure-web", [web]) as others,
    ):
        yield [*own, *others]


def _options() -> argparse.Namespace:
    parser = ScriptParser(__doc__)
    parser.add_size("--windows", "windows of each variant and load", full=3, quick=1)
    parser.add_argument("--reference", choices=("group", "root"), default="group")
    options = parser.options()
    options.window_s, options.tolerance = (1, 0.05) if options.quick else (5, 0.02)
    return options


def _windows(
    reference: Reference, groups: list[ClientGroup], options: argparse.Namespace
) -> Iterator[Window]:
    for load, group, _ in product(LOADS, groups, range(options.windows)):
        with _spinning(reference.host.cpus // 2 or 1 if load != "quiet" else 0):
            window = _window(reference, groups, group, options.window_s)
        shares = "".join(f"{_percent(window.shares[role]):>12}" for role in ROLES)
        label = f"{load} · {group.variant.label}"
        print(
            f"{label:<44} {in_percent(window.closure, 2):>13} {in_percent(window.busy):>6}{shares}",
            flush=True,
        )
        yield window


def _window(reference: Reference, groups: list[ClientGroup], group: ClientGroup, seconds: int) -> Window:
    request = protocol.Slice(
        seq=1, start_ns=0, lead_in_ops=10, lead_in_ns=_LEAD_IN_NS, window_ns=seconds * 1_000_000_000
    )
    ours = {pid for each in groups for pid in each.processes().pids()}
    process_cpu = ProcessCpu(reference.host, ours, reference.pids)
    record = measure(group, request, 0, 0, reference.host)[0]
    counted = process_cpu.close()
    account = Account.of(
        [VariantBlock(variant=group.variant, cohort=0, block=0, slices=(record,), cpu_account=counted)]
    )
    if account is None or not counted["host_ns"]:
        raise SystemExit(
            "verdict: cannot measure: a process of the clients or of the server could not be read"
        )
    return Window(
        closure=(counted["ours_ns"] + counted["others_ns"]) / counted["host_ns"],
        busy=counted["host_ns"] / counted["elapsed_ns"] / reference.host.cpus,
        shares=asdict(account.shares()),
    )


def _percent(share: float | None) -> str:
    return "unknown" if share is None else in_percent(share, 1)


@contextmanager
def _spinning(count: int) -> Iterator[None]:
    """Run `count` processes that each take a whole CPU; they are running when the block begins."""
    spinning = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(count)]
    try:
        while any(sum(psutil.Process(process.pid).cpu_times()[:2]) < 0.05 for process in spinning):
            time.sleep(0.01)
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


@contextmanager
def _reference(kind: str) -> Iterator[Reference]:
    if kind == "root":
        host = Host.here()
        if host.source != "cgroup":
            raise SystemExit("verdict: cannot measure: this machine has no root of cgroup v1 with cpuacct")
        yield Reference("the root of cgroup v1", host, psutil.pids)
    else:
        with _own_group() as directory:
            host = replace(Host.here(), source="group", read_busy_ns=group_ns(directory))
            yield Reference(f"a control group, {directory}", host, lambda: _members(directory))


@contextmanager
def _own_group() -> Iterator[Path]:
    """A new control group with this process in it, and so all that it starts; left and removed at
    the end.
    """
    parent = next(groups_of(os.getpid()), None)
    if parent is None:
        raise SystemExit("verdict: cannot measure: this machine has no control groups")
    directory = parent / f"{_GROUP}-{os.getpid()}"
    try:
        directory.mkdir()
        _move_to(directory)
    except OSError as error:
        raise SystemExit(
            f"verdict: cannot measure: no control group below {parent}: {error.strerror}"
        ) from None
    try:
        yield directory
    finally:
        _move_to(parent)
        _remove(directory)


def _move_to(directory: Path) -> None:
    (directory / "cgroup.procs").write_text(f"{os.getpid()}\n")


def _remove(directory: Path) -> None:
    """Remove the group and those below it after their last process has ended, a few milliseconds after
    its signal.
    """
    deadline = time.monotonic() + _LEAVE_S
    while _members(directory) and time.monotonic() < deadline:
        time.sleep(0.05)
    for group in reversed(_groups_from(directory)):
        with suppress(OSError):  # a process that does not end must not cost the verdict
            group.rmdir()


def _members(directory: Path) -> set[int]:
    """The processes of the group and of those below it: the stack's PostgreSQL has one of its own."""
    return {pid for group in _groups_from(directory) for pid in members(group)}


def _groups_from(directory: Path) -> list[Path]:
    """The group and those below it, each after the one that it is in."""
    return sorted(procs.parent for procs in directory.rglob("cgroup.procs"))


if __name__ == "__main__":
    run_script(main)
