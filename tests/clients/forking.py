"""Client processes that are forked from one that has made their imports (`forkserver`)."""

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from tests.clients.forkserver import ANSWER_BYTES

_PR_SET_CHILD_SUBREAPER = 36


class ForkedProcess:
    """A child of this process, with what tests use of subprocess.Popen."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self.returncode: int | None = None
        self._pidfd = os.pidfd_open(pid)

    def poll(self) -> int | None:
        return self._reap(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._pidfd], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        code = self._reap(0)
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
                os.close(self._pidfd)
        return self.returncode


class ForkServer:
    """A process with imports and variables, and the clients that it forks."""

    def __init__(
        self, options: Sequence[str], imports: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self._orders, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *options, "-m", "tests.clients.forkserver", str(theirs.fileno()), *imports],
                stdin=subprocess.PIPE,  # of the same kind as a client's
                stdout=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                cwd=Path(__file__).resolve().parents[2],
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **environment},
            )

    def start(self, argv: Sequence[str], stderr: IO[bytes]) -> ForkedProcess:
        """A client that runs a module with arguments."""
        their_input, our_output = os.pipe()
        our_input, their_output = os.pipe()
        with _adopting():
            socket.send_fds(
                self._orders, ["\0".join(argv).encode()], [their_input, their_output, stderr.fileno()]
            )
            pid = int.from_bytes(self._orders.recv(ANSWER_BYTES), "big")
        os.close(their_input)
        os.close(their_output)
        assert pid, "the fork server has ended"
        return ForkedProcess(pid, os.fdopen(our_output, "wb", 0), os.fdopen(our_input, "rb", 0))

    def stop(self) -> None:
        self._orders.close()
        with self._process:
            pass


def server(options: Sequence[str], imports: Sequence[str], environment: Mapping[str, str]) -> ForkServer:
    """The server with these, started when its first client is."""
    return _server(tuple(options), tuple(imports), tuple(environment.items()))


@cache
def _server(
    options: tuple[str, ...], imports: tuple[str, ...], environment: tuple[tuple[str, str], ...]
) -> ForkServer:
    started = ForkServer(options, imports, dict(environment))
    _servers.append(started)
    return started


_servers: list[ForkServer] = []


def stop_all() -> None:
    _server.cache_clear()
    while _servers:
        _servers.pop().stop()


@contextmanager
def _adopting() -> Iterator[None]:
    """Meanwhile, this process becomes the parent of what its descendants leave behind."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
