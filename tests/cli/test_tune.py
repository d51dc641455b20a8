"""`pgperf tune`: what it prints, and that it changes nothing."""

import io
import json
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from pgperf.cli import tune
from pgperf.core.exceptions import ClientFailed, InvalidDefinition
from pgperf.models import Database, Target

pytestmark = pytest.mark.django_db


@pytest.fixture
def demo(routes: dict[str, Any]) -> Database:
    row = Database.objects.create(
        name="demo", dbname=connection.settings_dict["NAME"], credential="alias:default"
    )
    route = routes["tcp"]
    Target.objects.create(database=row, route="tcp", host=route.host, port=route.port, sslmode="disable")
    return row


@pytest.fixture
def elsewhere(demo: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A server that does not run on this host."""
    ask = tune.AskedServer.of
    monkeypatch.setattr(tune.AskedServer, "of", lambda database: replace(ask(database), here=False))
    return demo


def pgperf(*words: str) -> str:
    out = io.StringIO()
    call_command("pgperf", "tune", *words, stdout=out)
    return out.getvalue()


def test_settings_advice_and_statements(demo: Database) -> None:
    text = pgperf("demo", "--memory", "16GB", "--cpus", "8")
    assert text.startswith("demo: PostgreSQL 18, profile web, 16GB of memory, CPUs: 8, storage SSD, ")
    assert "\nshared_buffers " in text
    assert "1/4 of the memory" in text
    assert "\nALTER SYSTEM SET wal_buffers = '16MB';  -- needs a restart" in text
    assert "\nSELECT pg_reload_conf();" in text
    assert "pgperf changes no setting" in text


def test_json_has_the_same_numbers_as_the_server(demo: Database) -> None:
    found = json.loads(pgperf("demo", "--memory", "16GB", "--cpus", "8", "--json"))
    assert found["database"] == "demo"
    assert found["server"] == {
        "version": 18.0, "memory_bytes": 16 << 30, "cpus": 8, "profile": "web", "connections": None,
        "storage": "ssd", "data_size": "similar",
    }  # fmt: skip
    with connection.cursor() as cursor:
        for each in found["settings"]:
            cursor.execute(f"SHOW {each['name']}")
            assert each["present"] == cursor.fetchone()[0]
    changed = [each["statement"] for each in found["settings"] if not (each["agrees"] or each["source"])]
    assert {line.partition("  -- needs a restart")[0] for line in found["statements"]} == {
        *changed, "SELECT pg_reload_conf();"
    }  # fmt: skip


def test_memory_and_cpus_are_those_of_this_host_where_the_server_runs(demo: Database) -> None:
    server = json.loads(pgperf("demo", "--json"))["server"]
    assert server["memory_bytes"] == tune._host_memory_kb() * 1024 > 0
    assert server["cpus"] == tune.Host.here().cpus


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "memory, cpus: the server of demo is not on this host, so its memory and cpus must be given: "),
        (("--cpus", "4"), "memory: .* must be given: --memory 16GB"),
        (("--memory", "8GB"), "cpus: .* must be given: --cpus 8"),
    ],
)
def test_elsewhere_they_must_be_given(elsewhere: Database, given: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        pgperf("demo", *given)


def test_elsewhere_with_both(elsewhere: Database) -> None:
    assert "8GB of memory, CPUs: 4" in pgperf("demo", "--memory", "8GB", "--cpus", "4")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nosuch",), "There is no database 'nosuch'. Databases: demo."),
        (("demo", "--memory", "lots"), "memory: 'lots' is no size; write a number with MB, GB or TB: 16GB"),
        (("demo", "--memory", "1MB"), "memory: 1MB is not allowed; choose 64MB to 16TB"),
        (("demo", "--cpus", "0"), "cpus: 0 is not allowed; choose 1 to 1024"),
        (("demo", "--connections", "1"), "connections: 1 is not allowed; choose 10 to 10000"),
    ],
)
def test_bad_input_is_answered(demo: Database, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError) as caught:
        pgperf(*words)
    assert str(caught.value) == message


@pytest.mark.parametrize("option", [("--profile", "fast"), ("--storage", "tape"), ("--data-size", "none")])
def test_other_choices_are_refused(demo: Database, option: tuple[str, str]) -> None:
    with pytest.raises(CommandError, match="invalid choice"):
        pgperf("demo", *option)


def test_nothing_is_changed(demo: Database, superuser_login: dict[str, Any]) -> None:
    def settings() -> list[tuple[Any, ...]]:
        with psycopg.connect(**superuser_login, dbname="postgres") as login:
            files = "SELECT name, setting, sourcefile FROM pg_file_settings ORDER BY 1, 2, 3"
            values = "SELECT name, setting, pending_restart::text FROM pg_settings WHERE source <> 'client' ORDER BY 1"
            return login.execute(files).fetchall() + login.execute(values).fetchall()

    before = settings()
    for profile in ("web", "desktop"):
        pgperf("demo", "--profile", profile, "--memory", "64GB", "--cpus", "32")
    assert settings() == before


def test_a_server_that_does_not_tell_whether_it_replicates_is_advised(
    demo: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_query: Any) -> bool:
        raise ClientFailed("permission denied for view pg_replication_slots", "42501")

    monkeypatch.setattr(tune.environment, "replicates", refused)
    assert tune.AskedServer.of(demo).replicates is False
    assert "shared_buffers" in pgperf("demo", "--memory", "16GB", "--cpus", "8")


def test_a_server_without_a_version_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match="server_version"):
        tune._version(tune.AskedServer({}, here=True))


def test_a_value_of_the_database_is_named(demo: Database, superuser_login: dict[str, Any]) -> None:
    """ALTER SYSTEM would not change it for this database."""
    name = psycopg.sql.Identifier(demo.dbname)
    change, reset = (
        psycopg.sql.SQL(f"ALTER DATABASE {{}} {what}").format(name)
        for what in ("SET work_mem = '77MB'", "RESET work_mem")
    )
    with psycopg.connect(**superuser_login, dbname="postgres") as login:
        login.execute(change)
        try:
            text = pgperf("demo", "--memory", "16GB", "--cpus", "8")
            found = json.loads(pgperf("demo", "--memory", "16GB", "--cpus", "8", "--json"))["settings"]
        finally:
            login.execute(reset)
    assert "\nwork_mem: the present value comes from ALTER DATABASE, which goes before the server's" in text
    assert {each["name"]: each["source"] for each in found}["work_mem"] == "database"


def test_before_9_4_lines_for_a_file_are_printed(demo: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tune.AskedServer({"server_version": "9.3.25"}, here=False)
    monkeypatch.setattr(tune.AskedServer, "of", lambda database: asked)
    text = pgperf("demo", "--memory", "1GB", "--cpus", "8")
    assert "ALTER SYSTEM SET" not in text
    assert "\nshared_buffers = '" in text
    assert "Put the lines into postgresql.conf" in text
