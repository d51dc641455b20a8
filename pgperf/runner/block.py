"""One block of one cohort: fresh processes and connections, warm-up, pilot, rounds."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from pgperf.analysis import latency
from pgperf.core import layers, protocol
from pgperf.core.records import (
    Definition,
    PageParts,
    Plan,
    Route,
    SliceRecord,
    StatementTimes,
    Variant,
    VariantBlock,
    WorkloadDefinition,
)
from pgperf.runner import page_parts, run_time, statement_times
from pgperf.runner.client_group import ClientGroup, find_server_cgroup
from pgperf.runner.client_startup import started
from pgperf.runner.cpu.cgroups import quota_groups
from pgperf.runner.cpu.clock import slow_read_ns
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.cpu.process_cpu import ProcessCpu
from pgperf.runner.environment_places import EnvironmentPlaces
from pgperf.runner.load_accounts import by_host, server_account
from pgperf.runner.load_hosts import (
    HostedGroup,
    LoadHosts,
    Measured,
    Turn,
    accounts,
    hosted,
    in_time,
    measured,
)
from pgperf.runner.pace import Pace
from pgperf.runner.plan import round_order, warm_up_turns
from pgperf.runner.processes import pooler_process
from pgperf.runner.progress import Progress
from pgperf.runner.rate_search import Searches
from pgperf.runner.remote import server
from pgperf.runner.remote.server import Agent, AgentSamples
from pgperf.runner.server.diagnostics import DiagnosticConnections, DiagnosticResult
from pgperf.runner.server.written_tables import WrittenTables
from pgperf.runner.slice_length import (
    Need,
    asked_slice,
    bulk_slice,
    fitting,
    later_lead_in,
    pilot_slice,
    scheduled,
    searched,
    shortened,
    warm_up_most_s,
)
from pgperf.runner.slice_window import Durations, SliceWindow
from pgperf.runner.timed_slice import AwaitDeparture

#: The phases of a run, as records.Timings names them (without `_s`).
PHASES = ("startup", "warm_up", "pilot", "slices", "diagnostics")

#: With fewer rounds in a block, the slices of slow operations are shortened.
_FEW_ROUNDS = 2
_TRIAL = protocol.Slice(seq=0, lead_in_ops=1, lead_in_ns=0, count=2)


@dataclass
class PhaseClock:
    """Wall time by phase, seconds."""

    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begin = time.monotonic()
        try:
            yield
        finally:
            self.spent[name] += time.monotonic() - begin

    @property
    def once_s(self) -> float:
        """The wall time of what a run does once, not in each block."""
        return self.spent["pilot"] + self.spent["diagnostics"]


@dataclass
class RunContext:
    """Everything that the blocks of a run share."""

    plan: Plan
    routes: dict[str, Route]
    build_dir: str
    cpu_placement: CpuPlacement
    application: str  # prefix of every connection's application_name
    clock: PhaseClock
    #: Fills in each group's server and pooler processes once all are connected.
    find_servers: Callable[[list[ClientGroup]], None]
    progress: Progress
    pace: Pace
    #: Called between slices: before a block, after each round and each diagnostic slice, with a
    #: phrase about the part of the run that it is in.
    between_rounds: Callable[[str], None]
    #: By cohort and workload: the slice that the pilot chose.
    windows: dict[int, dict[str, protocol.Slice]] = field(default_factory=dict)
    slices_done: int = 0
    diagnosed: int = 0
    repeated: int = 0  # diagnostic slices that others disturbed
    diagnostic_connections: DiagnosticConnections | None = None  # None: no diagnostic slices
    host: Host = field(default_factory=Host.here)
    client_bytes: int = 0  # of memory that each client may take for its operations; 0: no limit
    unlimited: set[str] = field(default_factory=set)  # what the kernel does not limit, for the environment
    relays: Mapping[str, int] = field(default_factory=dict)  # delayed route -> pid of its relay
    #: Waits until the backends of a group have left the server, where they pass.
    departed: AwaitDeparture = lambda _group: ""
    written: WrittenTables = field(default_factory=WrittenTables)  # by workloads that insert rows
    agent: Agent | None = None  # on the server's host, if that is another machine
    load_hosts: LoadHosts | None = None  # None: all clients are on this machine
    #: Ends what killed clients, or those on lost load hosts, have left on the server.
    end_sessions: Callable[[], None] = lambda: None
    interpreters: Mapping[str, str] = field(default_factory=dict)  # layer -> Python, if the site named one
    places: EnvironmentPlaces | None = None  # None: there is only the default environment
    #: Prepares the servers of the routes that a block measures.
    before_block: Callable[[int, Sequence[str]], None] = lambda _block, _routes: None
    page_parts: list[PageParts] = field(default_factory=list)  # the same
    statement_times: list[StatementTimes] = field(default_factory=list)  # grows in the diagnosed block
    searches: Searches = field(default_factory=Searches)


def run_block(
    context: RunContext, cohort: int, block: int, done: Callable[[list[VariantBlock]], None]
) -> None:
    """Measure every variant of the cohort in one block; `done` gets the results, in the cohort's
    order.

    The diagnosed block ends with the diagnostic slices. If one of them fails, `done` still gets the
    timed slices.
    """
    with _resident(context, cohort, block) as groups:
        with context.clock.phase("warm_up"):
            warm_up(context.plan.definition, groups)
            for group in groups:
                context.departed(group)
            context.written.begin_block()
        context.progress.ended(cohort, run_time.WARM_UP)
        _find_processes(context, groups)
        _choose_windows(context, cohort, groups)
        process_cpu = process_cpu_of(context.host, groups)
        measured = _rounds(context, groups, cohort, block)
        counted = {**_close_process_cpu(process_cpu, groups), "role_cpus": context.cpu_placement.role_cpus()}
        away = accounts(groups, counted)
        try:
            if context.diagnostic_connections and block == context.plan.definition.diagnosed_block:
                with context.clock.phase("diagnostics"):
                    _diagnose(context, context.diagnostic_connections, groups, cohort, measured)
                    _time_statements(context, groups)
        finally:
            _complete_remote(context.agent, groups, measured)
            pairs = zip(groups, measured, strict=True)
            done(
                [
                    _fold(group, cohort, block, measurements, away.get(group.variant) or _own(counted, group))
                    for group, measurements in pairs
                ]
            )


@dataclass(frozen=True)
class Diagnosis:
    """One diagnostic slice: what it found, and its begin and end; None before there is one."""

    found: DiagnosticResult = field(default_factory=DiagnosticResult)
    span_ns: tuple[int, int] | None = None


@dataclass
class VariantMeasurements:
    """The measurements of one variant in one block."""

    records: list[SliceRecord] = field(default_factory=list)
    windows: list[SliceWindow] = field(default_factory=list)
    ends_ns: list[int] = field(default_factory=list)
    remote_account: dict[str, Any] = field(default_factory=dict)  # the server's host's, if that is another
    server_accounts: list[Mapping[str, int] | None] = field(default_factory=list)  # here, by slice
    by_host: list[Sequence[Mapping[str, int | None]]] = field(default_factory=list)  # load hosts, by slice
    diagnosis: Diagnosis = field(default_factory=Diagnosis)


@contextmanager
def _resident(context: RunContext, cohort: int, block: int) -> Iterator[list[ClientGroup]]:
    plan = context.plan
    everyone = plan.variants
    named = [(v, f"{context.application}-{everyone.index(v)}") for v in plan.cohorts[cohort].variants]
    own = [(variant, name) for variant, name in named if not variant.hosts]
    cold = block < plan.definition.cold_blocks
    start = partial(
        started, plan.definition, own, context.routes, context.build_dir, cold, context.cpu_placement.clients,
        interpreters=context.interpreters, memory_bytes=context.client_bytes,
        places=context.places.in_block(block) if context.places else None,
    )  # fmt: skip
    begin = time.monotonic()
    context.before_block(block, list(dict.fromkeys(v.route for v in plan.cohorts[cohort].variants)))
    if run_time.restarted(plan.definition, plan.cohorts[cohort]):
        context.progress.ended(cohort, run_time.RESTART)
    with start() as here, hosted(context.load_hosts, cohort, block, named, cold) as away:
        by_variant = {group.variant: group for group in (*here, *away)}
        groups = [by_variant[variant] for variant, _name in named]
        context.clock.spent["startup"] += time.monotonic() - begin
        context.unlimited.update(reason for group in groups for reason in group.unlimited())
        context.progress.ended(cohort, run_time.COLD_START if cold else run_time.START)
        yield groups


def warm_up(definition: Definition, groups: Sequence[ClientGroup]) -> None:
    """Warm up the clients of this machine, as many at the same time as can be, to save wall time.

    Slow operations get a smaller count.
    """
    owners = {group.variant: group for group in groups if not (group.owner or isinstance(group, HostedGroup))}
    for turn in warm_up_turns(owners):
        _warm_up_together(definition, [owners[variant] for variant in turn])
    for group in groups:
        group.op_s = group.owner.op_s if group.owner else group.op_s


def _warm_up_together(definition: Definition, groups: Sequence[ClientGroup]) -> None:
    for group in groups:
        group.begin(_TRIAL)
    for group in groups:
        group.calibrate(_TRIAL)
    requests = [_warm_up_of(definition, group) for group in groups]
    for group, request in zip(groups, requests, strict=True):
        group.begin(request)
    for group, request in zip(groups, requests, strict=True):
        group.collect(request)


def _warm_up_of(definition: Definition, group: ClientGroup) -> protocol.Slice:
    most = int(warm_up_most_s(definition) / group.op_s) if group.op_s else definition.warm_up_ops
    ops = max(1, min(definition.warm_up_ops, most))
    return protocol.Slice(
        seq=0, start_ns=0, lead_in_ops=ops, lead_in_ns=definition.warm_up_ms * 1_000_000, window_ns=0, count=1
    )


def _choose_windows(context: RunContext, cohort: int, groups: list[ClientGroup]) -> None:
    """Let a pilot choose the slice of each of the cohort's workloads, once in a run."""
    if cohort in context.windows:
        return
    definition, slices = context.plan.definition, {}
    op_s = {group.variant: group.op_s for group in groups}
    piloted: dict[str, list[Need]] = {}
    for workload in dict.fromkeys(group.variant.workload for group in groups):
        own = [group for group in groups if group.variant.workload == workload]
        if definition.work(workload).bulk:
            slices[workload] = bulk_slice(max(group.op_s for group in own))
            continue
        with context.clock.phase("pilot"):
            needs = _needs(context, own)
        piloted[workload] = list(needs.values())
        slices[workload] = _for_clocks(context, own, fitting(asked_slice(definition), piloted[workload]))
        op_s.update({variant: need.mean_ns / 1e9 for variant, need in needs.items()})
    context.progress.ended(cohort, run_time.PILOT)
    context.progress.piloted(cohort, slices, op_s)
    if not definition.slice_ms and context.pace.affordable_rounds(cohort, 0) < _FEW_ROUNDS:
        slices |= {workload: shortened(slices[workload], needs) for workload, needs in piloted.items()}
        context.progress.piloted(cohort, slices, op_s)
    context.windows[cohort] = slices


def _for_clocks(
    context: RunContext, groups: Sequence[ClientGroup], request: protocol.Slice
) -> protocol.Slice:
    """The slice with a window that is long for the error of the load hosts' clocks, unless the
    definition asks for one.
    """
    asked = context.plan.definition.slice_ms or request.count
    if asked or context.load_hosts is None or not any(group.variant.hosts for group in groups):
        return request
    return request._replace(window_ns=max(request.window_ns, context.load_hosts.least_window_ns))


def _needs(context: RunContext, groups: list[ClientGroup]) -> dict[Variant, Need]:
    """What the variants of a workload need, where a pilot has to find it out."""
    asked = asked_slice(context.plan.definition)
    uncertain = [group for group in groups if group.variant.connections > 1 or not asked.window_ns]
    return {group.variant: _need(context, group) for group in uncertain}


def _need(context: RunContext, group: ClientGroup) -> Need:
    """A variant's need by the pilot, which all its clients run at the same time."""
    request = pilot_slice(group.op_s, group.variant.connections)
    (found,) = measured([Turn(group, request, -1)], -1, None, context.departed)
    record, window = found.record, found.window
    mean_ns = record.us_per_op * 1000
    longest_ns = float(window.durations.max()) if len(window.durations) else mean_ns
    return Need(group.variant.connections, mean_ns, max(longest_ns, window.led_in_ns))


def _request(
    context: RunContext,
    cohort: int,
    group: ClientGroup,
    turn: str,
    ahead: int = 0,
    rate: float | None = None,
) -> protocol.Slice:
    """The group's slice that has so many `ahead` of it, of a search at that rate. The schedules of
    all variants in a turn have the same seed.

    Connections that share a window lead in with one operation, so as not to start late.
    """
    definition = context.plan.definition
    window = context.windows[cohort][group.variant.workload]
    request = window._replace(seq=context.slices_done + ahead + context.diagnosed + context.repeated + 1)
    if group.variant.is_open_loop:
        limit_ns = round(definition.latency_limit_ms * 1e6)
        seed = random.Random(f"{definition.seed}/{cohort}/{turn}").getrandbits(62)
        at_rate = (
            scheduled(request, group.variant)
            if rate is None
            else searched(request, group.variant, rate, definition.rate_search_ms)
        )
        return at_rate._replace(seed=seed, latency_limit_ns=limit_ns)
    armed = group.variant.connections > 1 or bool(group.variant.hosts)
    return request._replace(lead_in_ops=1) if armed else request


def _find_processes(context: RunContext, groups: list[ClientGroup]) -> None:
    """Find the server, pooler and relay processes of the groups. Clients of web servers work
    meanwhile, also on load hosts.
    """
    working = next((group for group in groups if isinstance(group, HostedGroup)), groups[0])
    in_time(working, partial(context.find_servers, groups))
    find_server_cgroup(groups)
    for group in groups:
        group.relay_pid = context.relays.get(group.variant.route, group.relay_pid)
        group.look_again = False


def process_cpu_of(host: Host, groups: Iterable[ClientGroup]) -> ProcessCpu:
    """Begin the accounts of a block. CPU quotas may have changed since the last one."""
    quota_groups.cache_clear()
    return ProcessCpu(host, _pids(groups))


def _pids(groups: Iterable[ClientGroup]) -> set[int]:
    return {pid for group in groups for pid in group.pids()}


def _close_process_cpu(process_cpu: ProcessCpu, groups: list[ClientGroup]) -> dict[str, Any]:
    """The CPU time of all processes in the block; short-lived processes of the server count as
    ours.
    """
    counted = process_cpu.close(_pids(groups))
    short_lived_ns = sum(group.totals.of_short_lived_ns for group in groups)
    clock = {"clock_read_ns": ns} if (ns := slow_read_ns()) else {}
    return {**counted, **clock, "ours_ns": counted["ours_ns"] + short_lived_ns}


def _rounds(
    context: RunContext, groups: list[ClientGroup], cohort: int, block: int
) -> list[VariantMeasurements]:
    found = [VariantMeasurements() for _ in groups]
    for group in groups:
        context.searches.begin_block(group.variant, group.op_s, context.plan.definition.rate_search_ms)
    for round_ in context.pace.rounds(cohort, block):
        checkpoints = context.written.checkpoints()
        order = round_order(context.plan, cohort, block, round_)
        for each in _slices_of(context, cohort, [groups[index] for index in order], (block, round_)):
            _keep(context, each, found[order[each.turn.position]])
            group = each.turn.group
            if group.look_again and group.backends_pass:
                _find_processes(context, groups)  # the next slice may use the same server connections
        if context.written.overlapped(checkpoints):
            _mark_checkpoint(context.plan.definition, groups, found)
        if any(group.look_again for group in groups):
            _find_processes(context, groups)
        _lead_in_longer(context.windows[cohort], groups, found)
        context.progress.ended(cohort, run_time.ROUND)
        context.between_rounds(f"round {round_ + 1} of {context.pace.planned_rounds} is timed")
    return found


def _slices_of(
    context: RunContext, cohort: int, groups: Sequence[ClientGroup], at: tuple[int, int]
) -> Iterator[Measured]:
    """The slices of a block's round, in their order. In the first round all closed loops have ended
    before a search has its first rate, also on load hosts, whose slices are ordered in batches.
    """
    block, round_ = at
    closed = sum(not group.variant.is_search for group in groups)
    edges = [0, len(groups)] if round_ else [0, closed, len(groups)]
    for first, end in pairwise(edges):
        turns = _turns(context, cohort, groups[first:end], f"{block}/{round_}", first)
        yield from measured(turns, round_, context.host, context.departed)


def _turns(
    context: RunContext, cohort: int, groups: Iterable[ClientGroup], turn: str, first: int
) -> Iterator[Turn]:
    """The slices of a round from its `first` one, each made when its turn comes: the rate of a search
    follows from those before it.
    """
    done = context.slices_done
    for position, group in enumerate(groups, first):
        rate = context.searches.next_rate(group.variant)
        ahead = position - first - (context.slices_done - done)
        yield Turn(group, _request(context, cohort, group, turn, ahead, rate), position, rate)


def _keep(context: RunContext, each: Measured, measurements: VariantMeasurements) -> None:
    """A slice that has ended, with its table as it was before."""
    record = context.searches.learned(each.turn.group.variant, each.record, each.window, each.turn.rate)
    _settle(context, each.turn.group, record)
    context.clock.spent["slices"] += (each.turn.request.lead_in_ns + each.record.window_ns) / 1e9
    measurements.ends_ns.append(each.ended_ns)
    measurements.records.append(record)
    measurements.windows.append(each.window)
    measurements.server_accounts.append(each.server_account)
    measurements.by_host.append(each.by_host)
    context.slices_done += 1


def _lead_in_longer(
    slices: dict[str, protocol.Slice], groups: list[ClientGroup], measured: list[VariantMeasurements]
) -> None:
    """Give the next round a longer lead-in where clients were late for the window of this one."""
    for group, measurements in zip(groups, measured, strict=True):
        if group.variant.is_open_loop:
            continue
        workload = group.variant.workload
        slices[workload] = later_lead_in(slices[workload], measurements.windows[-1].led_in_ns)


def _settle(context: RunContext, group: ClientGroup, record: SliceRecord) -> None:
    """Check what a slice inserted, and put its table back as it was."""
    rows = (record.lead_in_ops + record.ops) * (group.ready[0].rows_per_op or 0)
    context.written.settle(group.variant.workload, rows)


def _mark_checkpoint(
    definition: Definition, groups: list[ClientGroup], measured: list[VariantMeasurements]
) -> None:
    """Mark the round's slices that inserted rows."""
    for group, measurements in zip(groups, measured, strict=True):
        if definition.work(group.variant.workload).bulk:
            last = measurements.records[-1]
            why = "; ".join(filter(None, (last.disturbed, "a checkpoint ran during this round")))
            measurements.records[-1] = replace(last, disturbed=why)


def _complete_remote(
    agent: Agent | None, groups: list[ClientGroup], measured: list[VariantMeasurements]
) -> None:
    """Complete the records with the samples of the agent on the server's host, if there is one."""
    seen = agent.hand_over() if agent else None
    if not seen:
        return
    pairs = zip(groups, measured, strict=True)
    found = server.complete_slices(
        [
            server.VariantSlices(g.remote_processes, measurements.records, measurements.ends_ns)
            for g, measurements in pairs
        ],
        seen,
    )
    for measurements, one in zip(measured, found, strict=True):
        measurements.records, measurements.remote_account = one.records, one.account
    _complete_remote_top(groups, measured, seen)


def _complete_remote_top(
    groups: list[ClientGroup], measured: list[VariantMeasurements], seen: AgentSamples
) -> None:
    """Complete the diagnostic slices' top with the server's host and its processes."""
    both = zip(groups, measured, strict=True)
    shown = sorted(
        (measurements.diagnosis.span_ns, at)
        for at, (_group, measurements) in enumerate(both)
        if measurements.diagnosis.span_ns
    )
    looks = [
        server.DiagnosticInterval(
            groups[at].remote_processes, begin_ns, end_ns, measured[at].diagnosis.found.top["seconds"]
        )
        for (begin_ns, end_ns), at in shown
    ]
    for (_span, at), found in zip(shown, server.complete_top(looks, seen), strict=True):
        told = measured[at].diagnosis.found.top
        told["processes"] = [*told["processes"], *found["processes"]]
        told["server_host"] = {"host": found["host"]}


def _diagnose(
    context: RunContext,
    connections: DiagnosticConnections,
    groups: list[ClientGroup],
    cohort: int,
    measured: list[VariantMeasurements],
) -> None:
    """Run one diagnostic slice of each variant, in random order, and repeat those that others
    disturbed.
    """
    definition = context.plan.definition
    whole = round_order(context.plan, cohort, definition.diagnosed_block, definition.rounds)
    order = [index for index in whole if not groups[index].variant.is_search]
    for index in order:
        measured[index].diagnosis = _diagnosed(context, connections, cohort, groups[index])
        context.diagnosed += 1
        context.progress.ended(cohort, run_time.DIAGNOSTIC)
        context.between_rounds(
            f"diagnostic slice {context.diagnosed} of {context.progress.diagnostic} is taken"
        )
    disturbed = [index for index in order if measured[index].diagnosis.found.is_disturbed]
    for index in disturbed:
        if not context.pace.has_time_to_repeat(cohort, definition.diagnosed_block):
            return
        _repeat_diagnosis(context, connections, cohort, groups[index], measured[index])


def _repeat_diagnosis(
    context: RunContext,
    connections: DiagnosticConnections,
    cohort: int,
    group: ClientGroup,
    measurements: VariantMeasurements,
) -> None:
    """Run the variant's diagnostic slice again, and keep the less disturbed one."""
    again = _diagnosed(context, connections, cohort, group)
    if again.found.taken_cpus < measurements.diagnosis.found.taken_cpus:
        measurements.diagnosis = again
    context.repeated += 1
    context.progress.ended(cohort, run_time.DIAGNOSTIC)
    context.between_rounds(f"the disturbed diagnostic slice of {group.variant.label} is repeated")


def _diagnosed(
    context: RunContext, connections: DiagnosticConnections, cohort: int, group: ClientGroup
) -> Diagnosis:
    return in_time(group, partial(_examined, context, connections, cohort, group))


def _examined(
    context: RunContext, connections: DiagnosticConnections, cohort: int, group: ClientGroup
) -> Diagnosis:
    definition = context.plan.definition
    window_ns = definition.diagnostic_ms * 1_000_000
    request = _request(context, cohort, group, "diagnostic")._replace(window_ns=window_ns, count=0)
    begin_ns = time.monotonic_ns()
    found = connections.examine(group, request, _statements_of(definition.work(group.variant.workload)))
    context.departed(group)
    context.written.empty()
    return Diagnosis(found, (begin_ns, time.monotonic_ns()))


def _time_statements(context: RunContext, groups: list[ClientGroup]) -> None:
    """Measure each statement of the operations with several, and the parts of pages, on the variants
    that can.
    """
    for group in groups:
        variant = group.variant
        work = context.plan.definition.work(variant.workload)
        if statement_times.are_timed(variant, work):
            each = statement_times.measured(group, work, context.host)
            place = (variant.workload, variant.layer, variant.mode, variant.route)
            context.statement_times.append(StatementTimes(*place, each))
            context.between_rounds(f"the statements of {variant.label} are timed one by one")
        elif page_parts.are_measured(variant):
            context.page_parts.append(page_parts.measured(group))
            context.between_rounds(f"the parts of the page are timed for {variant.label}")


def _statements_of(work: WorkloadDefinition) -> int | None:
    """The number of statements of one operation; None for a workload of the site that was not
    captured.
    """
    return len(work.statements) or (1 if work.sql else None)


def _own(counted: dict[str, Any], group: ClientGroup) -> dict[str, Any]:
    """What was counted in the block of all processes, and of this group's."""
    return {**counted, **group.totals.to_json()}


def _fold(
    group: ClientGroup, cohort: int, block: int, measurements: VariantMeasurements, counted: dict[str, Any]
) -> VariantBlock:
    counting = [window for window in measurements.windows if not window.errors]
    durations = _together([window.durations for window in counting])
    parts = [window.by_phase() for window in counting]
    first = group.ready[0]
    return VariantBlock(
        variant=group.variant,
        cohort=cohort,
        block=block,
        slices=tuple(measurements.records),
        histogram=latency.fold(durations),
        cold_us={} if group.owner else _cold(first),
        versions=dict(first.versions),
        rows_per_op=first.rows_per_op,
        latency_sum_ns=int(durations.sum()),
        latency_sum_sq=float(np.square(durations.astype(np.float64)).sum()),
        latency_min_ns=int(durations.min()) if len(durations) else 0,
        latency_max_ns=int(durations.max()) if len(durations) else 0,
        phases={name: latency.sums(_together([each[name] for each in parts])) for name in parts[0]}
        if parts
        else {},
        diagnostics=measurements.diagnosis.found.diagnostics,
        top=measurements.diagnosis.found.top,
        http=_http(measurements) if layers.over_http(group.variant.layer) else {},
        cpu_account=_cpu_account(group, measurements, counted),
    )


def _cpu_account(
    group: ClientGroup, measurements: VariantMeasurements, counted: dict[str, Any]
) -> dict[str, Any]:
    return {
        **counted,
        **_role_cpus(counted, group),
        **_remote_account(measurements, counted),
        **by_host(counted, measurements.by_host),
        **({"missing_grant": group.missing_grant} if group.missing_grant else {}),
        **({"web_workers": len(group.web.workers)} if group.web.workers else {}),
        **({"server_unknown": group.server_unknown} if group.server_unknown else {}),
    }


def _http(measurements: VariantMeasurements) -> dict[str, Any]:
    """The requests of a block, failed ones and lead-ins included."""
    lengths = [length for window in measurements.windows for length in window.lengths]
    return {
        "requests": sum(record.ops + record.lead_in_ops for record in measurements.records),
        "errors": dict(sum((Counter(window.errors) for window in measurements.windows), Counter())),
        "lengths": [min(lengths), max(lengths)] if lengths else [],
    }


def _together(durations: Sequence[Durations]) -> Durations:
    return np.concatenate(durations) if durations else np.zeros(0, dtype=np.uint64)


def _role_cpus(counted: dict[str, Any], group: ClientGroup) -> dict[str, Any]:
    return {"role_cpus": {**counted["role_cpus"], "pooler": pooler_process.processors(group.pooler_pid)}}


def _remote_account(measurements: VariantMeasurements, counted: Mapping[str, Any]) -> dict[str, Any]:
    """The account of the server's host, if that is no load host: by an agent, or by this process."""
    here = server_account(measurements.server_accounts, counted.get("own_cpus", 0))
    found = measurements.remote_account or here
    return {"server_host": found} if found else {}


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
