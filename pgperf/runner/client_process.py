"""One client process: start it, exchange messages within deadlines, end its whole process group."""

import math
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pgperf.core import connection_errors, printable, protocol, sql_masking
from pgperf.core.exceptions import FEWER_ROWS, ClientFailed, OutOfMemory, ProtocolError
from pgperf.core.parent_death import die_with_parent
from pgperf.core.records import Route

#: The directory of the package pgperf.
PACKAGE_ROOT = str(Path(protocol.__file__).resolve().parent.parent.parent)
_STDERR_TAIL_BYTES = 2000
#: Of one that Python escapes: \U0001f600.
_MOST_BYTES_OF_A_CHARACTER = 10
#: The value of libpq's `require_auth` for a login that sends no password in clear text.
NOT_IN_CLEAR = "!password"
#: A client reads each message at once. A whole machine may be slow.
_TAKEN_S = 60.0
_GOODBYE_S = 2.0
#: What to do about a client that does not understand the runner's first message.
_OTHER_VERSION = "The client was built by another version of pgperf: run `manage.py pgperf build`"
#: pgperf does not kill a client that it waits for.
_KILLED_BY_ANOTHER = (
    "another program or a person killed it. The system's log may have its name, for example systemd-oomd or earlyoom,"
    " which end programs when memory is short. Give the machine more memory or choose fewer clients, then start the"
    " run again"
)
#: The highest score: without memory, the kernel ends clients first, and not the worker.
_OOM_SCORE = 1000
#: The name of an exception at the beginning of the last line of a traceback.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?=:|$)")
#: On stderr, from the C client, libpq, Python and C++.
_NO_MEMORY = ("no memory", "out of memory", "MemoryError", "bad_alloc")
_VM = ("VmData", "VmPeak", "VmSize")
#: A client that is late had little room if it could take less than this share of its memory. It
#: was refused more at once: drivers double their buffers.
_LITTLE_ROOM = 0.75
POLL_S = 1.0

M = TypeVar("M", bound=protocol.Message)


_on_wait: ContextVar[Callable[[], None]] = ContextVar("on_wait", default=lambda: None)


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


def look_up() -> None:
    """Call it now, where something else than a client is waited for."""
    _on_wait.get()()


@contextmanager
def also_while_waiting(callback: Callable[[], None]) -> Iterator[None]:
    """The same, besides the callback that is called already."""
    outer = _on_wait.get()

    def both() -> None:
        outer()
        callback()

    with while_waiting(both):
        yield


@dataclass(frozen=True)
class ProcessEnvironment:
    """The environment variables and the working directory of a client process."""

    environment: dict[str, str] = field(repr=False)
    directory: str


@dataclass(frozen=True)
class _Deadline:
    """`at`: a time of the monotonic clock, so many `seconds` after the wait began."""

    seconds: float
    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        return cls(seconds, time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        return max(0.0, self.at - time.monotonic())

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s" if self.seconds >= 10 else f"{self.seconds:.2g} s"


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
        self._secrets = {"password": secret}
        self._is_site = False  # does it run the site's own code?
        self._buffer = bytearray()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the client)
        around = process_environment or ProcessEnvironment(_clean_environment(), "/")
        self.spawned_ns = time.monotonic_ns()
        self._process = subprocess.Popen(
            [*die_with_parent(), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            process_group=0,  # not a session of its own: autogroup would give each client a whole share
            env=around.environment,
            cwd=around.directory,
        )
        _leave_no_core(self.pid)  # before it receives any secret
        #: Will the kernel end it before the worker when the machine is out of memory?
        self.ends_first = _end_first(self.pid)
        self._memory_bytes = 0  # that it may take for its operations; 0: no limit
        self._connection_mode = ""
        self._oom_kills = oom_kills()
        assert self._process.stdin
        assert self._process.stdout
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._stdin, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: protocol.Message, timeout_s: float = _TAKEN_S) -> None:
        """Write one message. Raises ClientFailed if the client has ended or does not read it."""
        if isinstance(message, protocol.Spec):
            self._memory_bytes = message.memory_bytes
            self._connection_mode = message.connection_mode
            self._secrets |= {"session": message.page.cookie.partition("=")[2]}
            self._is_site = message.site
        data, deadline = protocol.encode(message), _Deadline.after(timeout_s)
        while data:
            data = data[self._write(data, deadline) :]

    def expect(self, kind: type[M], timeout_s: float) -> M:
        """The next message, which must be of that kind.

        An Error or anything else raises ClientFailed.
        """
        message = protocol.decode(self._read_line(timeout_s))
        if isinstance(message, protocol.Error):
            raise self._failed(message)
        if not isinstance(message, kind):
            raise ProtocolError(f"{self.name}: expected {kind.__name__}, got {type(message).__name__}")
        return message

    def _write(self, data: bytes, deadline: _Deadline) -> int:
        """How many bytes the pipe took; 0 if it was full, and may take more now."""
        try:
            return os.write(self._stdin, data)
        except BlockingIOError:
            self._await(self._stdin, select.POLLOUT, deadline)
            return 0
        except BrokenPipeError:
            raise self._gone() from None

    def read_bytes(self, count: int, timeout_s: float) -> bytes:
        """Exactly `count` raw bytes that a message announced."""
        deadline = _Deadline.after(timeout_s)
        while len(self._buffer) < count:
            self._fill(deadline)
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def goodbye(self) -> None:
        """Ask the client to end; kill the rest of its process group after 2 s."""
        goodbye([self])

    def ask_to_end(self, timeout_s: float) -> None:
        with suppress(ClientFailed):
            self.send(protocol.Bye(), timeout_s)

    def end_by(self, deadline: float) -> None:
        """Wait until that time of the monotonic clock, then kill the rest of its process group."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        finally:
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

    def _read_line(self, timeout_s: float) -> bytes:
        deadline = _Deadline.after(timeout_s)
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > protocol.MAX_LINE_BYTES:
                raise ProtocolError(f"{self.name}: sent a line of more than {protocol.MAX_LINE_BYTES} bytes")
            self._fill(deadline)
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return line

    def _await(self, pipe: int, event: int, deadline: _Deadline) -> None:
        poll = select.poll()
        poll.register(pipe, event)
        look_up()
        while not poll.poll(min(POLL_S, deadline.left_s) * 1000):
            if not deadline.left_s:
                raise self._late(deadline)
            look_up()

    def _fill(self, deadline: _Deadline) -> None:
        self._await(self._stdout, select.POLLIN, deadline)
        chunk = os.read(self._stdout, 1 << 20)
        if not chunk:
            raise self._gone()
        self._buffer += chunk

    def _failed(self, error: protocol.Error) -> ClientFailed:
        text, sqlstate, stage = error.message, error.sqlstate, error.stage
        if stage == "reconnect":
            stage = f"connecting for an operation, connection mode {self._connection_mode}"
        if error.stage in ("connect", "reconnect"):
            text, sqlstate = connection_errors.shown(text, sqlstate)
        elif (text, sqlstate) == (protocol.OUT_OF_MEMORY, ""):
            return self._out_of_memory(f"while: {stage}")
        elif error.stage == "spec" and self._exit_code() == protocol.EXIT_PROTOCOL:
            text = f"{text}. {_OTHER_VERSION}"
        elif self._is_site and (sqlstate or text.startswith(protocol.OF_SERVER)):
            text = sql_masking.of_server(text, sqlstate)  # a raw layer's, which sends the site's values
        shown = printable.lines(f"{self.name}: {text}{_code(sqlstate)} (while: {stage})")
        return ClientFailed(shown, sqlstate)

    def _gone(self) -> ClientFailed:
        """The error for a client that ended unexpectedly, with its last line on stderr."""
        code = self._exit_code()
        if code is None:
            return ClientFailed(f"{self.name}: closed its pipe but is still running")
        how = f"signal {_signal(-code)}" if code < 0 else f"exit code {code}"
        last = self._last_stderr_line()
        if any(words in last for words in _NO_MEMORY):
            return self._out_of_memory(how)
        if code == -signal.SIGKILL:
            return self._killed(how)
        return ClientFailed(f"{self.name}: ended unexpectedly ({how}){self._quoted(last)}")

    def _killed(self, how: str) -> ClientFailed:
        if oom_kills() > self._oom_kills:
            return self._out_of_memory("the kernel ended it: the machine or its control group is full")
        return ClientFailed(f"{self.name}: ended unexpectedly ({how}): {_KILLED_BY_ANOTHER}")

    def _exit_code(self) -> int | None:
        """None if the client is still running after 2 s."""
        try:
            return self._process.wait(_GOODBYE_S)
        except subprocess.TimeoutExpired:
            return None

    def _late(self, deadline: _Deadline) -> ClientFailed:
        """The error for a missed deadline. A driver may wait for ever once it was refused memory."""
        missed = f"no answer within its deadline of {deadline}"
        if least_room_bytes(self.pid) < self._memory_bytes * _LITTLE_ROOM:
            return self._out_of_memory(f"{missed}, and little memory was left")
        return ClientFailed(f"{self.name}: {missed}")

    def _out_of_memory(self, how: str) -> OutOfMemory:
        limit = (
            f"the {self._memory_bytes >> 20} MiB that each client may take"
            if self._memory_bytes
            else "it got"
        )
        return OutOfMemory(f"{self.name}: out of memory ({how}): it needs more than {limit}. {FEWER_ROWS}")

    def _last_stderr_line(self) -> str:
        """Without secrets. The part of one that a cut leaves is no longer known as such, so of a line
        that is cut the first characters go, as many as a secret may have. Of a site's own, the whole
        line goes: it may begin with a value of a user.
        """
        longest = _MOST_BYTES_OF_A_CHARACTER * max(map(len, self._secrets.values()), default=0)
        begin = max(0, self._stderr.seek(0, os.SEEK_END) - _STDERR_TAIL_BYTES - longest)
        self._stderr.seek(begin)
        text = protocol.scrub(self._stderr.read().decode(errors="replace"), self._secrets)
        lines = text[longest if begin else 0 :].strip().splitlines()
        is_cut = bool(begin) and len(lines) == 1
        return "" if not lines or (is_cut and self._is_site) else lines[-1]

    def _quoted(self, line: str) -> str:
        """A line of stderr with a colon before it. What a site's own code wrote may hold its users'
        values: of that, the name of an exception only.
        """
        if self._is_site:
            found = _EXCEPTION.match(line)
            line = found[0] if found else ""
        said = printable.lines(line)
        return f": {said}" if said else ""


def goodbye(clients: Sequence[ClientProcess]) -> None:
    """Ask the clients to end, all before it waits for one; kill what is left after 2 s."""
    deadline = time.monotonic() + _GOODBYE_S
    with ExitStack() as ending:
        for client in clients:
            ending.callback(client.end_by, deadline)
        for client in clients:
            client.ask_to_end(max(0.0, deadline - time.monotonic()))


def kill(clients: Iterable[ClientProcess]) -> None:
    for client in clients:
        client.kill()


def _signal(number: int) -> str:
    """Its name, or its number: most of the real-time signals have no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def login(route: Route) -> dict[str, Any]:
    """The fields of a Spec for the address and the login."""
    names = (
        "host", "port", "dbname", "user", "password", "sslmode", "sslrootcert", "certificate_name", "options",
    )  # fmt: skip
    require_auth = "" if route.allow_cleartext_password else NOT_IN_CLEAR
    return {**{name: getattr(route, name) for name in names}, "require_auth": require_auth}


def site_environment() -> ProcessEnvironment:
    """The environment of this process without libpq's variables, its import path and its directory."""
    environment = {name: value for name, value in os.environ.items() if not protocol.is_libpq_variable(name)}
    path = [entry or os.getcwd() for entry in sys.path]
    return ProcessEnvironment(
        {
            **environment,
            "PYTHONPATH": os.pathsep.join(dict.fromkeys([*path, PACKAGE_ROOT])),
            "PYTHONSAFEPATH": "1",
            "PYTHONUNBUFFERED": "1",
        },
        os.getcwd(),
    )


def _leave_no_core(pid: int) -> None:
    """Disable core files: the client's memory holds the password."""
    try:
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    except ProcessLookupError:  # it has ended; the next wait for an answer reports that
        pass


def _end_first(pid: int) -> bool:
    """Make the kernel end this process first when memory runs out. Returns whether it will."""
    try:
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(_OOM_SCORE))
    except OSError:  # it has ended, or the system forbids it
        return False
    return True


def least_room_bytes(pid: int) -> float:
    """What the process could still take when it had most; infinite without a limit.

    The kernel keeps the peak of all its memory only. What was more then was data.
    """
    try:
        limit = resource.prlimit(pid, resource.RLIMIT_DATA)[0]
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        kib = {
            name: int(value.split()[0]) for name, _, value in (s.partition(":") for s in lines) if name in _VM
        }
    except (OSError, ValueError, LookupError):
        return math.inf
    if limit == resource.RLIM_INFINITY or len(kib) < len(_VM):
        return math.inf
    return limit - 1024 * (kib["VmData"] + kib["VmPeak"] - kib["VmSize"])


def oom_kills() -> int:
    """How many processes the kernel has ended for lack of memory since it started; 0 if unknown."""
    try:
        counters = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in counters if line.startswith("oom_kill "))


def _clean_environment() -> dict[str, str]:
    """An environment without the site's PG*, HOME (.pgpass) and proxies, in which pgperf is
    importable.
    """
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "PYTHONPATH": PACKAGE_ROOT,
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _code(sqlstate: str) -> str:
    return f" [{sqlstate}]" if sqlstate else ""
