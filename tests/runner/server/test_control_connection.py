"""Each query of a control connection gets its own answer."""

from typing import Any

import psutil
import pytest

from pgperf.core import protocol
from pgperf.core.exceptions import ClientFailed, RunCancelled
from pgperf.core.records import Route
from pgperf.runner.client_process import ClientProcess, while_waiting
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.pgbouncer_console import PgBouncerConsole

pytestmark = pytest.mark.usefixtures("forked_control_connections")


def cancel() -> None:
    raise RunCancelled("cancelled on request")


def test_its_backend_is_not_an_older_one_of_this_machine(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server on another machine may report the pid that a process of the server here has."""
    with ControlConnection(routes["tcp"]) as connection:
        _client, backend = connection.pids()
        older = min(psutil.Process(backend).parent().children(), key=psutil.Process.create_time)
        expect = ClientProcess.expect

        def elsewhere(self: ClientProcess, kind: Any, timeout_s: float) -> Any:
            answer = expect(self, kind, timeout_s)
            return answer._replace(backend_pid=older.pid) if kind is protocol.Ready else answer

        monkeypatch.setattr(ClientProcess, "expect", elsewhere)
        with ControlConnection(routes["tcp"]) as other:
            assert len([*other.pids()]) == 1


def test_a_query_after_interrupted_waits_gets_its_own_answer(routes: dict[str, Route]) -> None:
    with ControlConnection(routes["tcp"]) as connection:
        for number in (1, 2):
            with while_waiting(cancel), pytest.raises(RunCancelled):
                connection.query(f"SELECT {number}")
        assert connection.query("SELECT 3") == [["3"]]
        assert connection.query("SELECT 4") == [["4"]]


def test_a_query_after_a_missed_deadline_gets_its_own_answer(routes: dict[str, Route]) -> None:
    with ControlConnection(routes["tcp"]) as connection:
        with pytest.raises(ClientFailed, match="deadline"):
            connection.query("SELECT 1, pg_sleep(1)", timeout_s=0.0)
        assert connection.query("SELECT 2") == [["2"]]


def test_a_console_after_an_interrupted_wait_gets_its_own_answer(routes: dict[str, Route]) -> None:
    with PgBouncerConsole(routes["pgbouncer"], "pgperf-console") as console:
        with while_waiting(cancel), pytest.raises(RunCancelled):
            console.totals()
        console.pool()  # raises where it reads the answer about totals


def test_a_connection_that_failed_answers_no_more(routes: dict[str, Route]) -> None:
    with ControlConnection(routes["tcp"]) as connection:
        with while_waiting(cancel), pytest.raises(RunCancelled):
            connection.query("SELECT 1/0")
        for _ in range(2):
            with pytest.raises(ClientFailed):
                connection.query("SELECT 2")
