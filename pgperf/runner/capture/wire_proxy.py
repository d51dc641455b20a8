"""A wire proxy: passes a client's connection on to the server and records the statements.

It listens on a Unix socket in a directory of its own, so that clients do not encrypt and no other
user can connect. To the server it uses TLS if the route requires it. It runs before anything is
timed, never during a slice. The recorded statements contain the values of the site's own queries:
they stay in this process's memory and appear in no error message.
"""

import socket
import ssl
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from pgperf.core import protocol, server_certificate
from pgperf.core.connection_errors import CLEAR_TEXT, shown
from pgperf.core.exceptions import ClientFailed, PgperfError, ProtocolError
from pgperf.core.records import Route
from pgperf.runner.authentication import SSL_REQUEST
from pgperf.runner.capture.pg_messages import (
    BackendParser,
    ExecutedStatement,
    FrontendParser,
    MessageSplitter,
    PgMessage,
    without_channel_binding,
)
from pgperf.runner.capture.tls_connection import TlsConnection

Connection = socket.socket | TlsConnection

_PORT = 5432  # only a part of the socket's name
_CONNECT_S = 10.0


class RefusedWrite(NamedTuple):
    """A statement that the server refused because it writes, and the server's words."""

    statement: str
    words: str


@dataclass(frozen=True)
class RecordedOperation:
    """The statements of one operation in order, and the number of rows that the server returned for
    each; and the writes that it refused. Of several connections that sent statements, those of the
    newest.
    """

    executed: tuple[ExecutedStatement, ...]
    rows: tuple[int, ...]
    refused: tuple[RefusedWrite, ...] = ()
    connections: int = 1


@dataclass(frozen=True)
class _Parsers:
    """Of one connection: of what its client sends, and of what its server answers."""

    frontend: FrontendParser = field(default_factory=FrontendParser)
    backend: BackendParser = field(default_factory=BackendParser)

    def ready(self) -> None:
        """All that was sent is answered: a statement that failed returned no rows, nor did those that
        the server skipped after it.
        """
        if self.backend.failed:
            self.backend.rows += [0] * (len(self.frontend.executed) - len(self.backend.rows))
            self.backend.failed = False


class WireProxy:
    """Listens for one client. Use as a context manager; then `route` leads through it."""

    def __init__(self, route: Route) -> None:
        self._upstream = route
        self._directory = tempfile.TemporaryDirectory(prefix="pgperf-proxy-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._sockets: list[Connection] = []
        self._connections: list[_Parsers] = []  # oldest first
        self._error = ""
        #: Since `reset`, in order.
        self.refused: list[RefusedWrite] = []
        self.route = replace(
            route, host=self._directory.name, port=_PORT, sslmode="disable", certificate_name=""
        )

    def reset(self) -> None:
        """Start a new record."""
        for each in self._connections:
            each.frontend.executed.clear()
            each.backend.rows.clear()
        self.refused.clear()

    def check(self) -> None:
        """Raises ClientFailed with the reason if the connection could not be followed."""
        if self._error:
            raise ClientFailed(f"the connection could not be followed: {self._error}")

    def recorded(self) -> RecordedOperation:
        """The record since `reset`. Raises ClientFailed if the connection could not be followed.

        Call it after the client has received its answers: the record is complete then.
        """
        self.check()
        used = [each for each in self._connections if each.frontend.executed]
        newest = used[-1] if used else _Parsers()
        executed, rows = newest.frontend.executed, newest.backend.rows
        return RecordedOperation(tuple(executed), tuple(rows), tuple(self.refused), len(used))

    def __enter__(self) -> Self:
        self._listener.bind(str(Path(self._directory.name) / f".s.PGSQL.{_PORT}"))
        self._listener.listen()
        threading.Thread(target=self._accept, name="pgperf-proxy", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._directory.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(client)
            threading.Thread(target=self._serve, args=(client,), name="pgperf-proxy", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Serve one connection until either side ends it."""
        try:
            server = connect(self._upstream)
        except (OSError, PgperfError) as error:
            self._error = f"the server cannot be reached ({_why(error)})"
            client.close()
            return
        self._sockets.append(server)
        parsers = _Parsers()
        self._connections.append(parsers)
        back = threading.Thread(
            target=self._relay_answers, args=(server, client, parsers), name="pgperf-proxy", daemon=True
        )
        back.start()
        self._relay_requests(client, server, parsers.frontend)

    def _relay_requests(self, client: socket.socket, server: Connection, parser: FrontendParser) -> None:
        """Client to server.

        Each message is recorded before it is passed on, so the record precedes the answer.
        """
        splitter = MessageSplitter(starting=True)
        with suppress(OSError):
            while data := client.recv(1 << 16):
                for message in self._messages(splitter, data):
                    if message.asks_for_encryption:
                        client.sendall(b"N")
                        continue
                    self._record(parser, message)
                    server.sendall(message.raw)
        _end(server)

    def _relay_answers(self, server: Connection, client: socket.socket, parsers: _Parsers) -> None:
        splitter = MessageSplitter(starting=False)
        with suppress(OSError):
            while data := server.recv(1 << 16):
                messages = [without_channel_binding(message) for message in self._messages(splitter, data)]
                for message in messages:
                    self._refuse_clear_text(message)
                    self._record(parsers.backend, message)
                    self._keep_refusal(message, parsers.frontend.executed)
                    if message.kind == "Z":
                        parsers.ready()
                client.sendall(b"".join(message.raw for message in messages))
        _end(client)

    def _messages(self, splitter: MessageSplitter, data: bytes) -> list[PgMessage]:
        try:
            return list(splitter.feed(data))
        except ProtocolError as error:
            self._error = str(error)
            raise ConnectionError from None

    def _refuse_clear_text(self, message: PgMessage) -> None:
        """The client is not asked, so it sends no password. Raises ConnectionError."""
        if message.asks_for_clear_text and not self._upstream.allow_cleartext_password:
            self._error = CLEAR_TEXT
            raise ConnectionError

    def _keep_refusal(self, message: PgMessage, executed: Sequence[ExecutedStatement]) -> None:
        """The client waits for this answer, so the statement is the newest one."""
        words = message.refused_write
        if words and executed:
            words = protocol.scrub(words, {"password": self._upstream.password})
            self.refused.append(RefusedWrite(executed[-1].text, words))

    def _record(self, parser: FrontendParser | BackendParser, message: PgMessage) -> None:
        try:
            parser.take(message)
        except ProtocolError as error:
            self._error = str(error)


def connect(route: Route) -> Connection:
    """A connection to the route's server, with TLS where its sslmode asks for it, ready for the
    startup message.

    Raises OSError, or ClientFailed where TLS is required and the server has none, or no certificate
    that libpq would accept.
    """
    if route.host.startswith("/") or route.sslmode in ("disable", "allow"):
        return _ready(_plain(route))
    try:
        return _ready(_encrypted(_plain(route), route))
    except (ClientFailed, ssl.SSLError):
        if route.sslmode != "prefer":
            raise
    return _ready(_plain(route))


def _why(error: Exception) -> str:
    """Our own words, the failed check of a certificate, or the kind of another error."""
    if isinstance(error, PgperfError):
        return str(error)
    return shown(str(error))[0] if isinstance(error, ssl.SSLError) else type(error).__name__


def _plain(route: Route) -> socket.socket:
    if not route.host.startswith("/"):
        return socket.create_connection((route.host, route.port), timeout=_CONNECT_S)
    plain = socket.socket(socket.AF_UNIX)
    plain.settimeout(_CONNECT_S)
    plain.connect(f"{route.host}/.s.PGSQL.{route.port}")
    return plain


def _ready(connection: Connection) -> Connection:
    connection.settimeout(None)
    return connection


def _encrypted(plain: socket.socket, route: Route) -> TlsConnection:
    with ExitStack() as unless_encrypted:
        unless_encrypted.enter_context(plain)
        plain.sendall(SSL_REQUEST)
        if plain.recv(1) != b"S":
            raise ClientFailed(f"sslmode: the server over {route.name} does not offer TLS")
        context = server_certificate.context(route.sslmode, route.sslrootcert)
        encrypted = TlsConnection(plain, context, route.tls_name)
        server_certificate.check_name(route.sslmode, route.tls_name, encrypted.getpeercert())
        unless_encrypted.pop_all()
    return encrypted


def _end(each: Connection) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
