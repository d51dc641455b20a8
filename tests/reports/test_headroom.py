"""The needs of a run beside the limits, before the worker has measured them."""

from typing import Any

import pytest

from pgperf.models import Database, Run
from pgperf.reports.headroom import Need, headroom
from pgperf.runner.preflight import ResourceEstimate
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def database() -> Database:
    return factories.make_database()


def needs(database: Database, seconds: float = 84.0, connections: int = 18) -> list[Need]:
    return headroom(ResourceEstimate(seconds, connections, 900 << 20), "at most 1 min 24 s", database)


def test_limits_are_unknown_before_the_first_run(database: Database) -> None:
    connections, memory, time = needs(database)
    assert (connections.takes, connections.may_take) == (
        "18",
        "at most 25 % of the server's free connections, so 72 must be free",
    )
    assert connections.asked == memory.asked == "the worker, before it starts"
    assert memory.may_take == (
        "at most 50 % of the free memory of the worker's machine, so 1.8\xa0GB must be free"
    )
    assert (time.takes, time.may_take, time.asked) == ("at most 1 min 24 s", "30 min", "this page")
    assert not any(need.problem for need in (connections, memory, time))


@pytest.mark.parametrize(("connections", "refused"), [(25, False), (26, True)])
def test_limits_come_from_an_earlier_run(database: Database, connections: int, refused: bool) -> None:
    run = factories.make_results(factories.make_run(database=database))
    assert run.environment["server"]["max_connections"] == "100"
    (need, *_others) = needs(database, connections=connections)
    assert "found max_connections = 100" in need.asked
    assert bool(need.problem) == refused
    assert not refused or need.problem.startswith(
        "104 connections must be free, but the last run here found max_connections = 100."
    )


def test_a_restricted_run_tells_no_limit(database: Database) -> None:
    run = factories.make_results(factories.make_run(database=database))
    Run.objects.filter(pk=run.pk).update(restricted=True)
    (need, *_others) = needs(database, connections=26)
    assert "max_connections = 100" not in need.asked
    assert not need.problem


@pytest.mark.parametrize("environment", [{}, {"server": None}, {"server": {"max_connections": None}}])
def test_a_limit_missing_from_the_earlier_run_is_unknown(
    database: Database, environment: dict[str, Any]
) -> None:
    factories.make_run(database=database, environment=environment)
    assert needs(database)[0].asked == "the worker, before it starts"


@pytest.mark.parametrize("environment", [{}, {"server": None}, {"server": {"max_connections": None}}])
def test_a_later_run_without_the_limit_does_not_hide_it(
    database: Database, environment: dict[str, Any]
) -> None:
    factories.make_results(factories.make_run(database=database))
    factories.make_run(database=database, environment=environment)
    assert "found max_connections = 100" in needs(database)[0].asked


def test_runs_on_other_hosts_and_failed_runs_are_ignored(database: Database) -> None:
    environment = factories.ENVIRONMENT
    factories.make_run(database=factories.make_database("other"), environment=environment)
    factories.make_run(Run.Status.FAILED, database=database, environment=environment)
    assert needs(database)[0].asked == "the worker, before it starts"


def test_the_time_limit_needs_no_earlier_run(database: Database) -> None:
    assert needs(database, seconds=1800)[2].problem == ""
    assert "MAX_RUN_SECONDS" in needs(database, seconds=1801)[2].problem
