"""`pgperf prune --fixtures` on a real server."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pgperf.access import fixtures
from pgperf.catalog import FIXTURES
from pgperf.cli import prune
from pgperf.core.records import Route
from pgperf.models import Database, Run, Target
from pgperf.runner.server.control_connection import ControlConnection
from tests import factories

pytestmark = pytest.mark.django_db


def command(*words: str) -> str:
    out = io.StringIO()
    call_command("pgperf", "prune", "--fixtures", *words, stdout=out)
    return out.getvalue()


def refusal(*words: str) -> str:
    with pytest.raises(CommandError) as caught:
        command(*words)
    return str(caught.value)


@pytest.fixture
def database(routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch) -> Database:
    """The stack's database with the fixture, and a password in the environment."""
    tcp = routes["tcp"]
    monkeypatch.setenv("PGPERF_SECRET_STACK", tcp.password)
    database = Database.objects.create(
        name="stack",
        dbname=tcp.dbname,
        user=tcp.user,
        credential="env:PGPERF_SECRET_STACK",
        allow_fixtures=True,
    )
    Target.objects.create(database=database, route="tcp", host=tcp.host, port=tcp.port, sslmode="disable")
    fixtures.ensure("site", database, tcp)
    return database


def schema(route: Route) -> list[Any]:
    with ControlConnection(route) as monitor:
        return monitor.query("SELECT 1 FROM pg_namespace WHERE nspname = 'pgperf'")


def test_drops_the_fixtures(database: Database, routes: dict[str, Route]) -> None:
    dropped = command("--yes").removeprefix("stack: dropped ").removesuffix(".\n").split(", ")
    assert dropped[0] == "site"
    assert dropped[-1] == "schema pgperf"
    assert set(dropped[1:-1]) <= set(FIXTURES), "those that other tests made in this server"
    assert schema(routes["tcp"]) == []
    assert command("--yes") == "stack: has no fixture tables of pgperf.\n"


def test_keeps_tables_that_pgperf_did_not_create(database: Database, routes: dict[str, Route]) -> None:
    with ControlConnection(routes["tcp"]) as monitor:
        monitor.query("CREATE TABLE pgperf.theirs ()")
        try:
            assert command("--yes") == "stack: dropped site.\n"
            monitor.query("CREATE TABLE pgperf.site (id int)")  # of the name, without our comment
            assert command("--yes") == "stack: has no fixture tables of pgperf.\n"
            assert monitor.query("SELECT to_regclass('pgperf.site') IS NOT NULL")
        finally:
            monitor.query("DROP SCHEMA pgperf CASCADE")


def test_asks_for_confirmation(
    database: Database, routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(prune.sys, "stdin", io.StringIO("yes\n"))
    assert "--yes" in refusal()
    monkeypatch.setattr(prune.sys, "stdin", Terminal("y\n"))
    assert "--yes" in refusal()
    assert "Would drop the fixture tables (schema pgperf) in: stack." in command("--dry-run")
    assert fixtures.exists("site", routes["tcp"])
    monkeypatch.setattr(prune.sys, "stdin", Terminal("yes\n"))
    assert "dropped site" in command()


def test_requires_a_database_that_allows_fixtures(database: Database, routes: dict[str, Route]) -> None:
    Database.objects.update(allow_fixtures=False)
    assert "No database allows fixtures" in refusal("--yes")
    said = refusal("--yes", "--database", "stack")
    assert said.startswith("stack does not allow fixtures, so pgperf drops none there. Tick 'allow fixtures'")
    assert said.endswith(fixtures.drop_script())
    assert refusal("--yes", "--database", "nope") == "There is no database 'nope'. Databases: stack."
    assert fixtures.exists("site", routes["tcp"])


def test_requires_the_name_of_a_production_database(database: Database, routes: dict[str, Route]) -> None:
    Database.objects.update(production=True)
    assert "Name a production database" in refusal("--yes")
    assert fixtures.exists("site", routes["tcp"])
    assert "dropped site" in command("--yes", "--database", "stack")


def test_refuses_while_a_run_is_active(database: Database, routes: dict[str, Route]) -> None:
    factories.make_run(Run.Status.RUNNING, database=database)
    assert refusal("--yes") == "Not dropped in stack."
    assert fixtures.exists("site", routes["tcp"])


def test_a_failing_database_does_not_stop_the_others(database: Database, routes: dict[str, Route]) -> None:
    Database.objects.create(
        name="a-broken", dbname="x", credential="env:PGPERF_SECRET_NONE", allow_fixtures=True
    )
    assert refusal("--yes") == "Not dropped in a-broken."
    assert not fixtures.exists("site", routes["tcp"])
