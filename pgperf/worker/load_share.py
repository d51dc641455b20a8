"""A load host's side of a run: carries out the owner's orders until the run is over.

It resolves secrets by their references here, proves each login again, and makes the owner's plan
from the run's definition. Every way out ends its clients. One that cannot ask the site's database
for STALE_SECONDS ends its own process, and the kernel ends its clients.
"""

import logging
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pgperf.access import credentials, guardrails, permissions
from pgperf.conf import get_settings
from pgperf.core import protocol
from pgperf.core.delayed_routes import apart
from pgperf.core.exceptions import LayerUnavailable, LoadHostLate, PgperfError, PreflightRefused
from pgperf.core.host_part import HostPart
from pgperf.core.protocol import scrub
from pgperf.core.records import Cohort, Definition, LeftOut, Plan, Route, Variant, most_direct
from pgperf.delay.routes import longer
from pgperf.load import rows
from pgperf.models import LoadShare, Run
from pgperf.runner import host_slices
from pgperf.runner.block import warm_up
from pgperf.runner.capture import statements
from pgperf.runner.client_group import ClientGroup, started
from pgperf.runner.client_process import while_waiting
from pgperf.runner.cpu import idle, network
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.cpu.process_cpu import ProcessCpu
from pgperf.runner.environment_places import places
from pgperf.runner.load_hosts import part_of, sleep_until
from pgperf.runner.memory import MIB, RunMemory, start_bytes
from pgperf.runner.plan import make_plan
from pgperf.runs import database_clock, query_access, state
from pgperf.runs.db_retry import retry_while_down
from pgperf.worker import environments
from pgperf.worker.execution import skipped_layers

logger = logging.getLogger(__name__)

#: Seconds between two queries for an order.
_IDLE_S = 0.1
#: Share of STALE_SECONDS for which it retries while the site's database is down.
_RETRY_SHARE = 2 / 3


class RunIsOver(Exception):
    """The run of this share has ended, or its owner is gone."""


def serve(row_id: int, worker: str, refusal: str = "") -> None:
    """Take part in the run of that row until it is over.

    Without effect if another worker has the row, or if it was deleted.
    """
    if not rows.ROWS.claim(row_id, worker, refusal) or refusal:
        return
    logger.info("pgperf load host: taking part by row %s", row_id)
    with Lifeline(get_settings().STALE_SECONDS) as lifeline:
        _Share(row_id, worker, lifeline).run()


class Lifeline:
    """Ends this process when nothing has called `alive` for so long: its main thread may hang in a
    query to a database that is out of reach.
    """

    def __init__(self, seconds: float, end: Callable[[], object] | None = None) -> None:
        self._seconds, self._end = seconds, end or partial(os.kill, os.getpid(), signal.SIGKILL)
        self._over = threading.Event()
        self._seen_s = time.monotonic()

    def alive(self) -> None:
        self._seen_s = time.monotonic()

    def __enter__(self) -> "Lifeline":
        self._thread = threading.Thread(target=self._watch, name="pgperf-lifeline", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(max(0.05, self._seen_s + self._seconds - time.monotonic())):
            if time.monotonic() - self._seen_s >= self._seconds:
                self._end()
                return


@dataclass
class _Prepared:
    """What a load host knows of its run."""

    run: Run
    plan: Plan
    routes: dict[str, Route]
    memory: RunMemory


@dataclass
class _Share:
    """One run's orders to this host."""

    row_id: int
    worker: str
    lifeline: Lifeline
    done: int = 0
    touched_s: float = 0.0
    host: Host = field(default_factory=Host.here)
    prepared: _Prepared | None = None
    groups: dict[int, ClientGroup] = field(default_factory=dict)  # by the variant's place in its cohort
    process_cpu: ProcessCpu | None = None
    secrets: dict[str, str] = field(default_factory=dict)
    cpus: frozenset[int] | None = None  # of the clients; None: all of the machine
    _run_long: ExitStack = field(default_factory=ExitStack)
    _block_long: ExitStack = field(default_factory=ExitStack)

    def run(self) -> None:
        """Returns when the run is over; its clients end with it, whatever happens."""
        try:
            with self._run_long, while_waiting(self.look), self._clients():
                self._serve()
        except RunIsOver:
            logger.info("pgperf load host: row %s is over", self.row_id)
        except PgperfError as error:
            self._refuse(str(error))
        except Exception as error:
            self._refuse(f"unexpected {type(error).__name__}: {error}")
            raise

    @contextmanager
    def _clients(self) -> Iterator[None]:
        """The stack of a block's clients changes with each block; an error kills those of the last."""
        try:
            yield
        except BaseException as error:
            self._block_long.__exit__(type(error), error, error.__traceback__)
            raise
        self._block_long.close()

    def _refuse(self, reason: str) -> None:
        text = scrub(reason, self.secrets)
        logger.warning("pgperf load host: row %s: %s", self.row_id, text)
        self._retry(partial(rows.ROWS.refuse, self.row_id, self.worker, text))

    def _serve(self) -> None:
        while found := self._retry(partial(rows.ROWS.poll, self.row_id, self.worker)):
            self.lifeline.alive()
            self.look()
            number, order = found
            if number > self.done:
                self._carry_out(number, order)
            else:
                time.sleep(_IDLE_S)

    def look(self) -> None:
        """A sign of life every few seconds, also while clients work. Raises RunIsOver."""
        if time.monotonic() - self.touched_s < get_settings().HEARTBEAT_SECONDS:
            return
        if not self._retry(partial(rows.touch, self.row_id, self.worker)):
            raise RunIsOver
        self.touched_s = time.monotonic()
        self.lifeline.alive()

    def _carry_out(self, number: int, order: Any) -> None:
        self.done = number
        steps: dict[str, Callable[[Any], tuple[dict[str, Any], bytes]]] = {
            "begin": self._begin,
            "start": self._start,
            "slices": self._slices,
            "totals": self._totals,
            "clock": lambda _order: ({}, b""),
            "end": self._end,
        }
        (name,) = order
        data, packed = steps[name](order[name])
        data["clock"] = database_clock.offset(rows.ROWS.all().filter(pk=self.row_id)).to_json()
        self._retry(partial(rows.ROWS.answer, self.row_id, self.worker, number, data, packed))

    def _begin(self, order: Any) -> tuple[dict[str, Any], bytes]:
        """Prepare for the plan without what the owner left out."""
        self.prepared = self._prepare([LeftOut(**each) for each in order["skipped"]])
        definition = self.prepared.plan.definition
        self._run_long.enter_context(idle.keep_awake(definition.idle))
        return {
            "machine": state.load_host(),
            "kernel": platform.release(),
            "processors": self.host.cpus,
            "network_mbit": network.speed_mbit(),
        }, b""

    def _prepare(self, skipped: list[LeftOut]) -> _Prepared:
        settings = get_settings()
        share = rows.ROWS.all().select_related("run__database").get(pk=self.row_id)
        assert isinstance(share, LoadShare)
        run = share.run
        _check_permission(run)
        definition = Definition.from_json(run.definition)
        plan = make_plan(definition, skipped)
        memory = RunMemory.now(settings.RUN_MEMORY_MB)
        _check_layers(plan, settings.BUILD_DIR, settings.programs)
        routes = self._routes(run, plan)
        return _Prepared(run, _captured(plan, routes, memory), routes, memory)

    def _routes(self, run: Run, plan: Plan) -> dict[str, Route]:
        """The routes with this host's login and relays, after the proof of each login."""
        assert run.database
        database, definition = run.database, plan.definition
        near = credentials.resolve(database, dict.fromkeys(apart(name)[0] for name in definition.routes))
        self.secrets = {f"password {number}": route.password for number, route in enumerate(near.values(), 1)}
        routes = self._run_long.enter_context(longer(near, definition.routes))
        return guardrails.apply(plan, routes, database.production, database.allow_fixtures).routes

    def _start(self, order: Any) -> tuple[dict[str, Any], bytes]:
        """Start this host's part of a cohort's clients, and warm them up."""
        self._block_long.close()
        prepared = self._known()
        at, of, cohort = order["part"], order["of"], prepared.plan.cohorts[order["cohort"]]
        self.cpus = frozenset(order["cpus"]) if order["cpus"] else None
        parts = {
            variant: part
            for variant in cohort.variants
            if variant.hosts and (part := part_of(variant, at, of))
        }
        groups = self._block_long.enter_context(self._started(parts, order))
        warm_up(prepared.plan.definition, groups)
        self.groups = {cohort.variants.index(group.variant): group for group in groups}
        pids = {pid for group in groups for pid in group.processes().pids()}
        self.process_cpu = ProcessCpu(self.host, pids)
        return {
            "ready": {
                at: [protocol.encode(each).decode() for each in group.ready]
                for at, group in self.groups.items()
            },
            "op_s": {at: group.op_s for at, group in self.groups.items()},
            "unlimited": sorted({why for group in groups for why in group.unlimited()}),
        }, b""

    @contextmanager
    def _started(self, parts: dict[Variant, HostPart], order: Any) -> Iterator[list[ClientGroup]]:
        prepared, settings = self._known(), get_settings()
        definition, everyone = prepared.plan.definition, prepared.plan.variants
        named = [(variant, f"pgperf-{prepared.run.pk}-{everyone.index(variant)}") for variant in parts]
        usable = environments.usable(environments.examined(definition))
        with (
            places(definition, usable) as at,
            started(
                definition, named, prepared.routes, settings.BUILD_DIR, bool(order["cold"]), self.cpus,
                interpreters=settings.programs, memory_bytes=_client_bytes(prepared.memory, parts),
                places=at.in_block(order["block"]) if at else None, part_of=parts.__getitem__,
            ) as groups,
        ):  # fmt: skip
            yield groups

    def _slices(self, order: Any) -> tuple[dict[str, Any], bytes]:
        """Run slices, each at its time; those of variants that have no client here are empty."""
        try:
            found = [self._slice(at, line) for at, line in order]
        except LoadHostLate:
            return {"late": True}, b""
        lines, packed = host_slices.pack(found)
        if len(packed) > host_slices.MAX_PACKED_BYTES:
            raise PreflightRefused(
                f"the slices of a round have {len(packed) // MIB} MiB of durations; choose a shorter slice_ms"
            )
        return {"slices": lines}, packed

    def _slice(self, at: int, line: str) -> host_slices.HostSlice:
        request = protocol.decode(line.encode())
        assert isinstance(request, protocol.Slice)
        group = self.groups.get(at)
        if group is None:
            sleep_until(request.start_ns + request.lead_in_ns + request.window_ns)  # asks nobody meanwhile
            return host_slices.NOTHING
        return host_slices.run(group, request, self.host)

    def _totals(self, _order: Any) -> tuple[dict[str, Any], bytes]:
        """What was counted since the clients are ready."""
        assert self.process_cpu
        placement = CpuPlacement("", clients=self.cpus)
        counted = {**self.process_cpu.close(), "role_cpus": placement.role_cpus()}
        return {
            "counted": counted,
            "totals": {at: group.totals.to_json() for at, group in self.groups.items()},
        }, b""

    def _end(self, _order: Any) -> tuple[dict[str, Any], bytes]:
        self._block_long.close()
        self.groups = {}
        return {}, b""

    def _known(self) -> _Prepared:
        assert self.prepared
        return self.prepared

    def _retry(self, step: Any) -> Any:
        seconds = get_settings().STALE_SECONDS * _RETRY_SHARE
        return retry_while_down(step, seconds, f"the load host's row {self.row_id}")


def _check_permission(run: Run) -> None:
    """The owner has checked the same; a forged row must not make load here."""
    if reason := permissions.refusal(run):
        raise PreflightRefused(f"permission: {reason}")
    definition = Definition.from_json(run.definition)
    query_access.check((work.query for work in definition.workloads), permissions.requester(run))


def _check_layers(plan: Plan, build_dir: str, interpreters: dict[str, str]) -> None:
    """Raises LayerUnavailable if this host cannot run a variant that it has to."""
    hosted = [variant for variant in plan.variants if variant.hosts]
    for each in skipped_layers(plan.definition, build_dir, interpreters):
        if any(each.covers(variant) for variant in hosted):
            raise LayerUnavailable(f"{each.name} cannot run here: {each.reason}")


def _captured(plan: Plan, routes: dict[str, Route], memory: RunMemory) -> Plan:
    """The plan with the statements of the site's workloads as this host captures them."""
    if not any(work.is_site for work in plan.definition.workloads):
        return plan
    settings = get_settings()
    site = statements.CaptureSettings(
        most_direct(routes.values()), settings.BUILD_DIR, settings.programs, memory.client_bytes(plan)
    )
    captures = statements.of_definition(plan.definition, site, plan.skipped)
    return replace(plan, definition=statements.filled(plan.definition, captures))


def _client_bytes(memory: RunMemory, parts: dict[Variant, HostPart]) -> int:
    """What each client may take. Raises PreflightRefused if they need more to start than there is."""
    here = [
        replace(variant, hosts=0, clients=len(part.indices(variant.clients)))
        for variant, part in parts.items()
    ]
    cohort = Cohort(tuple(here))
    if (needed := start_bytes(cohort)) > memory.allowed_bytes:
        raise PreflightRefused(
            f"memory: its clients need about {needed // MIB} MiB, allowed are {memory.allowed_bytes // MIB} MiB"
            f" ({memory.rule}); choose fewer clients or more load hosts"
        )
    return memory.client_bytes_of([cohort])
