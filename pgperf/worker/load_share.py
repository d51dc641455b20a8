"""A load host's side of a run: carries out the owner's orders until the run is over.

It resolves secrets by their references here, proves each login again, and makes the owner's plan
from the run's definition. Every way out ends its clients. One that cannot ask the site's database
for STALE_SECONDS ends its own process, and the kernel ends its clients.
"""

import logging
import platform
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pgperf
from pgperf.conf import get_settings
from pgperf.core import protocol
from pgperf.core.exceptions import LoadHostLate, PgperfError, PreflightRefused
from pgperf.core.host_part import HostPart
from pgperf.core.layers import over_http
from pgperf.core.protocol import scrub
from pgperf.core.records import Cohort, LeftOut, Variant
from pgperf.load import rows
from pgperf.runner import host_slices
from pgperf.runner.block_processes import process_cpu_of
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.client_process import while_waiting
from pgperf.runner.client_startup import started
from pgperf.runner.cpu import idle, network
from pgperf.runner.cpu.accounting import BlockTotals
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.placement import CpuPlacement, Sides
from pgperf.runner.cpu.process_cpu import ProcessCpu
from pgperf.runner.environment_places import places
from pgperf.runner.load_hosts import part_of, sleep_until
from pgperf.runner.memory import MIB
from pgperf.runner.warm_up import warm_up
from pgperf.runs import database_clock, state
from pgperf.runs.db_retry import is_outage, retry_while_down
from pgperf.worker import environments
from pgperf.worker.lifeline import Lifeline
from pgperf.worker.load_preparation import Prepared, near_routes, prepared

logger = logging.getLogger(__name__)

#: Seconds between two queries for an order.
_IDLE_S = 0.1
#: Clients are armed so long before their start at most: nobody looks after the run meanwhile.
_ARMED_NS = 2_000_000_000
#: Share of STALE_SECONDS for which it retries while the site's database is down.
_RETRY_SHARE = 2 / 3


class RunIsOver(Exception):
    """The run of this share has ended, or its owner is gone."""


def serve(row_id: int, worker: str, refusal: str = "") -> None:
    """Take part in the run of that row until it is over.

    Without effect if another worker has the row, or if it was deleted.
    """
    if not rows.claim(row_id, worker, refusal) or refusal:
        return
    logger.info("pgperf load host: taking part by row %s", row_id)
    with Lifeline(get_settings().STALE_SECONDS) as lifeline:
        _Share(row_id, worker, lifeline).run()


@dataclass
class _Share:
    """One run's orders to this host."""

    row_id: int
    worker: str
    lifeline: Lifeline
    done: int = 0
    touched_s: float = 0.0
    host: Host = field(default_factory=Host.here)
    prepared: Prepared | None = None
    groups: dict[int, ClientGroup] = field(default_factory=dict)  # by the variant's place in its cohort
    process_cpu: ProcessCpu | None = None
    last_seq: int | None = None  # of the first slice of the last order
    totals_before: dict[int, BlockTotals] = field(default_factory=dict)  # that order, by place
    secrets: dict[str, str] = field(default_factory=dict)
    placed: CpuPlacement = field(default_factory=lambda: CpuPlacement(""))  # of the clients only
    _run_long: ExitStack = field(default_factory=ExitStack)
    _block_long: ExitStack = field(default_factory=ExitStack)

    def run(self) -> None:
        """Returns when the run is over; its clients end with it, whatever happens."""
        if reason := self._failure():
            self._refuse(reason)

    def _failure(self) -> str:
        """Why this host could not go on; "" if the run was over."""
        try:
            with self._run_long, while_waiting(self.look), self._clients():
                self._serve()
        except RunIsOver:
            logger.info("pgperf load host: row %s is over", self.row_id)
        except PgperfError as error:
            return str(error)
        except Exception as error:
            trace = "".join(traceback.format_exception(error))
            logger.error("pgperf load host: row %s: %s", self.row_id, scrub(trace, self.secrets))
            if is_outage(error):
                return f"the site's own database, which holds the runs, did not answer there: {error}"
            return f"unexpected {type(error).__name__}: {error} (the log of its worker has more)"
        return ""

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
        row = rows.ROWS.all().filter(pk=self.row_id)
        data["clock"] = self._retry(lambda: database_clock.offset(row)).to_json()
        self._retry(partial(rows.ROWS.answer, self.row_id, self.worker, number, data, packed))

    def _begin(self, order: Any) -> tuple[dict[str, Any], bytes]:
        """Prepare for the plan without what the owner left out."""
        self._refuse_company()
        skipped = [LeftOut(**each) for each in order["skipped"]]
        run = rows.ROWS.all().select_related("run__database").get(pk=self.row_id).run
        near = near_routes(run)
        self.secrets = {f"password {at}": route.password for at, route in enumerate(near.values(), 1)}
        self.prepared = self._run_long.enter_context(prepared(run, skipped, near))
        self._run_long.enter_context(idle.keep_awake(self.prepared.plan.definition.idle))
        return {
            "pgperf": pgperf.__version__,
            "machine": state.this_machine(),
            "kernel": platform.release(),
            "processors": self.host.cpus,
            "network_mbit": network.speed_mbit(),
        }, b""

    def _start(self, order: Any) -> tuple[dict[str, Any], bytes]:
        """Start this host's part of a cohort's clients, and warm them up."""
        self._block_long.close()
        self._refuse_company()
        plan = self._known().plan
        cohort = plan.cohorts[order["cohort"]]
        self.placed = _placed(order)
        parts = _parts(cohort, order["part"], order["of"])
        self._check_ports(order)
        groups = self._block_long.enter_context(self._started(parts, order))
        warm_up(plan.definition, groups)
        self.groups = {cohort.variants.index(group.variant): group for group in groups}
        self.process_cpu = process_cpu_of(self.host, groups)
        self.last_seq = None
        return self._ready(), b""

    def _check_ports(self, order: Any) -> None:
        """In each block: a host that is lost leaves its clients to the others."""
        prepared = self._known()
        parts = (_parts(cohort, order["part"], order["of"]) for cohort in prepared.plan.cohorts)
        prepared.check_ports({variant: part for own in parts for variant, part in own.items()})

    def _refuse_company(self) -> None:
        """Raises PreflightRefused if another run measures on this machine. A run that was claimed at
        the same moment as this row may have missed the row, so each block asks again.
        """
        if other := self._retry(partial(rows.other_run_here, self.row_id)):
            raise PreflightRefused(
                f"run {other.pk} measures on this machine; wait for its end, or choose another load host"
            )

    def _ready(self) -> dict[str, Any]:
        """What the clients said when they were ready, and how long their operations take."""
        groups = self.groups.items()
        return {
            "ready": {at: [protocol.encode(each).decode() for each in group.ready] for at, group in groups},
            "op_s": {at: group.op_s for at, group in groups},
            "unlimited": sorted({why for _at, group in groups for why in group.unlimited()}),
        }

    @contextmanager
    def _started(self, parts: dict[Variant, HostPart], order: Any) -> Iterator[list[ClientGroup]]:
        prepared, settings = self._known(), get_settings()
        definition, everyone = prepared.plan.definition, prepared.plan.variants
        application = f"pgperf-{prepared.run.session_key}"
        named = [(variant, f"{application}-{everyone.index(variant)}") for variant in parts]
        usable = environments.usable(environments.examined(definition))
        with (
            places(definition, usable) as at,
            started(
                definition, named, prepared.routes, settings.BUILD_DIR, bool(order["cold"]),
                self.placed,
                interpreters=settings.programs, memory_bytes=prepared.client_bytes(parts),
                places=at.in_block(order["block"]) if at else None, part_of=parts.__getitem__,
                turn=f"{order['cohort']}/{order['block']}",
            ) as groups,
        ):  # fmt: skip
            yield groups

    def _slices(self, order: Any) -> tuple[dict[str, Any], bytes]:
        """Run slices, each at its time; those of variants that have no client here are empty."""
        self._void_if_repeated(order)
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

    def _void_if_repeated(self, order: Any) -> None:
        """Take the order before out of the totals if this one repeats it: a host was late for it."""
        first = protocol.decode(order[0][1].encode())
        assert isinstance(first, protocol.Slice)
        if first.seq == self.last_seq:
            for at, totals in self.totals_before.items():
                self.groups[at].totals = totals
        self.last_seq = first.seq
        self.totals_before = {at: deepcopy(group.totals) for at, group in self.groups.items()}

    def _slice(self, at: int, line: str) -> host_slices.HostSlice:
        request = protocol.decode(line.encode())
        assert isinstance(request, protocol.Slice)
        group = self.groups.get(at)
        if group is None:
            self.look()
            sleep_until(request.start_ns + request.lead_in_ns + request.window_ns)  # asks nobody meanwhile
            return host_slices.NOTHING
        sleep_until(request.start_ns - _ARMED_NS)
        return host_slices.run(group, request, self.host if request.seq else None)  # 0: a pilot

    def _totals(self, _order: Any) -> tuple[dict[str, Any], bytes]:
        """What was counted since the clients are ready."""
        assert self.process_cpu
        return {
            "counted": self.process_cpu.close(),
            "totals": {at: self._total(group) for at, group in self.groups.items()},
        }, b""

    def _total(self, group: ClientGroup) -> dict[str, Any]:
        """What was counted of the clients of a variant, and how many CPUs they may use."""
        cpus = self.placed.role_cpus(over_http(group.variant.layer))["clients"]
        return {**group.totals.to_json(), "client_cpus": cpus}

    def _end(self, _order: Any) -> tuple[dict[str, Any], bytes]:
        self._block_long.close()
        self.groups = {}
        return {}, b""

    def _known(self) -> Prepared:
        assert self.prepared
        return self.prepared

    def _retry(self, step: Any) -> Any:
        seconds = get_settings().STALE_SECONDS * _RETRY_SHARE
        return retry_while_down(step, seconds, f"the load host's row {self.row_id}")


def _placed(order: Any) -> CpuPlacement:
    """The CPUs of the clients here: those of a database, and those that request pages."""
    clients, pages = (frozenset(order[name]) if order[name] else None for name in ("cpus", "page_cpus"))
    return CpuPlacement("", clients=clients, pages=Sides(pages, None))


def _parts(cohort: Cohort, at: int, of: int) -> dict[Variant, HostPart]:
    """The variants that have clients here, with this host's part of each."""
    found = {variant: part_of(variant, at, of) for variant in cohort.variants if variant.hosts}
    return {variant: part for variant, part in found.items() if part}
