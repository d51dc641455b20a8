"""The client of the layers pgbench, against a real server with a real pgbench."""

import os
import signal
import socket
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings

from pgperf.clients.pgbench.process import Finished
from pgperf.clients.pgbench.report import Summary
from pgperf.clients.programs.pgbench_client import PgbenchOperation
from pgperf.core import protocol, sql_parameters
from pgperf.core.pgbench import Script
from pgperf.core.records import Route
from tests.clients.driving import Driven

PGBENCH = str(settings.PGPERF["PGBENCH"])
Spec = Callable[..., protocol.Spec]
BY_COUNT = protocol.Slice(seq=3, lead_in_ops=2, lead_in_ns=0, count=5)
BY_TIME = protocol.Slice(seq=4, lead_in_ops=2, lead_in_ns=0, window_ns=100_000_000)

pytestmark = pytest.mark.usefixtures("admin")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Driven]:
    argv = [sys.executable, "-m", "pgperf.clients.programs.pgbench_client", PGBENCH]
    with Driven(argv, TMPDIR=str(tmp_path)) as driven:
        yield driven


@pytest.fixture
def spec(tcp: Route) -> Spec:
    """What the runner would send, for one statement."""

    def spec(sql: str = "SELECT 1", *args: object, **changes: object) -> protocol.Spec:
        plain = protocol.Spec(
            layer="pgbench", host=tcp.host, port=tcp.port, dbname=tcp.dbname, user=tcp.user,
            password=tcp.password, application_name="conformance",
            statements=sql_parameters.statements(sql, args), runner_pid=os.getpid(), spawned_ns=time.monotonic_ns(),
        )  # fmt: skip
        return plain._replace(**changes)

    return spec


def measured(client: Driven, request: protocol.Slice) -> tuple[protocol.SliceReply, "array[int]"]:
    """The reply, and as many durations as it announces."""
    client.send(request)
    if request.start_ns:
        client.read(protocol.Armed)
    reply = client.read(protocol.SliceReply)
    while len(client._buffer) < reply.nbytes:
        assert client._fill(), "a reply cut short"
    return reply, array("Q", client._take(reply.nbytes))


def refusal(client: Driven, spec: protocol.Spec) -> protocol.Error:
    client.send(spec)
    error = client.read(protocol.Error)
    assert client.wait() == protocol.EXIT_FAILED
    return error


def test_ready_says_what_pgbench_knows(client: Driven, spec: Spec, admin: psycopg.Connection) -> None:
    client.send(spec())
    ready = client.read(protocol.Ready)
    assert (ready.backend_pid, ready.rows_per_op) == (0, None)
    assert ready.server_version == admin.info.parameter_status("server_version")
    assert ready.versions["driver"] == "pgbench"
    assert ready.versions["driver_version"][0].isdigit()
    assert {value for name, value in ready._asdict().items() if name.endswith("_us")} == {None}


@pytest.mark.parametrize("mode", protocol.MODES)
@pytest.mark.parametrize("workers", [1, 3])
def test_kept_connections_are_counted(client: Driven, spec: Spec, mode: str, workers: int) -> None:
    client.send(spec("SELECT %s::text", "it's :scale \\ ;", mode=mode, workers=workers))
    client.read(protocol.Ready)
    reply, _ = measured(client, BY_COUNT)
    assert (reply.ops, reply.rows, reply.nbytes, reply.window_ns > 0) == (5 * workers, None, 0, True)
    reply, _ = measured(client, BY_TIME)
    assert reply.ops > 0
    assert reply.window_ns > 500_000_000
    assert reply.user_ns + reply.sys_ns > 0


@pytest.mark.parametrize("layer", ["pgbench", "pgbench_one_thread"])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_connection_each_is_timed(client: Driven, spec: Spec, layer: str, workers: int) -> None:
    client.send(spec(layer=layer, connection_mode="per_operation", workers=workers))
    client.read(protocol.Ready)
    reply, durations = measured(client, BY_COUNT)
    assert reply.worker_ops == ([5] * workers if workers > 1 else [])
    durations, connecting = durations[: reply.ops], durations[reply.ops :]
    assert len(durations) == len(connecting) == reply.ops == 5 * workers
    assert (reply.lead_in_ops, reply.phases) == (workers, ["connect"])
    assert all(0 < part <= whole for part, whole in zip(connecting, durations, strict=True))
    assert sum(durations) <= reply.window_ns * workers
    reply, durations = measured(client, BY_TIME)
    mean_ns = sum(durations[: reply.ops]) / reply.ops
    assert reply.window_ns * workers / reply.ops == pytest.approx(mean_ns, rel=0.5)


def test_a_slice_holds_a_slow_operation_with_its_connection(client: Driven, spec: Spec) -> None:
    """pgbench's shortest slice of a second would end with one transaction, and have no window."""
    client.send(spec("SELECT pg_sleep(1.2)", connection_mode="per_operation"))
    client.read(protocol.Ready)
    reply, _ = measured(client, BY_TIME)
    assert reply.ops >= 2


def test_an_armed_slice_starts_at_its_time(client: Driven, spec: Spec) -> None:
    client.send(spec())
    client.read(protocol.Ready)
    start_ns = time.monotonic_ns() + 50_000_000
    reply, _ = measured(client, BY_COUNT._replace(start_ns=start_ns))
    assert reply.first_ns >= start_ns


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({"password": "wrong"}, "connect"),
        ({"port": 1}, "connect"),
        ({"dbname": "host=elsewhere"}, "connect"),
        ({"connection_mode": "pool"}, "spec"),
        ({"mode": "nope"}, "spec"),
        ({"statements": []}, "ready"),
        ({"statements": sql_parameters.statements("SELECT 1/0", ())}, "ready"),
        ({"statements": sql_parameters.statements("SELECT 1 \\gset", ())}, "ready"),
        (
            {"site": True, "mode": "extended", "statements": sql_parameters.statements("SELECT %s", (1,))},
            "ready",
        ),
    ],
)
def test_a_refusal_names_its_stage(
    client: Driven, spec: Spec, changes: dict[str, object], stage: str
) -> None:
    error = refusal(client, spec(**changes))
    assert (error.stage, bool(error.message)) == (stage, True)
    assert "wrong" not in error.message


def test_an_address_that_never_answers_is_an_error(client: Driven, spec: Spec) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        error = refusal(client, spec(port=listener.getsockname()[1], connect_timeout_s=2))
    assert (error.stage, "timeout expired" in error.message) == ("connect", True)


def test_connections_that_the_server_ends_abort_the_slice(
    client: Driven, spec: Spec, admin: psycopg.Connection
) -> None:
    client.send(spec(workers=2))
    client.read(protocol.Ready)
    client.send(BY_TIME._replace(window_ns=20_000_000_000))
    own = "FROM pg_stat_activity WHERE application_name = 'conformance'"
    while admin.execute(f"SELECT count(*) {own}").fetchone() != (2,):
        pass
    admin.execute(f"SELECT pg_terminate_backend(pid) {own}")
    error = client.read(protocol.Error)
    assert error.stage == "slice"
    assert client.wait() == protocol.EXIT_FAILED


def frozen_backend(admin: psycopg.Connection) -> int:
    """The backend of its second operation, stopped as it sleeps in its statement and holds no lock; of
    a later one where a busy machine has let that end.
    """
    of_client = "FROM pg_stat_activity WHERE application_name = 'conformance' AND wait_event = 'PgSleep'"
    seen: set[datetime] = set()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for begun, pid in admin.execute(f"SELECT query_start, pid {of_client}").fetchall():
            if seen - {begun}:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    return int(pid)
            seen.add(begun)
    raise AssertionError("no operation was stopped")


@pytest.mark.parametrize("mode", ["persistent", "per_operation"])
def test_a_slice_in_which_the_server_stood_still_says_so(
    client: Driven, spec: Spec, admin: psycopg.Connection, mode: str
) -> None:
    client.send(spec("SELECT pg_sleep(0.4)", connection_mode=mode))
    client.read(protocol.Ready)
    assert measured(client, BY_TIME)[0].overran_ns == 0
    client.send(BY_TIME)
    goes_on = threading.Timer(6, os.kill, (frozen_backend(admin), signal.SIGCONT))
    goes_on.start()
    reply = client.read(protocol.SliceReply)
    goes_on.join()
    assert reply.ops >= 1
    assert reply.overran_ns > 3_000_000_000


@pytest.mark.parametrize("workers", [1, 3])
def test_the_operations_under_way_at_the_end_are_no_standstill(
    client: Driven, spec: Spec, workers: int
) -> None:
    """The slice of a second ends with an operation of longer than a tenth of it."""
    client.send(spec("SELECT pg_sleep(0.7)", workers=workers))
    client.read(protocol.Ready)
    assert measured(client, BY_TIME)[0].overran_ns == 0


def test_a_slice_that_was_over_before_all_had_connected_names_the_remedy(
    client: Driven, spec: Spec, admin: psycopg.Connection
) -> None:
    client.send(spec("SELECT pg_advisory_xact_lock(8)", connection_mode="per_operation", workers=2))
    client.read(protocol.Ready)
    admin.execute("SELECT pg_advisory_lock(8)")
    try:
        client.send(BY_TIME)
        admin.execute("SELECT pg_sleep(4)")
    finally:
        admin.execute("SELECT pg_advisory_unlock(8)")
    error = client.read(protocol.Error)
    assert (error.stage, error.message.partition(":")[0]) == (
        "slice", "pgbench connected, or worked on an operation, for longer than the slice",
    )  # fmt: skip
    assert "choose a longer slice_ms" in error.message


def test_too_many_clients_end_the_slice(
    client: Driven, spec: Spec, admin: psycopg.Connection, tcp: Route
) -> None:
    client.send(spec(workers=3, connection_mode="per_operation"))
    client.read(protocol.Ready)
    admin.execute(f"ALTER DATABASE {tcp.dbname} CONNECTION LIMIT 0")
    try:
        client.send(BY_TIME)
        error = client.read(protocol.Error)
        assert (error.stage, "too many connections" in error.message) == ("reconnect", True)
    finally:
        admin.execute(f"ALTER DATABASE {tcp.dbname} CONNECTION LIMIT -1")


def test_pgbench_ends_with_its_client(client: Driven, spec: Spec, admin: psycopg.Connection) -> None:
    client.send(spec())
    client.read(protocol.Ready)
    client.send(BY_TIME._replace(window_ns=600_000_000_000))
    running = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'conformance'"
    while admin.execute(running).fetchone() == (0,):
        pass
    client.process.send_signal(signal.SIGKILL)
    while admin.execute(running).fetchone() != (0,):
        pass


def test_no_file_stays(client: Driven, spec: Spec, tmp_path: Path) -> None:
    client.send(spec(connection_mode="per_operation"))
    client.read(protocol.Ready)
    measured(client, BY_COUNT)
    assert list(tmp_path.iterdir()) == []


def test_logs_of_a_killed_client_are_removed_later(client: Driven, spec: Spec, tmp_path: Path) -> None:
    gone, here, young = (tmp_path / f"pgperf-pgbench-{pid}-x" for pid in (2**22 + 1, os.getpid(), 2**22 + 2))
    for each in (gone, here, young):
        each.mkdir()
        (each / "log.1").write_text("0 1 2\n")
    for each in (gone, here):
        os.utime(each, (0, 0))
    client.send(spec())
    client.read(protocol.Ready)
    assert sorted(tmp_path.iterdir()) == sorted([here, young])


class Recorded:
    """A pgbench of two clients in which an operation takes a second alone and three together. It keeps
    how long it might take.
    """

    def __init__(self) -> None:
        self.limits: list[float | None] = []

    def run(self, _script: str, arguments: Sequence[str], limit_s: float | None) -> Finished:
        self.limits.append(limit_s)
        elapsed_s, clients = (1.0, 1) if "--client=1" in arguments else (3.0, 2)
        summary = Summary(transactions=clients, failed=0, tps=clients / elapsed_s, server_version="18.6")
        return Finished(summary, 0, 0, elapsed_s, 0, 0)


@pytest.mark.parametrize("connection_mode", ["persistent", "per_operation"])
def test_slices_by_time_hold_operations_as_slow_as_they_are_together(
    spec: Spec, connection_mode: str
) -> None:
    """And pgbench is not ended before the operations under way at the end of its time."""
    recorded: Any = Recorded()
    start = recorded.run("", ["--client=1"], None)
    operation = PgbenchOperation(
        recorded, spec(workers=2, connection_mode=connection_mode), Script("SELECT 1;", {}), start
    )
    operation()
    before_s = operation._time_s(BY_TIME)
    operation._run(BY_COUNT, 5, ())
    after_s = operation._time_s(BY_TIME)
    assert after_s - before_s == (6 if connection_mode == "per_operation" else 0)
    operation._run(BY_TIME, 0, ())
    assert recorded.limits == [None, None, None, after_s + 2 * 1.0]


def test_the_password_is_in_no_argument_and_no_environment(client: Driven, spec: Spec, tcp: Route) -> None:
    client.send(spec("SELECT pg_sleep(2)"))
    seen: list[bytes] = []
    deadline = time.monotonic() + 60
    while not seen and time.monotonic() < deadline:
        for pid in Path("/proc").glob("[0-9]*"):
            try:
                if b"pgbench" in (argv := (pid / "cmdline").read_bytes()) and b"--client" in argv:
                    seen += [argv, (pid / "environ").read_bytes()]
            except OSError:
                continue
    assert seen
    assert all(tcp.password.encode() not in text for text in seen)
    client.read(protocol.Ready)
