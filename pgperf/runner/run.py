"""A whole run: probe the server, check the guardrails, measure block by block, pass on each block's
results.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pgperf.core import layers
from pgperf.core.exceptions import ClientFailed, RunCancelled
from pgperf.core.records import Plan, Route, Timings, VariantBlock
from pgperf.runner import authentication, environment, ports, preflight
from pgperf.runner.authentication import LoginConditions
from pgperf.runner.block import PHASES, PhaseClock, RunContext, run_block
from pgperf.runner.cpu import idle, placement
from pgperf.runner.memory import RunMemory
from pgperf.runner.processes import relay_process
from pgperf.runner.progress import Progress
from pgperf.runner.remote.server import Agent
from pgperf.runner.server import result_size
from pgperf.runner.server.diagnostics import DiagnosticConnections
from pgperf.runner.server.load_limits import LoadGuard
from pgperf.runner.server.probe import ServerProbe
from pgperf.runner.server.written_tables import WrittenTables


class RunObserver(Protocol):
    """Receives a run's blocks and progress. Called in the runner's thread, never inside a slice."""

    def block_done(self, blocks: list[VariantBlock]) -> None:
        """A block of one cohort ended."""

    def progress(self, share: float, message: str) -> None:
        """`share` of the slices is done, 0 to 1. Called between rounds only; also the heartbeat."""

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
    memory: RunMemory = field(default_factory=RunMemory.now)
    #: The limits of a production server's load, by setting; none on other databases.
    load_limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class RunResult:
    """A finished run without its blocks. `plan` has the placement that was possible."""

    plan: Plan
    environment: dict[str, Any]
    timings: Timings


def execute(
    plan: Plan,
    routes: dict[str, Route],
    settings: RunSettings,
    observer: RunObserver,
    agent: Agent | None = None,
    know: Callable[[dict[str, Any]], object] = lambda facts: None,
) -> RunResult:
    """Run the plan and pass each block to the observer as it ends. `agent` reads the server's host
    if it is remote; `know` gets the facts that hold before the first block.

    Raises a PgperfError with the reason if the run cannot start or finish.
    """
    begin = time.monotonic()
    with ExitStack() as stack:
        written = stack.enter_context(WrittenTables.of(plan, routes, settings.run_id))
        server = stack.enter_context(
            ServerProbe.open(plan, routes, settings.run_id, settings.pin_server, agent)
        )
        server.call_agent()
        headroom = server.headroom(settings.memory)
        preflight.check(plan, headroom, settings.connection_share, settings.max_run_seconds)
        logins = _logins(plan, routes, server.application)
        local_ports = ports.check(plan, routes, logins, ports.LocalPorts.read())
        client_bytes = settings.memory.client_bytes(plan)
        sizes = result_size.estimates(plan, routes, server.application)
        preflight.check_results(sizes, client_bytes, preflight.most_workers(plan))
        cpu_placement = placement.place(
            plan.definition.placement, os.sched_getaffinity(0), server.pin_refusal()
        )
        plan = _placed(plan, cpu_placement.placement)
        server.bind(plan, cpu_placement)
        clock = PhaseClock()
        awake = stack.enter_context(idle.keep_awake(plan.definition.idle))
        facts = environment.before(server.all, server.pooler_pid, cpu_placement, awake, logins)
        know(facts)
        load = LoadGuard(server.one, settings.load_limits if server.can_be_asked else {})
        load()
        progress = Progress(plan, lambda: clock.spent["slices"], diagnoses=server.can_be_asked)
        between_rounds = _RunGuard(progress, settings, observer, begin, load)
        context = RunContext(
            plan, routes, settings.build_dir, cpu_placement, server.application, clock, server.finder(cpu_placement),
            between_rounds,
            agent=agent, interpreters=settings.interpreters, relays=relay_process.find(routes.values()),
            client_bytes=client_bytes, departed=server.departed, written=written,
        )  # fmt: skip
        if plan.definition.diagnostic_ms and server.can_be_asked:
            context.diagnostic_connections = stack.enter_context(
                DiagnosticConnections(routes, server.application)
            )
        versions = _blocks(context, observer)
    wall = time.monotonic() - begin
    timings = Timings(wall_s=wall, **{f"{name}_s": clock.spent[name] for name in PHASES})
    memory = settings.memory.to_json(client_bytes, context.unlimited)
    watched = {
        name: found
        for name, found in (("load", load.facts), ("ports", local_ports), ("written", written.facts))
        if found
    }
    found = {**facts, **environment.after(versions), "memory": memory, **watched, **_server_host(agent)}
    return RunResult(plan, found, timings)


def _logins(plan: Plan, routes: Mapping[str, Route], application: str) -> dict[str, LoginConditions]:
    """How the clients of each route log in."""
    names = dict.fromkeys(variant.route for variant in plan.variants if layers.connects(variant.layer))
    return {name: authentication.conditions(routes[name], application) for name in names}


def _server_host(agent: Agent | None) -> dict[str, Any]:
    facts = agent.facts() if agent else {}
    return {"server_host": facts} if facts else {}


def _blocks(context: RunContext, observer: RunObserver) -> dict[str, dict[str, str]]:
    """Measure all blocks and pass each to the observer; returns the versions that each layer
    reported.
    """
    versions: dict[str, dict[str, str]] = {}

    def done(results: list[VariantBlock]) -> None:
        observer.block_done(results)
        versions.update({result.variant.layer: result.versions for result in results})

    for block in range(context.plan.definition.blocks):
        for cohort in range(len(context.plan.cohorts)):
            run_block(context, cohort, block, done)
    return versions


def _placed(plan: Plan, name: str) -> Plan:
    cohorts = tuple(
        replace(cohort, variants=tuple(replace(v, placement=name) for v in cohort.variants))
        for cohort in plan.cohorts
    )
    return replace(plan, cohorts=cohorts)


class _RunGuard:
    """Called between rounds: reports progress, and ends the run on cancellation, at its time limit,
    or when a production server's load passes a limit.
    """

    def __init__(
        self,
        progress: Progress,
        settings: RunSettings,
        observer: RunObserver,
        begin: float,
        load: Callable[[], None],
    ) -> None:
        self._progress = progress
        self._observer = observer
        self._deadline = begin + settings.max_run_seconds
        self._limit = settings.max_run_seconds
        self._load = load

    def __call__(self, done: int, diagnosed: int) -> None:
        message = f"slice {done} of {self._progress.total}"
        if diagnosed:
            message += f", diagnostic slice {diagnosed} of {self._progress.diagnostic}"
        self._observer.progress(self._progress.share(done, diagnosed), message)
        if self._observer.cancelled():
            raise RunCancelled("cancelled on request")
        self._load()
        if time.monotonic() > self._deadline:
            raise ClientFailed(f"the run took longer than {self._limit:.0f} s (PGPERF['MAX_RUN_SECONDS'])")
