"""Processes that are forked from one that has made their imports (`program`), for tests."""

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import IO, Self

PROGRAM = Path(__file__).with_name("program.py")
ROOT = PROGRAM.parents[2]
_ANSWER_BYTES = 20
_PR_SET_CHILD_SUBREAPER = 36
_one_at_a_time = Lock()


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
    """A process that has run some code, and the processes that it forks until the context ends."""

    def __init__(
        self, code: str, environment: Mapping[str, str], python: Sequence[str] = (sys.executable,),
        directory: Path = ROOT,
    ) -> None:  # fmt: skip
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [*python, str(PROGRAM), str(theirs.fileno()), code]
            self._process = subprocess.Popen(
                argv, pass_fds=[theirs.fileno()], cwd=directory, env=environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,  # of the same kind as those of the forked
            )  # fmt: skip

    def start(
        self, words: Sequence[str], stderr: IO[bytes], environment: Mapping[str, str] | None = None,
        directory: str | None = None,
    ) -> ForkedProcess:  # fmt: skip
        """A process of the program that `python` with these words runs. Its environment and its
        directory are the server's, if not others.
        """
        their_input, our_output = os.pipe()
        our_input, their_output = os.pipe()
        order = json.dumps([words, environment, directory])
        pid = self._answer(order, [their_input, their_output, stderr.fileno()])
        os.close(their_input)
        os.close(their_output)
        return ForkedProcess(pid, os.fdopen(our_output, "wb", 0), os.fdopen(our_input, "rb", 0))

    def _answer(self, order: str, streams: list[int]) -> int:
        with _one_at_a_time, _adopting():
            socket.send_fds(self._orders, [order.encode()], streams)
            pid = self._orders.recv(_ANSWER_BYTES)
        assert pid, "the fork server has ended"
        return int(pid)

    def stop(self) -> None:
        self._orders.shutdown(socket.SHUT_RDWR)  # a fork of this process may have the socket too
        self._orders.close()
        with self._process:
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def importing(*modules: str) -> str:
    """Code for a server."""
    return "".join(f"import {module}\n" for module in modules)


@contextmanager
def _adopting() -> Iterator[None]:
    """Meanwhile, this process becomes the parent of what its descendants leave behind."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
