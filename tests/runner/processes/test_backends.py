"""The connections and the auxiliary processes of a real server."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg
import pytest

from pgperf.core.records import Route
from pgperf.runner.processes import pooler_process, web_processes
from pgperf.runner.processes.backends import QUERY, Sessions, is_backend, own_ends, unmapped
from tests.waiting import until


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


def test_connections_are_found_by_name(connection: psycopg.Connection[Any]) -> None:
    sessions = Sessions.of(rows_of(connection))
    assert sessions.named(["nobody", "sessions-test"]) == [connection.info.backend_pid]
    assert sessions.named(["nobody"]) == []


@pytest.mark.parametrize("route", ["socket", "tcp"])
def test_connections_are_found_by_the_process_at_the_other_end(routes: dict[str, Route], route: str) -> None:
    with connect(routes[route], "sessions-test") as connection:
        sessions = Sessions.of(rows_of(connection))
        assert connection.info.backend_pid in sessions.from_process(os.getpid())
        assert connection.info.backend_pid not in sessions.from_process(os.getppid())
        assert sessions.from_process(0) == []


def test_all_server_connections_of_a_pooler_are_found(routes: dict[str, Route]) -> None:
    with connect(routes["pgbouncer"], "") as connection:
        pid = connection.execute("SELECT pg_backend_pid()").fetchone()
        sessions = Sessions.of(rows_of(connection))
    pooler = pooler_process.process(routes["pgbouncer"].port)
    assert pid
    assert pooler
    assert pid[0] in sessions.from_process(pooler)


def test_connections_are_found_by_the_ends_of_a_web_servers_sockets(
    connection: psycopg.Connection[Any],
) -> None:
    ends = web_processes.connections([os.getpid()]).own_ends
    assert connection.info.backend_pid in Sessions.of(rows_of(connection)).from_ends(ends)


@pytest.fixture
def twins(connection: psycopg.Connection[Any]) -> list[list[str | None]]:
    """The connection, and one with the same port from another machine, as the server reports them."""
    pid = connection.info.backend_pid
    own = next(row for row in rows_of(connection) if row[0] == str(pid))
    other = psutil.Process(pid).parent().children()[0]
    return [own, [str(other.pid), "", own[2], str(other.create_time()), "192.0.2.7"]]


def test_a_connection_from_another_machine_may_have_the_same_port(twins: list[list[str | None]]) -> None:
    for sessions in (Sessions.of(twins), Sessions.reported(twins)):
        assert len(sessions.here) == 2
        assert sessions.from_process(os.getpid()) == [int(twins[0][0] or 0)]


def test_an_address_that_is_translated_on_the_way_leaves_the_port(twins: list[list[str | None]]) -> None:
    """Where no connection of the process has its own address, on another machine."""
    assert Sessions.of(twins[1:]).from_process(os.getpid()) == []
    assert Sessions.reported(twins[1:]).from_process(os.getpid()) == [int(twins[1][0] or 0)]


def test_the_own_end_of_a_connection_is_as_the_server_writes_it() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getsockname() in own_ends(os.getpid())
    assert unmapped("::ffff:127.0.0.1") == "127.0.0.1"


def title(pid: int) -> str:
    """As `ps` shows it; "" if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0 ")
    return ""


def test_the_servers_own_processes_serve_no_connection(connection: psycopg.Connection[Any]) -> None:
    own = set(Sessions.of(rows_of(connection)).auxiliaries())
    titles = set(map(title, own))
    assert {"postgres: checkpointer", "postgres: walwriter"} <= titles
    assert connection.info.backend_pid not in own
    assert Path(f"/proc/{connection.info.backend_pid}/stat").read_text().rpartition(")")[2].split()[1] in map(
        str, own
    )


def test_a_session_that_ended_since_the_look_hides_none_of_the_servers_own_processes(
    routes: dict[str, Route], connection: psycopg.Connection[Any]
) -> None:
    with connect(routes["tcp"], "gone") as gone:
        sessions = Sessions.of(rows_of(connection))
        pid = gone.info.backend_pid
    until(lambda: not title(pid), 30, "the backend has ended")
    (first,) = (session for session in sessions.here if session.pid == pid)
    others = [session for session in sessions.here if session is not first]
    own = replace(sessions, here=[first, *others]).auxiliaries()
    assert "postgres: checkpointer" in map(title, own)


def test_a_connection_that_is_not_listed_yet_is_none_of_the_servers_own_processes(
    routes: dict[str, Route], connection: psycopg.Connection[Any]
) -> None:
    sessions = Sessions.of(rows_of(connection))
    with connect(routes["tcp"], "later") as later:
        own = sessions.auxiliaries()
        assert own
        assert later.info.backend_pid not in own


@contextmanager
def slow_autovacuum(login: dict[str, Any]) -> Iterator[int]:
    """A worker of autovacuum that sleeps after each page, until the table is dropped."""
    with psycopg.connect(**login, dbname="postgres") as admin:
        admin.execute("ALTER SYSTEM SET autovacuum_naptime = 1")
        try:
            admin.execute("SELECT pg_reload_conf()")
            with psycopg.connect(**login, dbname="postgres") as user:  # its end reports the dead rows
                user.execute(_SLOWLY_VACUUMED)
                user.execute("DELETE FROM slowly_vacuumed")
            until(lambda: admin.execute(_WORKERS).fetchone(), 30, "a worker of autovacuum")
            yield (admin.execute(_WORKERS).fetchone() or (0,))[0]
        finally:
            admin.execute("DROP TABLE slowly_vacuumed")
            admin.execute("ALTER SYSTEM RESET autovacuum_naptime")
            admin.execute("SELECT pg_reload_conf()")


_SLOWLY_VACUUMED: LiteralString = """
CREATE TABLE slowly_vacuumed WITH (
    autovacuum_vacuum_threshold = 1, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1
) AS SELECT generate_series(1, 100000)
"""
_WORKERS: LiteralString = """
SELECT pid FROM pg_stat_activity WHERE backend_type = 'autovacuum worker' AND query LIKE '%slowly_vacuumed%'
"""


def test_a_worker_of_autovacuum_is_none_of_the_servers_own_processes(
    routes: dict[str, Route], superuser_login: dict[str, Any]
) -> None:
    with slow_autovacuum(superuser_login) as worker, connect(routes["tcp"], "later") as later:
        assert Path(f"/proc/{worker}").exists()
        own = Sessions.of(rows_of(later)).auxiliaries()
        assert own
        assert worker not in own


def test_a_server_of_another_machine_has_no_processes_here(connection: psycopg.Connection[Any]) -> None:
    pid = connection.info.backend_pid
    sessions = Sessions.of(
        [
            [str(os.getpid()), "ours", "5432", "1.5", "192.0.2.7"],
            [str(pid), "theirs", None, None, None],
        ]
    )
    assert (list(sessions.here), sessions.others) == ([], {os.getpid(), pid})
    assert sessions.hidden == {"theirs"}
    assert sessions.auxiliaries() == []


def test_a_backend_is_as_old_as_its_connection(connection: psycopg.Connection[Any]) -> None:
    sql = "SELECT extract(epoch FROM backend_start) FROM pg_stat_activity WHERE pid = pg_backend_pid()"
    born = float(connection.execute(sql).fetchone()[0])  # type: ignore[index]
    assert is_backend(connection.info.backend_pid, born)
    assert not is_backend(connection.info.backend_pid, born - 60)
