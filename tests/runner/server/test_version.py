"""The versions of PostgreSQL that pgperf measures."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from pgperf.core.exceptions import PreflightRefused
from pgperf.core.records import Route, WorkloadDefinition
from pgperf.runner.plan import make_plan
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server import version
from tests import older_server
from tests.runner.builders import definition
from tests.runner.cpu.test_accounting import Keeper

ROLE = "pgperf_of_an_older_server"


@pytest.mark.parametrize(
    ("number", "title"), [(80421, "8.4.21"), (90624, "9.6.24"), (100023, "10.23"), (139999, "13.9999")]
)
def test_an_older_server_is_refused_with_the_remedy(number: int, title: str) -> None:
    with pytest.raises(PreflightRefused) as refusal:
        version.check(number)
    assert str(refusal.value) == (
        f"database: the server is PostgreSQL {title}, and pgperf measures PostgreSQL 14 or newer; "
        "upgrade the server, or measure a newer one"
    )


@pytest.mark.parametrize("number", [140000, 140021, 180006])
def test_a_server_from_the_least_version_on_is_measured(number: int) -> None:
    version.check(number)


def test_a_run_on_an_older_server_ends_before_its_first_block(
    routes: dict[str, Route], superuser_login: dict[str, Any]
) -> None:
    """Also one that needs no guardrails, as of a workload of the catalog."""
    planned = make_plan(
        definition(
            workloads=(WorkloadDefinition("one", "SELECT 1"),), layers=("psycopg",), routes=("tcp",),
            modes=("simple",),
        )
    )  # fmt: skip
    observer = Keeper()
    with psycopg.connect(**superuser_login, dbname=routes["tcp"].dbname) as superuser:
        superuser.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'older'")
        route = replace(routes["tcp"], user=ROLE, password="older")
        try:
            with (
                older_server.seen_by(ROLE, superuser, older_server.VERSION),
                pytest.raises(PreflightRefused, match=r"the server is PostgreSQL 13\.23, "),
            ):
                execute(planned, {"tcp": route}, RunSettings("", "older"), observer)
            assert not observer.blocks
            execute(planned, {"tcp": route}, RunSettings("", "older"), observer)
        finally:
            superuser.execute(f"DROP ROLE {ROLE}")
    assert observer.blocks
