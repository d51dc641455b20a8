"""A relay that simulates a distant database: it delays each direction by half the round-trip time.

    with DelayRelay("127.0.0.1", 5432, rtt_ms=45) as relay:
        relay.over(route)     # the same route, with the relay in between

The relay keeps order and bandwidth, and either side may close first. A client's first bytes arrive
one round trip later, as after a TCP handshake. The delay counts from when the kernel received the
bytes until the relay sends them, so its own work adds no time (docs/campaigns/simulated-delay.md
has the precision). The relay listens on loopback only, and ends with its parent. It connects to TCP
only: over a Unix socket, the server would take every client for the relay's own user. Its CPU time
counts with the process that measures. Standard library only.

`python -m pgperf.delay.relay --to HOST:PORT --rtt-ms MS` is the relay itself.
"""

import argparse
import errno
import heapq
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pgperf.core.accepting_address import accepting
from pgperf.core.delayed_routes import MOST_MS
from pgperf.core.exceptions import ClientFailed, InvalidDefinition
from pgperf.core.parent_death import die_with_parent
from pgperf.core.records import Route
from pgperf.core.timerfd import Timer

HOST = "127.0.0.1"
MAX_RTT_MS = MOST_MS
PROGRAM = "pgperf.delay.relay"
_START_S = 30.0
_LAST_PORT = 65535
_CHUNK = 1 << 18
#: The maximum of delayed bytes per direction: enough for 700 MB/s over 45 ms.
_MOST_HELD = 16 << 20
#: Linux's SO_TIMESTAMPNS, for which Python has no name: the time when the kernel received the data.
_STAMPED = 35
_STAMP = struct.Struct("qq")
#: A greater age means that the clock was set in the meantime.
_OLDEST_NS = 1_000_000_000
#: No descriptor is left for one more connection.
_USED_UP = (errno.EMFILE, errno.ENFILE)
#: The maximum time by which the timer is set early, and the maximum of one change of that time.
_MOST_LEAD_NS, _MOST_STEP_NS = 500_000, 20_000


class DelayRelay:
    """A relay process. Use as a context manager; then `port` on `HOST` leads to the database."""

    def __init__(self, host: str, port: int, rtt_ms: float, listen: int = 0) -> None:
        """`listen`: the port to listen on; 0: any free one.

        Raises InvalidDefinition for an invalid argument.
        """
        self.rtt_ms = _checked(rtt_ms)
        if not 0 <= listen <= _LAST_PORT:
            raise InvalidDefinition(f"port: choose 1 to {_LAST_PORT} to listen on, or 0 for a free one")
        self._to = f"{_checked_host(host)}:{port}"
        self.port = listen
        self._process: subprocess.Popen[bytes] | None = None

    def over(self, route: Route) -> Route:
        """The route through the relay. No password goes over it in clear text.

        The server's certificate is checked as without the relay: against the name of the database,
        not the relay's address.
        """
        name = route.tls_name if route.sslmode == "verify-full" else ""
        return replace(
            route, host=HOST, port=self.port, certificate_name=name, allow_cleartext_password=False,
            relayed_host=route.host,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def wait(self) -> None:
        """Wait until the relay ends. It does not end by itself."""
        assert self._process
        self._process.wait()

    def __enter__(self) -> Self:
        """Raises ClientFailed when the relay does not come up."""
        options = [f"--to={self._to}", f"--rtt-ms={self.rtt_ms}", f"--port={self.port}", "--lifeline"]
        self._process = subprocess.Popen(
            [*die_with_parent(), sys.executable, "-m", PROGRAM, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0, env=_environment(),
        )  # fmt: skip
        try:
            self.port = _announced(self._process)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            stream.close()  # type: ignore[union-attr]


def is_relay(pid: int) -> bool:
    """Is that process a relay of pgperf?

    It must not be mistaken for the pooler or server behind it.
    """
    try:
        return PROGRAM.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def _announced(process: subprocess.Popen[bytes]) -> int:
    """The port, which is the relay's first and only line."""
    assert process.stdout
    poller = select.poll()  # select() refuses descriptors from 1024 on
    poller.register(process.stdout, select.POLLIN)
    line = process.stdout.readline() if poller.poll(_START_S * 1000) else b""
    if not line.strip().isdigit():
        raise ClientFailed(
            "distance: the relay that simulates it did not start; its own error is printed above, or in the log"
            " of the worker"
        )
    return int(line)


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parent.parent.parent)
    return {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": root, "PYTHONSAFEPATH": "1"}


def _checked(rtt_ms: float) -> float:
    if not 0 <= rtt_ms <= MAX_RTT_MS:
        raise InvalidDefinition(f"rtt_ms: choose a round trip of 0 to {MAX_RTT_MS:g} ms")
    return rtt_ms


def _checked_host(host: str) -> str:
    """Refuse Unix sockets: with peer authentication, every client would log in as the relay's user."""
    if host.startswith("/"):
        raise InvalidDefinition(
            f"host: {host} is the directory of a Unix socket, which a relay would open to every user of this machine; "
            "name a route to the server's TCP port"
        )
    return host


# ---- the relay ----


@dataclass(eq=False)
class _End:
    """One of the two sockets of a connection. Its data goes to `peer`, after the delay."""

    sock: socket.socket
    counts_ns: int = 0  # earliest time at which data counts as received
    connecting: bool = False
    reading: bool = True
    held: int = 0  # bytes read but not yet sent to the peer
    outbox: deque[memoryview | None] = field(default_factory=deque)  # data that is due; None: end of data
    is_shut: bool = False
    is_gone: bool = False
    interest: int = -1

    peer: "_End" = field(init=False)

    def wants(self) -> int:
        """The epoll events to wait for."""
        reads = select.EPOLLIN if self.reading and self.held < _MOST_HELD else 0
        return reads | (select.EPOLLOUT if self.connecting or self.outbox else 0)


class RelayLoop:
    """The event loop: one thread, one epoll, and a timer in ns, because epoll's timeouts are in ms."""

    def __init__(self, listener: socket.socket, upstream: tuple[str, int], rtt_ms: float) -> None:
        self._listener = listener
        listener.setblocking(False)  # a client may have left already
        self._spare = socket.socket()  # its descriptor is used to refuse clients
        self._family, self._address = _resolved(*upstream)
        self._rtt_ns = round(rtt_ms * 1e6)
        self._queue: list[tuple[int, int, _End, memoryview | None]] = []  # due time, order, destination, data
        self._order = count()
        self._lead_ns = 0
        self._ends: dict[int, _End] = {}
        self._epoll = select.epoll()
        self._timer = Timer()
        self._epoll.register(self._timer.fd, select.EPOLLIN)
        self._epoll.register(listener, select.EPOLLIN)

    def serve(self, lifeline: int | None = None) -> None:
        """Serve until the lifeline closes."""
        if lifeline is not None:
            self._epoll.register(lifeline, select.EPOLLIN)
        while True:
            for fd, events in self._epoll.poll():
                if fd == lifeline:
                    return
                self._handle(fd, events)
            self._deliver()

    def _handle(self, fd: int, events: int) -> None:
        if fd == self._listener.fileno():
            self._accept()
        elif end := self._ends.get(fd):
            try:
                self._serve_end(end, events)
            except OSError:
                self._abandon(end)

    def _serve_end(self, end: _End, events: int) -> None:
        if end.connecting:
            error = end.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                raise OSError(error, os.strerror(error))
            end.connecting = False
        if end.reading and events & ~select.EPOLLOUT:
            self._read(end)
        if events & select.EPOLLOUT:
            self._flush(end)
        if events & select.EPOLLHUP and not end.reading:
            self._forget(end)  # both directions have ended, and epoll would report that again and again
        else:
            self._watch(end)

    def _accept(self) -> None:
        if not (found := self._accepted()):
            return
        client, server = found
        opens_ns = time.monotonic_ns() + self._rtt_ns
        near, far = _End(client, counts_ns=opens_ns), _End(server, connecting=True)
        near.peer, far.peer = far, near
        try:
            for end in (near, far):
                self._ends[end.sock.fileno()] = end
                end.sock.setblocking(False)
                end.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                end.sock.setsockopt(socket.SOL_SOCKET, _STAMPED, 1)
            with suppress(BlockingIOError):
                server.connect(self._address)
            for end in (near, far):
                self._watch(end)
        except OSError:
            self._abandon(near)

    def _accepted(self) -> tuple[socket.socket, socket.socket] | None:
        """The next client, and a socket for its server; None if the client has left, or descriptors
        are used up.
        """
        try:
            client, _ = self._listener.accept()
        except OSError as error:
            if error.errno in _USED_UP:
                self._turn_away()
            return None
        try:
            return client, socket.socket(self._family)
        except OSError:
            client.close()
            return None

    def _turn_away(self) -> None:
        """Accept and close one client: epoll would report a waiting client again and again."""
        self._spare.close()
        with suppress(OSError):
            self._listener.accept()[0].close()
        with suppress(OSError):
            self._spare = socket.socket()

    def _read(self, end: _End) -> None:
        try:
            data, ancillary, _, _ = end.sock.recvmsg(_CHUNK, socket.CMSG_SPACE(_STAMP.size))
        except BlockingIOError:
            return
        # Not before earlier data: the kernel stamps only some of the data that it returns together.
        end.counts_ns = max(_received_ns(ancillary), end.counts_ns)
        due = end.counts_ns + self._rtt_ns // 2
        end.held += len(data)
        end.reading = bool(data)
        heapq.heappush(self._queue, (due, next(self._order), end.peer, memoryview(data) if data else None))

    def _deliver(self) -> None:
        """Pass on the data that is due, and set the timer for the next."""
        while self._queue and self._queue[0][0] - self._lead_ns <= time.monotonic_ns():
            due, _, end, data = heapq.heappop(self._queue)
            if not end.is_gone:
                end.outbox.append(data)
                try:
                    self._flush(end)
                except OSError:
                    self._abandon(end)
                self._adjust_lead(due)
        self._timer.set(self._queue[0][0] - self._lead_ns if self._queue else 0)

    def _adjust_lead(self, due: int) -> None:
        """Set the timer earlier by the usual wake-up latency. Single outliers change it little."""
        late_ns = time.monotonic_ns() - due
        step = max(-_MOST_STEP_NS, min(late_ns // 8, _MOST_STEP_NS))
        self._lead_ns = max(0, min(self._lead_ns + step, self._rtt_ns // 8, _MOST_LEAD_NS))

    def _flush(self, end: _End) -> None:
        """Send the data that is due, as far as the socket accepts it.

        Then reading from the peer may resume.
        """
        while end.outbox and not end.connecting:
            data = end.outbox[0]
            if data is None:
                end.sock.shutdown(socket.SHUT_WR)
                end.is_shut = True
                end.outbox.clear()
                break
            try:
                sent = end.sock.send(data)
            except BlockingIOError:
                break
            end.peer.held -= sent
            if sent == len(data):
                end.outbox.popleft()
            else:
                end.outbox[0] = data[sent:]
        if end.is_shut and end.peer.is_shut:
            self._abandon(end)
        for each in (end, end.peer):
            self._watch(each)

    def _watch(self, end: _End) -> None:
        if end.is_gone or end.sock.fileno() not in self._ends or end.wants() == end.interest:
            return
        change = self._epoll.register if end.interest < 0 else self._epoll.modify
        wanted = end.wants()
        change(end.sock.fileno(), wanted)
        end.interest = wanted

    def _forget(self, end: _End) -> None:
        if self._ends.pop(end.sock.fileno(), None) and end.interest >= 0:
            self._epoll.unregister(end.sock.fileno())

    def _abandon(self, end: _End) -> None:
        """Close both sockets: both have ended, or one has failed."""
        for each in (end, end.peer):
            if not each.is_gone:
                self._forget(each)
                each.is_gone = True
                each.sock.close()


def _received_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The time when the kernel received the data, CLOCK_MONOTONIC; now if there is no stamp."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _STAMPED:
            seconds, ns = _STAMP.unpack(data[: _STAMP.size])
            age = time.time_ns() - seconds * 1_000_000_000 - ns
            return time.monotonic_ns() - max(0, min(age, _OLDEST_NS))
    return time.monotonic_ns()


def _resolved(host: str, port: int) -> tuple[int, Any]:
    """The family and address, looked up once for all connections."""
    found = socket.getaddrinfo(_checked_host(host), port, type=socket.SOCK_STREAM)
    return accepting([(each[0], each[4]) for each in found])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {PROGRAM}", description=__doc__)
    parser.add_argument("--to", required=True, metavar="HOST:PORT", help="the database")
    parser.add_argument("--rtt-ms", required=True, type=float, metavar="MS", help="round trip to add")
    parser.add_argument(
        "--port", type=int, default=0, help="where to listen (default: any free port, printed)"
    )
    parser.add_argument("--lifeline", action="store_true", help="end when standard input does")
    return parser.parse_args()


def main() -> int:
    """Serve until told to end. Prints the port it listens on."""
    options = _parse()
    host, _, port = options.to.rpartition(":")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        listener = socket.create_server((HOST, options.port), backlog=512)
        relay = RelayLoop(listener, (host, int(port)), _checked(options.rtt_ms))
    except (OSError, ValueError, OverflowError, InvalidDefinition) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1
    print(listener.getsockname()[1], flush=True)
    relay.serve(sys.stdin.fileno() if options.lifeline else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
