"""A whole run: probe the server, check the rails, measure block by block, hand out what each block gave."""

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pgperf.core.exceptions import ClientFailed, RunCancelled
from pgperf.core.records import Plan, Route, Timings, VariantBlock
from pgperf.runner import environment, preflight
from pgperf.runner.block import PHASES, Bench, Clock, run_block
from pgperf.runner.cpu import idle, placement
from pgperf.runner.processes import relay_process
from pgperf.runner.remote.server import Agent
from pgperf.runner.server.diagnostics import Instruments
from pgperf.runner.server.probe import Server


class Observer(Protocol):
    """Who watches a run. Called in the runner's thread, never inside a slice."""

    def block_done(self, blocks: list[VariantBlock]) -> None:
        """A block of one cohort ended."""

    def progress(self, share: float, message: str) -> None:
        """`share` of the slices, 0 to 1; also the heartbeat. Between rounds only."""

    def cancelled(self) -> bool:
        """Has somebody asked to stop? Asked between rounds."""


@dataclass(frozen=True)
class Machine:
    """What a run may use of this machine, and what it is called."""

    build_dir: str
    run_id: str
    pin_server: bool = True
    connection_share: float = 0.25
    max_run_seconds: float = 1800.0
    interpreters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a finished run knows beside its blocks. `plan` has the placement that was possible."""

    plan: Plan
    environment: dict[str, Any]
    timings: Timings


def execute(
    plan: Plan, routes: dict[str, Route], machine: Machine, observer: Observer, agent: Agent | None = None
) -> Outcome:
    """Run the plan, handing out each block as it ends. `agent`: whoever reads the server's host if that is another one.

    Raises a PgperfError with the reason when the run cannot start or finish.
    """
    begin = time.monotonic()
    with ExitStack() as stack:
        server = stack.enter_context(Server.open(plan, routes, machine.run_id, machine.pin_server, agent))
        server.call_agent()
        preflight.check(plan, server.headroom(), machine.connection_share, machine.max_run_seconds)
        cpu_placement = placement.place(
            plan.definition.placement, os.sched_getaffinity(0), server.pin_refusal()
        )
        plan = _placed(plan, cpu_placement.placement)
        clock = Clock()
        awake = stack.enter_context(idle.keep_awake(plan.definition.idle))
        facts = environment.before(server.query, server.pooler_pid, cpu_placement, awake)
        breathe = _Breath(plan, machine, observer, begin, server.can_be_asked)
        bench = Bench(
            plan, routes, machine.build_dir, cpu_placement, server.application, clock, server.finder(cpu_placement),
            breathe,
            agent=agent, interpreters=machine.interpreters, relays=relay_process.find(routes.values()),
        )  # fmt: skip
        if plan.definition.diagnostic_ms and server.can_be_asked:
            bench.instruments = stack.enter_context(Instruments(routes, server.application))
        versions = _blocks(bench, observer)
    wall = time.monotonic() - begin
    timings = Timings(wall_s=wall, **{f"{name}_s": clock.spent[name] for name in PHASES})
    return Outcome(plan, {**facts, **environment.after(versions), **_far(agent)}, timings)


def _far(agent: Agent | None) -> dict[str, Any]:
    facts = agent.facts() if agent else {}
    return {"server_host": facts} if facts else {}


def _blocks(bench: Bench, observer: Observer) -> dict[str, dict[str, str]]:
    """Measure all blocks, handing each out as it ends; the versions each layer reported."""
    versions: dict[str, dict[str, str]] = {}

    def done(results: list[VariantBlock]) -> None:
        observer.block_done(results)
        versions.update({result.variant.layer: result.versions for result in results})

    for block in range(bench.plan.definition.blocks):
        for cohort in range(len(bench.plan.cohorts)):
            run_block(bench, cohort, block, done)
    return versions


def _placed(plan: Plan, name: str) -> Plan:
    cohorts = tuple(
        replace(cohort, variants=tuple(replace(v, placement=name) for v in cohort.variants))
        for cohort in plan.cohorts
    )
    return replace(plan, cohorts=cohorts)


class _Breath:
    """What happens between rounds: progress out, cancellation and time limit in."""

    def __init__(self, plan: Plan, machine: Machine, observer: Observer, begin: float, asked: bool) -> None:
        definition, resident = plan.definition, sum(len(cohort.variants) for cohort in plan.cohorts)
        self._total = definition.blocks * definition.rounds * resident
        self._diagnostic = resident if definition.diagnostic_ms and asked else 0
        #: A diagnostic slice lasts as long as so many timed ones.
        self._weight = max(1.0, preflight.diagnostic_s(definition) / preflight.slice_s(definition))
        self._observer = observer
        self._deadline = begin + machine.max_run_seconds
        self._limit = machine.max_run_seconds

    def __call__(self, done: int, diagnosed: int) -> None:
        share = (done + self._weight * diagnosed) / (self._total + self._weight * self._diagnostic)
        message = f"slice {done} of {self._total}"
        if diagnosed:
            message += f", diagnostic slice {diagnosed} of {self._diagnostic}"
        self._observer.progress(share, message)
        if self._observer.cancelled():
            raise RunCancelled("cancelled on request")
        if time.monotonic() > self._deadline:
            raise ClientFailed(f"the run took longer than {self._limit:.0f} s (PGPERF['MAX_RUN_SECONDS'])")
