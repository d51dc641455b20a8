"""A TCP proxy of one test's own: it can be cut, and it keeps what the client sent."""

import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Proxy:
    """Forwards connections on `port` to a port of this machine."""

    def __init__(self, target_port: int) -> None:
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._sent = bytearray()
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)

    def forget(self) -> None:
        """Begin a new record of what the client sends."""
        self._sent.clear()

    def messages(self) -> list[tuple[str, bytes]]:
        """What the client sent since `forget`: type and body of each message of PostgreSQL's
        protocol.
        """
        found, at = [], 0
        while at < len(self._sent):
            kind, length = struct.unpack_from("!cI", self._sent, at)
            found.append((kind.decode(), bytes(self._sent[at + 5 : at + 1 + length])))
            at += 1 + length
        return found

    def cut(self) -> None:
        """End all connections, in both directions."""
        for each in self._sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept()
        self._threads[0].join()
        self.cut()
        for thread in self._threads[1:]:
            thread.join()
        for each in (self._listener, *self._sockets):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            self._sockets += [client, server]
            requests, answers = self.pumps()
            for pair in ((client, server, requests), (server, client, answers)):
                self._start(_pump, *pair)

    def _start(self, target: Callable[..., None], *args: object) -> None:
        self._threads.append(threading.Thread(target=target, args=args, daemon=True))
        self._threads[-1].start()

    def pumps(self) -> tuple["Pump", "Pump"]:
        """What one connection's bytes become on their way: the client's, and the server's."""
        return self._record, bytes

    def _record(self, data: bytes) -> bytes:
        self._sent.extend(data)
        return data


#: Takes the bytes of one direction as they come and returns what to pass on.
Pump = Callable[[bytes], bytes]


def _pump(source: socket.socket, sink: socket.socket, change: Pump) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(change(data))
        sink.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
