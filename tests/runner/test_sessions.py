"""Which of the server's processes are connections, and which are its own: asked of the real server."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgperf.records import Route
from pgperf.runner.sessions import QUERY, Sessions, is_backend, own_ports


def connect(route: Route, name: str) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=route.host, port=route.port, dbname=route.dbname, user=route.user, password=route.password,
        application_name=name, autocommit=True,
    )  # fmt: skip


@pytest.fixture
def connection(routes: dict[str, Route]) -> Iterator[psycopg.Connection[Any]]:
    with connect(routes["tcp"], "sessions-test") as connection:
        yield connection


def rows_of(connection: psycopg.Connection[Any]) -> list[list[str | None]]:
    """As the monitor gives them: text."""
    return [[None if value is None else str(value) for value in row] for row in connection.execute(QUERY)]


def test_connections_are_found_by_name_and_by_port(connection: psycopg.Connection[Any]) -> None:
    sessions = Sessions.of(rows_of(connection))
    own = connection.info.backend_pid
    assert sessions.named(["nobody", "sessions-test"]) == [own]
    assert sessions.named(["nobody"]) == []
    assert own in sessions.from_ports(own_ports(os.getpid()))
    assert own_ports(0) == sessions.from_ports([]) == []


def test_the_servers_own_processes_serve_no_connection(connection: psycopg.Connection[Any]) -> None:
    own = set(Sessions.of(rows_of(connection)).auxiliaries())
    titles = {Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0 ") for pid in own}
    assert {"postgres: checkpointer", "postgres: walwriter"} <= titles
    assert connection.info.backend_pid not in own
    assert Path(f"/proc/{connection.info.backend_pid}/stat").read_text().rpartition(")")[2].split()[1] in map(
        str, own
    )


def test_a_server_of_another_machine_has_no_processes_here(connection: psycopg.Connection[Any]) -> None:
    pid = connection.info.backend_pid
    sessions = Sessions.of([[str(os.getpid()), "ours", "5432", "1.5"], [str(pid), "theirs", None, None]])
    assert (list(sessions.here), sessions.others) == ([], {os.getpid(), pid})
    assert sessions.auxiliaries() == []


def test_a_backend_is_as_old_as_its_connection(connection: psycopg.Connection[Any]) -> None:
    sql = "SELECT extract(epoch FROM backend_start) FROM pg_stat_activity WHERE pid = pg_backend_pid()"
    born = float(connection.execute(sql).fetchone()[0])  # type: ignore[index]
    assert is_backend(connection.info.backend_pid, born)
    assert not is_backend(connection.info.backend_pid, born - 60)
