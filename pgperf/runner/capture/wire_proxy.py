"""A tap on the wire: a client connects to it as to a server, and what both sides say is followed on its way.

It listens on a Unix socket in a directory of its own, so that no client encrypts what it sends and nobody else can
connect; to the server it speaks TLS where the route asks for it. Used before anything is timed, never while it is.
What it sees holds the values of the site's own queries: it stays in this process's memory, and in no error.
"""

import socket
import ssl
import struct
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pgperf.core.exceptions import ClientFailed, PgperfError, ProtocolError
from pgperf.core.records import Route
from pgperf.runner.capture.pg_messages import (
    BackendParser,
    ExecutedStatement,
    FrontendParser,
    MessageSplitter,
    PgMessage,
    without_channel_binding,
)

_PORT = 5432  # a part of the socket's name, nothing more
_CONNECT_S = 10.0
_SSL_REQUEST = struct.pack("!ii", 8, 80877103)


@dataclass(frozen=True)
class RecordedOperation:
    """What one operation sent, in order, and the rows that the server answered to each."""

    executed: tuple[ExecutedStatement, ...]
    rows: tuple[int, ...]


class WireProxy:
    """Listens for one client at a time. Use as a context manager; then `route` leads through it."""

    def __init__(self, route: Route) -> None:
        self._upstream = route
        self._directory = tempfile.TemporaryDirectory(prefix="pgperf-tap-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._sockets: list[socket.socket] = []
        self._frontend, self._backend = FrontendParser(), BackendParser()
        self._trouble = ""
        self.route = replace(route, host=self._directory.name, port=_PORT, sslmode="disable")

    def reset(self) -> None:
        """Begin a new record."""
        self._frontend.executed.clear()
        self._backend.rows.clear()

    def recorded(self) -> RecordedOperation:
        """The record since `forget`. Raises ClientFailed when it could not be followed.

        Call it when the client has its answers: what it sent and got is then in the record.
        """
        if self._trouble:
            raise ClientFailed(f"the connection could not be followed: {self._trouble}")
        return RecordedOperation(tuple(self._frontend.executed), tuple(self._backend.rows))

    def __enter__(self) -> Self:
        self._listener.bind(str(Path(self._directory.name) / f".s.PGSQL.{_PORT}"))
        self._listener.listen()
        threading.Thread(target=self._accept, name="pgperf-tap", daemon=True).start()
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
            threading.Thread(target=self._serve, args=(client,), name="pgperf-tap", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """One connection, until either side ends it. A new one begins a new session."""
        try:
            server = connect(self._upstream)
        except (OSError, PgperfError) as error:
            self._trouble = f"the server cannot be reached ({type(error).__name__})"
            client.close()
            return
        self._sockets.append(server)
        self._frontend, self._backend = FrontendParser(), BackendParser()
        back = threading.Thread(target=self._answers, args=(server, client), name="pgperf-tap", daemon=True)
        back.start()
        self._requests(client, server)

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        """Client to server; noted before it is passed on, so that the record is complete when the answer is."""
        splitter, follow = MessageSplitter(starting=True), self._frontend
        with suppress(OSError):
            while data := client.recv(1 << 16):
                for message in self._messages(splitter, data):
                    if message.asks_for_encryption:
                        client.sendall(b"N")
                        continue
                    self._note(follow, message)
                    server.sendall(message.raw)
        _end(server)

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        splitter, follow = MessageSplitter(starting=False), self._backend
        with suppress(OSError):
            while data := server.recv(1 << 16):
                messages = [without_channel_binding(message) for message in self._messages(splitter, data)]
                for message in messages:
                    self._note(follow, message)
                client.sendall(b"".join(message.raw for message in messages))
        _end(client)

    def _messages(self, splitter: MessageSplitter, data: bytes) -> list[PgMessage]:
        try:
            return list(splitter.feed(data))
        except ProtocolError as error:
            self._trouble = str(error)
            raise ConnectionError from None

    def _note(self, follow: FrontendParser | BackendParser, message: PgMessage) -> None:
        try:
            follow.take(message)
        except ProtocolError as error:
            self._trouble = str(error)


def connect(route: Route) -> socket.socket:
    """A connection to the route's server, with TLS where its sslmode asks for it, ready for the startup message.

    Raises OSError, or ClientFailed where TLS is required and the server has none.
    """
    if route.host.startswith("/"):
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(_CONNECT_S)
        plain.connect(f"{route.host}/.s.PGSQL.{route.port}")
    else:
        plain = socket.create_connection((route.host, route.port), timeout=_CONNECT_S)
        if route.sslmode not in ("disable", "allow"):
            plain = _encrypted(plain, route)
    plain.settimeout(None)
    return plain


def _encrypted(plain: socket.socket, route: Route) -> socket.socket:
    plain.sendall(_SSL_REQUEST)
    if plain.recv(1) == b"S":
        return _context(route).wrap_socket(plain, server_hostname=route.host)
    if route.sslmode == "prefer":
        return plain
    plain.close()
    raise ClientFailed(f"sslmode: the server over {route.name} does not offer TLS")


def _context(route: Route) -> ssl.SSLContext:
    """As libpq checks: nothing for prefer and require, the chain for verify-ca, the name too for verify-full."""
    context = ssl.create_default_context(cafile=route.sslrootcert or None)
    context.check_hostname = route.sslmode == "verify-full"
    context.verify_mode = ssl.CERT_REQUIRED if route.sslmode.startswith("verify") else ssl.CERT_NONE
    return context


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
