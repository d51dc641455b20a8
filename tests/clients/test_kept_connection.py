"""A pool that replaces its connection, in every layer that has one: an error that says so, and no new
connection in silence.
"""

import asyncio
import gc
import math
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import psycopg
import pytest
from django.db.utils import ConnectionHandler
from pytest_django import DjangoDbBlocker

from pgperf.clients import loop
from pgperf.clients.programs.asyncpg_client import AsyncpgClient
from pgperf.clients.programs.django_client import DjangoClient, minimal_settings
from pgperf.clients.programs.psycopg_async_client import PsycopgAsyncClient
from pgperf.clients.programs.psycopg_client import PsycopgClient
from pgperf.core import protocol
from pgperf.core.exceptions import ConnectionReplaced
from pgperf.core.records import Route
from tests.clients.conftest import Start
from tests.clients.driving import Subject
from tests.clients.test_conformance import select, started
from tests.clients.test_connection_modes import POOLS, SEVEN, backends, wait_until_gone
from tests.waiting import until

SAYS = "the pool replaced its connection, because the server, a pooler or the network had ended the first one"


async def _closed(connection: Any) -> None:
    while not connection.is_closed():
        await asyncio.sleep(0)


#: What each pool does when it finds that its connection is lost, called from outside of an operation.
NOTICES: dict[str, Callable[[Any], object]] = {
    "psycopg": lambda client: client._pool.check(),
    "psycopg_async": lambda client: client.event_loop.run(client._pool.check()),
    "asyncpg": lambda client: client.event_loop.run(asyncio.wait_for(_closed(client._kept), 30)),
}
CLIENTS = [
    (PsycopgClient, "psycopg", "simple"),
    (PsycopgAsyncClient, "psycopg_async", "simple"),
    (PsycopgAsyncClient, "psycopg_async_uvloop", "simple"),
    (AsyncpgClient, "asyncpg", "extended"),
    (AsyncpgClient, "asyncpg_uvloop", "extended"),
]
Pooled = tuple[Any, Any]


@pytest.fixture(autouse=True)
def _alone(admin: psycopg.Connection) -> None:
    """The backends of earlier clients are gone."""
    wait_until_gone(admin)


def pooled_spec(tcp: Route, layer: str, mode: str) -> protocol.Spec:
    return protocol.Spec(
        layer=layer, mode=mode, connection_mode="pool", host=tcp.host, port=tcp.port, dbname=tcp.dbname,
        user=tcp.user, password=tcp.password, application_name="conformance",
        statements=[protocol.Statement("SELECT 1", None, "SELECT 1")],
    )  # fmt: skip


@pytest.fixture(params=CLIENTS, ids=lambda each: each[1])
def pooled(request: pytest.FixtureRequest, tcp: Route) -> Iterator[Pooled]:
    """A client that stands by, its connection in its pool, and its operation."""
    program, layer, mode = request.param
    client, spec = program(BytesIO()), pooled_spec(tcp, layer, mode)
    client.load(spec)
    client.connect(spec)
    operation = client.reconnecting(client.operation(spec))
    operation.close()
    yield client, operation
    client.close()
    close_taken(client)


def close_taken(client: Any) -> None:
    """A psycopg_pool closes no connection that a client has taken; the end of a process does."""
    if isinstance(client, PsycopgClient):
        client._connection.close()
    elif isinstance(client, PsycopgAsyncClient):
        client.event_loop.run(client._connection.close())


def end_backends(admin: psycopg.Connection) -> None:
    (pid,) = backends(admin)
    admin.execute("SELECT pg_terminate_backend(%s)", [pid])
    wait_until_gone(admin)


def notice(client: Any) -> None:
    """The pool finds that its connection is lost, and connects again where that is its way."""
    next(step for name, step in NOTICES.items() if type(client).__module__.endswith(f".{name}_client"))(
        client
    )


def test_a_lost_connection_that_the_pool_replaced_is_an_error(
    pooled: Pooled, admin: psycopg.Connection
) -> None:
    client, operation = pooled
    assert [operation(), operation()] == [1, 1]
    end_backends(admin)
    notice(client)
    with pytest.raises(ConnectionReplaced, match=SAYS):
        operation()


def test_a_connection_is_kept_through_all_operations(pooled: Pooled, admin: psycopg.Connection) -> None:
    client, operation = pooled
    before = backends(admin)
    assert sum(operation() for _ in range(50)) == 50
    assert backends(admin) == before
    assert client._kept


@pytest.fixture
def django_client(tcp: Route, django_db_blocker: DjangoDbBlocker) -> Iterator[DjangoClient]:
    """A client over Django's own pool, which has its connection."""
    spec = pooled_spec(tcp, "django_cursor", "simple")
    connection = ConnectionHandler(minimal_settings(spec)["DATABASES"])["default"]
    connection.alias = "kept-connection"  # Django has a pool for each alias
    client = DjangoClient(BytesIO())
    client._connection = connection
    with django_db_blocker.unblock():
        client.connect(spec)
        connection.close()
        yield client
        client.close()


def test_djangos_own_pool_replaced_a_lost_connection(
    django_client: DjangoClient, admin: psycopg.Connection
) -> None:
    operation = django_client.reconnecting(lambda: 1)
    operation.connect()
    django_client._connection.close()
    end_backends(admin)
    django_client._connection.pool.check()
    with pytest.raises(ConnectionReplaced, match=SAYS):
        operation.connect()


def test_no_connection_becomes_too_old(pooled: Pooled, django_client: DjangoClient) -> None:
    client, operation = pooled
    for pool in (client._pool, django_client._connection.pool):
        if hasattr(pool, "max_lifetime"):  # psycopg_pool
            assert pool.max_lifetime == math.inf
    operation()
    assert getattr(client._kept, "_expire_at", math.inf) == math.inf


@pytest.mark.parametrize(("subject", "mode"), POOLS, ids=[str(subject) for subject, _ in POOLS])
def test_a_connection_that_is_lost_between_slices_ends_the_client(
    subject: Subject, mode: str, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    work = select("SELECT 1 AS id, 'd' AS domain, 'n' AS name")
    client = started(start, subject, tcp, work, cold=False, connection_mode=mode)
    client.read(protocol.Ready)
    client.phased_slice(SEVEN)
    end_backends(admin)
    client.send(SEVEN)
    error = client.read(protocol.Error)
    assert error.stage in ("slice", "reconnect")
    assert error.message
    assert client.wait() == protocol.EXIT_FAILED
    until(lambda: not backends(admin), 30, "no backend is left")


class Requests(BytesIO):
    """A spec and a slice; between them, something happens."""

    def __init__(self, spec: protocol.Spec, between: Callable[[], None]) -> None:
        super().__init__(protocol.encode(spec) + protocol.encode(SEVEN))
        self._steps = iter((lambda: None, between))

    def readline(self, *limit: Any) -> bytes:
        next(self._steps)()
        return super().readline(*limit)


@pytest.mark.parametrize(("program", "layer", "mode"), CLIENTS, ids=[layer for _, layer, _ in CLIENTS])
def test_the_client_ends_its_conversation_with_what_happened(
    program: type[Any], layer: str, mode: str, tcp: Route, admin: psycopg.Connection
) -> None:
    client, replies = program(BytesIO()), BytesIO()

    def between() -> None:
        end_backends(admin)
        notice(client)

    spec = pooled_spec(tcp, layer, mode)._replace(cold=False)
    assert loop.serve(client, Requests(spec, between), replies) == protocol.EXIT_FAILED
    gc.unfreeze()
    close_taken(client)
    ready, error = map(protocol.decode, replies.getvalue().splitlines(keepends=True))
    assert isinstance(ready, protocol.Ready)
    assert isinstance(error, protocol.Error)
    assert (error.stage, error.sqlstate) == ("slice", "")
    assert error.message.startswith(SAYS)
