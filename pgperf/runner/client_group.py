"""The client processes of one variant, connected and idle, and each slice on all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from pgperf.core import layers, protocol
from pgperf.core.exceptions import ProtocolError
from pgperf.core.host_part import WHOLE, HostPart
from pgperf.core.limits import REQUEST_DEADLINE_S, STATEMENT_TIMEOUT_S
from pgperf.core.records import Variant
from pgperf.runner import open_loop
from pgperf.runner.client_process import ClientProcess
from pgperf.runner.cpu.accounting import BlockTotals, VariantProcesses
from pgperf.runner.cpu.cgroups import ServerCgroup
from pgperf.runner.processes.web_processes import NO_WEB_SERVER, WebProcesses
from pgperf.runner.remote.server import RemoteProcesses
from pgperf.runner.slice_window import Durations, Recorded, SliceWindow, recorded_from_the_start

SLICE_GRACE_S = 15.0
#: A client times out when an operation takes this many times as long as in its calibration.
_TIMEOUT_FACTOR = 4
#: How long the requests of a slice may fail before their client ends and says why: two of them, each
#: with its deadline.
_FAILING_S = 2.0 * REQUEST_DEADLINE_S
#: Time between arming several clients and their common start, plus the time that each connection
#: adds.
_ARM_NS, _ARM_EACH_NS = 20_000_000, 500_000


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
    server_elsewhere: bool = False  # do its web servers use another server than the run's?
    web: WebProcesses = NO_WEB_SERVER  # the web servers that its requests go to
    pooled: bool = False  # is there a pooler on its route?
    pooler_pid: int | None = None
    pooler_beside_server: bool = False  # has its pooler the CPUs of the server, and not the clients'?
    database_cpus: int | None = None  # those of its pooler and backends, where its web servers have more
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
    clients_seen: bool = True  # are those of them that work on this machine told from other programs?

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
        """Do its backends begin and end within its slices? Those of web servers do, however their
        clients connect, if they have none while the clients are idle.
        """
        if layers.over_http(self.variant.layer):
            found = self.server_pids or self.server_elsewhere
            return not found and (self.variant.backends_pass or bool(self.web.web))
        return self.variant.backends_pass

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

    def settle(self, request: protocol.Slice) -> None:
        """Wait until the start of a slice may be chosen. On this machine it always may."""

    def begin(self, request: protocol.Slice) -> None:
        """Send the slice; armed clients have all acknowledged when this returns."""
        whole = recorded_from_the_start(request)
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
        return self._collect(SLICE_GRACE_S + self.longest_s(request))

    def longest_s(self, request: protocol.Slice) -> float:
        """How long the slice may take, by the time of an operation in the calibration."""
        operations = request.lead_in_ops + request.count
        failing_s = _FAILING_S if layers.over_http(self.variant.layer) else 0.0
        slow_s = max(failing_s, _TIMEOUT_FACTOR * self.op_s * operations)
        return (request.lead_in_ns + request.window_ns) / 1e9 + slow_s

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


def application_of(group: str, client: int, workers: int = 1) -> str:
    """application_name of the first connection of one of a group's clients, by which its backend is
    found. The names of its other workers follow from it, and no two of the group are the same.
    """
    return protocol.connection_name(group, client * workers)


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
    if group.server_elsewhere:
        return "its web servers use another server than the run's"
    if not group.backends_pass:
        return ""
    by_web = layers.over_http(group.variant.layer)
    why = "its web servers keep no backend" if by_web else "its backends end with its connections"
    if not group.auxiliary_pids:
        return f"{why}, and the server's processes are not visible from here"
    if found is None:
        return f"{why}, and the server has no control group of its own"
    if group.pooled and not group.pooler_pid:
        return "the pooler may open connections, and its process is not visible"
    return ""
