"""Each query of a control connection gets its own answer."""

from collections.abc import Iterator

import pytest

from pgperf.core.exceptions import ClientFailed, RunCancelled
from pgperf.core.records import Route
from pgperf.runner.client_process import while_waiting
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.pgbouncer_console import PgBouncerConsole
from tests.runner.forked_clients import control_connections


@pytest.fixture(scope="module", autouse=True)
def nursery() -> Iterator[None]:
    with control_connections():
        yield


def cancel() -> None:
    raise RunCancelled("cancelled on request")


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
