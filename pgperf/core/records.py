"""The records of pgperf: definitions, plans, slices, blocks (standard library only).

definition -> plan -> slices -> blocks -> summary. All records are frozen, convert to JSON with
`to_json`, and contain no secrets. The exception is `Route`, which exists in the worker only and is
never stored.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, Self, TypeVar

from pgperf.core import layers, limits, protocol

PLACEMENTS = ("apart", "together", "scheduler")
IDLES = ("awake", "system")  # keep the CPUs awake during a run, or leave idle states to the system
MODES = protocol.MODES
CONNECTION_MODES = protocol.CONNECTION_MODES
#: Those whose connections begin and end with an operation.
RECONNECTING = ("per_operation", "request")
ROW_TYPES = protocol.ROW_TYPES
TRANSACTIONS = protocol.TRANSACTIONS
BULK_APIS = protocol.BULK_APIS
#: The key of a run's environment for the captures of site workloads, values masked.
CAPTURES = "captures"
#: The key of a run's environment for authentication and TLS, by route.
CONNECTIONS = "connections"


class HasPooler(Protocol):
    """A route to a database. `pooler` is the mode of its pooler, "" for a direct route."""

    @property
    def pooler(self) -> str: ...


R = TypeVar("R", bound=HasPooler)


def most_direct(routes: Iterable[R]) -> R:
    """The first route without a pooler, else the first route.

    Raises ValueError if there are none.
    """
    return min(routes, key=lambda route: bool(route.pooler))


@dataclass(frozen=True)
class Route:
    """One route to a database, with the login. It exists in the worker's memory only."""

    name: str
    host: str  # a name, an address, or the directory of a Unix socket
    port: int
    dbname: str
    user: str
    password: str = field(repr=False)
    sslmode: str = "disable"
    sslrootcert: str = ""  # file of trusted certificates; "": libpq's default
    allow_cleartext_password: bool = False  # may the server ask for the password in clear text?
    pooler: str = ""  # "" for a direct route, else "session" or "transaction"
    options: str = ""  # settings of its sessions, "-c name=value" each; poolers accept none


@dataclass(frozen=True)
class BulkInsert:
    """An operation that inserts `rows` rows, all equal to `row`, into a table of pgperf's own.

    `name` is its name in the catalog; `kind` is "copy" or "batch"; `table` is "schema.name"; `types`
    are those of the columns, as in pg_type.typname.
    """

    name: str
    kind: str
    table: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    row: tuple[Any, ...]
    rows: int

    @property
    def sql(self) -> str:
        """The statement that a driver sends, with a placeholder for each value of a row."""
        columns = ", ".join(self.columns)
        if self.kind == "copy":
            return f"COPY {self.table} ({columns}) FROM STDIN"
        return f"INSERT INTO {self.table} ({columns}) VALUES ({', '.join(['%s'] * len(self.columns))})"


@dataclass(frozen=True)
class WorkloadDefinition:
    """The work of one operation. `sql` has %s placeholders; `orm` names a callable in
    pgperf.registry.

    The lower layers run `statements` and `other_statements`, if there are any, instead of `sql` and
    `other_sql`. They are captured in the worker, contain the site's own values, and are never
    stored or hashed.
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
    )  # a query without code instead of `orm`: pgperf.workloads.queries
    bulk: BulkInsert | None = None  # many rows at once instead of `sql`
    statements: tuple[protocol.Statement, ...] = field(default=(), repr=False)
    other_statements: tuple[protocol.Statement, ...] = field(default=(), repr=False)

    @property
    def is_site(self) -> bool:
        """Does it use the site's own code or models? If so, its statements must be captured."""
        return not self.sql and bool(self.orm or self.query)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        del data["statements"], data["other_statements"]
        if not self.bulk:  # definitions without one keep their digest
            del data["bulk"]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        values = _with_tuples(data)
        if values.get("bulk"):
            values["bulk"] = BulkInsert(**_with_tuples(values["bulk"]))
        return cls(**values)


def _with_tuples(data: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}


@dataclass(frozen=True)
class Definition:
    """A benchmark with all its defaults. A Run stores and hashes it. Times in ms."""

    benchmark: str
    workloads: tuple[WorkloadDefinition, ...]  # one to twelve, in the order of the pages
    layers: tuple[str, ...]
    routes: tuple[str, ...]
    modes: tuple[str, ...] = ("simple",)
    clients: tuple[int, ...] = (1,)
    connection_modes: tuple[str, ...] = ("persistent",)
    workers: int = 1  # threads or tasks in each client process that can have several
    as_processes: bool = False  # measure as many processes beside each process with several workers
    row_type: str = "tuple"  # one of ROW_TYPES
    transaction: str = "autocommit"  # one of TRANSACTIONS
    bulk_api: str = "best"  # one of BULK_APIS
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
    diagnostic_ms: int = 0  # window of each variant's diagnostic slice after the timed rounds; 0: none

    @property
    def is_suite(self) -> bool:
        """Do its workloads take turns? One or two are measured together, two as a comparison."""
        return len(self.workloads) > 2

    def work(self, name: str) -> WorkloadDefinition:
        """The workload of that name. Raises KeyError."""
        return {work.name: work for work in self.workloads}[name]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "workloads": [work.to_json() for work in self.workloads]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read a definition that any version of pgperf stored."""
        data = with_workloads(data)
        rest: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        return cls(**{**rest, "workloads": tuple(map(WorkloadDefinition.from_json, data["workloads"]))})

    def digest(self) -> str:
        """SHA-256 of the canonical JSON without seed and diagnostics.

        Equal digests measure the same work.
        """
        body = {k: v for k, v in self.to_json().items() if k not in ("seed", "diagnostic_ms")}
        later = {k: v for k, v in LATER_FIELDS.items() if body[k] == v}
        body = _as_first_release({k: v for k, v in body.items() if k not in later})
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


#: Fields that older definitions lack, with their old meaning. A digest leaves them out, so that a
#: run of an older version can be compared.
LATER_FIELDS: dict[str, Any] = {
    "connection_modes": ("persistent",),
    "workers": 1,
    "as_processes": False,
    "row_type": "tuple",
    "transaction": "autocommit",
    "bulk_api": "best",
}


def with_workloads(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored definition with the key `workloads`.

    Older ones have `workload` and `compared_with` instead.
    """
    rest = {k: v for k, v in stored.items() if k not in ("workload", "compared_with")}
    works = [work for k in ("workload", "compared_with") if (work := stored.get(k))]
    return {"workloads": works, **rest}


def _as_first_release(body: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of a definition with the keys of the first release, which had up to two workloads."""
    first, second, *more = [*body["workloads"], None, None][: max(2, len(body["workloads"]))]
    named = {"workload": first, "compared_with": second, **({"workloads": more} if more else {})}
    return {**{k: v for k, v in body.items() if k != "workloads"}, **named}


@dataclass(frozen=True, kw_only=True)
class Variant:
    """The unit of comparison. `control` > 0 marks a control: a duplicate that is measured as a
    separate variant.

    `named`: the run has several workloads, so the label contains the workload.
    """

    workload: str
    layer: str
    mode: str
    route: str
    clients: int
    connect: str  # one of CONNECTION_MODES
    placement: str
    control: int = 0
    named: bool = False
    workers: int = 1  # threads or tasks in each client process

    @property
    def reconnects(self) -> bool:
        """Do its connections begin and end with its operations? Those of a pool stay."""
        return self.connect in RECONNECTING

    @property
    def backends_pass(self) -> bool:
        """Do its backends begin and end within its slices? A tool is a new program in each slice."""
        return self.reconnects or layers.runs_tool(self.layer)

    @property
    def connections(self) -> int:
        """How many connections run operations at the same time."""
        return self.clients * self.workers

    @property
    def label(self) -> str:
        """A name for people, unique within a run. Code uses the fields."""
        return " · ".join((self.layer, *self.details))

    @property
    def details(self) -> tuple[str, ...]:
        """The parts of the label after the layer: the route, and each field with an unusual value."""
        parts = [self.route]
        parts += [self.workload] if self.named else []
        parts += [self.mode] if self.mode != "simple" else []
        parts += [f"{self.clients} clients"] if self.clients != 1 else []
        parts += [f"{self.workers} workers"] if self.workers != 1 else []
        parts += [self.connect.replace("_", " ")] if self.connect != "persistent" else []
        parts += [f"control {self.control}"] if self.control else []
        return tuple(parts)

    @property
    def is_one_process(self) -> bool:
        """Does one process make all its clients?"""
        return layers.one_process(self.layer)

    @property
    def processes(self) -> int:
        """The number of its client processes."""
        return 1 if self.is_one_process else self.clients

    def differs_in(self, other: "Variant") -> set[str]:
        """The names of the fields in which the two differ."""
        own, others = asdict(self), asdict(other)
        return {name for name in own if own[name] != others[name]}


@dataclass(frozen=True)
class Cohort:
    """Variants whose clients are ready at the same time; one variant works, the others stand by.

    `reference`: index of the variant that all cohorts share.
    """

    variants: tuple[Variant, ...]
    reference: int = 0


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Variants that a plan leaves out, with the reason: those that have all the given fields.

    Without a layer it names the layers below the ORM, which cannot run the workload's statements.
    """

    reason: str
    workload: str = ""
    layer: str = ""
    mode: str = ""
    route: str = ""
    connect: str = ""

    @property
    def name(self) -> str:
        """For people."""
        return self.titled(self.layer)

    def titled(self, layer: str) -> str:
        """For people who know the layer by this title."""
        workload = f"{self.workload}: " if self.workload else ""
        mode = f", {self.mode}" if self.mode else ""
        connect = f", {self.connect.replace('_', ' ')}" if self.connect else ""
        route = f" · {self.route}" if self.route else ""
        return f"{workload}{layer or 'all layers below the ORM'}{mode}{connect}{route}"

    def covers(self, variant: Variant) -> bool:
        asked = ("workload", "layer", "mode", "route", "connect")
        same = all(getattr(self, name) in ("", getattr(variant, name)) for name in asked)
        return same and bool(self.layer or not layers.calls_orm(variant.layer))

    def covers_layer(self, layer: str, mode: str) -> bool:
        """Does it leave out the layer in this mode, whatever the workload and the route?"""
        return (
            self.layer == layer
            and self.mode in ("", mode)
            and not (self.workload or self.route or self.connect)
        )

    def to_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """The work of a run, in order.

    It depends only on the definition and the layers that can run here.
    """

    definition: Definition
    cohorts: tuple[Cohort, ...]
    skipped: tuple[LeftOut, ...] = ()

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Every variant once, in the order of the ladder."""
        return tuple(dict.fromkeys(variant for cohort in self.cohorts for variant in cohort.variants))


@dataclass(frozen=True, kw_only=True)
class SliceRecord:
    """One slice of one variant, its clients merged. CPU times cover lead-in and window of all
    clients.

    They cover `elapsed_ns`, which is a few milliseconds longer than lead-in and window.
    `*_wait_ns`: time ready to run but waiting for a CPU. `*_busiest_ns`: CPU time of the busiest
    process. `auxiliary_ns`: PostgreSQL's own processes. `runner_ns`: the process that measures, and
    the relay of the route. `host_ns`: the whole machine, summed over its CPUs.

    `us_per_op` is the mean time of one client for one operation inside the window. An operation
    counts with at most the slice's 99th percentile. The clients report `user_ns` and `sys_ns`
    themselves. `client_ns`, `server_ns` and `pooler_ns` are the scheduler's figures, None if they
    are not visible from here. `connect_ns`, `operate_ns` and `close_ns` are the times of these
    phases, summed over the operations of the window; None where connections persist.
    """

    round: int
    position: int
    ops: int
    rows: int | None  # None: not known
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
    disturbed: str = ""  # why this slice is unreliable; it is never dropped
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
    connect_ns: int | None = None
    operate_ns: int | None = None
    close_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class DurationSums:
    """Some durations (ns): their number, sum, sum of squares, extremes and histogram."""

    ops: int = 0
    sum_ns: int = 0
    sum_sq: float = 0.0
    min_ns: int = 0
    max_ns: int = 0
    histogram: bytes = b""  # HdrHistogram V2, compressed; nanoseconds, 3 significant digits


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
    rows_per_op: int | None = 0
    latency_sum_ns: int = 0
    latency_sum_sq: float = 0.0
    latency_min_ns: int = 0
    latency_max_ns: int = 0
    #: connect, operate and close of operations that connect; else empty
    phases: dict[str, DurationSums] = field(default_factory=dict)
    cpu_account: dict[str, Any] = field(
        default_factory=dict
    )  # of all processes in the block, and of this variant's
    diagnostics: dict[str, Any] = field(
        default_factory=dict
    )  # result of the diagnostic slice; last block only
    top: dict[str, Any] = field(default_factory=dict)  # processes in the same diagnostic slice


@dataclass(frozen=True, kw_only=True)
class Timings:
    """The wall time of a run by phase, seconds.

    `wall_s` runs from the first spawn to the last `Bye`.
    """

    wall_s: float
    startup_s: float
    warm_up_s: float
    pilot_s: float
    slices_s: float  # lead-ins and windows
    diagnostics_s: float = 0.0  # diagnostic slices, after the timed rounds of the last block

    def to_json(self) -> dict[str, float]:
        return asdict(self)
