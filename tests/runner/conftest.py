"""The example site's own rows, committed, and the way to them that a run would take; the server's
control group.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg
import pytest
import pytest_django
from django.db import connection

from example.books.models import Author, Book, Publisher
from example.books.sample_data import create_books
from pgperf.core.records import Route
from pgperf.runner.cpu.cgroups import groups_of
from pgperf.runner.processes import pooler_process
from pgperf.runner.processes.backends import QUERY, Sessions
from tests.runner.forked_clients import control_connections
from tests.runner.server_groups import in_group_of_its_own, in_shared_groups
from tests.waiting import until


@pytest.fixture(scope="module")
def book_routes(
    django_db_setup: None, django_db_blocker: pytest_django.DjangoDbBlocker, routes: dict[str, Route]
) -> Iterator[dict[str, Route]]:
    """Routes to the tests' own database, which has the example's books; read-only sessions, as
    rails give them.
    """
    with django_db_blocker.unblock():
        create_books()
        name = str(connection.settings_dict["NAME"])
    options = "-c default_transaction_read_only=on"
    yield {
        key: replace(route, dbname=name, options="" if route.pooler else options)
        for key, route in routes.items()
    }
    with django_db_blocker.unblock():
        for model in (Book, Author, Publisher):
            model.objects.all().delete()


@pytest.fixture(scope="module")
def no_autovacuum(superuser_login: dict[str, Any]) -> Iterator[None]:
    """A worker of autovacuum that ends in a slice leaves it without the server's CPU time."""
    with psycopg.connect(**superuser_login) as admin:
        _set_autovacuum(admin, "ALTER SYSTEM SET autovacuum = off", there=0)
        yield
        _set_autovacuum(admin, "ALTER SYSTEM RESET autovacuum", there=1)


def _set_autovacuum(admin: psycopg.Connection, statement: LiteralString, there: int) -> None:
    """Wait too, until its launcher runs, or nothing of it any more."""
    admin.execute(statement)
    admin.execute("SELECT pg_reload_conf()")
    count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%'"
    until(lambda: min(admin.execute(count).fetchone()[0], 1) == there, 30, statement)


@pytest.fixture(scope="module")
def forked_control_connections() -> Iterator[None]:
    with control_connections():
        yield


@pytest.fixture
def postmaster(routes: dict[str, Route]) -> psutil.Process:
    """The server's first process."""
    route = routes["socket"]
    login = {"dbname": route.dbname, "user": route.user, "password": route.password}
    with psycopg.connect(host=route.host, port=route.port, **login) as connection:
        return psutil.Process(psutil.Process(connection.info.backend_pid).ppid())


@pytest.fixture
def no_idle_pool(stack: dict[str, str], superuser_login: dict[str, Any]) -> None:
    """End what the poolers keep from earlier tests. They close a connection that was idle for ten
    minutes, and a slice in which another session ends lacks the server's CPU time.
    """
    ports = [int(port) for name, port in stack.items() if "_PGBOUNCER_" in name and name.endswith("_PORT")]
    poolers = {pid for pid in map(pooler_process.process, ports) if pid}
    poolers |= {each.pid for each in psutil.Process().children() if _name(each) == pooler_process.NAMES[0]}
    assert len(poolers) >= len(ports) > 0
    with psycopg.connect(**superuser_login) as admin:
        sessions = Sessions.of(admin.execute(QUERY).fetchall())
        kept = [pid for pooler in poolers for pid in sessions.from_process(pooler)]
        admin.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", (kept,))
    until(lambda: not any(map(psutil.pid_exists, kept)), 30, "the poolers' connections have ended")


def _name(process: psutil.Process) -> str:
    """ "" of one that has just ended."""
    with suppress(psutil.NoSuchProcess):
        return process.name()
    return ""


@pytest.fixture(params=[True, False], ids=["version 1", "version 2"])
def own_group(
    request: pytest.FixtureRequest, postmaster: psutil.Process, no_idle_pool: None
) -> Iterator[Path]:
    """The server in a control group of its own."""
    with in_shared_groups(postmaster), in_group_of_its_own(postmaster, request.param) as directory:
        yield directory


@pytest.fixture
def one_own_group(postmaster: psutil.Process, no_idle_pool: None) -> Iterator[None]:
    """The same, of one version that counts on this machine: for what does not depend on which."""
    first_version = any((each / "cpuacct.usage").exists() for each in groups_of(os.getpid()))
    with in_shared_groups(postmaster), in_group_of_its_own(postmaster, first_version):
        yield


@pytest.fixture
def shared_group(postmaster: psutil.Process) -> Iterator[None]:
    """The server in the groups of this process."""
    with in_shared_groups(postmaster):
        yield
