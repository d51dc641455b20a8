"""The protocol between the runner and a client: messages and framing (standard library only).

Each message is one JSON object on a line, in UTF-8. A `SliceReply` is followed by `nbytes` raw
bytes: the durations of the operations in nanoseconds, little-endian uint64. docs/protocol.md
describes the protocol and the order of the messages.
"""

import json
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, BinaryIO, NamedTuple, get_args, get_origin

from pgperf.core.exceptions import ProtocolError

PROTOCOL = 8
MAX_LINE_BYTES = 4 * 1024 * 1024
MAX_SAMPLES = 1 << 20
#: The same for operations that connect: three numbers are recorded for each.
MAX_PHASED_SAMPLES = 1 << 18

#: How a statement is sent. simple: as one text with its values; extended: parsed, bound and
#: executed each time; prepared: prepared once, then executed.
MODES = ("simple", "extended", "prepared")

#: When a client connects. persistent: once, before its first operation; per_operation: in each
#: operation, and closes at its end; pool: each operation takes a connection from a pool and puts it
#: back; request: Django's CONN_MAX_AGE 0, each operation is one request with Django's own signals.
CONNECTION_MODES = ("persistent", "per_operation", "pool", "request")

#: The parts of an operation that a client times where its connection mode is not persistent. The
#: time between them is the statements' own.
PHASES = ("connect", "close")

#: The parts of an HTTP request that its client times: connecting, TLS included (0 on a kept
#: connection), and from there to the first byte of the answer. The rest is receiving.
HTTP_PHASES = ("connect", "first_byte")

#: The first phase of each operation of an open loop: from its intended start to its real one.
LAG = "lag"

#: The rates that a client accepts, operations/s.
MIN_RATE, MAX_RATE = 0.001, 1_000_000

#: When the operations of an open loop are due. constant: at equal gaps; exponential: at those of a
#: Poisson process, whose arrivals are independent.
SCHEDULES = ("constant", "exponential")

#: How a driver gives rows. tuple: its fastest rows by position; named: rows that know their columns
#: (psycopg2 DictCursor, psycopg dict_row). asyncpg's Record is both, and libpq's result too.
ROW_TYPES = ("tuple", "named")

#: Who ends transactions. autocommit: each statement, bulk operation included, is a transaction;
#: driver_default: as the driver has it without settings. psycopg2 and psycopg then open one with the
#: first statement. It stays open for a whole slice, but for COPY, which commits.
TRANSACTIONS = ("autocommit", "driver_default")

#: copy: rows go in through COPY .. FROM STDIN; batch: through INSERT.
BULK_KINDS = ("copy", "batch")

#: How many rows are inserted at once. best: by the best call that the driver has for it; dbapi: by
#: calls that every driver of Python's DB-API has, executemany and COPY of CSV text.
BULK_APIS = ("best", "dbapi")

#: The requests that ask for a page and change nothing.
PAGE_METHODS = ("GET", "HEAD")
#: The headers of each of them, in process and over HTTP: a site may choose its answer by them.
PAGE_HEADERS = {"Accept": "text/html,*/*;q=0.8", "User-Agent": "pgperf"}

#: The message of an `Error` without SQLSTATE if the client needs more memory than it may take.
OUT_OF_MEMORY = "out of memory"
#: Begins the message of an `Error` without SQLSTATE that has a server's own words.
OF_SERVER = "server: "

#: Exit codes of a client.
EXIT_OK = 0  # after `bye`, or if the runner has ended (EOF on stdin, closed stdout)
EXIT_FAILED = 3  # after an `error` message
EXIT_PROTOCOL = 4  # the input on stdin is not this protocol


class Statement(NamedTuple):
    """One SQL statement in every form that a layer may need, so that no client has to translate it.

    `sql` has `%s` placeholders, for `args`. `literal` has the arguments as literals. `numbered` has
    `$1` placeholders, for `args_text` (text format, null for NULL) and `arg_oids` (their types; for
    0 or an empty list the server infers them). If `args` is null, the arguments have no JSON form,
    and drivers run `literal` unchanged.
    """

    sql: str = ""
    args: list[Any] | None = []
    literal: str = ""
    numbered: str = ""
    args_text: list[str | None] = []
    arg_oids: list[int] = []


class Bulk(NamedTuple):
    """An operation that inserts `rows` rows at once, all with the arguments of the spec's statement.

    `kind` is "copy" (the statement is COPY .. FROM STDIN) or "batch" (it is INSERT); "" for an
    operation that is no bulk operation. `table` is "schema.name"; `columns` and their `types` have
    the order of the arguments. `api` is one of BULK_APIS.
    """

    kind: str = ""
    table: str = ""
    columns: list[str] = []
    types: list[str] = []  # as in pg_type.typname
    rows: int = 0
    api: str = "best"


class Page(NamedTuple):
    """An operation that requests a page of the site. `path` includes the query string; "" for an
    operation that is no page. `method` is one of PAGE_METHODS. `cookie` is "NAME=VALUE", the secret
    of a user's session; "" for an anonymous visitor.
    """

    path: str = ""
    method: str = "GET"
    cookie: str = ""


class Spec(NamedTuple):
    """Runner to client, once, first: the address, the login, and the work of one operation.

    One operation runs all `statements` in order, or calls `orm` with `orm_args`. `other_*` is the
    second query of the cold phases: `other_orm` for a layer that calls the ORM, else
    `other_statements`. Both are empty if there is none.

    `workers` threads or tasks of the one process run operations at the same time, each on a
    connection of its own, named `application_name`, `application_name`.1, and so on.

    The layer http requests `page` at `url`. Its socket goes to `host` and `port`, the address that was
    checked; the name and the port of `url` are those of the header Host and of TLS. The layer
    django_view tells the site its scheme, name and port, if there is one and the site accepts the
    name.
    """

    protocol: int = PROTOCOL
    layer: str = ""
    mode: str = "simple"
    connection_mode: str = "persistent"
    workers: int = 1
    host: str = ""
    port: int = 5432
    dbname: str = ""
    user: str = ""
    password: str = ""
    sslmode: str = "disable"
    sslrootcert: str = ""  # file of trusted certificates; "": libpq's default
    certificate_name: str = ""  # the server's, where `host` is the IP address of a relay to it; "": `host`
    require_auth: str = "!password"  # libpq's keyword, for libpq 16 and newer; "": no demand
    connect_timeout_s: int = 10
    url: str = ""  # of a page: scheme, name and port of the site, and its prefix there, if any
    application_name: str = "pgperf"
    options: str = ""  # settings of the session, in the form of libpq's keyword: "-c name=value"
    row_type: str = "tuple"
    transaction: str = "autocommit"
    statements: list[Statement] = []
    bulk: Bulk = Bulk()
    page: Page = Page()
    orm: str = ""
    orm_args: list[Any] = []
    query: dict[str, Any] = {}  # instead of `orm`: a query without code, see pgperf.workloads.queries
    site: bool = False  # the Django layers run with the site's own settings
    other_statements: list[Statement] = []
    other_orm: str = ""
    other_orm_args: list[Any] = []
    spawned_ns: int = 0
    runner_pid: int = 0
    cold: bool = True
    memory_bytes: int = 0  # that the client may take beyond what it has once connected; 0: no limit
    nominal_us: float = 0.0  # fake client only: the duration of one operation


class Ready(NamedTuple):
    """Client to runner: connected, and the statement works. Cold phases in µs; null if not
    measured.

    `next_ten_us` is the total of ten operations.
    """

    pid: int
    backend_pid: int  # as the server reports it on this connection; 0 if there is none
    versions: dict[str, str]  # e.g. {"python": .., "driver": .., "libpq": .., "django": ..}
    server_version: str
    rows_per_op: int | None  # None: not known
    memory_bytes: int = 0  # the limit of its data that the kernel enforces; 0: none
    startup_us: float | None = None
    connect_us: float | None = None
    first_us: float | None = None
    second_us: float | None = None
    next_ten_us: float | None = None
    other_first_us: float | None = None
    other_second_us: float | None = None


class Slice(NamedTuple):
    """Runner to client: run one timed slice.

    All times are CLOCK_MONOTONIC nanoseconds. Armed (`start_ns` > 0): the client answers `Armed` at
    once, waits for `start_ns`, and runs its lead-in. Its window is [start_ns + lead_in_ns, start_ns
    + lead_in_ns + window_ns). Unarmed (`start_ns` = 0): the client starts at once, and the window
    opens when the lead-in is over: at least `lead_in_ops` operations and `lead_in_ns`. A slice by
    count has `count` > 0 and `window_ns` = 0; of several workers, each records `count` operations.

    `statement` > 0: each operation runs that one of the spec's statements instead of all of them.

    `rate` > 0 (operations/s of the client): an open loop. Operations are due by the schedule of
    `pgperf.core.schedule`, which begins `offset_ns` after the start. The window begins at the
    start and includes the lead-in. An operation that would begin more than `latency_limit_ns` late
    is skipped; 0: none is.
    """

    seq: int
    start_ns: int = 0
    lead_in_ops: int = 10
    lead_in_ns: int = 50_000_000
    window_ns: int = 0
    count: int = 0  # type: ignore[assignment]  # shadows tuple.count, which is not used
    statement: int = 0  # 1 for the first; 0: all
    rate: float = 0.0  # 0: closed loop
    schedule: str = "constant"
    seed: int = 0
    offset_ns: int = 0
    latency_limit_ns: int = 0


class Armed(NamedTuple):
    """Client to runner: the client has decoded the slice `seq` and waits for its start."""

    seq: int


class SliceReply(NamedTuple):
    """Client to runner, followed by `nbytes` of durations.

    Durations are chained: the first recorded operation began at `first_ns`, and each later one
    began when the one before it ended. So operation k ends at `first_ns + sum(durations[:k+1])`.
    The operation in progress when the window closes is completed and recorded. CPU times cover
    lead-in and window (`lead_in_ops + ops` operations). `capped`: the slice ended early, after
    MAX_SAMPLES operations, or MAX_PHASED_SAMPLES where it has phases.

    With several workers, `ops` and `rows` are their sums, and `first_ns` is the earliest. The
    durations of worker 0 come first, then those of worker 1, and so on: `worker_ops` of each, chained
    from its own `worker_first_ns`. Both lists are empty for one worker.

    For each of `phases`, as many numbers as durations follow them in the same order: the part of each
    duration that the phase took, ns.

    `window_ns` > 0: the length of the client's own window, in which all `ops` ended. Such a client
    may count operations without timing them: then `nbytes` is 0. `overran_ns` > 0: how much longer
    than its time another program ran, where start and operations do not explain it.

    `errors`: how many HTTP requests failed, by reason, of all that the slice made. They count as
    operations. `lengths`: the least and the greatest length of a body, bytes; empty where no request
    succeeded, and for all other operations.

    Of an open loop, `first_ns` is the start of the slice, and durations are not chained: there are
    `ops` + `skipped` in the order of the schedule, each from the intended start to the end, 0 where
    the operation was skipped. `backlog`: how many were due in the window and had not begun at its
    end.
    """

    seq: int
    ops: int
    rows: int | None  # None: not known
    lead_in_ops: int
    first_ns: int
    user_ns: int
    sys_ns: int
    capped: bool
    nbytes: int
    worker_ops: list[int] = []
    worker_first_ns: list[int] = []
    phases: list[str] = []
    window_ns: int = 0
    errors: dict[str, int] = {}
    lengths: list[int] = []
    skipped: int = 0
    backlog: int = 0
    overran_ns: int = 0


class Query(NamedTuple):
    """Runner to client: run one SQL text outside any slice and send its rows as text."""

    sql: str


class Rows(NamedTuple):
    """Client to runner: the answer to `Query`.

    Values are text, null for NULL; a command has no rows.
    """

    rows: list[list[str | None]]
    columns: list[str] = []


class Trace(NamedTuple):
    """Runner to client (Django only): run the operation once and report the statements that the
    cursor got.
    """


class Traced(NamedTuple):
    """Client to runner: the answer to `Trace`.

    The statements in order, with `sql` and `args` only.
    """

    statements: list[Statement]


class Instrument(NamedTuple):
    """Runner to client (pages only): run the operation so often with instruments, and as often
    without.
    """

    operations: int


class Instrumented(NamedTuple):
    """Client to runner: the answer to `Instrument`.

    The mean time of each part of an operation with instruments, and of an operation without, µs.
    """

    parts_us: dict[str, float]
    plain_us: float


class Bye(NamedTuple):
    """Runner to client: close the connection and exit 0."""


class Error(NamedTuple):
    """Client to runner, before it exits with EXIT_FAILED.

    `stage` is spec, connect, ready, query, trace, slice, or reconnect: connecting for an operation
    failed.
    """

    stage: str
    sqlstate: str
    message: str  # scrubbed: never contains the password


Message = (
    Spec
    | Ready
    | Slice
    | Armed
    | SliceReply
    | Query
    | Rows
    | Trace
    | Traced
    | Instrument
    | Instrumented
    | Bye
    | Error
)

_TYPES: dict[str, type[Message]] = {
    "spec": Spec,
    "ready": Ready,
    "slice": Slice,
    "armed": Armed,
    "slice_reply": SliceReply,
    "query": Query,
    "rows": Rows,
    "trace": Trace,
    "traced": Traced,
    "instrument": Instrument,
    "instrumented": Instrumented,
    "bye": Bye,
    "error": Error,
}
_NAMES = {cls: name for name, cls in _TYPES.items()}


def encode(message: Message) -> bytes:
    """One line of UTF-8 JSON with its newline."""
    fields = {name: _plain(value) for name, value in message._asdict().items()}
    body = {"type": _NAMES[type(message)], **fields}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """Decode one line.

    Raises ProtocolError for anything but a message, also for unknown fields and wrong types.
    """
    try:
        body = json.loads(line)
        cls = _TYPES[body.pop("type")]
        message = cls(
            **{name: _with_records(value, cls.__annotations__.get(name)) for name, value in body.items()}
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProtocolError(f"not a message of protocol {PROTOCOL}: {type(error).__name__}") from error
    for field, kind in cls.__annotations__.items():
        if not _fits(getattr(message, field), kind):
            raise ProtocolError(
                f"not a message of protocol {PROTOCOL}: {_NAMES[cls]}.{field} has the wrong type"
            )
    return message


def _plain(value: Any) -> Any:
    """Named tuples as JSON objects. Without this, they become JSON lists."""
    if isinstance(value, Bulk | Page):
        return value._asdict()
    if not isinstance(value, list):
        return value
    return [item._asdict() if isinstance(item, Statement) else item for item in value]


def _with_records(value: Any, kind: Any) -> Any:
    """Statements from the objects of a list, a Bulk or a Page from an object.

    Any other value stays as it is, and `_fits` refuses it.
    """
    if kind in (Bulk, Page) and isinstance(value, dict):
        return kind(**value)
    if kind != list[Statement] or not isinstance(value, list):
        return value
    return [Statement(**item) if isinstance(item, dict) else item for item in value]


def _fits(value: Any, kind: Any) -> bool:
    if kind is Any:
        return True
    if kind in (Statement, Bulk, Page):
        fields = kind.__annotations__.items()
        return type(value) is kind and all(_fits(getattr(value, name), k) for name, k in fields)
    if isinstance(kind, UnionType):
        return any(_fits(value, member) for member in get_args(kind))
    if get_origin(kind) is list:
        return isinstance(value, list) and all(_fits(item, get_args(kind)[0]) for item in value)
    if get_origin(kind) is dict:
        return isinstance(value, dict) and all(_fits(item, get_args(kind)[1]) for item in value.values())
    if kind is float:
        return type(value) in (int, float)
    return type(value) is (NoneType if kind is None else kind)


def read_message(stream: BinaryIO) -> Message | None:
    """The next message of a stream, None at its end.

    Raises ProtocolError for an incomplete or too long line.
    """
    line = stream.readline(MAX_LINE_BYTES)
    if not line:
        return None
    if not line.endswith(b"\n"):
        raise ProtocolError("an incomplete line" if len(line) < MAX_LINE_BYTES else "a line too long")
    return decode(line)


def is_libpq_variable(variable: str) -> bool:
    """Is it an environment variable of libpq, such as PGHOST?

    A site's own PG_X or PGPERF_X is not.
    """
    return variable.startswith("PG") and "_" not in variable


def connection_name(application: str, at: int) -> str:
    """application_name of one of several connections: the name itself, then .1, .2 and so on."""
    return f"{application}.{at}" if at else application


def scrub(text: str, secrets: Mapping[str, str]) -> str:
    """Replace every secret in `text`, plain or quoted, by its name in `secrets`.

    Empty secrets are skipped.
    """
    for name, secret in secrets.items():
        for form in _forms(secret):
            text = text.replace(form, f"<{name}>")
    return text


def _forms(secret: str) -> list[str]:
    """The forms of a secret in messages: connection strings, SQL, Python, JSON, URLs.

    The longest come first.
    """
    doubled = secret.replace("\\", "\\\\")
    quoted = {
        doubled.replace("'", "\\'"),
        doubled.replace('"', '\\"'),
        secret.replace("'", "''"),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    }
    plain = {secret, doubled, repr(secret)[1:-1], *quoted}
    escaped = {form.encode("ascii", "backslashreplace").decode() for form in plain}
    return sorted(filter(None, {*plain, *escaped, _percent(secret)}), key=len, reverse=True)


def _percent(secret: str) -> str:
    """Percent-encode all but letters, digits and _.-~."""
    return "".join(
        chr(byte) if (chr(byte).isalnum() and byte < 128) or chr(byte) in "_.-~" else f"%{byte:02X}"
        for byte in secret.encode(errors="replace")
    )
