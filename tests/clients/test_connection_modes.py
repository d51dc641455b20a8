"""Every client in every connection mode that its layer has, and the errors of connecting again."""

import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import psycopg_pool
import pytest
from django.db import OperationalError
from django.db.utils import ConnectionHandler
from pytest_django import DjangoDbBlocker

from example.stack import certificates
from example.stack.place import Place
from pgperf.clients.loop import describe
from pgperf.clients.programs.asyncpg_client import AsyncpgClient
from pgperf.clients.programs.django_client import DjangoClient, minimal_settings
from pgperf.clients.programs.psycopg_async_client import PsycopgAsyncClient
from pgperf.clients.programs.psycopg_client import PsycopgClient
from pgperf.core import layers, protocol
from pgperf.core.exceptions import ReconnectFailed
from pgperf.core.records import Route
from tests.clients.conftest import Start
from tests.clients.driving import Driven, Subject, spec
from tests.clients.proxy import Proxy
from tests.clients.test_conformance import (
    AT_ONCE,
    FAKE,
    LAYERS,
    SITE,
    is_asyncpg,
    one_hour_slice,
    select,
    started,
)
from tests.waiting import until

MODES = ("per_operation", "pool", "request")
#: Each client in its first statement mode, and in prepared: a new connection knows no statement.
MEASURED = [
    (subject, mode)
    for subject, mode in product(LAYERS, MODES)
    if mode in layers.LAYERS[subject.layer].connection_modes
    and (mode != "pool" or "without-psycopg" not in subject.name)
]
every_mode = pytest.mark.parametrize(
    ("subject", "mode"), MEASURED, ids=[f"{subject}-{mode}" for subject, mode in MEASURED]
)
#: Each program on each event loop.
FIRST = list(
    {
        (subject.module, layers.LAYERS[subject.layer].event_loop, mode): (subject, mode)
        for subject, mode in reversed(MEASURED)
    }.values()
)
each_program = pytest.mark.parametrize(
    ("subject", "mode"), FIRST, ids=[f"{subject}-{mode}" for subject, mode in FIRST]
)
CONNECTS = [(subject, mode) for subject, mode in FIRST if mode != "pool"]
each_that_connects = pytest.mark.parametrize(
    ("subject", "mode"), CONNECTS, ids=[f"{subject}-{mode}" for subject, mode in CONNECTS]
)
SEVEN = AT_ONCE._replace(lead_in_ops=2, count=5)


@pytest.fixture
def limited(tcp: Route, admin: psycopg.Connection, superuser_login: dict[str, Any]) -> Iterator[Route]:
    """A login that the server gives one connection."""
    admin.execute("GRANT USAGE ON SCHEMA pgperf TO public")
    admin.execute("GRANT SELECT ON pgperf.site TO public")
    with psycopg.connect(**superuser_login) as superuser:
        superuser.execute("CREATE ROLE pgperf_limited LOGIN CONNECTION LIMIT 1 PASSWORD 'limited'")
        yield replace(tcp, user="pgperf_limited", password="limited")
        superuser.execute("DROP ROLE pgperf_limited")
    admin.execute("REVOKE SELECT ON pgperf.site FROM public")
    admin.execute("REVOKE USAGE ON SCHEMA pgperf FROM public")


def connection_to(route: Route) -> psycopg.Connection:
    return psycopg.connect(
        host=route.host, port=route.port, dbname=route.dbname, user=route.user, password=route.password
    )


def backends(admin: psycopg.Connection) -> list[int]:
    rows = admin.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'conformance'")
    return [pid for (pid,) in rows]


def wait_until_gone(admin: psycopg.Connection) -> None:
    until(lambda: not backends(admin), 30, "no backend is left")


def finish(client: Driven, admin: psycopg.Connection) -> None:
    client.send(protocol.Bye())
    assert client.wait() == protocol.EXIT_OK
    wait_until_gone(admin)


@every_mode
def test_the_phases_add_up_and_each_operation_makes_a_connection_or_a_pool_makes_one(
    subject: Subject, mode: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    with Counting(tcp.port) as proxy:
        client = started(
            start, subject, tcp, host="127.0.0.1", port=proxy.port, cold=False, connection_mode=mode
        )
        assert client.read(protocol.Ready).backend_pid
        assert proxy.connections == 1
        began_ns = time.monotonic_ns()
        reply, (durations, connecting, closing) = client.phased_slice(SEVEN)
        assert proxy.connections == (1 if mode == "pool" else 1 + 7)
        assert reply.phases == list(protocol.PHASES)
        assert (reply.ops, reply.rows, len(durations)) == (5, 5, 5)
        for duration, connect, close in zip(durations, connecting, closing, strict=True):
            assert connect > 0
            assert close > 0
            assert connect + close < duration
        assert began_ns < reply.first_ns < reply.first_ns + sum(durations) < time.monotonic_ns()
        finish(client, admin)


class Counting(Proxy):
    """Counts the connections that it forwards."""

    connections = 0

    def pumps(self):  # type: ignore[no-untyped-def]
        self.connections += 1
        return super().pumps()


@each_that_connects
def test_it_stands_by_without_a_connection(
    subject: Subject, mode: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    client = started(start, subject, tcp, cold=False, connection_mode=mode)
    client.read(protocol.Ready)
    wait_until_gone(admin)
    client.phased_slice(SEVEN)
    wait_until_gone(admin)
    finish(client, admin)


@each_program
def test_a_query_between_slices_is_answered(
    subject: Subject, mode: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    client = started(start, subject, tcp, cold=False, connection_mode=mode)
    client.read(protocol.Ready)
    client.send(protocol.Query("SELECT 'a'::text"))
    assert client.read(protocol.Rows).rows == [["a"]]
    client.phased_slice(SEVEN)
    finish(client, admin)


@each_program
def test_the_window_of_a_slice_by_time_is_kept(
    subject: Subject, mode: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    client = started(start, subject, tcp, cold=False, connection_mode=mode)
    client.read(protocol.Ready)
    for seq in range(1, 20):  # a client that a busy machine wakes after the window has no operation
        request = AT_ONCE._replace(
            seq=seq, start_ns=time.monotonic_ns() + 10**7, window_ns=10**8, lead_in_ns=10**7, count=0
        )
        reply, (durations, *_phases) = client.phased_slice(request)
        opens = request.start_ns + request.lead_in_ns
        closes = opens + request.window_ns
        assert opens <= reply.first_ns
        assert closes <= reply.first_ns + sum(durations)
        if durations:
            break
    assert reply.first_ns + sum(durations[:-1]) < closes
    finish(client, admin)


@each_that_connects
def test_too_many_clients_in_the_middle_of_a_slice(
    subject: Subject, mode: str, start: Start, limited: Route, admin: psycopg.Connection
) -> None:
    client = started(start, subject, limited, cold=False, connection_mode=mode)
    client.read(protocol.Ready)
    wait_until_gone(admin)
    with connection_to(limited):
        client.send(SEVEN)
        error = client.read(protocol.Error)
        assert error.stage == "reconnect"
        assert "too many connections" in error.message or error.sqlstate == "53300"
        assert client.wait() == protocol.EXIT_FAILED
    wait_until_gone(admin)


@each_that_connects
def test_a_server_that_has_gone_away(subject: Subject, mode: str, start: Start, tcp: Route) -> None:
    with Proxy(tcp.port) as proxy:
        client = started(
            start, subject, tcp, host="127.0.0.1", port=proxy.port, cold=False, connection_mode=mode
        )
        client.read(protocol.Ready)
        client.phased_slice(SEVEN)
    client.send(SEVEN)
    error = client.read(protocol.Error)
    assert error.stage == "reconnect"
    assert "refused" in error.message
    assert tcp.password not in client.last_words()
    assert client.wait() == protocol.EXIT_FAILED


POOLS = [(subject, mode) for subject, mode in FIRST if mode == "pool"]


#: Its operations wait while another session has the lock. In the middle of one, no pool can replace
#: the connection unseen, as asyncpg's does between two.
LOCKING = select("SELECT 1 AS id, 'd' AS domain, pg_advisory_xact_lock(1)::text AS name")


@contextmanager
def locked(admin: psycopg.Connection) -> Iterator[None]:
    """A test that fails leaves no lock for the next one."""
    admin.execute("SELECT pg_advisory_lock(1)")
    try:
        yield
    finally:
        admin.execute("SELECT pg_advisory_unlock(1)")


def ended_while_it_waits(admin: psycopg.Connection, pid: int) -> list[Any]:
    return admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'advisory'",
        [pid],
    ).fetchall()


@pytest.mark.parametrize(("subject", "mode"), POOLS, ids=[str(subject) for subject, _ in POOLS])
def test_a_connection_of_a_pool_that_the_server_has_ended(
    subject: Subject, mode: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    client = started(start, subject, tcp, LOCKING, cold=False, connection_mode=mode)
    ready = client.read(protocol.Ready)
    with locked(admin):
        client.send(one_hour_slice())
        client.read(protocol.Armed)
        until(lambda: ended_while_it_waits(admin, ready.backend_pid), 30, "an operation waits")
        error = client.read(protocol.Error)
    assert error.stage == "slice"
    assert error.message
    assert client.wait() == protocol.EXIT_FAILED
    wait_until_gone(admin)


@each_program
def test_a_client_that_is_killed_leaves_no_connection(
    subject: Subject, mode: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    client = started(start, subject, tcp, cold=False, connection_mode=mode)
    client.read(protocol.Ready)
    client.send(one_hour_slice())
    client.read(protocol.Armed)
    os.kill(client.process.pid, signal.SIGKILL)
    client.wait()
    wait_until_gone(admin)


@pytest.fixture
def tls(routes: dict[str, Route], stack: dict[str, str], tmp_path: Path) -> Route:
    """The pooler over TLS, checked by a copy of the authority's certificate."""
    authority = tmp_path / "ca.crt"
    authority.write_bytes((Path(stack["PGPERF_CREDENTIAL_DIR"]) / "ca.crt").read_bytes())
    return replace(routes["pgbouncer"], sslmode="verify-full", sslrootcert=str(authority))


def over_tls(start: Start, subject: Subject, route: Route, **changes: Any) -> Driven:
    """Programs on the embedded libpq, which lacks TLS, get psycopg's."""
    lacks_tls = subject.layer == "libpq" or "psycopg2" in f"{subject.layer} {subject.module}"
    client = start(subject, **({"LD_PRELOAD": str(WITH_TLS[0])} if lacks_tls else {}))
    encrypted = {"sslmode": route.sslmode, "sslrootcert": route.sslrootcert, "cold": False}
    client.send(spec(subject, route, SITE, **encrypted, **changes))
    return client


WITH_TLS = list((Path(psycopg.__file__).parent.parent / "psycopg_binary.libs").glob("libpq-*.so*"))


@pytest.fixture
def another_authority(tmp_path: Path) -> Iterator[bytes]:
    """A certificate authority that did not sign the pooler's certificate."""
    place = Place(tmp_path / "other")
    place.prepare()
    yield certificates.ensure(place).read_bytes()
    place.remove()


@each_that_connects
def test_every_new_connection_is_encrypted(
    subject: Subject, mode: str, start_plain: Start, tls: Route, admin: psycopg.Connection
) -> None:
    with Counting(tls.port) as proxy:
        client = over_tls(start_plain, subject, replace(tls, port=proxy.port), connection_mode=mode)
        client.read(protocol.Ready)
        proxy.forget()
        reply, _numbers = client.phased_slice(SEVEN)
        assert reply.ops == 5
        assert bytes(proxy._sent).count(SSL_REQUEST) == proxy.connections - 1 == 7
        assert b"SELECT" not in proxy._sent
        client.send(protocol.Bye())
        assert client.wait() == protocol.EXIT_OK


#: What a client sends before it begins TLS.
SSL_REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")


#: asyncpg loads the authorities once and checks every connection with them.
READING_AGAIN = [pair for pair in CONNECTS if not is_asyncpg(pair[0])]


@pytest.mark.parametrize(
    ("subject", "mode"), READING_AGAIN, ids=[f"{subject}-{mode}" for subject, mode in READING_AGAIN]
)
def test_every_new_connection_checks_the_certificate(
    subject: Subject, mode: str, start_plain: Start, tls: Route, another_authority: bytes
) -> None:
    """Once another authority is the one to trust, the next operation fails."""
    client = over_tls(start_plain, subject, tls, connection_mode=mode)
    client.read(protocol.Ready)
    Path(tls.sslrootcert).write_bytes(another_authority)
    client.send(SEVEN)
    error = client.read(protocol.Error)
    assert error.stage == "reconnect"
    assert "certificate" in error.message.lower()
    assert client.wait() == protocol.EXIT_FAILED


@each_program
def test_the_memory_limit_holds_for_new_connections(
    subject: Subject, mode: str, start_plain: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    """A hundred connections that each kept a quarter of a megabyte would exceed it."""
    client = started(start_plain, subject, tcp, cold=False, connection_mode=mode, memory_bytes=24 << 20)
    ready = client.read(protocol.Ready)
    assert ready.memory_bytes == limit_of(client)
    reply, _numbers = client.phased_slice(SEVEN._replace(count=100))
    assert reply.ops == 100
    assert limit_of(client) == ready.memory_bytes
    finish(client, admin)


def limit_of(client: Driven) -> int:
    return resource.prlimit(client.process.pid, resource.RLIMIT_DATA)[0]


@pytest.mark.parametrize("mode", ["per_operation", "pool", "request", "sometimes"])
def test_a_connection_mode_that_a_client_lacks_is_refused(mode: str, start: Start, tcp: Route) -> None:
    for subject in LAYERS[:2]:
        if mode in layers.LAYERS[subject.layer].connection_modes:
            continue
        client = started(start, subject, tcp, connection_mode=mode)
        error = client.read(protocol.Error)
        assert error.stage == "spec"
        assert error.message.startswith("connection_mode: ")
        assert client.wait() == protocol.EXIT_FAILED


def of_a_pool(tcp: Route, mode: str = "simple") -> protocol.Spec:
    """Its pool has one connection, for which a busy machine may need some time."""
    return protocol.Spec(
        mode=mode, connection_mode="pool", host=tcp.host, port=tcp.port, dbname=tcp.dbname,
        user=tcp.user, password=tcp.password, connect_timeout_s=60,
        statements=[protocol.Statement("SELECT 1", None, "SELECT 1")],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("program", "mode", "cause", "says"),
    [
        (
            PsycopgClient,
            "simple",
            psycopg_pool.PoolTimeout,
            "PoolTimeout: couldn't get a connection after 1.00 sec",
        ),
        (
            PsycopgAsyncClient,
            "simple",
            psycopg_pool.PoolTimeout,
            "PoolTimeout: couldn't get a connection after 1.00 sec",
        ),
        (AsyncpgClient, "extended", TimeoutError, "asyncpg's pool gave no connection in time"),
    ],
)
def test_an_exhausted_pool_is_a_failure_to_connect(
    program: type[Any], mode: str, cause: type[Exception], says: str, tcp: Route
) -> None:
    client, spec = program(BytesIO()), of_a_pool(tcp, mode)
    client.load(spec)
    client.connect(spec)
    if program is AsyncpgClient:
        client._keywords["timeout"] = 1
    else:
        client._pool.timeout = 1.0
    operation = client.reconnecting(client.operation(spec))  # the pool's one connection is in use
    with pytest.raises(ReconnectFailed) as failure:
        operation()
    assert isinstance(failure.value.__cause__, cause)
    assert getattr(client, "describe", describe)(failure.value.__cause__) == says
    client.close()


def test_djangos_own_pool_is_exhausted_by_another_connection(
    tcp: Route, django_db_blocker: DjangoDbBlocker
) -> None:
    settings = minimal_settings(of_a_pool(tcp))["DATABASES"]
    holder, waiting = ConnectionHandler(settings)["default"], ConnectionHandler(settings)["default"]
    waiting.alias = holder.alias = "of-one-pool"  # Django has a pool for each alias
    client = DjangoClient(BytesIO())
    client._connection, client._requests = waiting, True
    with django_db_blocker.unblock():
        holder.ensure_connection()
        holder.pool.timeout = 1.0
        try:
            with pytest.raises(ReconnectFailed) as failure:
                client.reconnecting(lambda: 1)()
        finally:
            holder.close()
            holder.close_pool()
    cause = failure.value.__cause__
    assert isinstance(cause, OperationalError)
    assert "couldn't get a connection after 1.00 sec" in client.describe(cause)


@pytest.mark.parametrize("layer", ["psycopg", "psycopg_async", "django_cursor"])
def test_a_pool_that_cannot_connect_says_so_in_time(layer: str, start: Start, tcp: Route) -> None:
    subject = next(subject for subject in LAYERS if subject.layer == layer)
    client = started(start, subject, tcp, port=1, connection_mode="pool", connect_timeout_s=1)
    error = client.read(protocol.Error)
    assert error.stage == "connect"
    assert "couldn't get a connection" in error.message
    assert tcp.password not in client.last_words()


def test_the_phases_of_the_fake_are_as_long_as_asked(start: Start, tcp: Route) -> None:
    client = started(start, FAKE, tcp, cold=False, connection_mode="per_operation", nominal_us=400.0)
    client.read(protocol.Ready)
    _reply, (durations, connecting, closing) = client.phased_slice(SEVEN)
    for duration, connect, close in zip(durations, connecting, closing, strict=True):
        assert connect >= 200_000
        assert close >= 100_000
        assert duration - connect - close >= 400_000
