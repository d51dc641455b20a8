"""Drives one client by hand, byte by byte where a test wants that; every wait has a deadline."""

import os
import select
import subprocess
import sys
import tempfile
import time
from array import array
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypeVar

from django.conf import settings

from pgperf.core import protocol, sql_parameters
from pgperf.core.layers import LAYERS, calls_orm, is_async
from pgperf.core.records import Route, WorkloadDefinition
from tests.forking import ROOT, ForkedProcess, ForkServer, importing

DEADLINE_S = 60.0

#: Deprecated calls of our own are errors, as in the tests' own process.
_STRICT = [
    f"-Werror::{warning}:{module}"
    for warning in ("DeprecationWarning", "PendingDeprecationWarning")
    for module in (
        "__main__",
        *(
            ".".join(each.relative_to(ROOT).with_suffix("").parts)
            for each in (ROOT / "pgperf/clients").rglob("*.py")
        ),
    )
]

M = TypeVar("M", bound=protocol.Message)
Process = subprocess.Popen[bytes] | ForkedProcess


@dataclass(frozen=True)
class Subject:
    """One layer in one mode. `module` is the Python program, "" for the C client."""

    layer: str
    mode: str
    module: str
    name: str = ""

    def __str__(self) -> str:
        return self.name or f"{self.layer}-{self.mode}"

    @property
    def binds_on_client(self) -> bool:
        return self.mode == "simple"

    @property
    def calls_orm(self) -> bool:
        return calls_orm(self.layer)


def _tool(subject: Subject) -> list[str]:
    """The arguments of the subject's program: a layer that runs a tool gets the stack's."""
    return [str(settings.PGPERF["PGBENCH"])] if LAYERS[subject.layer].tool else []


def forked(subject: Subject, stderr: IO[bytes], **environment: str) -> ForkedProcess:
    """A new client with these variables, forked from a process with its imports."""
    if subject.layer in _CHOOSING:
        environment["PSYCOPG_IMPL"] = _CHOOSING[subject.layer]
    prepared = _server(_code(subject), tuple(environment.items()))
    return prepared.start(["-m", subject.module, *_tool(subject)], stderr)


@cache
def _server(code: str, environment: tuple[tuple[str, str], ...]) -> ForkServer:
    """The server with these, started when its first client is."""
    python = [sys.executable, *_STRICT]
    return _servers.enter_context(ForkServer(code, {**_bare_environment(), **dict(environment)}, python))


_servers = ExitStack()


def stop_servers() -> None:
    _server.cache_clear()
    _servers.close()


def _bare_environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def _code(subject: Subject) -> str:
    """Imports what programs like the subject's have imported when they are ready, except what needs
    settings. A page's client has those of its site.
    """
    layer = LAYERS[subject.layer]
    if layer.requests_pages:
        return importing("tests.forking.set_up", "pgperf.clients.psycopg_driver", layer.program)
    driver = "psycopg2" if "psycopg2" in f"{subject.layer} {subject.module}" else "psycopg"
    if "django" in subject.layer:
        hidden = ["tests.clients.without_psycopg"] if driver == "psycopg2" else []
        return importing(*hidden, f"pgperf.clients.{driver}_driver", *_DJANGO)
    drivers = [f"pgperf.clients.{driver}_driver"] if subject.layer.startswith("psycopg") else []
    return importing(*drivers, layer.program)


_DJANGO = (
    "pgperf.clients.programs.django_client", "pgperf.clients.programs.django_async_client", "pgperf.catalog",
    "django.db.backends.postgresql.base", "django.utils.log", "django.views.debug", "django.views.generic",
)  # fmt: skip
#: Layers whose program chooses psycopg's implementation before it imports psycopg.
_CHOOSING = {"psycopg_binary": "binary", "psycopg_python": "python"}


def with_workloads(subject: Subject) -> str:
    """The program of a layer of the ORM that has the tests' workloads too."""
    form = "django_async" if is_async(subject.layer) else "django"
    return f"tests.clients.{form}_with_workloads"


def spec(subject: Subject, route: Route, work: WorkloadDefinition, **changes: object) -> protocol.Spec:
    """What the runner would send for that workload."""
    return protocol.Spec(
        layer=subject.layer, mode=subject.mode, host=route.host, port=route.port, dbname=route.dbname,
        user=route.user, password=route.password, application_name="conformance",
        statements=list(work.statements) or sql_parameters.statements(work.sql, work.args),
        orm=work.orm, orm_args=list(work.args),
        other_statements=list(work.other_statements) or sql_parameters.statements(work.other_sql, work.other_args),
        other_orm=work.other_orm, other_orm_args=list(work.other_args),
        spawned_ns=time.monotonic_ns(), runner_pid=os.getpid(),
    )._replace(**changes)  # fmt: skip


class Driven:
    """A running client."""

    def __init__(self, argv: list[str], **environment: str) -> None:
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the client)
        self.process = self._launched(argv, environment)
        assert self.process.stdin
        assert self.process.stdout
        self._buffer = bytearray()

    def _launched(self, argv: list[str], environment: dict[str, str]) -> Process:
        return subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, cwd=ROOT,
            env={**_bare_environment(), **environment},
        )  # fmt: skip

    @staticmethod
    def start(subject: Subject, c_program: Path, **environment: str) -> "Driven":
        """A new process with these variables."""
        python = [sys.executable, *_STRICT, "-m", subject.module, *_tool(subject)]
        return Driven(python if subject.module else [str(c_program)], **environment)

    @staticmethod
    def fork(subject: Subject, c_program: Path, **environment: str) -> "Driven":
        """The same, but a client in Python has its imports from a process that made them before, with
        these variables.
        """
        if not subject.module:
            return Driven.start(subject, c_program, **environment)
        return Forked(subject, **environment)

    def send(self, *messages: protocol.Message | bytes) -> None:
        for message in messages:
            self._write(message if isinstance(message, bytes) else protocol.encode(message))

    def trickle(self, message: protocol.Message) -> None:
        """Every byte in a write of its own."""
        for byte in protocol.encode(message):
            self._write(bytes([byte]))

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.process.stdin.fileno(), data) :]  # type: ignore[union-attr]

    def read(self, kind: type[M], deadline_s: float = DEADLINE_S) -> M:
        """The next message, which must be of that kind."""
        while (end := self._buffer.find(b"\n")) < 0:
            assert self._fill(deadline_s), f"it ended instead of sending {kind.__name__}: {self.last_words()}"
        message = protocol.decode(self._take(end + 1))
        assert isinstance(message, kind), message
        return message

    def slice(self, request: protocol.Slice) -> tuple[protocol.SliceReply, "array[int]"]:
        """One slice; the reply and its durations."""
        self.send(request)
        if request.start_ns:
            assert self.read(protocol.Armed).seq == request.seq
        reply = self.read(protocol.SliceReply)
        assert reply.seq == request.seq
        return reply, self.samples(reply)

    def samples(self, reply: protocol.SliceReply) -> "array[int]":
        """The durations that the reply announces."""
        assert reply.nbytes == reply.ops * 8
        while len(self._buffer) < reply.nbytes:
            assert self._fill(), "a reply cut short"
        return array("Q", self._take(reply.nbytes))

    def phased_slice(self, request: protocol.Slice) -> tuple[protocol.SliceReply, "list[array[int]]"]:
        """One slice of an operation with phases: the reply, the durations, and each phase's part."""
        self.send(request)
        if request.start_ns:
            assert self.read(protocol.Armed).seq == request.seq
        reply = self.read(protocol.SliceReply)
        assert reply.nbytes == reply.ops * 8 * (1 + len(reply.phases))
        return reply, self.numbers(reply.ops, 1 + len(reply.phases))

    def numbers(self, count: int, rows: int) -> "list[array[int]]":
        """So many rows of a reply, each of `count` numbers."""
        while len(self._buffer) < 8 * count * rows:
            assert self._fill(), "a reply cut short"
        return [array("Q", self._take(8 * count)) for _ in range(rows)]

    def at_end(self) -> bool:
        """No byte is left and none will come."""
        return not self._buffer and not self._fill()

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)

    def last_words(self) -> str:
        self.stderr.seek(0)
        return self.stderr.read().decode(errors="replace")

    def close_stdin(self) -> None:
        self.process.stdin.close()  # type: ignore[union-attr]

    def close_stdout(self) -> None:
        self.process.stdout.close()  # type: ignore[union-attr]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.stderr):
            try:
                stream.close()  # type: ignore[union-attr]
            except BrokenPipeError:
                pass

    def _take(self, count: int) -> bytes:
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def _fill(self, deadline_s: float = DEADLINE_S) -> bool:
        readable, _, _ = select.select([self.process.stdout], [], [], deadline_s)
        assert readable, f"no answer within {deadline_s} s: {self.last_words()}"
        chunk = os.read(self.process.stdout.fileno(), 1 << 20)  # type: ignore[union-attr]
        self._buffer += chunk
        return bool(chunk)


class Forked(Driven):
    """A running client in Python, forked from a process that has its imports."""

    def __init__(self, subject: Subject, **environment: str) -> None:
        self._subject = subject
        super().__init__([], **environment)

    def _launched(self, argv: list[str], environment: dict[str, str]) -> Process:
        return forked(self._subject, self.stderr, **environment)
