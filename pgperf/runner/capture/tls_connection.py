"""A TLS connection that one thread may read while another one writes.

OpenSSL takes one thread at a time, and Python's SSLSocket does not see to that: a write that meets
the reader at work on a TLS 1.3 session ticket waits for a message that never comes. Here, OpenSSL
works in memory, under a lock, and nobody holds the lock while waiting for the socket.
"""

import socket
import ssl
import threading
from types import TracebackType
from typing import Self

_CHUNK = 1 << 16


class TlsConnection:
    """TLS over a connected socket, which it closes."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, server_hostname: str) -> None:
        """Does the handshake. Raises OSError, of which ssl.SSLError is one."""
        self._socket = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        self._state = threading.Condition()  # guards OpenSSL's state; notified of incoming data
        self._sending = threading.Lock()  # keeps what is sent in order
        while not self._handshake_is_done():
            self._receive()

    def recv(self, size: int) -> bytes:
        """Wait for data. At most `size` bytes; none once the server has ended the connection."""
        while (data := self._decrypted(size)) is None:
            self._receive()
        return data

    def sendall(self, data: bytes) -> None:
        with self._sending:
            self._socket.sendall(self._encrypted(memoryview(data)))

    def getpeercert(self) -> dict[str, object]:
        """The server's, as `SSLSocket.getpeercert` gives it; empty if it was not verified."""
        return dict(self._tls.getpeercert() or {})

    def settimeout(self, timeout_s: float | None) -> None:
        self._socket.settimeout(timeout_s)

    def shutdown(self, how: int) -> None:
        self._socket.shutdown(how)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def _handshake_is_done(self) -> bool:
        """A refusal is sent to the server too, so that its log has the reason."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self._socket.sendall(self._outgoing.read())
        return True

    def _receive(self) -> None:
        """Wait for encrypted data. A failure ends the connection for who writes, too."""
        data = b""
        try:
            data = self._socket.recv(_CHUNK)
        finally:
            with self._state:
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
                self._state.notify_all()

    def _decrypted(self, size: int) -> bytes | None:
        """None: more data must be received first."""
        with self._state:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                return None
            except ssl.SSLEOFError:
                return b""

    def _encrypted(self, data: memoryview) -> bytes:
        with self._state:
            while data:
                try:
                    data = data[self._tls.write(data) :]
                except ssl.SSLWantReadError:  # only a part of a ticket has come
                    self._state.wait()
            return self._outgoing.read()
