"""The start page, the run page and the environment name a role that can write."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from pgperf.models import Benchmark, Database, Run, Target, Workload
from pgperf.runs import state
from pgperf.runs.definitions import Overrides
from pgperf.worker import execution
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_heartbeat")]


@pytest.fixture
def confirm(admin_client: Client) -> Any:
    def page(benchmark: Benchmark) -> str:
        return admin_client.get(reverse("admin:pgperf_benchmark_run", args=[benchmark.pk])).content.decode()

    return page


def test_the_start_page_states_the_requirements_on_the_role(confirm: Any) -> None:
    database = factories.make_database()
    shipped = factories.make_benchmark(routes=["socket"])
    assert "can write" not in confirm(shipped)
    Database.objects.update(production=True)
    assert "This role may be able to write (alias:default)" in confirm(shipped)
    own = Workload.objects.create(name="own", title="Own", sql="SELECT 1")
    free = factories.make_benchmark("free", workloads=[own], routes=["socket"])
    for production in (True, False):
        Database.objects.update(production=production)
        assert "needs a login that cannot write (alias:default)" in confirm(free)
    assert database.credential == "alias:default"


def test_the_start_page_names_the_login_of_each_route(confirm: Any) -> None:
    """The target's own where it has one, else the database's, each once."""
    database = factories.make_database()
    database.targets.filter(route="pgbouncer").update(user="reader", credential="env:PGPERF_SECRET_READER")
    own = Workload.objects.create(name="own", title="Own", sql="SELECT 1")
    said = "This run needs a login that cannot write"
    for routes, logins in {
        ("pgbouncer",): "env:PGPERF_SECRET_READER",
        ("socket", "tcp"): "alias:default",
        ("tcp", "pgbouncer"): "alias:default, env:PGPERF_SECRET_READER",
    }.items():
        benchmark = factories.make_benchmark("free", workloads=[own], routes=list(routes))
        assert f"{said} ({logins})" in confirm(benchmark), routes


@pytest.mark.parametrize(("role", "shown"), [("app", True), ("", False)])
def test_the_run_page_names_the_role(admin_client: Client, role: str, shown: bool) -> None:
    run = factories.make_results(factories.make_run())
    run.environment = {**run.environment, "access": {"tcp": "app: this role can write"}, "can_write": role}
    run.save()
    page = admin_client.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()
    assert ("The role app can write." in page) == shown
    assert "app: this role can write" in page


@pytest.mark.django_db(transaction=True)
def test_a_run_on_a_production_database_names_the_role(
    routes: dict[str, Any], c_client: Any, settings: Any
) -> None:
    """The test role owns its database: the catalog runs in read-only sessions, custom SQL is
    refused.
    """
    settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": c_client.parent}
    database = Database.objects.create(
        name="real", dbname=connection.settings_dict["NAME"], credential="alias:default", allow_fixtures=True,
        production=True,
    )  # fmt: skip
    Target.objects.create(
        database=database, route="tcp", host="127.0.0.1", port=routes["tcp"].port, sslmode="disable"
    )
    quick = Overrides(quick=True, layers=["libpq", "psycopg"], rounds=1, blocks=1, slice_ms=10)
    shipped = Benchmark.objects.get(name="orm-overhead")
    run = execution.perform(asked(shipped, database, quick).pk, "w@h")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    role = connection.settings_dict["USER"]
    assert run.environment["can_write"] == role
    assert run.environment["access"]["tcp"].startswith(f"{role}: this role can write (may create databases")
    shipped.set_workloads([Workload.objects.create(name="own", title="Own", sql="SELECT 1")])
    run = execution.perform(asked(shipped, database, quick).pk, "w@h")
    assert run.error.startswith(
        f"access: this run needs a login that cannot write, and over route tcp {role} "
    )


def asked(benchmark: Benchmark, database: Database, overrides: Overrides) -> Run:
    return state.request(benchmark, database, overrides, foreground=True, confirmed=database.name)
