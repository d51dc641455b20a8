"""A small web server for tests: each path answers in its own way, well or badly."""

import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

PAGE = b"<h1>page</h1>" * 100
_DRIP_S = 0.1
_CHUNK = bytes(1 << 20)


def answer(body: bytes = PAGE, status: str = "200 OK", *headers: str, announced: int | None = None) -> bytes:
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Length: {len(body) if announced is None else announced}",
        *headers,
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class WebServer:
    """Serves connections in threads, over TLS with a `certificate` (its file and its key's).

    `requests` are the heads of all requests so far; `connections` counts accepted connections.
    """

    def __init__(self, certificate: tuple[str, str] | None = None, *, keeps: bool = True) -> None:
        self.requests: list[str] = []
        self.connections = 0
        self.keeps = keeps
        #: The status line's end and the body of the next answers at /changing.
        self.changing = answer()
        self._context = None
        if certificate:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*certificate)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        self._over = False
        threading.Thread(target=self._accept, daemon=True).start()

    def drop_all(self) -> None:
        """Close every connection, as a server does with idle ones."""
        while self._open:
            _close(self._open.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._over = True
        _close(self._listener)
        self.drop_all()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._over:
                connection, _ = self._listener.accept()
                self.connections += 1
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ssl.SSLError):
            if self._context:
                connection = self._context.wrap_socket(connection, server_side=True)
                self._open.append(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while head := _head(connection):
                self.requests.append(head)
                self._answer(connection, head.split()[1])
                if not self.keeps:
                    break
        _close(connection)

    def _answer(self, connection: socket.socket, path: str) -> None:
        special: dict[str, Callable[[socket.socket], None]] = {
            "/endless": self._endless, "/drip": self._drip, "/silent": self._silent,
        }  # fmt: skip
        if path in special:
            return special[path](connection)
        if path == "/nothing":
            return _close(connection)
        connection.sendall(self.changing if path == "/changing" else ANSWERS.get(path, answer()))
        return None

    def _endless(self, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not self._over:
            connection.sendall(_CHUNK)

    def _drip(self, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not self._over:
            connection.sendall(b".")
            time.sleep(_DRIP_S)

    def _silent(self, connection: socket.socket) -> None:
        while not self._over and connection.recv(1):
            pass


ANSWERS = {
    "/502": answer(b"bad gateway", "502 Bad Gateway"),
    "/500": answer(b"error", "500 Internal Server Error"),
    "/304": answer(b"", "304 Not Modified"),
    "/redirect": answer(b"", "302 Found", "Location: /accounts/login/?next=/\x7f"),
    "/far": answer(b"", "302 Found", f"Location: /{'-' * 60}s3cret/of-a-session"),
    "/short": answer(announced=len(PAGE) + 1, status="200 OK") + b"",
    "/garbage": b"no HTTP at all\r\n\r\n",
}


def _head(connection: socket.socket) -> str:
    """The head of the next request; "" at the end of the connection, and for what is no HTTP."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        more = connection.recv(4096)
        data += more
        if not (more and data[:1].isupper()):
            return ""
    return data.decode()


def main() -> None:
    """Serve until stdin ends; print the port."""
    with WebServer() as server:
        print(server.port, flush=True)
        sys.stdin.read()


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        connection.close()


if __name__ == "__main__":
    main()
