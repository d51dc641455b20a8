"""The client processes of one variant: pgperf starts them, pins them and runs each slice on all of
them.
"""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import pgperf
from pgperf.core import layers, protocol, sql_parameters
from pgperf.core.exceptions import ClientFailed, LoadHostLate, ProtocolError
from pgperf.core.host_part import WHOLE, HostPart
from pgperf.core.limits import STATEMENT_TIMEOUT_S
from pgperf.core.records import Definition, Route, SliceRecord, Variant, WorkloadDefinition
from pgperf.install import launch
from pgperf.install.environments import other_version
from pgperf.runner import authentication, open_loop, slice_replies
from pgperf.runner.client_process import (
    ClientProcess,
    ProcessEnvironment,
    goodbye,
    kill,
    login,
    site_environment,
)
from pgperf.runner.cpu import placement
from pgperf.runner.cpu.accounting import BlockTotals, SliceAccount, SliceAccounting, VariantProcesses
from pgperf.runner.cpu.cgroups import ServerCgroup
from pgperf.runner.cpu.host import Host
from pgperf.runner.environment_places import BlockPlaces, ClientStart
from pgperf.runner.plan import sharing
from pgperf.runner.processes.web_processes import NO_WEB_SERVER, WebProcesses
from pgperf.runner.remote.server import RemoteProcesses
from pgperf.runner.slice_length import is_late

Durations = NDArray[np.uint64]


class Recorded(NamedTuple):
    """A slice as the clients recorded it, in client order. Durations are ns; `phases` has a row for
    each of a reply's phases, with that part of each duration, and no row where there are none.
    """

    replies: list[protocol.SliceReply]
    durations: list[Durations]
    phases: list[Durations]


#: To start and to connect, and for operations that are not slow.
_START_TIMEOUT_S = 60.0
#: Slow operations before `ready`: one, and in a cold start two more and both of the second query.
_READY_OPS, _COLD_OPS = 1, 5
SLICE_GRACE_S = 15.0
#: A client times out when an operation takes this many times as long as in its calibration.
_TIMEOUT_FACTOR = 4
#: How many clients start at the same time. More would slow each other down and exceed their
#: deadlines.
_STARTING = 16
#: Time between arming several clients and their common start, plus the time that each connection
#: adds.
_ARM_NS, _ARM_EACH_NS = 20_000_000, 500_000
#: Time to read the CPU counters of armed clients, plus the time that each connection adds.
_READ_NS, _READ_EACH_NS = 2_000_000, 150_000


@dataclass
class ClientGroup:
    """All clients of a variant, connected and idle. `*_pids`: the other processes of the variant,
    if visible.

    A group with an `owner` has no clients of its own: it uses the owner's first ones.
    """

    variant: Variant
    application: str  # application_name of its first connection
    clients: list[ClientProcess] = field(default_factory=list)
    ready: list[protocol.Ready] = field(default_factory=list)
    owner: "ClientGroup | None" = None  # the group whose clients it uses; None: it has its own
    server_pids: list[int] = field(default_factory=list)
    web: WebProcesses = NO_WEB_SERVER  # the web servers that its requests go to
    pooled: bool = False  # is there a pooler on its route?
    pooler_pid: int | None = None
    auxiliary_pids: list[int] = field(default_factory=list)  # the server's own processes
    relay_pid: int | None = None  # the relay of a delayed route
    server_cgroup: ServerCgroup | None = None  # None: the server shares its control group with others
    remote_processes: RemoteProcesses = field(
        default_factory=RemoteProcesses
    )  # who works for it where the server is on another host
    totals: BlockTotals = field(default_factory=BlockTotals)
    missing_grant: str = ""  # the GRANT without which the server does not show its sessions; "": none
    look_again: bool = False  # do other processes serve it, or has one of those that were found ended?
    server_unknown: str = ""  # why the CPU time of a server whose backends come and go is unknown
    op_s: float = 0.0  # what one operation took when it was tried; 0: not tried yet
    part: HostPart = WHOLE  # which of the variant's clients are on this host

    @property
    def applications(self) -> list[str]:
        """application_name of each of its connections, all workers of a client together."""
        return [
            protocol.connection_name(application_of(self.application, client, self.variant.workers), worker)
            for client in range(self.variant.clients)
            for worker in range(self.variant.workers)
        ]

    @property
    def backends_pass(self) -> bool:
        """Do its backends begin and end within its slices? A web server whose clients reconnect keeps
        its own connections, if it has some while they are idle.
        """
        kept = layers.over_http(self.variant.layer) and self.server_pids
        return self.variant.backends_pass and not kept

    def share(self, owner: "ClientGroup") -> None:
        """Use the first clients of another group, which are connected already."""
        self.owner, self.application = owner, owner.application
        own = len(self.part.indices(self.variant.clients))
        self.clients = owner.clients[:own]
        self.ready = owner.ready[:own]

    def unlimited(self) -> Iterator[str]:
        """What the kernel does not enforce on its clients."""
        if not all(ready.memory_bytes for ready in self.ready):
            yield f"{self.variant.layer}: its memory has no limit"
        if not all(client.ends_first for client in self.clients):
            yield "oom_score_adj cannot be raised"

    def run(self, request: protocol.Slice) -> Recorded:
        """Run one slice on every client."""
        self.begin(request)
        return self.collect(request)

    def arming_ns(self, request: protocol.Slice) -> int:
        """The time between an order to several clients and their common start."""
        preparing_ns = open_loop.prepare_ns(request, self.variant.processes) if request.rate else 0
        return _ARM_NS + _ARM_EACH_NS * self.variant.connections + preparing_ns

    def begin(self, request: protocol.Slice) -> None:
        """Send the slice; armed clients have all acknowledged when this returns."""
        whole = _recorded_from_the_start(request)
        processes = self.variant.processes
        for at, client in zip(self.part.indices(processes), self.clients, strict=True):
            client.send(open_loop.share(whole, at, processes))
        if request.start_ns:
            for client in self.clients:
                client.expect(protocol.Armed, SLICE_GRACE_S)

    def calibrate(self, request: protocol.Slice) -> None:
        """Collect a slice of a few operations and store the time of one, from which later timeouts
        derive.
        """
        operations = request.lead_in_ops + request.count
        recorded = self._collect(SLICE_GRACE_S + operations * STATEMENT_TIMEOUT_S)
        if self.variant.is_one_process:
            self.op_s = SliceWindow.of(request, *recorded).mean_us(self.variant.clients) / 1e6
        else:
            self.op_s = max(float(each.mean()) for each in recorded.durations) / 1e9

    def collect(self, request: protocol.Slice) -> Recorded:
        expected_s = (request.lead_in_ns + request.window_ns) / 1e9
        expected_s += _TIMEOUT_FACTOR * self.op_s * (request.lead_in_ops + request.count)
        return self._collect(SLICE_GRACE_S + expected_s)

    def _collect(self, timeout: float) -> Recorded:
        replies = [client.expect(protocol.SliceReply, timeout) for client in self.clients]
        raw = [c.read_bytes(r.nbytes, SLICE_GRACE_S) for c, r in zip(self.clients, replies, strict=True)]
        rows = [_numbers(*each) for each in zip(self.clients, replies, raw, strict=True)]
        return Recorded(replies, [each[0] for each in rows], [each[1:] for each in rows])

    def processes(self) -> VariantProcesses:
        """The processes that work for the variant. A direct route has no pooler."""
        pooler = [self.pooler_pid] if self.pooler_pid else None
        return VariantProcesses(
            client=None if self.variant.is_one_process else [client.pid for client in self.clients],
            server=self.server_pids or None,
            pooler=pooler if self.pooled else (),
            web=self.web.web,
            proxy=self.web.proxy,
            auxiliary=self.auxiliary_pids or None,
            relay=[self.relay_pid] if self.relay_pid else (),
            server_cgroup=self.server_cgroup,
            backends_pass=self.backends_pass,
        )

    def pids(self) -> set[int]:
        """Those processes, and the clients that only start a program for each slice."""
        return self.processes().pids() | {client.pid for client in self.clients}


def _numbers(client: ClientProcess, reply: protocol.SliceReply, data: bytes) -> Durations:
    """The numbers of a reply: a row of durations, then one for each phase."""
    count = 1 + len(reply.phases)
    if len(data) % (8 * count):
        raise ProtocolError(f"{client.name}: announced {len(data)} bytes for {count} numbers per operation")
    return np.frombuffer(data, dtype="<u8").reshape(count, -1)


def find_server_cgroup(groups: Sequence[ClientGroup]) -> None:
    """Find the server's own control group, if it has one.

    The groups' server processes must be known.
    """
    found = ServerCgroup.of(pid for group in groups for pid in (*group.server_pids, *group.auxiliary_pids))
    for group in groups:
        group.server_unknown = _unknown_backends(group, found)
        group.server_cgroup = None if group.server_unknown else found


def _unknown_backends(group: ClientGroup, found: ServerCgroup | None) -> str:
    """Why backends that pass cannot be told from other processes; "" if they can."""
    if not group.backends_pass:
        return ""
    if not group.auxiliary_pids:
        return "its backends end with its connections, and the server's processes are not visible from here"
    if found is None:
        return "its backends end with its connections, and the server has no control group of its own"
    if group.pooled and not group.pooler_pid:
        return "the pooler may open connections, and its process is not visible"
    return ""


#: Waits until the backends of a slice have left the server; returns why they have not, else "".
AwaitDeparture = Callable[[ClientGroup], str]


def measure(
    group: ClientGroup,
    request: protocol.Slice,
    round_: int,
    position: int,
    host: Host | None = None,
    departed: AwaitDeparture = lambda _group: "",
) -> "tuple[SliceRecord, SliceWindow]":
    """One slice of a variant: its record, and the operations in its window.

    Without a host, no CPU account. The account is closed when the backends of the slice have left,
    so that it contains their end and the next slice does not.
    """
    started_ns = time.monotonic_ns()
    request, accounting = begin(group, request, host)
    recorded = group.collect(request)
    still_there = departed(group)
    account = closed(group, accounting)
    place = SlicePlace(round_, position, started_ns)
    return slice_record(group, request, recorded, place, account, still_there)


class SlicePlace(NamedTuple):
    """Where in a block a slice was, and when it began."""

    round: int
    position: int
    started_ns: int


def closed(group: ClientGroup, accounting: SliceAccounting | None) -> SliceAccount | None:
    """The account of a slice that has ended, as far as it was opened."""
    if accounting is None:
        return None
    account = accounting.close()
    group.totals.add(account)
    group.look_again |= group.backends_pass and accounting.new_processes()
    group.look_again |= accounting.lost_processes(account)
    return account


def slice_record(
    group: ClientGroup,
    request: protocol.Slice,
    recorded: Recorded,
    place: SlicePlace,
    account: SliceAccount | None,
    still_there: str = "",
) -> "tuple[SliceRecord, SliceWindow]":
    """The record of a slice, from what its clients recorded and its CPU account.

    Raises ProtocolError if they cannot have recorded that.
    """
    slice_replies.check(request, *recorded)
    replies = recorded.replies
    window = SliceWindow.of(request, *recorded)
    record = SliceRecord(
        round=place.round,
        position=place.position,
        ops=window.ops,
        rows=_rows(replies, window.ops),
        errors=sum(window.errors.values()),
        new_connections=window.new_connections,
        lead_in_ops=sum(r.lead_in_ops + r.ops for r in replies) - window.ops,
        window_ns=window.length_ns,
        us_per_op=window.us_per_op(group.variant.clients),
        ops_per_s=window.ops / window.length_ns * 1e9 if window.length_ns else 0.0,
        user_ns=sum(r.user_ns for r in replies),
        sys_ns=sum(r.sys_ns for r in replies),
        started_ns=place.started_ns,
        disturbed="; ".join(filter(None, (window.disturbed, still_there))),
        **(_account_fields(group, account, window.ops, replies) if account else {}),
        **{f"{name}_ns": int(part.sum()) for name, part in window.by_phase().items()},
        **(asdict(window.scheduled) if window.scheduled else {}),
    )
    return record, window


def _account_fields(
    group: ClientGroup, account: SliceAccount, ops: int, replies: Sequence[protocol.SliceReply]
) -> dict[str, int | None]:
    """The CPU fields of a slice.

    If the known backends used no CPU time, others may have served it: the server is unknown.
    Backends that pass are not known one by one. A client whose load comes from a process of its own
    knows that one's CPU time.
    """
    fields = account.fields()
    if group.variant.is_one_process:
        fields |= {"client_ns": sum(reply.user_ns + reply.sys_ns for reply in replies)}
        group.totals.tools_ns += fields["client_ns"] or 0
    idle = ops and group.server_pids and fields["server_ns"] == 0
    if not idle or group.backends_pass or _may_ask_nothing(group):
        return fields
    group.look_again = True
    return fields | dict.fromkeys(("server_ns", "server_wait_ns", "server_busiest_ns"))


def _may_ask_nothing(group: ClientGroup) -> bool:
    """May its operations leave all its backends idle? A page may need no query. A pooler may use
    another connection.
    """
    return layers.requests_pages(group.variant.layer) and not group.pooled


def _rows(replies: Sequence[protocol.SliceReply], ops: int) -> int | None:
    """The rows of so many operations; None where a client does not count them."""
    counted = [reply.rows for reply in replies if reply.rows is not None]
    if len(counted) < len(replies):
        return None
    return round(sum(counted) * ops / max(1, sum(reply.ops for reply in replies)))


def time_per_op_us(durations: Durations) -> float:
    """Mean of the durations (ns) in µs, each limited to their 99th percentile; 0 if there are none.

    An interruption of 4 ms that no layer caused would dominate a window of 50 ms. Throughput and
    latencies include every operation in full.
    """
    if not len(durations):
        return 0.0
    rank = len(durations) - 1 - len(durations) // 100
    return float(np.minimum(durations, np.partition(durations, rank)[rank]).mean()) / 1000


@dataclass(frozen=True)
class SliceWindow:
    """The operations that count: those in the own window of one connection, or those of several that
    ended in the common window.
    """

    ops: int
    length_ns: int
    durations: Durations
    disturbed: str = ""
    phases: Durations | None = None  # a row for each of the names; None: there are none
    #: From the common start of several connections until all of them had ended their lead-in.
    led_in_ns: int = 0
    phase_names: tuple[str, ...] = ()
    errors: Mapping[str, int] = field(default_factory=dict)  # failed HTTP requests, lead-in included
    lengths: tuple[int, ...] = ()  # least and greatest length of their bodies, bytes; empty: none
    #: Of an open loop: `durations` and `phases` are of the operations that were due in the window,
    #: `served` are the service times of the `ops` that ended in it, and `waited` are those that were
    #: due in it and had not begun, with the time that they had waited at its end.
    scheduled: open_loop.Scheduled | None = None
    served: Durations | None = None
    waited: Durations = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    @classmethod
    def of(
        cls,
        request: protocol.Slice,
        replies: list[protocol.SliceReply],
        durations: list[Durations],
        phases: Sequence[Durations] = (),
    ) -> "SliceWindow":
        found = cls._recorded(request, replies, durations, phases)
        lengths = [length for reply in replies for length in reply.lengths]
        return replace(
            found,
            phase_names=tuple(replies[0].phases),
            errors=sum((Counter(reply.errors) for reply in replies), Counter()),
            lengths=(min(lengths), max(lengths)) if lengths else (),
        )

    @classmethod
    def _recorded(
        cls,
        request: protocol.Slice,
        replies: list[protocol.SliceReply],
        durations: list[Durations],
        phases: Sequence[Durations],
    ) -> "SliceWindow":
        disturbed = "recording was full before the window closed" if any(r.capped for r in replies) else ""
        if request.rate:
            return cls._of_open_loop(request, replies, durations, phases, disturbed)
        if replies[0].window_ns:
            return cls(replies[0].ops, replies[0].window_ns, durations[0], disturbed, _joined(phases))
        chains = [chain for pair in zip(replies, durations, strict=True) for chain in chains_of(*pair)]
        led_in_ns = max(chain.first_ns for chain in chains) - request.start_ns if request.start_ns else 0
        alone = len(chains) == 1 and not request.start_ns
        if alone or not request.window_ns:
            ops, length_ns = sum(r.ops for r in replies), _mean_length_ns(chains)
            return cls(ops, length_ns, np.concatenate(durations), disturbed, _joined(phases), led_in_ns)
        opens = request.start_ns + request.lead_in_ns
        closes = opens + request.window_ns
        if is_late(request, led_in_ns):
            disturbed = disturbed or "a client began after the common window had opened"
        if not all(len(chain.durations) for chain in chains):
            disturbed = disturbed or "a client completed nothing inside the common window"
        inside = [chain.ended_between(opens, closes) for chain in chains]
        together = np.concatenate([c.durations[own] for c, own in zip(chains, inside, strict=True)])
        # Operations have phases in clients of one worker only, so each client is one chain.
        parts = (
            [rows[:, own] for rows, own in zip(phases, inside, strict=True)] if any(map(len, phases)) else []
        )
        return cls(len(together), request.window_ns, together, disturbed, _joined(parts), led_in_ns)

    @classmethod
    def _of_open_loop(
        cls,
        request: protocol.Slice,
        replies: list[protocol.SliceReply],
        durations: list[Durations],
        phases: Sequence[Durations],
        disturbed: str,
    ) -> "SliceWindow":
        """Throughput and service time are of what ended in the window, latency of what was due in it:
        an operation that a stall held up past the end counts where it should have begun.
        """
        opens = request.start_ns + request.lead_in_ns
        closes = opens + request.window_ns
        slices = list(open_loop.client_slices(_recorded_from_the_start(request), durations))
        inside = [each.ran & each.due_from(opens) for each in slices]
        ended = [each.ended_between(opens, closes) for each in slices]
        lag = replies[0].phases.index(protocol.LAG)
        served = [each.durations - rows[lag] for each, rows in zip(slices, phases, strict=True)]
        return cls(
            ops=sum(int(np.count_nonzero(own)) for own in ended),
            served=np.concatenate([times[own] for times, own in zip(served, ended, strict=True)]),
            length_ns=request.window_ns,
            durations=np.concatenate([each.durations[own] for each, own in zip(slices, inside, strict=True)]),
            disturbed=disturbed,
            phases=np.concatenate([rows[:, own] for rows, own in zip(phases, inside, strict=True)], axis=1),
            scheduled=open_loop.counted(request, slices),
            waited=np.concatenate([each.waited(opens, closes) for each in slices]),
        )

    def by_phase(self) -> dict[str, Durations]:
        """The durations of lag and service of an open loop; then those of connect, operate and close,
        or of connect, first_byte and receive. {} where there are no phases.

        A client that knows closing only together with connecting gives one row for both.
        """
        if self.phases is None:
            return {}
        timed = dict(zip(self.phase_names, self.phases, strict=True))
        rest = self.durations - self.phases.sum(axis=0)
        found = {"lag": timed["lag"], "service": self.durations - timed["lag"]} if "lag" in timed else {}
        if "first_byte" in timed:
            return {**found, **timed, "receive": rest}
        if "connect" not in timed:
            return found
        connect = timed["connect"]
        return {**found, "connect": connect, "operate": rest, "close": timed.get("close", connect[:0])}

    def us_per_op(self, clients: int) -> float:
        """The mean time from an operation's real start to its end, each limited to the 99th
        percentile. Where a closed loop timed no operation, it is made of their number; an open loop
        has 0 then.
        """
        if self.served is not None:
            return time_per_op_us(self.served)
        return time_per_op_us(self.durations) or self.mean_us(clients)

    @property
    def new_connections(self) -> int | None:
        """How many HTTP requests opened a connection; None for other operations."""
        if self.phases is None or "first_byte" not in self.phase_names:
            return None
        return int(np.count_nonzero(self.phases[self.phase_names.index("connect")]))

    def mean_us(self, clients: int) -> float:
        """The mean time of one client for one operation, µs; the whole window where none ended."""
        return self.length_ns * (clients if self.ops else 1) / max(1, self.ops) / 1000


def _recorded_from_the_start(request: protocol.Slice) -> protocol.Slice:
    """Record the lead-in too: operations that begin in it and end in the common window count.

    Without them, a window of five operations of each client would miss one of the five.
    """
    if request.count or not (request.start_ns and request.window_ns):
        return request
    return request._replace(lead_in_ns=0, window_ns=request.lead_in_ns + request.window_ns)


@dataclass(frozen=True)
class Chain:
    """The operations of one connection in a slice: each began when the one before ended, the first
    at `first_ns`.
    """

    first_ns: int
    durations: Durations

    def ended_between(self, opens: int, closes: int) -> NDArray[np.bool_]:
        """Which of them ended then."""
        ends = self.first_ns + np.cumsum(self.durations.astype(np.int64))
        return (ends > opens) & (ends <= closes)


def _mean_length_ns(chains: Sequence[Chain]) -> int:
    """How long a connection took for its operations. Those that end first wait for the slowest only
    because the slice is by count: in a loop without end they would go on, so that is no part of it.
    """
    lengths = [int(chain.durations.sum()) for chain in chains]
    return sum(lengths) // len(lengths) if lengths else 0


def chains_of(reply: protocol.SliceReply, durations: Durations) -> list[Chain]:
    """One chain for each worker of a client."""
    if not reply.worker_ops:
        return [Chain(reply.first_ns, durations)]
    parts = np.split(durations, np.cumsum(reply.worker_ops)[:-1])
    return [Chain(*each) for each in zip(reply.worker_first_ns, parts, strict=True)]


def _joined(phases: Sequence[Durations]) -> Durations | None:
    """The phases of all clients; None where they have none."""
    return np.concatenate(phases, axis=1) if phases and len(phases[0]) else None


@contextmanager
def started(
    definition: Definition,
    variants: list[tuple[Variant, str]],
    routes: dict[str, Route],
    build_dir: str,
    cold: bool,
    cpus: frozenset[int] | None,
    interpreters: Mapping[str, str] = launch.NO_INTERPRETERS,
    memory_bytes: int = 0,
    places: BlockPlaces | None = None,
    part_of: Callable[[Variant], HostPart] = lambda _variant: WHOLE,
) -> Iterator[list[ClientGroup]]:
    """Groups of the variants (each with its application name), connected; ended when the context
    ends.

    With `cold`, the first client of each owner starts alone, pinned from the start, and measures
    its cold phases. All other clients start together and are pinned when they are ready.
    `memory_bytes`: the limit of each client's operations, 0 for none. `places`: where the
    environments are, None if there is only the default one. `part_of`: which clients of a variant
    are on this host.
    """
    _check_authentication([variant for variant, _ in variants], routes)
    groups = {variant: ClientGroup(variant, name, part=part_of(variant)) for variant, name in variants}
    families = sharing(groups)
    clean = False

    def spawn(group: ClientGroup, cold: bool) -> None:
        start = client_start(definition, group.variant, build_dir, interpreters, places)
        _spawn(group, definition, routes[group.variant.route], start, cold, memory_bytes)

    try:
        owners = [groups[variant] for variant in families]
        if cold:
            _start_coldly(owners, lambda group: spawn(group, True), cpus)
        _start_together(owners, lambda group: spawn(group, False))
        for client in [client for group in owners for client in group.clients]:
            placement.pin(client.pid, cpus)
        for owner, members in families.items():
            for member in members:
                if member != owner:
                    groups[member].share(groups[owner])
        yield list(groups.values())
        clean = True
    finally:
        clients = [client for group in groups.values() if not group.owner for client in group.clients]
        (goodbye if clean else kill)(clients)


def _check_authentication(variants: Sequence[Variant], routes: Mapping[str, Route]) -> None:
    """No client sends its password to a server that asks for it in clear text."""
    for name in dict.fromkeys(variant.route for variant in variants if layers.connects(variant.layer)):
        authentication.check(routes[name])


def _start_coldly(
    groups: list[ClientGroup], spawn: Callable[[ClientGroup], None], cpus: frozenset[int] | None
) -> None:
    """Start the first client of each group, one after the other, so that nothing disturbs its cold
    phases.
    """
    for group in groups:
        spawn(group)
        placement.pin(group.clients[0].pid, cpus)
        _await(group, cold=True)


def _start_together(groups: list[ClientGroup], spawn: Callable[[ClientGroup], None]) -> None:
    """Start all clients that the groups still lack, some at a time."""
    starting: deque[ClientGroup] = deque()
    for group in groups:
        for _ in group.part.indices(group.variant.processes)[len(group.clients) :]:
            if len(starting) == _STARTING:
                _await(starting.popleft())
            spawn(group)
            starting.append(group)
    for group in starting:
        _await(group)


def _spawn(
    group: ClientGroup,
    definition: Definition,
    route: Route,
    start: ClientStart,
    cold: bool,
    memory_bytes: int,
) -> None:
    variant = group.variant
    number = group.part.indices(variant.processes)[len(group.clients)]
    name = application_of(group.application, number, variant.workers)
    client = ClientProcess(variant.label, start.argv, route.password, start.process_environment)
    group.clients.append(client)
    client.send(spec(definition, variant, route, name, cold, client.spawned_ns, memory_bytes))


def _await(group: ClientGroup, cold: bool = False) -> None:
    """Wait until the next of its clients is ready."""
    client = group.clients[len(group.ready)]
    group.ready.append(client.expect(protocol.Ready, start_most_s(group.variant, cold)))
    check_version(client.name, group.ready[-1])


def start_most_s(variant: Variant, cold: bool) -> float:
    """The time in which a client must be ready, where each operation takes as long as a statement may.

    Its workers run one after the other.
    """
    operations = (_COLD_OPS if cold else _READY_OPS) + variant.workers - 1
    return _START_TIMEOUT_S + operations * STATEMENT_TIMEOUT_S


def check_version(name: str, ready: protocol.Ready) -> None:
    """Raises ClientFailed for a client of another pgperf. One in C says its version by the protocol
    alone.
    """
    if refusal := other_version(ready.versions.get("pgperf", pgperf.__version__)):
        raise ClientFailed(f"{name}: {refusal}")


def application_of(group: str, client: int, workers: int = 1) -> str:
    """application_name of the first connection of one of a group's clients, by which its backend is
    found. The names of its other workers follow from it, and no two of the group are the same.
    """
    return protocol.connection_name(group, client * workers)


def begin(
    group: ClientGroup, request: protocol.Slice, host: Host | None
) -> tuple[protocol.Slice, SliceAccounting | None]:
    """Start a slice: the request that was sent, and its open CPU accounting.

    Armed clients sleep until their start, so the accounting is opened again right before it, if
    there is time. Raises LoadHostLate for a slice whose start was given and has passed.
    """
    accounting = SliceAccounting(host, group.processes()) if host else None
    given_ns = request.start_ns
    request = armed(group, request)
    group.begin(request)
    if given_ns and time.monotonic_ns() > given_ns:
        raise LoadHostLate(f"{group.variant.label}: its start had passed")
    if host and request.start_ns:
        opens_ns = request.start_ns - _READ_NS - _READ_EACH_NS * group.variant.connections
        time.sleep(max(0, opens_ns - time.monotonic_ns()) / 1e9)
        later = SliceAccounting(host, group.processes())
        accounting = later if time.monotonic_ns() < request.start_ns else accounting
    return request, accounting


def armed(group: ClientGroup, request: protocol.Slice) -> protocol.Slice:
    """The slice with a common start, if none was given. One connection on this machine needs none
    without a schedule; load hosts always need one.
    """
    alone = group.variant.connections == 1 and not group.variant.hosts
    if request.start_ns or (alone and not request.rate):
        return request
    return request._replace(start_ns=time.monotonic_ns() + group.arming_ns(request))


def single(definition: Definition, work: WorkloadDefinition, layer: str, mode: str, route: Route) -> Variant:
    """The variant of a client that works alone, beside those that the run compares."""
    return Variant(
        workload=work.name,
        layer=layer,
        mode=mode,
        route=route.name,
        clients=1,
        connect="persistent",
        placement=definition.placement,
    )


def client_start(
    definition: Definition,
    variant: Variant,
    build_dir: str,
    interpreters: Mapping[str, str],
    places: BlockPlaces | None,
) -> ClientStart:
    """How a client of the variant starts."""
    work = definition.work(variant.workload)
    argv = launch.command(variant.layer, build_dir, interpreters)
    own = ClientStart(argv, process_environment(work, variant.layer))
    return places.start(variant, work, own) if places else own


def process_environment(work: WorkloadDefinition, layer: str) -> ProcessEnvironment | None:
    """The site's for Django's layers of the site's own workloads, else none: a clean environment."""
    return site_environment() if work.is_site and layers.LAYERS[layer].needs_site else None


def spec(
    definition: Definition,
    variant: Variant,
    route: Route,
    name: str,
    cold: bool,
    spawned_ns: int,
    memory_bytes: int = 0,
) -> protocol.Spec:
    """The spec for a client of that variant."""
    work = definition.work(variant.workload)
    calls_orm = layers.calls_orm(variant.layer)
    return protocol.Spec(
        layer=variant.layer,
        mode=variant.mode,
        connection_mode=variant.connect,
        url=route.url,
        workers=variant.clients if variant.is_one_process else variant.workers,
        **login(route),
        application_name=name,
        row_type=definition.row_type,
        transaction=definition.transaction,
        statements=_statements(work, variant.layer),
        bulk=_bulk(work, definition.bulk_api),
        page=_page(work) if layers.requests_pages(variant.layer) else protocol.Page(),
        orm=work.orm,
        orm_args=list(work.args),
        query=work.query,
        site=work.is_site,
        other_statements=_other_statements(work) if layers.runs_statements(variant.layer) else [],
        other_orm=work.other_orm if calls_orm else "",
        other_orm_args=list(work.other_args),
        spawned_ns=spawned_ns,
        runner_pid=os.getpid(),
        cold=cold,
        memory_bytes=memory_bytes * (variant.clients if variant.is_one_process else 1),
        nominal_us=definition.nominal_us.get(variant.label, definition.nominal_us.get(variant.layer, 0.0)),
    )


def _statements(work: WorkloadDefinition, layer: str) -> list[protocol.Statement]:
    """Captured ones may be too many for a layer that does not send them to read."""
    if work.statements and not layers.runs_statements(layer):
        return []
    if work.bulk:
        return [sql_parameters.row_statement(work.bulk.sql, work.bulk.row)]
    return list(work.statements) or sql_parameters.statements(work.sql, work.args)


def _bulk(work: WorkloadDefinition, api: str) -> protocol.Bulk:
    insert = work.bulk
    if not insert:
        return protocol.Bulk()
    return protocol.Bulk(
        insert.kind, insert.table, list(insert.columns), list(insert.types), insert.rows, api
    )


def _page(work: WorkloadDefinition) -> protocol.Page:
    """The page that a layer above the ORM requests."""
    page = work.page
    return protocol.Page(page.path, page.method, work.cookie) if page else protocol.Page()


def _other_statements(work: WorkloadDefinition) -> list[protocol.Statement]:
    return list(work.other_statements) or sql_parameters.statements(work.other_sql, work.other_args)
