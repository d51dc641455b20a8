"""A program on the port of a PostgreSQL server that asks for passwords and shows them back."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

SSL_REQUEST = 80877103
CLEAR_TEXT, MD5, SASL = 3, 5, 10


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def authentication(code: int, more: bytes = b"") -> bytes:
    return message(b"R", struct.pack("!i", code) + more)


def error(text: str, sqlstate: str = "28P01", severity: str = "FATAL") -> bytes:
    fields = {b"S": severity, b"V": severity, b"C": sqlstate, b"M": text}
    return message(b"E", b"".join(key + value.encode() + b"\0" for key, value in fields.items()) + b"\0")


#: The ways in which it shows a password.
SHOWN: Mapping[str, Callable[[str], bytes]] = {
    "reversed": lambda secret: error(secret[::-1]),
    "in hexadecimal": lambda secret: error(secret.encode().hex()),
    "as SQLSTATE": lambda secret: error("no", sqlstate=secret[::-1]),
    "as severity": lambda secret: error("no", severity=secret[::-1]),
    "as libpq's own words": lambda secret: error(
        f'x\nconnection to server at "{secret[::-1]}", port 1 failed: Connection refused'
    ),
}


class Impostor:
    """Listens on `port` of 127.0.0.1, or on a Unix socket in `directory`.

    `ask` is sent after each startup message, and `show` makes the answer to a password. With
    `certificate` it offers TLS; `ask_encrypted` is then sent instead of `ask`. With `client_authority`
    it demands a client's certificate by this authority. `passwords` has what it received in clear
    text.
    """

    def __init__(
        self,
        ask: bytes = authentication(CLEAR_TEXT),
        show: Callable[[str], bytes] = SHOWN["reversed"],
        certificate: tuple[Path, Path] | None = None,
        ask_encrypted: bytes | None = None,
        directory: Path | None = None,
        client_authority: Path | None = None,
    ) -> None:
        self._ask, self._ask_encrypted = ask, ask if ask_encrypted is None else ask_encrypted
        self._show = show
        self._context = None
        if certificate:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*certificate)
            if client_authority:
                self._context.load_verify_locations(client_authority)
                self._context.verify_mode = ssl.CERT_REQUIRED
        self.passwords: list[str] = []
        self.startups: list[bytes] = []
        if directory:
            self.host, self.port = str(directory), 5432
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(directory / ".s.PGSQL.5432"))
            self._listener.listen()
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.host, self.port = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            client.settimeout(10)
            self._converse(client)
        except (OSError, struct.error):
            pass
        finally:
            client.close()

    def _converse(self, client: socket.socket) -> None:
        ask, startup = self._ask, _untyped(client)
        if struct.unpack_from("!i", startup)[0] == SSL_REQUEST:
            if not self._context:
                client.sendall(b"N")
            else:
                client.sendall(b"S")
                client, ask = self._context.wrap_socket(client, server_side=True), self._ask_encrypted
            startup = _untyped(client)
        self.startups.append(startup)
        client.sendall(ask)
        kind = client.recv(1)
        answer = _untyped(client)
        if kind == b"p" and ask == authentication(CLEAR_TEXT):
            secret = answer.rstrip(b"\0").decode()
            self.passwords.append(secret)
            client.sendall(self._show(secret))
        else:
            client.sendall(error("no"))
        client.recv(1)


def _untyped(client: socket.socket) -> bytes:
    """The body of a message after its letter."""
    (length,) = struct.unpack("!i", _exactly(client, 4))
    return _exactly(client, length - 4)


def _exactly(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = client.recv(count - len(data))
        if not chunk:
            raise ConnectionError
        data += chunk
    return data
