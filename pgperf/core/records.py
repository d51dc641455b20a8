"""The records of pgperf: definitions, plans, slices, blocks (standard library only).

definition -> plan -> slices -> blocks -> summary. All records are frozen, convert to JSON with
`to_json`, and contain no secrets. The exception is `Route`, which exists in the worker only and is
never stored.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

from pgperf.core import layers, limits, protocol
from pgperf.core.client_environment import DEFAULT as DEFAULT_ENVIRONMENT
from pgperf.core.exceptions import InvalidDefinition

PLACEMENTS = ("apart", "together", "scheduler")
IDLES = ("awake", "system")  # keep the CPUs awake during a run, or leave idle states to the system
MODES = protocol.MODES
CONNECTION_MODES = protocol.CONNECTION_MODES
SCHEDULES = protocol.SCHEDULES
#: Those whose connections begin and end with an operation.
RECONNECTING = ("per_operation", "request")
ROW_TYPES = protocol.ROW_TYPES
TRANSACTIONS = protocol.TRANSACTIONS
BULK_APIS = protocol.BULK_APIS
PAGE_METHODS = protocol.PAGE_METHODS
#: The key of a run's environment for the captures of site workloads, values masked.
CAPTURES = "captures"
#: The key of a run's environment for the times of single statements.
STATEMENT_TIMES = "statement_times"
#: The key of a run's environment for the parts of a page's time.
PAGE_PARTS = "page_parts"
#: The key, among the versions of a layer of pages, of the status and the length of its answers.
ANSWER = "answer"
#: The key of a run's environment for how a run that may stop early ended, and the reasons.
ENDING = "ending"
PRECISION, BUDGET, BLOCKS = "precision", "budget", "blocks"
#: The key of a run's environment for the precision that a look at the machine predicted before it.
PREDICTED = "predicted"
#: The key of a run's environment for the versions in other environments than the default one.
ENVIRONMENTS = "environments"
#: The key of a run's environment for authentication and TLS, by route.
CONNECTIONS = "connections"
#: The key of a run's environment for where settings come from that the configuration files do not set.
SETTING_SOURCES = "setting_sources"
#: The key of a run's environment of a server that is a standby, or has one or a replication slot.
REPLICATES = "replicates"


def answer_of(workload: str) -> str:
    """The key of a page's answer in a run of several workloads, instead of ANSWER."""
    return f"{ANSWER} of {workload}"


class HasPooler(Protocol):
    """A route. `pooler` is the mode of its pooler, "" for a direct route; `url` is that of a site, ""
    for a route to a database.
    """

    @property
    def pooler(self) -> str: ...

    @property
    def url(self) -> str: ...


R = TypeVar("R", bound=HasPooler)


def most_direct(routes: Iterable[R]) -> R:
    """The first route to a database without a pooler, else the first to a database.

    Raises ValueError if there are none.
    """
    return min((route for route in routes if not route.url), key=lambda route: bool(route.pooler))


@dataclass(frozen=True)
class Route:
    """One route to a database, with the login. It exists in the worker's memory only.

    A web route has a `url`, the site's scheme, name and port, and no login: `host` and `port` are the
    address that its name had when it was checked, and `sslrootcert` the certificates to verify it by.
    """

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
    url: str = ""
    certificate_name: str = ""  # the server's, where `host` is the address of a relay to it; "": `host`
    relayed_host: str = ""  # where the relay at `host` leads to; "": none

    @property
    def tls_name(self) -> str:
        """The name of the server in TLS, which its certificate is to have."""
        return self.certificate_name or self.host


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
class Page:
    """A page of the site that one operation requests.

    `path` begins with / and includes the query string; `method` is one of PAGE_METHODS; `user` is
    one of PGPERF["PAGE_USERS"], "" for an anonymous visitor. With `one_capture`, the layers below
    the view send the values of one request, though those change from request to request.
    """

    path: str
    method: str = "GET"
    user: str = ""
    one_capture: bool = False


@dataclass(frozen=True)
class WorkloadDefinition:
    """The work of one operation. `sql` has %s placeholders; `orm` names a callable in
    pgperf.registry.

    The lower layers run `statements` and `other_statements`, if there are any, instead of `sql` and
    `other_sql`. They are captured in the worker, contain the site's own values, and are never
    stored or hashed. The same holds for `cookie`, "NAME=VALUE", the session of the page's user, and
    for `start_s`, how long a client takes here to start the site (0: not known).
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
    page: Page | None = None  # a page of the site instead of `sql`
    cookie: str = field(default="", repr=False)
    statements: tuple[protocol.Statement, ...] = field(default=(), repr=False)
    other_statements: tuple[protocol.Statement, ...] = field(default=(), repr=False)
    start_s: float = field(default=0.0, repr=False, compare=False)
    #: The longest time of an operation by what an earlier run measured; 0: not known.
    op_s: float = field(default=0.0, repr=False, compare=False)

    @property
    def is_site(self) -> bool:
        """Does it use the site's own code or models? If so, its statements must be captured."""
        return not self.sql and bool(self.orm or self.query or self.page)

    @property
    def has_orm_call(self) -> bool:
        """Is there something for the ORM to run? A bulk insert is bulk_create."""
        return bool(self.orm or self.query or self.bulk)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        for own in ("statements", "other_statements", "cookie", "start_s", "op_s"):
            del data[own]
        for later in ("bulk", "page"):  # definitions without one keep their digest
            if not data[later]:
                del data[later]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        values = _with_tuples(data)
        if values.get("bulk"):
            values["bulk"] = BulkInsert(**_with_tuples(values["bulk"]))
        if values.get("page"):
            values["page"] = Page(**values["page"])
        return cls(**values)


def _with_tuples(data: Mapping[str, Any]) -> dict[str, Any]:
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
    rates: tuple[float | None, ...] = (None,)  # operations/s of all clients together; None: closed loop
    schedule: str = "exponential"  # of rates, one of SCHEDULES
    latency_limit_ms: float = 0.0  # operations that would begin later are skipped; 0: none is
    rate_search_ms: float = 0.0  # find the highest rate whose p99 stays under it; 0: no search
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
    precision: float = 0.0  # ±%, the target at which the run stops early; 0: it does not
    budget_s: int = 0  # wall time after which no block begins; 0: the predicted time of the blocks
    ends_after_blocks: bool = False  # has a run with a time budget no more than `blocks` blocks?
    environments: tuple[str, ...] = (DEFAULT_ENVIRONMENT,)  # names of PGPERF["ENVIRONMENTS"]
    load_hosts: tuple[int, ...] = (0,)  # how many make the load; 0: the worker of the run itself
    load_host_names: tuple[str, ...] = ()  # which of them, in this order; none: those that are free
    may_lose_hosts: bool = False  # does a run go on with the others when a load host is lost?
    #: The routes that are URLs of a web server: each with the route that it builds on, "" if none.
    web_routes: dict[str, str] = field(default_factory=dict)
    #: Predicted time in which a hook starts the web servers of one route anew before a block; 0: none
    #: does. Known to this process only.
    restart_s: float = field(default=0.0, repr=False, compare=False)
    #: "https://NAME:PORT" of its web servers, if they have one in common; "": none, or several. Known
    #: to this process only.
    web_origin: str = field(default="", repr=False, compare=False)

    @property
    def is_suite(self) -> bool:
        """Do its workloads take turns? One or two are measured together, two as a comparison."""
        return len(self.workloads) > 2

    @property
    def has_environments(self) -> bool:
        """Do clients run in other environments than the default one?"""
        return self.environments != (DEFAULT_ENVIRONMENT,)

    @property
    def stops_early(self) -> bool:
        """Does a run end before its last block where it reaches the target precision?"""
        return bool(self.precision) and self.most_blocks >= limits.LEAST_BLOCKS

    @property
    def is_fixed(self) -> bool:
        """Does a run measure exactly `blocks` blocks, however long they take?"""
        return not self.budget_s and not self.stops_early

    @property
    def fills_budget(self) -> bool:
        """Has a run as many blocks as fit into its time budget?"""
        return bool(self.budget_s) and not self.ends_after_blocks

    @property
    def most_blocks(self) -> int:
        """A time budget takes the place of a number of blocks, unless the definition wants no more."""
        return limits.BLOCKS.high if self.fills_budget else self.blocks

    @property
    def diagnosed_block(self) -> int:
        """The block, from 0, that ends with the diagnostic slices: the last that a run surely has. On
        a machine that became slower, an earlier one may (`Pace.diagnoses`).
        """
        return (self.blocks if self.is_fixed else min(self.most_blocks, limits.LEAST_BLOCKS)) - 1

    def work(self, name: str) -> WorkloadDefinition:
        """The workload of that name. Raises KeyError."""
        return {work.name: work for work in self.workloads}[name]

    def to_json(self) -> dict[str, Any]:
        data = {**asdict(self), "workloads": [work.to_json() for work in self.workloads]}
        for own in ("restart_s", "web_origin"):
            del data[own]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read a definition that this or an earlier version of pgperf stored.

        Raises InvalidDefinition for one of a later version.
        """
        data = with_workloads(data)
        try:
            workloads = tuple(map(WorkloadDefinition.from_json, data["workloads"]))
            return cls(**{**_with_tuples(data), "workloads": workloads})
        except TypeError:  # it has fields that this version does not know
            raise InvalidDefinition(
                "definition: another version of pgperf stored it, and this one cannot read it; upgrade pgperf here"
            ) from None

    def digest(self) -> str:
        """SHA-256 of the canonical JSON without seed and diagnostics.

        Equal digests measure the same work.
        """
        body = {k: v for k, v in self.to_json().items() if k not in _NOT_WORK}
        later = {k: v for k, v in LATER_FIELDS.items() if body[k] == v}
        body = _as_first_release({k: v for k, v in body.items() if k not in later})
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


#: Fields of a definition that change neither the work nor its conditions.
_NOT_WORK = ("seed", "diagnostic_ms", "web_routes", "precision", "budget_s", "ends_after_blocks")
#: Fields that older definitions lack, with their old meaning. A digest leaves them out, so that a
#: run of an older version can be compared.
LATER_FIELDS: dict[str, Any] = {
    "connection_modes": ("persistent",),
    "rates": (None,),
    "schedule": "exponential",
    "latency_limit_ms": 0.0,
    "rate_search_ms": 0.0,
    "workers": 1,
    "as_processes": False,
    "row_type": "tuple",
    "transaction": "autocommit",
    "bulk_api": "best",
    "environments": (DEFAULT_ENVIRONMENT,),
    "load_hosts": (0,),
    "load_host_names": (),
    "may_lose_hosts": False,
}


def with_workloads(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored definition with the key `workloads`.

    Older ones have `workload` and `compared_with` instead.
    """
    rest = {k: v for k, v in stored.items() if k not in ("workload", "compared_with")}
    works = [work for k in ("workload", "compared_with") if (work := stored.get(k))]
    return {"workloads": works, **rest}


def with_defaults(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The same with every field that older versions lacked, each with its old meaning."""
    defaults = {each.name: each.default for each in fields(Definition) if each.compare}
    known = {name: value for name, value in defaults.items() if value is not MISSING}
    return {**known, **with_workloads(stored)}


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

    `rate`: operations per second of its clients together, due by `schedule`; None and "" for a closed
    loop, where each client sends its next operation when the last one ends.
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
    environment: str = DEFAULT_ENVIRONMENT  # the Python in which its clients run
    rate: float | None = None
    schedule: str = ""
    hosts: int = 0  # load hosts that its clients are spread over; 0: they are on the run's own worker

    @classmethod
    def of_values(cls, values: Iterable[Any]) -> Self:
        """From the values of VARIANT_FIELDS."""
        return cls(**dict(zip(VARIANT_FIELDS, values, strict=True)))

    @property
    def is_open_loop(self) -> bool:
        """Do its operations begin by a schedule?"""
        return bool(self.schedule)

    @property
    def is_search(self) -> bool:
        """Does each of its slices have a rate of its own?"""
        return self.is_open_loop and self.rate is None

    @property
    def closed(self) -> "Variant":
        """The same in a closed loop."""
        return replace(self, rate=None, schedule="")

    def as_named(self, named: bool) -> "Variant":
        """The same with or without the workload in its label."""
        return self if self.named == named else replace(self, named=named)

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

    @cached_property
    def label(self) -> str:
        """A name for people, unique within a run. Code uses the fields."""
        return " · ".join((self.layer, *self.details))

    @cached_property
    def details(self) -> tuple[str, ...]:
        """The parts of the label after the layer: the route, and each field with an unusual value."""
        parts = [self.route]
        parts += [self.workload] if self.named else []
        parts += [self.mode] if self.mode != "simple" else []
        parts += [f"{self.clients} clients"] if self.clients != 1 else []
        parts += [f"{self.workers} workers"] if self.workers != 1 else []
        parts += [self.connect.replace("_", " ")] if self.connect != "persistent" else []
        parts += [self.environment] if self.environment != DEFAULT_ENVIRONMENT else []
        parts += [f"{self.rate:.12g}/s {self.schedule}"] if self.rate is not None else []
        parts += [f"highest rate {self.schedule}"] if self.is_search else []
        parts += [f"{self.hosts} load host{'s' if self.hosts > 1 else ''}"] if self.hosts else []
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
        return {name for name in VARIANT_FIELDS if getattr(self, name) != getattr(other, name)}


VARIANT_FIELDS = tuple(each.name for each in fields(Variant))


@dataclass(frozen=True)
class Cohort:
    """Variants whose clients are ready at the same time; one variant works, the others stand by.

    `reference`: index of the variant that all cohorts share.
    """

    variants: tuple[Variant, ...]
    reference: int = 0

    @property
    def diagnosed(self) -> tuple[Variant, ...]:
        """Those with a diagnostic slice."""
        return tuple(variant for variant in self.variants if not variant.is_search)


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
    environment: str = ""
    loop: str = ""  # "open": only where operations begin by a schedule
    load: str = ""  # "hosts": only where load hosts make the load

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
        loop = f", {self.loop} loop" if self.loop else ""
        load = f", load {self.load}" if self.load else ""
        environment = f" · environment {self.environment}" if self.environment else ""
        return (
            f"{workload}{layer or 'all layers below the ORM'}{mode}{connect}{loop}{load}{route}{environment}"
        )

    def covers(self, variant: Variant) -> bool:
        asked = ("workload", "layer", "mode", "route", "connect", "environment")
        same = all(getattr(self, name) in ("", getattr(variant, name)) for name in asked)
        same = same and (variant.is_open_loop or not self.loop) and bool(variant.hosts or not self.load)
        return same and bool(self.layer or layers.runs_statements(variant.layer))

    def covers_layer(self, layer: str, mode: str) -> bool:
        """Does it leave out the layer in this mode in the default environment, whatever the workload
        and the route?
        """
        return (
            self.layer == layer
            and self.mode in ("", mode)
            and self.environment in ("", DEFAULT_ENVIRONMENT)
            and not (self.workload or self.route or self.connect or self.loop or self.load)
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
    phases, summed over the operations of the window; None where connections persist. Those of HTTP
    requests are `connect_ns`, `first_byte_ns` and `receive_ns`.

    `web_ns` and `proxy_ns` are those of the web servers and of the proxy before them; 0 where the
    clients' requests go to no web server.

    Of an open loop, `us_per_op` is the mean service time, from the real start to the end, of the `ops`
    that ended in the window; `lag_ns` and `service_ns` are sums over the operations that were `due`
    in it and ran. `late` of these ended after the latency limit (None: there is none), `skipped` would
    have begun after it, and `backlog` had not begun when the window closed. All are None in a closed
    loop.

    Of a search for the highest rate, `asked_per_s` is the rate of the slice, `over` are the operations
    over the limit of the search, and `p50_ns`, `p90_ns` and `p99_ns` percentiles of the latency; None
    elsewhere.

    `errors`: failed HTTP requests, lead-in included. A slice with one counts for no figure.
    `new_connections`: how many requests of the window opened one; None for other layers.
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
    first_byte_ns: int | None = None
    receive_ns: int | None = None
    web_ns: int | None = 0
    web_wait_ns: int | None = 0
    web_busiest_ns: int | None = 0
    proxy_ns: int | None = 0
    proxy_wait_ns: int | None = 0
    proxy_busiest_ns: int | None = 0
    errors: int = 0
    new_connections: int | None = None
    lag_ns: int | None = None
    service_ns: int | None = None
    due: int | None = None
    late: int | None = None
    skipped: int | None = None
    backlog: int | None = None
    asked_per_s: float | None = None
    over: int | None = None
    p50_ns: int | None = None
    p90_ns: int | None = None
    p99_ns: int | None = None


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
    #: connect, operate and close of operations that connect; connect, first_byte and receive of HTTP
    #: requests; else empty
    phases: dict[str, DurationSums] = field(default_factory=dict)
    cpu_account: dict[str, Any] = field(
        default_factory=dict
    )  # of all processes in the block, and of this variant's
    diagnostics: dict[str, Any] = field(
        default_factory=dict
    )  # result of the diagnostic slice; in one block only
    top: dict[str, Any] = field(default_factory=dict)  # processes in the same diagnostic slice
    #: Of HTTP requests: their number, lead-ins included, `errors` by reason, least and greatest
    #: length of a body in bytes; else empty.
    http: dict[str, Any] = field(default_factory=dict)


def by_variant(blocks: Iterable[VariantBlock]) -> dict[Variant, list[VariantBlock]]:
    """The blocks of each variant, in their order."""
    found: dict[Variant, list[VariantBlock]] = {}
    for block in blocks:
        found.setdefault(block.variant, []).append(block)
    return found


@dataclass(frozen=True)
class StatementTime:
    """One statement of an operation, measured alone.

    `numbers` are its places in the operation, from 1: several where its text is sent again, with
    whatever values. Times are µs for one of them; `server_us` is the CPU time of the backend, None
    if that is not visible.
    """

    numbers: tuple[int, ...]
    us: float
    server_us: float | None


@dataclass(frozen=True)
class StatementTimes:
    """The statements of one variant's operation, each measured alone."""

    workload: str
    layer: str
    mode: str
    route: str
    each: tuple[StatementTime, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        each = (StatementTime(**{**one, "numbers": tuple(one["numbers"])}) for one in data["each"])
        return cls(**{**data, "each": tuple(each)})


@dataclass(frozen=True)
class PageParts:
    """The parts of a page's time in one variant, µs per operation.

    `plain_us` is the time of an operation without the instruments, which cost time themselves.
    """

    workload: str
    route: str
    mode: str
    parts_us: dict[str, float]
    plain_us: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a run that may stop early ended.

    `reason`: PRECISION, BUDGET or BLOCKS, which is all that it was to measure. `precision` and
    `target` are half-widths of a ratio, 0.016 for ±1.6 %, or None: not known, none. Times in seconds.
    """

    reason: str
    blocks: int
    seconds: float
    budget_s: float
    precision: float | None
    target: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """None for a run of a fixed length."""
        return cls(**stored) if stored else None


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a run will reach, by a look at the machine before it.

    `precision` is a half-width of a ratio, 0.03 for ±3 %, after `blocks` blocks of `rounds` rounds,
    which take `seconds`. `target` None: there is none. `target_s`: the time in which the target
    would be reached; None if no run of this definition is as long. `looked_s`: the age of the look.
    """

    precision: float
    seconds: float
    blocks: int
    rounds: int
    target: float | None
    target_s: float | None
    looked_s: float = 0.0

    @property
    def reaches_target(self) -> bool:
        return self.target is not None and self.precision <= self.target

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> Self | None:
        """None for a run without a look before it."""
        return cls(**stored) if stored else None


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
    diagnostics_s: float = 0.0  # diagnostic slices, after a block's timed rounds

    def to_json(self) -> dict[str, float]:
        return asdict(self)
