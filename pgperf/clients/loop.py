"""The five steps of every Python client: spec, connect, ready, slices, bye.

A client program provides a class for its driver; `main` does the rest. This module imports little,
because the start-up time of a client is one of its results.
"""

import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from time import monotonic_ns
from typing import Any, BinaryIO, NoReturn, Protocol

from pgperf import __version__
from pgperf.clients import memory_limit, open_loop
from pgperf.clients.timed_loop import Operation, new_stamps, run_slice
from pgperf.core import protocol
from pgperf.core.exceptions import InvalidDefinition, PgperfError, ProtocolError, ReconnectFailed

# A file that cannot exist: the password comes from the spec or not at all.
_NO_PASSFILE = "/dev/null/none"
_MESSAGE_CHARACTERS = 2000
#: Ten more operations that are slower would only delay the run.
_SLOW_US = 1e6
_KNOWS_REQUIRE_AUTH = 160000
_PERSISTENT = protocol.CONNECTION_MODES[0]
_DRIVERS = ("psycopg", "psycopg2", "psycopg_pool", "asyncpg")


class Client(Protocol):
    """The interface of a layer's client. Any exception ends the client with an `error` message.

    A client with other connection modes than persistent is a `ReconnectingClient`, unless it says by
    `runs_tool` that another program makes its load, all workers included: such a client has no cold
    phases and counts no rows. One without rows to count says so by `counts_rows`. One with
    `is_http` connects in its first operation, and times phases on a kept connection too.
    """

    def load(self, spec: protocol.Spec) -> None:
        """Import what is needed before connecting. The start-up time ends when this returns."""

    def connect(self, spec: protocol.Spec) -> None:
        """Open the one connection."""

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        """A callable that runs the statements once, reads every value and returns the number of
        rows.

        `other`: run the statements of the second query of the cold phases instead.
        """

    def query(self, sql: str) -> protocol.Rows:
        """Run one SQL text and return its rows as text."""

    def versions(self) -> dict[str, str]:
        """Versions of the software in use, e.g. {"driver": "psycopg", "libpq": "18.6"}."""

    @property
    def backend_pid(self) -> int:
        """The pid of the backend as the server reports it; 0 if there is none."""

    @property
    def server_version(self) -> str:
        """The server's version as it reports it."""

    def close(self) -> None:
        """Close the connection."""


class ReconnectingOperation(Protocol):
    """An operation that takes a connection, works, and gives it back, in timed steps."""

    def __call__(self) -> int: ...

    def connect(self) -> None:
        """Take a connection, as the operation does. Raises ReconnectFailed."""

    def close(self) -> None:
        """Give the connection back, as the operation does."""


class ReconnectingClient(Client, Protocol):
    """A client that can connect for each operation.

    There, `operation` works on the connection that is open when it is called.
    """

    connection_modes: tuple[str, ...]

    def reconnecting(self, operation: Operation) -> ReconnectingOperation:
        """The same operation, over a connection of its own each time, as the spec says."""


class _EndConversation(Exception):
    """Ends the conversation with an exit code."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code


def main(make_client: Callable[[BinaryIO], Client]) -> NoReturn:
    """Run the client, then end the process with its exit code.

    `make_client` makes the client; its argument is the stream of replies.
    """
    clean_environment()
    _wake_on_time()
    replies = keep_stdout()
    exit_code = serve(make_client(replies), sys.stdin.buffer, replies)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    # Not sys.exit: a thread or a broken pipe of the driver or the site could change the exit code.
    os._exit(exit_code)


def serve(client: Client, requests: BinaryIO, replies: BinaryIO) -> int:
    """Hold the whole conversation; returns the exit code."""
    conversation = _Conversation(client, requests, replies)
    try:
        conversation.hold()
    except _EndConversation as leave:
        return leave.exit_code
    finally:
        conversation.close()


def clean_environment() -> None:
    """Remove libpq's variables, so that only the spec sets the address.

    Set the time zone of sessions to UTC.
    """
    for name in filter(protocol.is_libpq_variable, list(os.environ)):
        del os.environ[name]
    os.environ["PGTZ"] = "UTC"


def _wake_on_time() -> None:
    """Let sleeps of this process, and of threads that it starts, end within a nanosecond of their time
    instead of 50 µs, where the kernel lets us say so.
    """
    with suppress(OSError), open("/proc/self/timerslack_ns", "w") as slack:
        slack.write("1")


def keep_stdout() -> BinaryIO:
    """Return a stream to the current stdout, and redirect stdout to stderr.

    A stray print cannot corrupt a reply then.
    """
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return replies


def given(spec: protocol.Spec, other: bool) -> list[protocol.Statement]:
    """The statements to run.

    Raises InvalidDefinition if there are none, or if their values cannot be sent separately.
    """
    found = spec.other_statements if other else spec.statements
    if not found:
        raise InvalidDefinition("statements: none given; this layer runs SQL, so give the workload some")
    if spec.mode != "simple" and any(each.args is None and each.args_text for each in found):
        raise InvalidDefinition(
            f"args: mode {spec.mode} sends values separately from the text, but the type of one value (such as a date,"
            " a decimal or a UUID) is known only as part of the text; choose mode simple, or leave this layer out"
        )
    return found


def statements(spec: protocol.Spec, other: bool) -> list[tuple[str, list[Any] | None]]:
    """The text and arguments of each statement for a DB-API driver.

    If the arguments are None, the driver sends the text unchanged.
    """
    return [
        (each.literal, None) if each.args is None else (each.sql, each.args) for each in given(spec, other)
    ]


def login(spec: protocol.Spec, libpq_version: int) -> dict[str, Any]:
    """Connection keywords for a driver on that libpq (180006 is 18.6), all of them explicit."""
    certificates = {"sslrootcert": spec.sslrootcert} if spec.sslrootcert else {}
    knows = spec.require_auth and libpq_version >= _KNOWS_REQUIRE_AUTH
    return {
        **certificates,
        **({"require_auth": spec.require_auth} if knows else {}),
        **_address(spec),
        "port": spec.port,
        "dbname": spec.dbname,
        "user": spec.user,
        "password": spec.password,
        "sslmode": spec.sslmode,
        "connect_timeout": spec.connect_timeout_s,
        "application_name": spec.application_name,
        "options": spec.options,
        "gssencmode": "disable",
        "client_encoding": "UTF8",
        "passfile": _NO_PASSFILE,
    }


def _address(spec: protocol.Spec) -> dict[str, str]:
    """With both keywords, libpq connects to `hostaddr`, and checks the certificate against `host`."""
    return (
        {"host": spec.certificate_name, "hostaddr": spec.host}
        if spec.certificate_name
        else {"host": spec.host}
    )


def traced(statements: list[protocol.Statement]) -> protocol.Traced:
    """The answer to `Trace`: without statements if no message can hold them. The wire has them too."""
    found = protocol.Traced(statements)
    return found if len(protocol.encode(found)) <= protocol.MAX_LINE_BYTES else protocol.Traced([])


class _Conversation:
    def __init__(self, client: Client, requests: BinaryIO, replies: BinaryIO) -> None:
        self._client, self._requests, self._replies = client, requests, replies
        self._stage, self._secrets = "spec", {"password": ""}
        self._reconnecting: ReconnectingOperation | None = None
        self._runs_tool: bool = getattr(client, "runs_tool", False)
        self._is_http: bool = getattr(client, "is_http", False)
        self._counts_rows: bool = not self._runs_tool and getattr(client, "counts_rows", True)

    def hold(self) -> NoReturn:
        try:
            spec = self._take_spec()
            operation = self._connect(spec)
            self._serve_requests(spec, operation)
        except _EndConversation:
            raise
        except ProtocolError as error:
            self._report(error)
            raise _EndConversation(protocol.EXIT_PROTOCOL) from None
        except Exception as error:
            self._report(error)
            raise _EndConversation(protocol.EXIT_FAILED) from None

    def close(self) -> None:
        _quietly(self._client.close)

    def _take_spec(self) -> protocol.Spec:
        spec = self._next()
        if not isinstance(spec, protocol.Spec):
            raise ProtocolError("the first message must be a spec")
        if spec.protocol != protocol.PROTOCOL:
            raise ProtocolError(f"protocol: this client speaks version {protocol.PROTOCOL}")
        self._secrets = {"password": spec.password, "session": spec.page.cookie.partition("=")[2]}
        if spec.mode not in protocol.MODES:
            raise PgperfError("mode: choose simple, extended or prepared")
        known = getattr(self._client, "connection_modes", (_PERSISTENT,))
        if spec.connection_mode not in known:
            raise PgperfError(f"connection_mode: this client knows {', '.join(known)} only")
        _check_conditions(spec)
        if spec.workers < 1:
            raise PgperfError("workers: choose 1 or more")
        if spec.workers > 1 and spec.connection_mode != _PERSISTENT and not self._runs_tool:
            raise PgperfError("workers: several of them keep their connections; choose persistent")
        if spec.runner_pid and os.getppid() != spec.runner_pid:
            raise _EndConversation(protocol.EXIT_OK)
        return spec

    def _connect(self, spec: protocol.Spec) -> Operation:
        self._client.load(spec)
        self._stage = "connect"
        phases: dict[str, float] = {}
        if spec.spawned_ns:
            phases["startup_us"] = (monotonic_ns() - spec.spawned_ns) / 1000
        several = spec.workers > 1 and not self._runs_tool
        workers = self._have_workers(spec) if several else None
        connect_us = _timed_us(lambda: self._client.connect(spec))
        if not self._is_http:
            phases["connect_us"] = connect_us
        if workers:
            workers.connect_others()
        self._stage = "ready"
        self._memory_bytes = memory_limit.limit(spec.memory_bytes)
        operation = self._client.operation(spec)
        cold = spec.cold and not self._runs_tool
        if cold:
            self._run_cold(spec, operation, phases)
        rows = operation()
        if workers:
            workers.run_others()
        self._end_transaction(spec)
        if spec.connection_mode != _PERSISTENT and not self._runs_tool:
            self._reconnecting = operation = self._client.reconnecting(operation)  # type: ignore[attr-defined]
        phased = bool(self._reconnecting) or self._is_http
        self._stamps = [] if self._runs_tool else new_stamps(spec.workers, phased)
        self._send_ready(rows, phases if cold else {})
        return operation

    def _have_workers(self, spec: protocol.Spec) -> Any:
        """The client's workers, which take its place. Only a client that has them imports them."""
        workers = import_module("pgperf.clients.workers").of(self._client, spec)
        self._client = workers
        return workers

    def _end_transaction(self, spec: protocol.Spec) -> None:
        """Commit what the driver left open; slices and other orders begin outside of a transaction."""
        if spec.transaction == "autocommit":
            return
        commit: Callable[[], None] | None = getattr(self._client, "end_transaction", None)
        if commit:
            commit()

    def _run_cold(self, spec: protocol.Spec, operation: Operation, phases: dict[str, float]) -> None:
        phases["first_us"] = _timed_us(operation)
        phases["second_us"] = _timed_us(operation)
        if phases["second_us"] <= _SLOW_US:
            phases["next_ten_us"] = _timed_us(lambda: [operation() for _ in range(10)])
        if spec.other_orm or spec.other_statements:
            other = self._client.operation(spec, other=True)
            phases["other_first_us"] = _timed_us(other)
            phases["other_second_us"] = _timed_us(other)

    def _send_ready(self, rows: int, phases: dict[str, float]) -> None:
        gc.collect()
        gc.freeze()
        ready = protocol.Ready(
            pid=os.getpid(),
            backend_pid=self._client.backend_pid,
            versions={"pgperf": __version__, "python": sys.version.split()[0], **self._client.versions()},
            server_version=self._client.server_version,
            rows_per_op=rows if self._counts_rows else None,
            memory_bytes=self._memory_bytes,
            **phases,
        )
        if self._reconnecting:
            self._reconnecting.close()
        self._send(ready)

    def _serve_requests(self, spec: protocol.Spec, operation: Operation) -> NoReturn:
        while True:
            self._stage = "slice"
            request = self._next()
            match request:
                case protocol.Slice():
                    self._serve_slice(spec, operation, request)
                case protocol.Query():
                    self._stage = "query"
                    rows = self._query(request.sql)
                    self._end_transaction(spec)
                    self._send(rows)
                case protocol.Trace():
                    self._stage = "trace"
                    self._send(traced(self._trace(operation)))
                case protocol.Instrument():
                    self._stage = "trace"
                    self._send(self._instrumented(operation, request.operations))
                case protocol.Bye():
                    raise _EndConversation(protocol.EXIT_OK)
                case _:
                    raise ProtocolError(f"a client takes no {type(request).__name__} here")

    def _query(self, sql: str) -> protocol.Rows:
        if not self._reconnecting:
            return self._client.query(sql)
        self._reconnecting.connect()
        rows = self._client.query(sql)
        self._reconnecting.close()
        return rows

    def _trace(self, operation: Operation) -> list[protocol.Statement]:
        trace: Callable[[Operation], list[protocol.Statement]] | None = getattr(self._client, "trace", None)
        if trace is None:
            raise PgperfError("trace: only the Django client can record the arguments of its cursor")
        return trace(operation)

    def _instrumented(self, operation: Operation, count: int) -> protocol.Instrumented:
        parted: Callable[[Operation, int], protocol.Instrumented] | None = getattr(
            self._client, "instrumented", None
        )
        if parted is None or count < 1:
            raise PgperfError(
                "instrument: only the client of pages has instruments; give 1 operation or more"
            )
        return parted(operation, count)

    def _serve_slice(self, spec: protocol.Spec, operation: Operation, request: protocol.Slice) -> None:
        _check_slice(request)
        if request.statement:
            operation = self._single(spec, request.statement)
        if request.rate and self._runs_tool:
            raise PgperfError("rate: another program makes this client's load, and keeps to no rate")
        arrivals = open_loop.Arrivals(request) if request.rate else None
        if request.start_ns:
            self._send(protocol.Armed(request.seq))
        timed = (
            open_loop.run_slice(operation, arrivals)
            if arrivals
            else run_slice(operation, request, self._stamps)
        )
        measured = timed._asdict()
        self._end_transaction(spec)
        durations = measured.pop("durations")
        if not self._counts_rows:
            measured["rows"] = None
        self._send(protocol.SliceReply(seq=request.seq, nbytes=len(durations), **measured), durations)

    def _single(self, spec: protocol.Spec, number: int) -> Operation:
        """An operation that runs one of the spec's statements."""
        plain = spec.connection_mode == _PERSISTENT and spec.workers == 1 and not spec.bulk.kind
        if self._runs_tool or not plain or number > len(spec.statements):
            raise PgperfError("statement: this client runs its operations as a whole only")
        return self._client.operation(spec._replace(statements=[spec.statements[number - 1]]))

    def _next(self) -> protocol.Message:
        message = protocol.read_message(self._requests)
        if message is None:
            raise _EndConversation(protocol.EXIT_OK)
        return message

    def _send(self, message: protocol.Message, payload: bytes = b"") -> None:
        try:
            self._replies.write(protocol.encode(message) + payload)
            self._replies.flush()
        except BrokenPipeError:
            raise _EndConversation(protocol.EXIT_OK) from None

    def _report(self, error: Exception) -> None:
        memory_limit.lift()
        if isinstance(error, ReconnectFailed) and isinstance(error.__cause__, Exception):
            self._stage, error = "reconnect", error.__cause__
        describe_error: Callable[[Exception], str] = getattr(self._client, "describe", describe)
        exhausted = memory_limit.is_reached(error)
        text = protocol.OUT_OF_MEMORY if exhausted else describe_error(error)
        message = protocol.scrub(text, self._secrets)[:_MESSAGE_CHARACTERS]
        message = message.encode(errors="replace").decode()
        connecting = self._stage in ("connect", "reconnect")
        stage = "spec" if connecting and not is_of_connection(error) else self._stage
        _quietly(lambda: print(f"pgperf: {stage}: {message}", file=sys.stderr))
        self._send(protocol.Error(stage, "" if exhausted else sqlstate(error), message))


def _check_slice(request: protocol.Slice) -> None:
    if any(number < 0 for number in request if not isinstance(number, str)):
        raise ProtocolError("a slice has no negative numbers")
    if request.rate and not protocol.MIN_RATE <= request.rate <= protocol.MAX_RATE:
        raise ProtocolError(f"rate: choose 0, or {protocol.MIN_RATE} to {protocol.MAX_RATE} operations/s")
    if request.schedule not in protocol.SCHEDULES:
        raise ProtocolError(f"schedule: choose {' or '.join(protocol.SCHEDULES)}")


def _check_conditions(spec: protocol.Spec) -> None:
    for name, value, known in (
        ("row_type", spec.row_type, protocol.ROW_TYPES),
        ("transaction", spec.transaction, protocol.TRANSACTIONS),
        ("bulk.api", spec.bulk.api, protocol.BULK_APIS),
        ("bulk.kind", spec.bulk.kind, ("", *protocol.BULK_KINDS)),
    ):
        if value not in known:
            raise PgperfError(f"{name}: choose {' or '.join(filter(None, known))}")
    if spec.connection_mode != _PERSISTENT and (spec.bulk.kind or spec.transaction != "autocommit"):
        raise PgperfError("connection_mode: a bulk operation or an open transaction needs persistent")


def describe(error: Exception) -> str:
    """The error message: the server's own if there is one, without the statement that it quotes."""
    for cause in _causes(error):
        primary = getattr(getattr(cause, "diag", None), "message_primary", None)
        if primary:
            return str(primary)
    known = isinstance(error, PgperfError) or _sqlstate(error) is not None
    text = str(error).strip()
    return text if known and text else f"{type(error).__name__}: {text}".rstrip(": ")


def is_of_connection(error: Exception) -> bool:
    """Is it an error on connecting, whose text a server may have written?

    A driver's ProgrammingError without SQLSTATE precedes the connection: it does not know a
    keyword.
    """
    unknown_keyword = any(type(cause).__name__ == "ProgrammingError" for cause in _causes(error))
    return bool(sqlstate(error)) or (is_of_driver(error) and not unknown_keyword)


def is_of_driver(error: Exception) -> bool:
    """Did a driver or the system raise it?"""
    return any(
        isinstance(cause, OSError | EOFError) or type(cause).__module__.partition(".")[0] in _DRIVERS
        for cause in _causes(error)
    )


def sqlstate(error: Exception) -> str:
    """The SQLSTATE of the server's error, five characters; "" if there is none."""
    return next((code for cause in _causes(error) if (code := _sqlstate(cause))), "")


def _sqlstate(error: BaseException) -> str | None:
    return getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)


def _causes(error: BaseException) -> list[BaseException]:
    """The error, and the driver's own error if Django wrapped it."""
    return [error, error.__cause__] if error.__cause__ else [error]


def _timed_us(step: Callable[[], Any]) -> float:
    before = monotonic_ns()
    step()
    return (monotonic_ns() - before) / 1000


def _quietly(step: Callable[[], None]) -> None:
    try:
        step()
    except Exception:
        pass
