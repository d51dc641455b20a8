"""Control queries of a run.

They go through a client process, so its deadlines and its secrecy apply.
"""

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from pgperf.core import layers, protocol, sql_parameters
from pgperf.core.answers import ControlQuery
from pgperf.core.exceptions import LayerUnavailable, OutOfMemory, UnexpectedAnswer
from pgperf.core.records import Route
from pgperf.install import launch
from pgperf.runner import authentication
from pgperf.runner.client_process import ClientProcess, login
from pgperf.runner.cpu import schedstat

_TIMEOUT_S = 30.0
#: Enough for the longest answer that the protocol passes on.
_MEMORY_BYTES = 1 << 26

T = TypeVar("T")


class ControlConnection:
    """A connection over one route that returns rows of text. Use as a context manager.

    `first` runs on connecting. Raises LayerUnavailable without a driver, ClientFailed if the server
    refuses, fails or does not answer within 30 s.
    """

    def __init__(
        self, route: Route, application_name: str = "pgperf-monitor", first: str = "SELECT 1"
    ) -> None:
        layer = next((name for name in layers.DJANGO_DRIVERS if importlib.util.find_spec(name)), "")
        if not layer:
            raise LayerUnavailable("neither psycopg nor psycopg2 is installed: pip install psycopg")
        self._server = f"{route.host}:{route.port}" if route.port else route.host
        self._route = route
        self._client = ClientProcess(
            f"connection over {route.name}", launch.command(layer, ""), route.password
        )
        self._spec = protocol.Spec(
            layer=layer,
            **login(route),
            application_name=application_name,
            statements=sql_parameters.statements(first, ()),
            spawned_ns=self._client.spawned_ns,
            runner_pid=os.getpid(),
            cold=False,
            memory_bytes=_MEMORY_BYTES,
        )
        self._unread = 0  # answers still to come, of interrupted waits too
        self._backend = 0  # its pid; 0: not on this machine

    def pids(self) -> Iterator[int]:
        """Its client, and its backend where that is on this machine."""
        yield from filter(None, (self._client.pid, self._backend))

    def query(self, sql: str, timeout_s: float = _TIMEOUT_S) -> list[list[str | None]]:
        """Run one statement in its own transaction and return its rows, every value as text."""
        return self.ask(sql, timeout_s).rows

    def ask(self, sql: str, timeout_s: float = _TIMEOUT_S) -> protocol.Rows:
        """Like `query`, with the names of the columns.

        Answers that earlier, interrupted waits have left are read first.
        """
        self._client.send(protocol.Query(sql))
        self._unread += 1
        try:
            return [self._next_answer(timeout_s) for _ in range(self._unread)][-1]
        except OutOfMemory:
            raise self.unexpected("a control query", "it is too long") from None

    def rows(self, query: ControlQuery) -> list[list[str | None]]:
        """The rows of a control query as text, checked.

        Raises UnexpectedAnswer if its columns or values are not those of the query.
        """
        rows = self.query(query.sql)
        self._read(query.read, query, rows)
        return rows

    def all(self, query: ControlQuery) -> list[tuple[Any, ...]]:
        """Like `rows`, as typed values."""
        return self._read(query.read, query, self.query(query.sql))

    def one(self, query: ControlQuery) -> tuple[Any, ...]:
        """Like `all`, of the only row."""
        return self._read(query.read_one, query, self.query(query.sql))

    def unexpected(self, about: str, problem: object) -> UnexpectedAnswer:
        """The error for an answer that cannot be used."""
        return UnexpectedAnswer(
            f"{self._client.name}: the answer of {self._server} about {about} is unusable: {problem}. "
            "Is it a PostgreSQL server of a supported version, or a pooler of one?"
        )

    def _here(self, backend: int) -> int:
        """A backend of this machine, else 0: one that is older than its client is of another machine,
        and has the pid of one that is here.
        """
        young = schedstat.started(backend) >= schedstat.started(self._client.pid)
        return backend if young and schedstat.backend_is_here(backend) else 0

    def _next_answer(self, timeout_s: float) -> protocol.Rows:
        answer = self._client.expect(protocol.Rows, timeout_s)
        self._unread -= 1
        return answer

    def _read(
        self,
        read: Callable[[Sequence[Sequence[str | None]]], T],
        query: ControlQuery,
        rows: list[list[str | None]],
    ) -> T:
        try:
            return read(rows)
        except ValueError as problem:
            raise self.unexpected(query.about, problem) from None

    def __enter__(self) -> Self:
        try:
            authentication.check(self._route, self._spec.application_name)
            self._client.send(self._spec)
            self._backend = self._here(self._client.expect(protocol.Ready, _TIMEOUT_S).backend_pid)
        except BaseException:
            self._client.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._client.__exit__(kind, error, tb)
