"""Load hosts: real Celery workers on queues of their own, beside the tests' own database."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from example.stack import web
from example.stack.part import Part
from pgperf.core.records import Route
from pgperf.models import Benchmark, Database, Run, Target, Worker
from pgperf.runs.definitions import Overrides
from tests import settings_impatient
from tests.shared_workers import rows_of, there_again
from tests.short_runs import request

NAMES = ("a", "b")
#: What a busy machine may do to a slice.
LATE = "a client began after the common window had opened"
#: A busy machine tells the time late. A run refuses a clock that is too bad for its windows.
WORST_ERROR_US = 50_000
IMPATIENT = "tests.settings_impatient"


@pytest.fixture
def impatient(settings: Any) -> None:
    settings.PGPERF = settings_impatient.PGPERF


@contextmanager
def started(
    directory: Path, names: tuple[str, ...] = NAMES, settings: str = IMPATIENT
) -> Iterator[dict[str, Part]]:
    """A worker for each name, with these settings."""
    environment = {
        **os.environ,
        "PGPERF_DB_NAME": str(connection.settings_dict["NAME"]),
        "DJANGO_SETTINGS_MODULE": settings,
    }
    parts = {}
    with ExitStack() as stack:
        for name in names:
            (directory / name).mkdir()
            parts[name] = web.worker(directory / name, environment, f"pgperf-load-{name}")
            stack.callback(parts[name].stop)
            parts[name].start()
        yield parts


@pytest.fixture(scope="module")
def hosts(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[dict[str, Part], list[Worker]]]:
    """Two load hosts on this machine, by name, and their rows."""
    with started(tmp_path_factory.mktemp("hosts")) as parts:
        with django_db_blocker.unblock():
            rows = rows_of(parts.values())
        yield parts, rows


@pytest.fixture
def load_hosts(
    hosts: tuple[dict[str, Part], list[Worker]], impatient: None, transactional_db: None
) -> dict[str, Part]:
    """Two load hosts on this machine, by name, which the tests of a module share."""
    parts, rows = hosts
    there_again(parts.values(), rows)
    return parts


@pytest.fixture
def database(routes: dict[str, Route]) -> Database:
    row = Database.objects.create(
        name="real", dbname=connection.settings_dict["NAME"], credential="alias:default", allow_fixtures=True
    )
    port = routes["tcp"].port
    Target.objects.create(database=row, route="tcp", host="127.0.0.1", port=port, sslmode="disable")
    return row


def ask(database: Database, may_lose_hosts: bool = False, **more: Any) -> Run:
    """A short run on two load hosts, which the owner in this process is to perform."""
    fields = {
        "quick": True, "layers": ["libpq"], "routes": ["tcp"], "clients": [4], "load_hosts": [2], "slice_ms": 500,
        "rounds": 2, "blocks": 2, "diagnostic_ms": 0, "precision": 0.0, **more,
    }  # fmt: skip
    benchmark = Benchmark.objects.get(name="orm-overhead")
    benchmark.may_lose_hosts = may_lose_hosts
    return request(benchmark, database, Overrides(**fields), foreground=True)
