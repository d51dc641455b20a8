"""The records of pgperf: definitions, plans, slices, blocks (standard library only).

definition -> plan -> slices -> blocks -> summary. All are plain data: frozen, JSON-able through `to_json`, and free
of secrets, `Route` excepted, which is resolved in the worker and never stored.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, Self, TypeVar

from pgperf.core import limits, protocol

PLACEMENTS = ("apart", "together", "scheduler")
IDLES = ("awake", "system")  # keep the CPUs awake during a run, or leave idle states to the system
MODES = protocol.MODES
CONNECTS = ("persistent",)
#: The key of a run's environment for the captures of site workloads, values masked.
CAPTURES = "captures"


class Way(Protocol):
    """A way to a database, which may lead through a pooler: "" where it does not."""

    @property
    def pooler(self) -> str: ...


W = TypeVar("W", bound=Way)


def most_direct(ways: Iterable[W]) -> W:
    """The first without a pooler, else the first of all. Raises ValueError if there are none."""
    return min(ways, key=lambda way: bool(way.pooler))


@dataclass(frozen=True)
class Route:
    """One way to a database, with everything a client needs to log in. Lives in the worker's memory only."""

    name: str
    host: str  # a name, an address, or the directory of a Unix socket
    port: int
    dbname: str
    user: str
    password: str = field(repr=False)
    sslmode: str = "disable"
    sslrootcert: str = ""  # path of the certificates to check the server's against; "": libpq's default
    pooler: str = ""  # "" for a direct route, else "session" or "transaction"
    options: str = ""  # settings of its sessions, "-c name=value" each; poolers take none


@dataclass(frozen=True)
class Workload:
    """The work of one operation. `sql` has %s placeholders; `orm` names a callable in pgperf.registry.

    `statements` and `other_statements`, where there are any, are what the lower layers run in place of `sql` and
    `other_sql`. They are captured in the worker, hold the site's own values, and are never stored or hashed.
    """

    name: str
    sql: str
    args: tuple[Any, ...] = ()
    orm: str = ""
    other_sql: str = ""
    other_args: tuple[Any, ...] = ()
    other_orm: str = ""
    fixture: str = ""
    query: dict[str, Any] = field(
        default_factory=dict
    )  # a query without code in place of `orm`: pgperf.workloads.queries
    statements: tuple[protocol.Statement, ...] = field(default=(), repr=False)
    other_statements: tuple[protocol.Statement, ...] = field(default=(), repr=False)

    @property
    def is_site(self) -> bool:
        """Does it use the site's own code or models? Then its statements must be captured."""
        return not self.sql and bool(self.orm or self.query)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        del data["statements"], data["other_statements"]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        return cls(**values)


@dataclass(frozen=True)
class Definition:
    """A benchmark with every default filled in: what a Run freezes and hashes. Times in ms."""

    benchmark: str
    workload: Workload
    layers: tuple[str, ...]
    routes: tuple[str, ...]
    modes: tuple[str, ...] = ("simple",)
    clients: tuple[int, ...] = (1,)
    placement: str = "apart"
    idle: str = "awake"
    blocks: int = limits.BLOCKS.default
    rounds: int = limits.ROUNDS.default
    slice_ms: int = limits.SLICE_MS.default
    lead_in_ms: int = limits.LEAD_IN_MS
    warm_up_ms: int = limits.WARM_UP_MS
    warm_up_ops: int = limits.WARM_UP_OPS
    cold_blocks: int = (
        limits.COLD_BLOCKS
    )  # blocks whose processes start one at a time, so that cold phases are clean
    seed: int = 0
    nominal_us: dict[str, float] = field(default_factory=dict)  # fake client only
    compared_with: Workload | None = None  # a second workload, measured beside the first in every layer
    diagnostic_ms: int = 0  # window of each variant's diagnostic slice after the timed rounds; 0: none

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """What is measured: one workload, or two to compare."""
        return (self.workload, self.compared_with) if self.compared_with else (self.workload,)

    def work(self, name: str) -> Workload:
        """The workload of that name. Raises KeyError."""
        return {work.name: work for work in self.workloads}[name]

    def to_json(self) -> dict[str, Any]:
        second = self.compared_with.to_json() if self.compared_with else None
        return {**asdict(self), "workload": self.workload.to_json(), "compared_with": second}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        works = {
            k: Workload.from_json(v) for k, v in data.items() if k in ("workload", "compared_with") and v
        }
        rest: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        return cls(**{**rest, **works})

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, seed and diagnostics left out: equal digests measure the same thing."""
        body = {k: v for k, v in self.to_json().items() if k not in ("seed", "diagnostic_ms")}
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Variant:
    """The thing that is compared. `control` > 0 marks a control: a duplicate measured as a variant of its own.

    `named`: the run has several workloads, so the label says which.
    """

    workload: str
    layer: str
    mode: str
    route: str
    clients: int
    connect: str
    placement: str
    control: int = 0
    named: bool = False

    @property
    def label(self) -> str:
        """Unique within a run, and for people only: code asks the fields."""
        return " · ".join((self.layer, *self.details))

    @property
    def details(self) -> tuple[str, ...]:
        """What the label has after the layer: the route, and each field that is not the usual one."""
        parts = [self.route]
        parts += [self.workload] if self.named else []
        parts += [self.mode] if self.mode != "simple" else []
        parts += [f"{self.clients} clients"] if self.clients != 1 else []
        parts += [self.connect.replace("_", " ")] if self.connect != "persistent" else []
        parts += [f"control {self.control}"] if self.control else []
        return tuple(parts)

    def differs_in(self, other: "Variant") -> set[str]:
        """The names of the fields in which the two differ."""
        own, others = asdict(self), asdict(other)
        return {name for name in own if own[name] != others[name]}


@dataclass(frozen=True)
class Cohort:
    """Variants whose clients run at the same time; `reference` is the index of the one that all cohorts share."""

    variants: tuple[Variant, ...]
    reference: int = 0


@dataclass(frozen=True)
class Plan:
    """What a run will do, in order. Pure function of the definition and the layers that can run here."""

    definition: Definition
    cohorts: tuple[Cohort, ...]
    skipped: dict[str, str] = field(default_factory=dict)  # see make_plan: what -> reason

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Every variant once, in the order of the ladder."""
        return tuple(dict.fromkeys(variant for cohort in self.cohorts for variant in cohort.variants))


@dataclass(frozen=True, kw_only=True)
class SliceRecord:
    """One slice of one variant, its clients merged. CPU times cover lead-in and window of all clients.

    They are what the processes spent in `elapsed_ns`, a few milliseconds longer than lead-in and window. `*_wait_ns`:
    ready but waiting for a processor. `*_busiest_ns`: what the busiest process spent. `auxiliary_ns`: PostgreSQL's own
    processes. `runner_ns`: the process that measures, and the relay on the route. `host_ns`: the whole machine, summed
    over its processors.

    `us_per_op` is the mean time one client spent on one operation inside the window, no operation counted as longer
    than the slice's 99th percentile. `user_ns`/`sys_ns` are the
    clients' own account; `client_ns`, `server_ns`, `pooler_ns` the scheduler's (null: not visible from here).
    """

    round: int
    position: int
    ops: int
    rows: int
    lead_in_ops: int
    window_ns: int
    us_per_op: float
    ops_per_s: float
    user_ns: int
    sys_ns: int
    client_ns: int | None = None
    server_ns: int | None = None
    pooler_ns: int | None = None
    started_ns: int = 0
    disturbed: str = ""  # why this slice should be read with care; never silently dropped
    elapsed_ns: int | None = None
    host_ns: int | None = None
    iowait_ns: int | None = None
    steal_ns: int | None = None
    runner_ns: int | None = None
    auxiliary_ns: int | None = None
    client_wait_ns: int | None = None
    client_busiest_ns: int | None = None
    server_wait_ns: int | None = None
    server_busiest_ns: int | None = None
    pooler_wait_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class VariantBlock:
    """One variant in one block: its slices, its merged latency histogram, its cold phases (µs)."""

    variant: Variant
    cohort: int
    block: int
    slices: tuple[SliceRecord, ...]
    histogram: bytes = b""  # HdrHistogram V2, compressed; nanoseconds, 3 significant digits
    cold_us: dict[str, float | None] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    rows_per_op: int = 0
    latency_sum_ns: int = 0
    latency_sum_sq: float = 0.0
    latency_min_ns: int = 0
    latency_max_ns: int = 0
    cpu_account: dict[str, Any] = field(
        default_factory=dict
    )  # of all processes in the block, and of this variant's
    diagnostics: dict[str, Any] = field(default_factory=dict)  # what runner.diagnostics saw; last block only
    top: dict[str, Any] = field(default_factory=dict)  # processes in the same diagnostic slice


@dataclass(frozen=True, kw_only=True)
class Timings:
    """Where a run's wall time went, seconds. `wall` covers everything from first spawn to last bye."""

    wall_s: float
    startup_s: float
    warm_up_s: float
    pilot_s: float
    slices_s: float  # lead-ins and windows
    diagnostics_s: float = 0.0  # diagnostic slices, after the timed rounds of the last block

    def to_json(self) -> dict[str, float]:
        return asdict(self)
