"""A whole run: probe the server, check the guardrails, measure block by block, pass on each block's
results.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pgperf.analysis.number_text import in_percent
from pgperf.core import layers
from pgperf.core.exceptions import ClientFailed, LoadHostFailed, RunCancelled, TimeIsUp
from pgperf.core.records import (
    BLOCKS,
    BUDGET,
    ENDING,
    PAGE_PARTS,
    PRECISION,
    STATEMENT_TIMES,
    Ending,
    Plan,
    Route,
    Timings,
    VariantBlock,
)
from pgperf.install.environments import UsableEnvironment
from pgperf.runner import authentication, environment, page_parts, ports, preflight, statement_times
from pgperf.runner.authentication import LoginConditions
from pgperf.runner.block import run_block
from pgperf.runner.client_process import also_while_waiting
from pgperf.runner.cpu import idle, placement
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.environment import Versions
from pgperf.runner.environment_places import places
from pgperf.runner.load_hosts import LoadHosts, placement_refusal
from pgperf.runner.looks import Looks
from pgperf.runner.memory import RunMemory
from pgperf.runner.pace import Pace
from pgperf.runner.plan import request_pages
from pgperf.runner.processes import relay_process
from pgperf.runner.progress import Progress
from pgperf.runner.remote.server import Agent
from pgperf.runner.run_context import PHASES, PhaseClock, RunContext
from pgperf.runner.server import result_size, version
from pgperf.runner.server.diagnostics import DiagnosticConnections
from pgperf.runner.server.load_limits import LoadGuard
from pgperf.runner.server.probe import ServerProbe
from pgperf.runner.server.written_tables import WrittenTables


class RunObserver(Protocol):
    """Receives a run's blocks and progress. Called in the runner's thread, never inside a slice."""

    def block_done(self, blocks: list[VariantBlock]) -> None:
        """A block of one cohort ended."""

    def progress(self, share: float, message: str) -> None:
        """`share` of the run is done, 0 to 1; of its time, where it has a budget. Called between
        slices only; also the heartbeat.
        """

    def cancelled(self) -> bool:
        """Whether a user has requested a cancel. Called between rounds."""


@dataclass(frozen=True)
class RunSettings:
    """The id of a run, and the limits and programs that it uses on this machine."""

    build_dir: str
    run_id: str
    pin_server: bool = True
    connection_share: float = 0.25
    max_run_seconds: float = 1800.0
    interpreters: Mapping[str, str] = field(default_factory=dict)
    #: The environments that the plan's variants name, and the default one.
    environments: Mapping[str, UsableEnvironment] = field(default_factory=dict)
    memory: RunMemory = field(default_factory=RunMemory.now)
    #: The limits of a production server's load, by setting; none on other databases.
    load_limits: Mapping[str, float] = field(default_factory=dict)
    #: Called before each block with its number and the routes that it measures.
    before_block: Callable[[int, Sequence[str]], None] = lambda _block, _routes: None
    #: When the run's time began, by time.monotonic(); None: with `execute`.
    begin: float | None = None


@dataclass(frozen=True)
class RunResult:
    """A finished run without its blocks. `plan` has the placement that was possible."""

    plan: Plan
    environment: dict[str, Any]
    timings: Timings


@dataclass(frozen=True)
class _Checked:
    """The findings of the checks before a run: logins by route, local ports, memory of a client."""

    logins: dict[str, LoginConditions]
    local_ports: dict[str, Any]
    client_bytes: int


def execute(
    plan: Plan,
    routes: dict[str, Route],
    settings: RunSettings,
    observer: RunObserver,
    agent: Agent | None = None,
    know: Callable[[dict[str, Any]], object] = lambda facts: None,
    load_hosts: LoadHosts | None = None,
) -> RunResult:
    """Run the plan and pass each block to the observer as it ends. `agent` reads the server's host
    if it is remote; `load_hosts` start the clients of the variants that have some; `know` gets the
    facts that hold before the first block.

    Raises a PgperfError with the reason if the run cannot start or finish.
    """
    begin = time.monotonic()
    with ExitStack() as stack:
        written = stack.enter_context(WrittenTables.of(plan, routes, settings.run_id))
        server = stack.enter_context(
            ServerProbe.open(plan, routes, settings.run_id, settings.pin_server, agent)
        )
        server.call_agent()
        checked = _checked(plan, routes, settings, server)
        if load_hosts:
            stack.enter_context(_ready(load_hosts, plan, server))
        plan, cpu_placement = _placed(plan, server, load_hosts)
        facts = _facts_before(stack, plan, server, cpu_placement, checked.logins)
        know(facts)
        guard = _RunGuard(plan, settings, observer, server, begin)
        context = _context(plan, routes, settings, server, cpu_placement, guard, agent, written, checked)
        context.load_hosts, context.end_sessions = load_hosts, server.end_sessions
        context.places = stack.enter_context(places(plan.definition, settings.environments))
        _connect_diagnostics(stack, context, server)
        versions = _blocks(context, observer, guard)
    timings = _timings(context, time.monotonic() - begin)
    found = _found(context, settings, checked, guard)
    return RunResult(
        plan,
        {
            **facts,
            **_with_poolers(facts, server.pooler_placement(cpu_placement)),
            **environment.after(versions, settings.environments),
            **found,
            **_hosts(agent, load_hosts),
        },
        timings,
    )


def _checked(plan: Plan, routes: dict[str, Route], settings: RunSettings, server: ServerProbe) -> _Checked:
    """Raises a PgperfError for a server that is too old, and for a plan that needs too much, or more
    time than it has.
    """
    if server.can_be_asked:
        version.check(*server.one(version.NUMBER))
    headroom = server.headroom(settings.memory)
    preflight.check(plan, headroom, settings.connection_share, settings.max_run_seconds)
    logins = _logins(plan, routes, server.application)
    local_ports = ports.check(plan, routes, logins, ports.LocalPorts.read())
    client_bytes = settings.memory.client_bytes(plan)
    sizes = result_size.estimates(plan, routes, server.application)
    preflight.check_results(sizes, client_bytes, preflight.most_workers(plan))
    return _Checked(logins, local_ports, client_bytes)


def _placed(
    plan: Plan, server: ServerProbe, load_hosts: LoadHosts | None = None
) -> tuple[Plan, CpuPlacement]:
    """The plan with the placement that is possible here, and the server bound to its CPUs."""
    cpu_placement = _place(plan, server.pin_refusal() or placement_refusal(load_hosts, plan))
    if refusal := server.cpus_refusal(cpu_placement.server):
        cpu_placement = _place(plan, refusal)
    if load_hosts:
        load_hosts.own_placement = cpu_placement
    cohorts = tuple(
        replace(
            cohort, variants=tuple(replace(v, placement=cpu_placement.placement) for v in cohort.variants)
        )
        for cohort in plan.cohorts
    )
    plan = replace(plan, cohorts=cohorts)
    server.bind(plan, cpu_placement)
    return plan, cpu_placement


def _place(plan: Plan, refusal: str) -> CpuPlacement:
    pages = request_pages(plan.variants)
    return placement.place(plan.definition.placement, os.sched_getaffinity(0), refusal, pages=pages)


def _facts_before(
    stack: ExitStack,
    plan: Plan,
    server: ServerProbe,
    cpu_placement: CpuPlacement,
    logins: dict[str, LoginConditions],
) -> dict[str, Any]:
    """Keep the CPUs awake until the stack ends; the environment before the first block."""
    awake = stack.enter_context(idle.keep_awake(plan.definition.idle))
    return environment.before(server.all, server.pooler_pid, cpu_placement, awake, logins, server.is_here)


def _with_poolers(facts: Mapping[str, Any], poolers: dict[str, str]) -> dict[str, Any]:
    """The placement with the CPUs of poolers, which a run finds while it measures; {} without any."""
    return {"placement": {**facts["placement"], "poolers": poolers}} if poolers else {}


def _context(
    plan: Plan,
    routes: dict[str, Route],
    settings: RunSettings,
    server: ServerProbe,
    cpu_placement: CpuPlacement,
    guard: "_RunGuard",
    agent: Agent | None,
    written: WrittenTables,
    checked: _Checked,
) -> RunContext:
    return RunContext(
        plan, routes, settings.build_dir, cpu_placement, server.application, PhaseClock(),
        server.finder(cpu_placement), guard.progress, guard.pace, guard,
        agent=agent, interpreters=settings.interpreters, relays=relay_process.find(routes.values()),
        client_bytes=checked.client_bytes, departed=server.departed, written=written,
        before_block=settings.before_block,
    )  # fmt: skip


def _connect_diagnostics(stack: ExitStack, context: RunContext, server: ServerProbe) -> None:
    """Open the connections of the diagnostic slices, if there are any."""
    if context.plan.definition.diagnostic_ms and server.can_be_asked:
        connections = DiagnosticConnections(context.routes, server.application)
        context.diagnostic_connections = stack.enter_context(connections)


def _timings(context: RunContext, wall_s: float) -> Timings:
    return Timings(wall_s=wall_s, **{f"{name}_s": context.clock.spent[name] for name in PHASES})


def _found(
    context: RunContext, settings: RunSettings, checked: _Checked, guard: "_RunGuard"
) -> dict[str, Any]:
    """The part of the environment that is known after the last block, without what was not found."""
    found: dict[str, Any] = {
        "load": guard.load.facts,
        "ports": checked.local_ports,
        "written": context.written.facts,
        STATEMENT_TIMES: [each.to_json() for each in context.statement_times],
        PAGE_PARTS: [each.to_json() for each in context.page_parts],
        ENDING: guard.ending(),
    }
    memory = settings.memory.to_json(checked.client_bytes, context.unlimited)
    return {"memory": memory, **{name: each for name, each in found.items() if each}}


def _logins(plan: Plan, routes: Mapping[str, Route], application: str) -> dict[str, LoginConditions]:
    """How the clients of each route log in."""
    names = dict.fromkeys(variant.route for variant in plan.variants if layers.connects(variant.layer))
    return {name: authentication.conditions(routes[name], application) for name in names}


@contextmanager
def _ready(load_hosts: LoadHosts, plan: Plan, server: ServerProbe) -> Iterator[None]:
    """The load hosts, prepared. Where one fails, no session of its clients is left."""
    try:
        load_hosts.begin(plan.skipped)
        with also_while_waiting(load_hosts.check_alive):
            yield
    except BaseException:
        load_hosts.leave()
        server.end_sessions()
        raise


def _hosts(agent: Agent | None, load_hosts: LoadHosts | None) -> dict[str, Any]:
    """The facts about the server's host and about load hosts, where there are any."""
    found = {
        "server_host": agent.facts() if agent else {},
        "load_hosts": load_hosts.facts() if load_hosts else {},
    }
    return {name: facts for name, facts in found.items() if facts}


def _blocks(context: RunContext, observer: RunObserver, guard: "_RunGuard") -> Versions:
    """Measure blocks until the run knows enough or its time is used up, and pass each to the
    observer; returns the versions that each layer reported in each environment.
    """
    versions: Versions = {}

    def done(results: list[VariantBlock]) -> None:
        observer.block_done(results)
        guard.looks.add(results)
        for result in results:
            environment.note(versions, result)

    for block in range(context.plan.definition.most_blocks):
        if not guard.pace.has_time_for_block() or not _measured(context, block, done, guard):
            guard.reason = BUDGET
            break
        if guard.looks.enough(guard.pace.blocks):
            guard.reason = PRECISION
            break
    return versions


def _measured(
    context: RunContext, block: int, done: Callable[[list[VariantBlock]], None], guard: "_RunGuard"
) -> bool:
    """Measure a block of each cohort. False if the run's time was up long before it ended."""
    begin, once_s = time.monotonic(), context.clock.once_s
    guard.begin_block(block)
    try:
        with guard.pace.watched():
            for cohort in range(len(context.plan.cohorts)):
                _run_cohort(context, cohort, block, done)
    except TimeIsUp:
        if not block:
            raise guard.pace.first_block_too_long() from None
        context.end_sessions()  # the run ends well, and nobody else ends the statements of its clients
        return False
    guard.pace.block_ended(time.monotonic() - begin - (context.clock.once_s - once_s))
    return True


def _run_cohort(
    context: RunContext, cohort: int, block: int, done: Callable[[list[VariantBlock]], None]
) -> None:
    """A block of a cohort; once more without a load host that failed, if the run may lose it. `done`
    gets the block that counts: a failed one only where none follows it.
    """
    again, found = False, context.found_so_far()
    while True:
        ended: list[VariantBlock] = []
        try:
            if again:
                _end_clients(context)
            again = False
            return run_block(context, cohort, block, ended.extend)
        except LoadHostFailed as error:
            again = _goes_on(context, error)
            if not again:
                raise
            context.forget_since(found)
        finally:
            if ended and not again:
                done(ended)


def _goes_on(context: RunContext, error: LoadHostFailed) -> bool:
    """Does the run go on without that host?"""
    return context.load_hosts is not None and context.load_hosts.go_on_without(error.host, str(error))


def _end_clients(context: RunContext) -> None:
    """End all clients, then the sessions that lost ones have left: a session that ended under a client
    of another host would be taken for that host's failure.
    """
    assert context.load_hosts
    context.load_hosts.end()
    context.end_sessions()


class _RunGuard:
    """Called between slices: reports progress, and ends the run on cancellation, at its time limit,
    or when a production server's load passes a limit. Knows when and why the run ends.
    """

    def __init__(
        self,
        plan: Plan,
        settings: RunSettings,
        observer: RunObserver,
        server: ServerProbe,
        begin: float,
    ) -> None:
        self.progress = Progress(plan, diagnoses=server.can_be_asked)
        self.pace = Pace(
            plan,
            self.progress,
            _after_diagnostics_s(plan),
            settings.begin or begin,
            most_s=settings.max_run_seconds,
        )
        self.looks = Looks(plan.definition)
        self.load = LoadGuard(server.one, settings.load_limits if server.can_be_asked else {})
        self.load()
        self.reason = BLOCKS
        self._definition = plan.definition
        self._observer = observer
        self._deadline = begin + settings.max_run_seconds
        self._limit = settings.max_run_seconds
        self._block = 0

    def begin_block(self, block: int) -> None:
        self._block = block
        self._tell("clients start and warm up")

    def __call__(self, doing: str) -> None:
        self._tell(doing)
        if self._observer.cancelled():
            raise RunCancelled("cancelled on request")
        self.load()
        if time.monotonic() > self._deadline:
            if self.pace.blocks and not self._definition.is_fixed:
                raise TimeIsUp("the run reached PGPERF['MAX_RUN_SECONDS'] in a later block")
            raise ClientFailed(f"the run took longer than {self._limit:.0f} s (PGPERF['MAX_RUN_SECONDS'])")

    def ending(self) -> dict[str, Any]:
        """How a run that may stop early ended; nothing for one of a fixed length."""
        if self._definition.is_fixed:
            return {}
        return Ending(
            reason=self.reason,
            blocks=self.pace.blocks,
            seconds=self.pace.passed_s(),
            budget_s=self.pace.budget_s,
            precision=self.looks.of_all(),
            target=self._definition.precision / 100 or None,
        ).to_json()

    def _tell(self, doing: str) -> None:
        known = self._definition.is_fixed or self._definition.ends_after_blocks
        of = f" of {self._definition.blocks}" if known else ""
        message = f"Block {self._block + 1}{of}: {doing}."
        self._observer.progress(
            self._share(), " ".join(filter(None, (message, self._known(), self._times())))
        )

    def _share(self) -> float:
        if self._definition.fills_budget:
            return min(1.0, self.pace.passed_s() / self.pace.budget_s)
        return self.progress.share()

    def _known(self) -> str:
        """The precision of the last look and the target."""
        if not self._definition.stops_early:
            return ""
        target = f"target ±{self._definition.precision:g} %"
        if self.looks.precision is None:
            return f"Precision not yet known, {target}."
        return f"Known to ±{in_percent(self.looks.precision, 1)}, {target}."

    def _times(self) -> str:
        """The time that has passed, and the time left: at most that of the budget."""
        passed = f"{duration(self.pace.passed_s())} passed"
        if self._definition.fills_budget:
            return f"{passed}, at most {duration(self.pace.left_s())} left."
        left_s = self.progress.left_s()
        if not self._definition.is_fixed:
            left_s = min(left_s, self.pace.left_s())
        return f"{passed}, about {duration(left_s)} left." if left_s else f"{passed}."


def _after_diagnostics_s(plan: Plan) -> float:
    """The predicted time of what follows the diagnostic slices."""
    return sum(
        statement_times.predicted_s(variant, plan.definition.work(variant.workload))
        + page_parts.predicted_s(variant)
        for variant in plan.variants
    )


def duration(seconds: float) -> str:
    """For people: in minutes, or in seconds."""
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
