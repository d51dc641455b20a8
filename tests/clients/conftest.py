"""The clients under test and the database they are pointed at."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings

from pgperf.catalog import FIXTURES
from pgperf.core.records import Route
from pgperf.install.c_client import build
from tests.clients.driving import Driven, Subject, stop_servers

Start = Callable[..., Driven]
#: Variables that many clients are started with, and which belong to their imports.
SHARED = {"LD_PRELOAD", "DJANGO_SETTINGS_MODULE"}


@pytest.fixture(scope="session")
def c_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C client with address and undefined-behaviour sanitizers."""
    pg_config = str(settings.PGPERF["PG_CONFIG"])
    return build(tmp_path_factory.mktemp("sanitized"), pg_config=pg_config, sanitize=True).path


@pytest.fixture(scope="session")
def tcp(routes: dict[str, Route]) -> Route:
    return routes["tcp"]


@pytest.fixture(scope="module")
def admin(tcp: Route) -> Iterator[psycopg.Connection]:
    """A connection of the tests' own; the fixture `site` is there. Another file's tests drop it."""
    login = {
        "host": tcp.host,
        "port": tcp.port,
        "dbname": tcp.dbname,
        "user": tcp.user,
        "password": tcp.password,
    }
    with psycopg.connect(**login, autocommit=True) as connection:  # type: ignore[arg-type]
        for statement in FIXTURES["site"].create:
            connection.execute(statement)
        yield connection


@pytest.fixture(scope="package", autouse=True)
def _fork_servers() -> Iterator[None]:
    """Those that tests start end with this folder's last test: other folders' look for clients."""
    yield
    stop_servers()


@pytest.fixture
def start(c_program: Path, admin: psycopg.Connection) -> Iterator[Start]:
    """Starts clients; they are gone when the test ends."""
    yield from _starting(c_program)


@pytest.fixture
def start_plain(c_client: Path, admin: psycopg.Connection) -> Iterator[Start]:
    """Starts the C client without sanitizers, which allow neither a preload nor a memory limit."""
    yield from _starting(c_client)


def _starting(c_program: Path) -> Iterator[Start]:
    started: list[Driven] = []

    def start(subject: Subject, **environment: str) -> Driven:
        shared = not environment or SHARED & environment.keys()
        launch = Driven.fork if shared else Driven.start
        started.append(launch(subject, c_program, **environment))
        return started[-1]

    yield start
    for client in started:
        client.__exit__(None, None, None)
