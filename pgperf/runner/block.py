"""One block of one cohort: fresh processes and connections, warm-up, pilot, rounds."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pgperf.analysis import latency
from pgperf.core import protocol
from pgperf.core.limits import PILOT_MAX_MS, PILOT_MIN_MS
from pgperf.core.records import Definition, Plan, Route, SliceRecord, VariantBlock, Workload
from pgperf.runner.client_group import Durations, Group, find_server_cgroup, measure, started
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.cpu.process_cpu import ProcessCpu
from pgperf.runner.plan import round_order
from pgperf.runner.processes import pooler_process
from pgperf.runner.remote import server
from pgperf.runner.remote.server import Agent, Seen
from pgperf.runner.server.diagnostics import Findings, Instruments

#: The phases of a run, as records.Timings names them (without `_s`).
PHASES = ("startup", "warm_up", "pilot", "slices", "diagnostics")

_TRIAL = protocol.Slice(seq=0, lead_in_ops=1, lead_in_ns=0, count=2)
_WARM_UP_MOST_S = 3.0
PILOT_OPS = 20
#: Longer windows are no steadier: noise differs from slice to slice, not within one.
WINDOW_MIN_NS = PILOT_MIN_MS * 1_000_000
WINDOW_MAX_NS = PILOT_MAX_MS * 1_000_000
_WINDOW_OPS = 50  # of a variant, and of each of its clients:
_WINDOW_OPS_EACH = 10
_LEAD_IN_OPS = 10
_LEAD_IN_OPS_EACH = 3  # of several clients, who lead in until they all begin


@dataclass
class Clock:
    """Where the wall time goes, in seconds per phase."""

    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.monotonic()
        try:
            yield
        finally:
            self.spent[name] += time.monotonic() - begin


@dataclass
class Bench:
    """What all blocks of a run share."""

    plan: Plan
    routes: dict[str, Route]
    build_dir: str
    cpu_placement: CpuPlacement
    application: str  # prefix of every connection's application_name
    clock: Clock
    #: Fills in each group's server and pooler processes once all are connected.
    find_servers: Callable[[list[Group]], None]
    #: Called with the number of slices timed and of diagnostic slices so far, between rounds and between the latter.
    breathe: Callable[[int, int], None]
    windows: dict[int, protocol.Slice] = field(default_factory=dict)  # per cohort: what the pilot decided
    slices_done: int = 0
    diagnosed: int = 0
    instruments: Instruments | None = None  # None: no diagnostic slices
    host: Host = field(default_factory=Host.here)
    relays: Mapping[str, int] = field(default_factory=dict)  # route -> the relay that makes it longer
    agent: Agent | None = None  # on the server's host; it has been called if that is another one
    interpreters: Mapping[str, str] = field(default_factory=dict)  # layer -> Python, where the site named one


def run_block(bench: Bench, cohort: int, block: int, done: Callable[[list[VariantBlock]], None]) -> None:
    """Measure every variant of the cohort in one block; `done` gets the results, in the cohort's order.

    The last block ends with the diagnostic slices. However they end, what was timed before them is handed out.
    """
    with _resident(bench, cohort, block) as groups:
        with bench.clock.phase("warm_up"):
            _warm_up(bench, groups)
        _find_others(bench, groups)
        if cohort not in bench.windows:
            with bench.clock.phase("pilot"):
                bench.windows[cohort] = _pilot(bench, groups)
        process_cpu = ProcessCpu(bench.host, {pid for group in groups for pid in group.processes().pids()})
        sheets = _rounds(bench, groups, cohort, block)
        counted = {**_counted(process_cpu, groups), "role_cpus": bench.cpu_placement.role_cpus()}
        try:
            if bench.instruments and block == bench.plan.definition.blocks - 1:
                with bench.clock.phase("diagnostics"):
                    _diagnose(bench, bench.instruments, groups, cohort, sheets)
        finally:
            _lay(bench.agent, groups, sheets)
            pairs = zip(groups, sheets, strict=True)
            done([_fold(group, cohort, block, sheet, counted) for group, sheet in pairs])


@dataclass
class Sheet:
    """What one variant collects during a block."""

    records: list[SliceRecord] = field(default_factory=list)
    durations: list[Durations] = field(default_factory=list)
    ends_ns: list[int] = field(default_factory=list)
    remote_account: dict[str, Any] = field(default_factory=dict)  # the server's host's, if that is another
    findings: Findings = field(default_factory=Findings)
    looked_ns: tuple[int, int] | None = None  # begin and end of its diagnostic slice


@contextmanager
def _resident(bench: Bench, cohort: int, block: int) -> Iterator[list[Group]]:
    plan = bench.plan
    everyone = plan.variants
    named = [(v, f"{bench.application}-{everyone.index(v)}") for v in plan.cohorts[cohort].variants]
    cold = block < plan.definition.cold_blocks
    start = partial(
        started, plan.definition, named, bench.routes, bench.build_dir, cold, bench.cpu_placement.clients,
        interpreters=bench.interpreters,
    )  # fmt: skip
    begin = time.monotonic()
    with start() as groups:
        bench.clock.spent["startup"] += time.monotonic() - begin
        yield groups


def _warm_up(bench: Bench, groups: list[Group]) -> None:
    """All clients at once: nothing is recorded, and the wall clock is spared. Slow work gets fewer operations."""
    owners = [group for group in groups if not group.owner]
    for group in owners:
        group.begin(_TRIAL)
    for group in owners:
        group.learn(_TRIAL)
    requests = [_warm_up_of(bench.plan.definition, group) for group in owners]
    for group, request in zip(owners, requests, strict=True):
        group.begin(request)
    for group, request in zip(owners, requests, strict=True):
        group.collect(request)
    for group in groups:
        group.op_s = group.owner.op_s if group.owner else group.op_s


def _warm_up_of(definition: Definition, group: Group) -> protocol.Slice:
    most = int(_WARM_UP_MOST_S / group.op_s) if group.op_s else definition.warm_up_ops
    ops = max(1, min(definition.warm_up_ops, most))
    return protocol.Slice(
        seq=0, start_ns=0, lead_in_ops=ops, lead_in_ns=definition.warm_up_ms * 1_000_000, window_ns=0, count=1
    )


def _pilot(bench: Bench, groups: list[Group]) -> protocol.Slice:
    """One slice for the cohort: as long as asked for, or what its most demanding member needs."""
    definition = bench.plan.definition
    asked = protocol.Slice(
        seq=0, start_ns=0, lead_in_ops=_LEAD_IN_OPS, lead_in_ns=definition.lead_in_ms * 1_000_000
    )
    if definition.slice_ms:
        return asked._replace(window_ns=definition.slice_ms * 1_000_000)
    probe = protocol.Slice(seq=0, start_ns=0, lead_in_ops=2, lead_in_ns=0, window_ns=0, count=PILOT_OPS)
    return fitting(
        asked, [(g.variant.clients, measure(g, probe, -1, -1)[0].us_per_op * 1000) for g in groups]
    )


def fitting(asked: protocol.Slice, needs: Sequence[tuple[int, float]]) -> protocol.Slice:
    """A slice that suits variants of so many clients each, whose operations take so many nanoseconds each.

    The window has 50 operations of each variant and 10 of each of its clients, 50 ms to 5 s; slower work goes by count.
    """
    window_ns = int(max(ns * max(_WINDOW_OPS / clients, _WINDOW_OPS_EACH) for clients, ns in needs))
    if window_ns > WINDOW_MAX_NS:
        slowest_ns = max(ns for _clients, ns in needs)
        return asked._replace(lead_in_ops=1, lead_in_ns=0, count=max(1, int(WINDOW_MAX_NS / slowest_ns)))
    lead_in_ns = int(max((_LEAD_IN_OPS_EACH * ns for clients, ns in needs if clients > 1), default=0))
    return asked._replace(
        lead_in_ns=max(asked.lead_in_ns, lead_in_ns), window_ns=max(WINDOW_MIN_NS, window_ns)
    )


def _request(bench: Bench, cohort: int, group: Group) -> protocol.Slice:
    """The group's next slice. Several clients share one window: an operation more would only make them late for it."""
    request = bench.windows[cohort]._replace(seq=bench.slices_done + bench.diagnosed + 1)
    return request._replace(lead_in_ops=1) if group.variant.clients > 1 else request


def _find_others(bench: Bench, groups: list[Group]) -> None:
    """Who works for the groups beside their clients."""
    bench.find_servers(groups)
    find_server_cgroup(groups)
    for group in groups:
        group.relay_pid = bench.relays.get(group.variant.route)
        group.astray = False


def _counted(process_cpu: ProcessCpu, groups: list[Group]) -> dict[str, Any]:
    """The census; who came and went is among those whose time pages account for."""
    counted = process_cpu.close()
    return {**counted, "ours_ns": counted["ours_ns"] + sum(group.totals.short_lived_ns for group in groups)}


def _rounds(bench: Bench, groups: list[Group], cohort: int, block: int) -> list[Sheet]:
    sheets = [Sheet() for _ in groups]
    for round_ in range(bench.plan.definition.rounds):
        for position, index in enumerate(round_order(bench.plan, cohort, block, round_)):
            request = _request(bench, cohort, groups[index])
            record, durations = measure(groups[index], request, round_, position, bench.host)
            sheets[index].ends_ns.append(time.monotonic_ns())
            bench.clock.spent["slices"] += (request.lead_in_ns + record.window_ns) / 1e9
            sheets[index].records.append(record)
            sheets[index].durations.append(durations)
            bench.slices_done += 1
        if any(group.astray for group in groups):
            _find_others(bench, groups)
        bench.breathe(bench.slices_done, bench.diagnosed)
    return sheets


def _lay(agent: Agent | None, groups: list[Group], sheets: list[Sheet]) -> None:
    """Complete the records with what the agent on the server's host saw, if there is one."""
    seen = agent.hand_over() if agent else None
    if not seen:
        return
    pairs = zip(groups, sheets, strict=True)
    found = server.laid(
        [server.Sheet(g.remote_processes, sheet.records, sheet.ends_ns) for g, sheet in pairs], seen
    )
    for sheet, one in zip(sheets, found, strict=True):
        sheet.records, sheet.remote_account = one.records, one.account
    _show(groups, sheets, seen)


def _show(groups: list[Group], sheets: list[Sheet], seen: Seen) -> None:
    """Complete what top showed in the diagnostic slices: the server's host, and its processes among the others."""
    both = zip(groups, sheets, strict=True)
    shown = sorted((sheet.looked_ns, at) for at, (_group, sheet) in enumerate(both) if sheet.looked_ns)
    looks = [
        server.Look(groups[at].remote_processes, begin_ns, end_ns, sheets[at].findings.top["seconds"])
        for (begin_ns, end_ns), at in shown
    ]
    for (_span, at), found in zip(shown, server.looked(looks, seen), strict=True):
        told = sheets[at].findings.top
        told["processes"] = [*told["processes"], *found["processes"]]
        told["server_host"] = {"host": found["host"]}


def _diagnose(
    bench: Bench, instruments: Instruments, groups: list[Group], cohort: int, sheets: list[Sheet]
) -> None:
    """One slice of each variant in an order of its own, while its server is asked."""
    definition = bench.plan.definition
    window_ns = definition.diagnostic_ms * 1_000_000
    for index in round_order(bench.plan, cohort, definition.blocks - 1, definition.rounds):
        request = _request(bench, cohort, groups[index])._replace(window_ns=window_ns, count=0)
        calls = _statements_of(definition.work(groups[index].variant.workload))
        begin_ns = time.monotonic_ns()
        sheets[index].findings = instruments.examine(groups[index], request, calls)
        sheets[index].looked_ns = (begin_ns, time.monotonic_ns())
        bench.diagnosed += 1
        bench.breathe(bench.slices_done, bench.diagnosed)


def _statements_of(work: Workload) -> int | None:
    """How many statements one operation is; None where what the site's own code sends was not captured."""
    return len(work.statements) or (1 if work.sql else None)


def _fold(group: Group, cohort: int, block: int, sheet: Sheet, counted: dict[str, Any]) -> VariantBlock:
    durations = np.concatenate(sheet.durations) if sheet.durations else np.zeros(0, dtype=np.uint64)
    first = group.ready[0]
    return VariantBlock(
        variant=group.variant,
        cohort=cohort,
        block=block,
        slices=tuple(sheet.records),
        histogram=latency.fold(durations),
        cold_us={} if group.owner else _cold(first),
        versions=dict(first.versions),
        rows_per_op=first.rows_per_op,
        latency_sum_ns=int(durations.sum()),
        latency_sum_sq=float(np.square(durations.astype(np.float64)).sum()),
        latency_min_ns=int(durations.min()) if len(durations) else 0,
        latency_max_ns=int(durations.max()) if len(durations) else 0,
        diagnostics=sheet.findings.diagnostics,
        top=sheet.findings.top,
        cpu_account={**counted, **group.totals.to_json(), **_seats(counted, group), **_elsewhere(sheet)},
    )


def _seats(counted: dict[str, Any], group: Group) -> dict[str, Any]:
    return {"role_cpus": {**counted["role_cpus"], "pooler": pooler_process.processors(group.pooler_pid)}}


def _elsewhere(sheet: Sheet) -> dict[str, Any]:
    return {"server_host": sheet.remote_account} if sheet.remote_account else {}


def _cold(ready: protocol.Ready) -> dict[str, float | None]:
    return {
        "startup": ready.startup_us,
        "connect": ready.connect_us,
        "first": ready.first_us,
        "second": ready.second_us,
        "next_ten": ready.next_ten_us,
        "other_query_first": ready.other_first_us,
        "other_query_second": ready.other_second_us,
    }
