"""The wait for the backends of a slice, with a real server."""

import errno
import os
import select
import subprocess
from collections.abc import Callable, Iterator
from itertools import count

import psutil
import psycopg
import pytest

from pgperf.core.records import Route
from pgperf.runner.cpu import schedstat
from pgperf.runner.server import departure
from pgperf.runner.server.control_connection import ControlConnection

OURS = "pgperf-leaving-1"
#: Long enough on any machine; it is waited for only where a test fails.
LONG_S = 20.0
SHORT_S = 0.05


def connected(route: Route, application: str) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(
        host=route.host, port=route.port, dbname=route.dbname, user=route.user, password=route.password,
        application_name=application, autocommit=True,
    )  # fmt: skip


@pytest.fixture
def monitor(routes: dict[str, Route]) -> Iterator[ControlConnection]:
    with ControlConnection(routes["socket"]) as connection:
        yield connection


@pytest.fixture
def postmaster(routes: dict[str, Route]) -> int:
    with connected(routes["socket"], "") as connection:
        return psutil.Process(connection.info.backend_pid).ppid()


@pytest.fixture(params=["here", "elsewhere"])
def wait(
    request: pytest.FixtureRequest, monitor: ControlConnection, postmaster: int
) -> Callable[[float], str]:
    """Wait for the backends of `OURS`, on this machine and as on another one."""
    known = postmaster if request.param == "here" else None
    return lambda timeout_s: departure.of_backends(monitor.all, [OURS], known, timeout_s)


def test_a_backend_that_stays_is_said_so(routes: dict[str, Route], wait: Callable[[float], str]) -> None:
    assert wait(LONG_S) == ""
    with connected(routes["tcp"], OURS):
        assert wait(SHORT_S) == "1 of its backends had not left the server after 0.05 s"
    assert wait(LONG_S) == ""


def test_other_sessions_are_not_waited_for(routes: dict[str, Route], wait: Callable[[float], str]) -> None:
    with connected(routes["tcp"], "another"):
        assert wait(LONG_S) == ""


def test_after_the_wait_no_process_is_left(
    routes: dict[str, Route], monitor: ControlConnection, postmaster: int
) -> None:
    pids = []
    for _ in range(20):
        with connected(routes["tcp"], OURS) as connection:
            pids.append(connection.info.backend_pid)
    assert departure.of_backends(monitor.all, [OURS], postmaster, LONG_S) == ""
    assert not [pid for pid in pids if _runs(pid)]


def _runs(pid: int) -> bool:
    """Whether the process still uses a processor: a dead one is listed until its parent reaps it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("title", "waits"),
    [
        ("postgres: logger ", False),
        ("postgres: main: logger ", False),
        ("postgres: stats collector ", False),
        ("postgres: autoprewarm leader ", False),
        ("postgres: main: pg_cron launcher (2)", False),
        ("postgres: ada shop [local] idle", True),
        ("postgres: main: ada shop ::1(51234) idle in transaction", True),
        ("postgres: ada shop db.example(51234)", True),
        ("postgres: ada shop 10.0.0.7(51234) authentication", True),
        ("postgres: ", True),
        ("/usr/lib/postgresql/18/bin/postgres -D /data", True),
    ],
)
def test_processes_without_a_client_that_no_view_lists_are_not_waited_for(
    monitor: ControlConnection, postmaster: int, monkeypatch: pytest.MonkeyPatch, title: str, waits: bool
) -> None:
    """Whenever they began: a background worker may start within a run."""
    with psutil.Popen([title], executable="/bin/cat", stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(schedstat, "children", lambda pid: [process.pid])
        try:
            assert bool(departure.of_backends(monitor.all, [OURS], postmaster, SHORT_S)) is waits
        finally:
            process.kill()


@pytest.mark.parametrize(("later", "waits"), [(1, False), (0, True)])
def test_a_process_from_before_the_run_is_not_waited_for(
    monitor: ControlConnection, postmaster: int, monkeypatch: pytest.MonkeyPatch, later: int, waits: bool
) -> None:
    """No view lists it, and by its title it could be a backend of the run."""
    title = "postgres: ada shop [local] idle"
    with psutil.Popen([title], executable="/bin/cat", stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(schedstat, "children", lambda pid: [process.pid])
        since = schedstat.started(process.pid) + later
        try:
            said = departure.of_backends(monitor.all, [OURS], postmaster, SHORT_S, since)
        finally:
            process.kill()
    assert bool(said) is waits


@pytest.mark.parametrize("is_listed_later", [True, False], ids=["logs in", "is silent"])
def test_a_connection_of_another_user_that_has_not_logged_in_is_not_waited_for(
    postmaster: int, monkeypatch: pytest.MonkeyPatch, is_listed_later: bool
) -> None:
    """The server lists it when it has. Until then it looks like a backend on its way out."""
    title, asked = "postgres: ada shop 10.0.0.7(51234) authentication", count()
    if not is_listed_later:
        monkeypatch.setattr(departure, "_UNLISTED_S", 0.1)
    with psutil.Popen([title], executable="/bin/cat", stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(schedstat, "children", lambda pid: [process.pid])

        def ask(_query: object) -> list[tuple[object, ...]]:
            return [(process.pid, "another", True)] if next(asked) and is_listed_later else []

        try:
            assert departure.of_backends(ask, [OURS], postmaster, LONG_S) == ""
            assert process.is_running()
        finally:
            process.kill()


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
def test_where_the_kernel_reports_no_ends_it_asks_again(
    monkeypatch: pytest.MonkeyPatch,
    error: int,
    routes: dict[str, Route],
    monitor: ControlConnection,
    postmaster: int,
) -> None:
    def refuse(pid: int) -> int:
        raise OSError(error, "refused")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    assert departure.of_backends(monitor.all, [OURS], postmaster, LONG_S) == ""
    with connected(routes["tcp"], OURS):
        assert "1 of its backends" in departure.of_backends(monitor.all, [OURS], postmaster, SHORT_S)
    assert departure.of_backends(monitor.all, [OURS], postmaster, LONG_S) == ""


def test_a_poolers_connection_has_to_be_idle(routes: dict[str, Route], monitor: ControlConnection) -> None:
    with connected(routes["tcp"], OURS) as connection:
        connection.pgconn.send_query(b"SELECT generate_series(1, 10000000000)")
        connection.pgconn.set_single_row_mode()
        select.select([connection.pgconn.socket], [], [])  # it has begun, and waits for its reader
        assert "1 of its backends" in departure.of_statements(monitor.all, [OURS], SHORT_S)
        connection.cancel_safe()
        while connection.pgconn.get_result():
            pass
        assert departure.of_statements(monitor.all, [OURS], LONG_S) == ""
