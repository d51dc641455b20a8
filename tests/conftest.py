"""Fixtures for all tests: the stack, routes to its PostgreSQL, the built C client, a Celery worker."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.base.operations import BaseDatabaseOperations

from example.stack import web
from example.stack.part import Part
from pgperf.core.records import Route
from pgperf.install.c_client import build
from pgperf.workloads import discovery
from tests.flushes import again_after_a_deadlock, quick_refills

# Property tests draw the same examples every time, and a busy machine fails none of them.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
hypothesis.settings.load_profile("repeatable")


#: The files that take longest, which begin first: else all processes wait for the one that got the
#: last of them.
LONGEST = (
    "admin/test_matrix.py", "load/test_deaths.py", "browser/test_run_topics.py",
    "example/test_supervisor.py", "test_migrations.py", "load/test_four_hosts.py",
    "installation/test_site.py", "load/test_run.py", "cli/test_command.py", "access/test_restriction.py",
    "soak/test_smoke.py", "browser/test_layout.py", "security/test_hostile_server.py",
    "browser/test_report_file.py", "worker/test_site_runs.py", "example/test_web_steps.py",
    "worker/test_execution.py", "browser/test_run_sections.py", "browser/test_run_page.py",
    "worker/test_real_worker.py", "clients/test_conformance.py", "security/test_guardrails.py",
    "admin/test_target_forms.py", "browser/test_start.py", "agent/test_two_hosts.py",
    "security/test_canary.py", "transfer/test_cost.py", "runner/server/test_diagnostics.py",
    "security/test_hostile_sql.py", "runs/test_confirm_pages.py", "example/test_stack.py",
    "runner/test_reconnecting.py", "clients/test_connection_modes.py", "browser/test_history_page.py",
    "browser/test_benchmark_form.py", "runner/test_written_tables.py", "cli/test_uninstall.py",
    "security/test_pasted_sql.py", "runner/test_run.py", "runner/capture/test_statements.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    begin = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: begin.get(item.path, len(begin)))


@pytest.fixture(scope="session", autouse=True)
def patient_flushes() -> Iterator[None]:
    """Workers that a module's tests share read tables while a test's end empties them."""
    flush = BaseDatabaseOperations.execute_sql_flush
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseDatabaseOperations, "execute_sql_flush", again_after_a_deadlock(flush))
        yield


@pytest.fixture(scope="session", autouse=True)
def refills() -> Iterator[None]:
    """The end of each test that commits fills the tables that migrations fill."""
    with quick_refills():
        yield


@pytest.fixture(scope="session", autouse=True)
def site_modules() -> None:
    """Import the site's workloads and hooks before a test replaces a registry, which would take them
    along: they are imported once.
    """
    discovery.discover()


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def one_heartbeat(settings: Any) -> None:
    """For runs in a test's transaction. However slow the machine is, no heartbeat comes from a second
    connection: it does not see the rows of the transaction, and would take the run away.
    """
    settings.PGPERF = {**settings.PGPERF, "STALE_SECONDS": 3600.0}


@pytest.fixture(scope="session")
def stack() -> dict[str, str]:
    """The variables of the running stack."""
    return {key: value for key, value in os.environ.items() if key.startswith(("PGPERF_", "DJANGO_"))}


@pytest.fixture(scope="session")
def routes(stack: dict[str, str]) -> dict[str, Route]:
    """socket, tcp and pgbouncer routes to the stack's own database (not the one Django's tests
    use).
    """
    login = {
        "dbname": stack["PGPERF_DB_NAME"],
        "user": stack["PGPERF_DB_USER"],
        "password": stack["PGPERF_DB_PASSWORD"],
    }
    port, pooler_port = int(stack["PGPERF_DB_PORT"]), int(stack["PGPERF_PGBOUNCER_PORT"])
    return {
        "socket": Route("socket", stack["PGPERF_DB_SOCKET"], port, **login),
        "tcp": Route("tcp", "127.0.0.1", port, **login),
        "pgbouncer": Route("pgbouncer", "127.0.0.1", pooler_port, pooler="session", **login),
    }


@pytest.fixture(scope="session")
def superuser_login(stack: dict[str, str]) -> dict[str, Any]:
    """PostgreSQL's own superuser, whose password only the stack's directory knows."""
    state = json.loads((Path(stack["PGPERF_DB_SOCKET"]).parent / "state.json").read_text())
    address = {"host": "127.0.0.1", "port": int(stack["PGPERF_DB_PORT"])}
    return {**address, "user": "postgres", "password": state["superuser_password"], "autocommit": True}


@pytest.fixture(scope="session")
def c_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C client, compiled from the checkout's sources."""
    return build(tmp_path_factory.mktemp("build"), pg_config=str(settings.PGPERF["PG_CONFIG"])).path


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """The stack goes with its data; idle pooled connections would stop a DROP DATABASE."""
    return True


@pytest.fixture(scope="module")
def worker(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Part]:
    """A real Celery worker on the tests' own database; tests that use it must commit
    (transactional_db).
    """
    database = str(connection.settings_dict["NAME"])
    environment = {**os.environ, "PGPERF_DB_NAME": database, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    part = web.worker(tmp_path_factory.mktemp("worker"), environment)
    try:
        part.start()
        yield part
    finally:
        part.stop()
