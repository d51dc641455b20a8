"""Control queries of a run.

They go through a client process, so its deadlines and its secrecy apply.
"""

import importlib.util
import os
from types import TracebackType
from typing import Self

from pgperf.core import layers, protocol, sql_parameters
from pgperf.core.exceptions import LayerUnavailable
from pgperf.core.records import Route
from pgperf.install import launch
from pgperf.runner.client_process import ClientProcess, login

_TIMEOUT_S = 30.0


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
        )

    def query(self, sql: str, timeout_s: float = _TIMEOUT_S) -> list[list[str | None]]:
        """Run one statement in its own transaction and return its rows, every value as text."""
        return self.ask(sql, timeout_s).rows

    def ask(self, sql: str, timeout_s: float = _TIMEOUT_S) -> protocol.Rows:
        """Like `query`, with the names of the columns."""
        self._client.send(protocol.Query(sql))
        return self._client.expect(protocol.Rows, timeout_s)

    def __enter__(self) -> Self:
        try:
            self._client.send(self._spec)
            self._client.expect(protocol.Ready, _TIMEOUT_S)
        except BaseException:
            self._client.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._client.__exit__(kind, error, tb)
