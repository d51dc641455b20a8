"""One client process: start it, exchange messages within deadlines, end its whole process group."""

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pgperf.core import connection_errors, protocol
from pgperf.core.exceptions import ClientFailed, ProtocolError
from pgperf.core.records import Route

_PACKAGE_ROOT = str(Path(protocol.__file__).resolve().parent.parent.parent)
_STDERR_TAIL_BYTES = 2000
_GOODBYE_S = 2.0
POLL_S = 1.0

M = TypeVar("M", bound=protocol.Message)


_on_wait: ContextVar[Callable[[], None]] = ContextVar("look", default=lambda: None)


@contextmanager
def while_waiting(callback: Callable[[], None]) -> Iterator[None]:
    """While waiting for clients, call `callback` at least once a second.

    An exception that it raises ends the wait.
    """
    token = _on_wait.set(callback)
    try:
        yield
    finally:
        _on_wait.reset(token)


@dataclass(frozen=True)
class ProcessEnvironment:
    """The environment variables and the working directory of a client process."""

    environment: dict[str, str] = field(repr=False)
    directory: str


class ClientProcess:
    """A running client. Every wait has a deadline in seconds; after it, ClientFailed names the
    client.

    The kernel kills the client when the thread that created it ends.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        secret: str = "",
        process_environment: "ProcessEnvironment | None" = None,
    ) -> None:
        self.name = name
        self._secret = secret
        self._buffer = bytearray()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the client)
        around = process_environment or ProcessEnvironment(_clean_environment(), "/")
        self.spawned_ns = time.monotonic_ns()
        self._process = subprocess.Popen(
            [*_die_with_parent(), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            process_group=0,  # not a session of its own: autogroup would give each client a whole share
            env=around.environment,
            cwd=around.directory,
        )
        _leave_no_core(self.pid)  # before it receives any secret
        assert self._process.stdin
        assert self._process.stdout
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: protocol.Message) -> None:
        """Write one message. Raises ClientFailed if the client has ended."""
        data = protocol.encode(message)
        try:
            while data:
                data = data[os.write(self._stdin, data) :]
        except BrokenPipeError:
            raise self._gone() from None

    def expect(self, kind: type[M], timeout_s: float) -> M:
        """The next message, which must be of that kind.

        An Error or anything else raises ClientFailed.
        """
        message = protocol.decode(self._read_line(time.monotonic() + timeout_s))
        if isinstance(message, protocol.Error):
            raise self._failed(message)
        if not isinstance(message, kind):
            raise ProtocolError(f"{self.name}: expected {kind.__name__}, got {type(message).__name__}")
        return message

    def read_bytes(self, count: int, timeout_s: float) -> bytes:
        """Exactly `count` raw bytes that a message announced."""
        deadline = time.monotonic() + timeout_s
        while len(self._buffer) < count:
            self._fill(deadline)
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def goodbye(self) -> None:
        """Ask the client to end; kill the rest of its process group after 2 s."""
        try:
            self.send(protocol.Bye())
            self._process.wait(_GOODBYE_S)
        except (ClientFailed, subprocess.TimeoutExpired):
            pass
        self.kill()

    def kill(self) -> None:
        """End the whole process group, reap the client, close its pipes. Safe to call again."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            try:
                stream.close()  # type: ignore[union-attr]
            except BrokenPipeError:
                pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.goodbye() if kind is None else self.kill()

    def _read_line(self, deadline: float) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > protocol.MAX_LINE_BYTES:
                raise ProtocolError(f"{self.name}: sent a line of more than {protocol.MAX_LINE_BYTES} bytes")
            self._fill(deadline)
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return line

    def _fill(self, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        _on_wait.get()()
        while not poll.poll(min(POLL_S, max(0.0, deadline - time.monotonic())) * 1000):
            if time.monotonic() >= deadline:
                raise ClientFailed(f"{self.name}: no answer within its deadline")
            _on_wait.get()()
        chunk = os.read(self._stdout, 1 << 20)
        if not chunk:
            raise self._gone()
        self._buffer += chunk

    def _failed(self, error: protocol.Error) -> ClientFailed:
        text, sqlstate = error.message, error.sqlstate
        if error.stage == "connect":
            text, sqlstate = connection_errors.shown(text, sqlstate)
        return ClientFailed(f"{self.name}: {text}{_code(sqlstate)} (while: {error.stage})", sqlstate)

    def _gone(self) -> ClientFailed:
        """The error for a client that ended unexpectedly, with its last line on stderr."""
        try:
            code = self._process.wait(_GOODBYE_S)
        except subprocess.TimeoutExpired:
            return ClientFailed(f"{self.name}: closed its pipe but is still running")
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return ClientFailed(f"{self.name}: ended unexpectedly ({how}){self._last_stderr_line()}")

    def _last_stderr_line(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_TAIL_BYTES))
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return f": {protocol.scrub(lines[-1], {'password': self._secret})}" if lines else ""


def login(route: Route) -> dict[str, Any]:
    """The fields of a Spec for the address and the login."""
    names = ("host", "port", "dbname", "user", "password", "sslmode", "sslrootcert", "options")
    return {name: getattr(route, name) for name in names}


def site_environment() -> ProcessEnvironment:
    """The environment of this process without libpq's variables, its import path and its directory."""
    environment = {name: value for name, value in os.environ.items() if not protocol.is_libpq_variable(name)}
    path = [entry or os.getcwd() for entry in sys.path]
    return ProcessEnvironment(
        {
            **environment,
            "PYTHONPATH": os.pathsep.join(dict.fromkeys([*path, _PACKAGE_ROOT])),
            "PYTHONSAFEPATH": "1",
            "PYTHONUNBUFFERED": "1",
        },
        os.getcwd(),
    )


def _die_with_parent() -> list[str]:
    """The kernel kills the client when the thread that started it ends.

    It also ends when its stdin closes.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


def _leave_no_core(pid: int) -> None:
    """Disable core files: the client's memory holds the password."""
    try:
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    except ProcessLookupError:  # it has ended; the next wait for an answer reports that
        pass


def _clean_environment() -> dict[str, str]:
    """An environment without the site's PG*, HOME (.pgpass) and proxies, in which pgperf is
    importable.
    """
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "PYTHONPATH": _PACKAGE_ROOT,
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _code(sqlstate: str) -> str:
    return f" [{sqlstate}]" if sqlstate else ""
