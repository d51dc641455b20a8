"""`pgperf prune --fixtures` on a real server."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pgperf.access import fixtures
from pgperf.cli import prune
from pgperf.core.records import Route
from pgperf.models import Database, Run, Target
from pgperf.runner.server.control_connection import Monitor
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
    """The stack's own database with the fixture in it, and a password that the environment keeps."""
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
    with Monitor(route) as monitor:
        return monitor.query("SELECT 1 FROM pg_namespace WHERE nspname = 'pgperf'")


def test_what_pgperf_made_goes(database: Database, routes: dict[str, Route]) -> None:
    assert command("--yes") == "stack: dropped site, schema pgperf.\n"
    assert schema(routes["tcp"]) == []
    assert command("--yes") == "stack: has no tables of pgperf.\n"


def test_what_is_not_ours_stays(database: Database, routes: dict[str, Route]) -> None:
    with Monitor(routes["tcp"]) as monitor:
        monitor.query("CREATE TABLE pgperf.theirs ()")
        try:
            assert command("--yes") == "stack: dropped site.\n"
            monitor.query("CREATE TABLE pgperf.site (id int)")  # of the name, without our comment
            assert command("--yes") == "stack: has no tables of pgperf.\n"
            assert monitor.query("SELECT to_regclass('pgperf.site') IS NOT NULL")
        finally:
            monitor.query("DROP SCHEMA pgperf CASCADE")


def test_it_asks_first(database: Database, routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(prune.sys, "stdin", io.StringIO("yes\n"))
    assert "--yes" in refusal()
    monkeypatch.setattr(prune.sys, "stdin", Terminal("y\n"))
    assert "--yes" in refusal()
    assert "Would drop pgperf's tables in: stack." in command("--dry-run")
    assert fixtures.exists("site", routes["tcp"])
    monkeypatch.setattr(prune.sys, "stdin", Terminal("yes\n"))
    assert "dropped site" in command()


def test_only_where_fixtures_are_allowed(database: Database, routes: dict[str, Route]) -> None:
    Database.objects.update(allow_fixtures=False)
    assert "No database allows fixtures" in refusal("--yes")
    assert "'stack' is not a database that allows fixtures" in refusal("--yes", "--database", "stack")
    assert fixtures.exists("site", routes["tcp"])


def test_production_only_by_name(database: Database, routes: dict[str, Route]) -> None:
    Database.objects.update(production=True)
    assert "Name a production database" in refusal("--yes")
    assert fixtures.exists("site", routes["tcp"])
    assert "dropped site" in command("--yes", "--database", "stack")


def test_not_under_a_run(database: Database, routes: dict[str, Route]) -> None:
    factories.make_run(Run.Status.RUNNING, database=database)
    assert refusal("--yes") == "Not dropped in stack."
    assert fixtures.exists("site", routes["tcp"])


def test_one_that_fails_keeps_no_other(database: Database, routes: dict[str, Route]) -> None:
    Database.objects.create(
        name="a-broken", dbname="x", credential="env:PGPERF_SECRET_NONE", allow_fixtures=True
    )
    assert refusal("--yes") == "Not dropped in a-broken."
    assert not fixtures.exists("site", routes["tcp"])
