"""What the blocks of a run share, and what is measured of a variant in one."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pgperf.core import protocol
from pgperf.core.records import PageParts, Plan, Route, SliceRecord, StatementTimes
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.cpu.host import Host
from pgperf.runner.cpu.placement import CpuPlacement
from pgperf.runner.environment_places import EnvironmentPlaces
from pgperf.runner.load_hosts import LoadHosts
from pgperf.runner.pace import Pace
from pgperf.runner.progress import Progress
from pgperf.runner.rate_search import Searches
from pgperf.runner.remote.server import Agent
from pgperf.runner.server.diagnostics import DiagnosticConnections, DiagnosticResult
from pgperf.runner.server.written_tables import WrittenTables
from pgperf.runner.slice_window import SliceWindow
from pgperf.runner.timed_slice import AwaitDeparture

#: The phases of a run, as records.Timings names them (without `_s`).
PHASES = ("startup", "warm_up", "pilot", "slices", "diagnostics")


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

    def found_so_far(self) -> "FoundSoFar":
        counts = self.diagnosed, len(self.statement_times), len(self.page_parts)
        return FoundSoFar(*counts, deepcopy(self.searches))

    def forget_since(self, then: "FoundSoFar") -> None:
        """Forget what followed: its block is void, and the one in its place has all of it again."""
        self.diagnosed = then.diagnostic_slices
        del self.statement_times[then.statement_times :], self.page_parts[then.page_parts :]
        self.searches = deepcopy(then.searches)


class FoundSoFar(NamedTuple):
    """How many diagnostic slices there were, and times of statements and parts of pages; what searches
    had learned.
    """

    diagnostic_slices: int
    statement_times: int
    page_parts: int
    searches: Searches


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
