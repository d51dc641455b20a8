"""A whole run: probe the server, check the rails, measure block by block, hand out what each block gave."""

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pgperf.exceptions import ClientFailed, RunCancelled
from pgperf.records import Plan, Route, Timings, VariantBlock
from pgperf.runner import environment, idle, placement, preflight
from pgperf.runner.block import Bench, Clock, run_block
from pgperf.runner.server import Server


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


def execute(plan: Plan, routes: dict[str, Route], machine: Machine, observer: Observer) -> Outcome:
    """Run the plan, handing out each block as it ends.

    Raises a PgperfError with the reason when the run cannot start or finish.
    """
    begin = time.monotonic()
    with ExitStack() as stack:
        server = stack.enter_context(Server.open(plan, routes, machine.run_id, machine.pin_server))
        preflight.check(plan, server.headroom(), machine.connection_share, machine.max_run_seconds)
        seats = placement.seats(plan.definition.placement, os.sched_getaffinity(0), server.pin_refusal())
        plan = _placed(plan, seats.placement)
        clock = Clock()
        awake = stack.enter_context(idle.held(plan.definition.idle))
        facts = environment.before(server.query, server.pooler_pid, seats, awake)
        breathe = _Breath(plan, machine, observer, begin)
        bench = Bench(
            plan, routes, machine.build_dir, seats, server.application, clock, server.finder(seats), breathe,
            interpreters=machine.interpreters,
        )  # fmt: skip
        versions = _blocks(bench, observer)
    wall = time.monotonic() - begin
    timings = Timings(wall, *(clock.spent[name] for name in ("startup", "warm_up", "pilot", "slices")))
    return Outcome(plan, {**facts, **environment.after(versions)}, timings)


def _blocks(bench: Bench, observer: Observer) -> dict[str, dict[str, str]]:
    """Measure all blocks, handing each out as it ends; the versions each layer reported."""
    versions: dict[str, dict[str, str]] = {}
    for block in range(bench.plan.definition.blocks):
        for cohort in range(len(bench.plan.cohorts)):
            results = run_block(bench, cohort, block)
            observer.block_done(results)
            versions.update({result.variant.layer: result.versions for result in results})
    return versions


def _placed(plan: Plan, name: str) -> Plan:
    cohorts = tuple(
        replace(cohort, variants=tuple(replace(v, placement=name) for v in cohort.variants))
        for cohort in plan.cohorts
    )
    return replace(plan, cohorts=cohorts)


class _Breath:
    """What happens between rounds: progress out, cancellation and time limit in."""

    def __init__(self, plan: Plan, machine: Machine, observer: Observer, begin: float) -> None:
        self._total = (
            plan.definition.blocks * plan.definition.rounds * sum(len(c.variants) for c in plan.cohorts)
        )
        self._observer = observer
        self._deadline = begin + machine.max_run_seconds
        self._limit = machine.max_run_seconds

    def __call__(self, done: int) -> None:
        self._observer.progress(done / self._total, f"slice {done} of {self._total}")
        if self._observer.cancelled():
            raise RunCancelled("cancelled on request")
        if time.monotonic() > self._deadline:
            raise ClientFailed(f"the run took longer than {self._limit:.0f} s (PGPERF['MAX_RUN_SECONDS'])")
