"""`pgperf add`: a database with one route from an alias."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from pgperf.models import Database, Target

pytestmark = pytest.mark.django_db


def add(*words: str) -> str:
    out = io.StringIO()
    call_command("pgperf", "add", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An alias that a test may change."""
    alias = {"ENGINE": "django.db.backends.postgresql", "NAME": "shop", "USER": "u", "PASSWORD": "canary"}
    monkeypatch.setitem(connections.databases, "shop", alias)
    connections.configure_settings(connections.databases)
    alias.update({"HOST": "db.internal", "PORT": "5433"})
    return alias


def test_the_route_has_the_address_of_the_alias(shop: dict[str, Any]) -> None:
    said = add("shop", "--allow-fixtures")
    assert said == "shop: shop, route tcp (db.internal:5433)\n"
    database = Database.objects.get()
    assert (database.credential, database.allow_fixtures, database.production) == ("alias:shop", True, False)
    target = database.targets.get()
    assert (target.route, target.host, target.port, target.sslmode) == ("tcp", "db.internal", 5433, "prefer")


def test_a_directory_is_a_unix_socket(shop: dict[str, Any]) -> None:
    shop.update(HOST="/run/postgresql", PORT="", OPTIONS={"sslmode": "disable"})
    add("shop", "--name", "live", "--production")
    target = Target.objects.get()
    assert (target.route, target.host, target.port, target.sslmode) == (
        "socket",
        "/run/postgresql",
        5432,
        "disable",
    )
    assert target.database.name == "live"
    assert target.database.production


@pytest.mark.parametrize(
    ("change", "words", "said"),
    [
        ({}, ["nope"], "DATABASES has no 'nope'. Use one of default, shop"),
        ({"ENGINE": "django.db.backends.sqlite3"}, ["shop"], "'shop' is not a PostgreSQL"),
        ({"HOST": ""}, ["shop"], "has no HOST"),
        ({"HOST": "a,b", "PORT": "5432,5433"}, ["shop"], "alias: 'shop' has not one address (HOST 'a,b'"),
        ({"HOST": "a,b", "PORT": "5432"}, ["shop"], "alias: 'shop' has not one address"),
        ({"PORT": "postgres"}, ["shop"], "alias: 'shop' has not one address"),
        ({}, ["shop", "--name", "no slug"], "name: "),
        ({"OPTIONS": {"sslmode": "perhaps"}}, ["shop"], "sslmode: "),
    ],
)
def test_a_refusal_creates_nothing(
    shop: dict[str, Any], change: dict[str, Any], words: list[str], said: str
) -> None:
    shop.update(change)
    with pytest.raises(CommandError) as caught:
        add(*words)
    assert said in str(caught.value)
    assert "canary" not in str(caught.value)
    assert not Database.objects.exists()


def test_a_second_call_gives_an_error(shop: dict[str, Any]) -> None:
    add("shop")
    with pytest.raises(CommandError, match=r"name: This name is not available"):
        add("shop")
    assert Target.objects.count() == 1


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_pooler_is_a_second_route(shop: dict[str, Any], mode: str) -> None:
    shop["OPTIONS"] = {"sslmode": "require"}
    said = add("shop", "--pooler", mode, "--host", "pool.internal", "--port", "6000")
    first, note = said.splitlines()
    assert first == "shop: shop, route tcp (db.internal:5433), route pgbouncer (pool.internal:6000)"
    assert "add 'pool.internal:6000' to PGPERF['ALLOWED_HOSTS']" in note
    direct, pooled = Target.objects.order_by("pk")
    assert (direct.route, direct.pooler) == ("tcp", "")
    assert (pooled.route, pooled.pooler, pooled.host, pooled.port) == (
        "pgbouncer",
        mode,
        "pool.internal",
        6000,
    )
    assert pooled.sslmode == direct.sslmode == "require"


def test_poolers_are_added_to_a_database_that_exists(shop: dict[str, Any]) -> None:
    add("shop", "--production")
    login = ["--user", "pgperf_reader_shop", "--credential", "env:PGPERF_SECRET_READER"]
    said = add("shop", "--pooler", "session", *login)
    assert said.startswith("shop: shop, route pgbouncer (db.internal:6432)\n")
    add("shop", "--pooler", "transaction", "--route", "by-transaction", "--port", "6433")
    assert list(Target.objects.order_by("pk").values_list("route", "pooler", "user")) == [
        ("tcp", "", ""),
        ("pgbouncer", "session", "pgperf_reader_shop"),
        ("by-transaction", "transaction", ""),
    ]
    assert Database.objects.get().production


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pooler", "statement"], "invalid choice: 'statement'"),
        (["--pooler", "session", "--port", "0"], "port: "),
        (["--pooler", "session", "--port", "x"], "invalid int value"),
        (["--pooler", "session", "--host", "a b"], "host: "),
        (["--pooler", "session", "--route", "tcp"], "already exists"),
        (["--pooler", "session", "--user", "reader"], "user: "),
        (["--pooler", "session", "--user", "reader", "--credential", "secret"], "credential: "),
        (["--host", "pool.internal"], "host: --host describes a pooler's route; add --pooler"),
        (["--port", "6432"], "port: --port describes a pooler's route; add --pooler"),
    ],
)
def test_a_pooler_that_is_refused_creates_nothing(shop: dict[str, Any], words: list[str], said: str) -> None:
    with pytest.raises(CommandError) as caught:
        add("shop", *words)
    assert said in str(caught.value)
    assert not Database.objects.exists()


@pytest.mark.parametrize("words", [["--production"], ["--allow-fixtures"], ["--agent", "db1"]])
def test_a_pooler_changes_no_setting_of_a_database_that_exists(
    shop: dict[str, Any], words: list[str]
) -> None:
    add("shop")
    with pytest.raises(CommandError, match="'shop' exists already; change its settings in the admin"):
        add("shop", "--pooler", "session", *words)
    assert Target.objects.count() == 1


def test_a_pooler_is_not_added_to_the_database_of_another_alias(shop: dict[str, Any]) -> None:
    Database.objects.create(name="shop", dbname="other", credential="alias:default")
    with pytest.raises(CommandError, match=r"name: 'shop' is a database of alias:default"):
        add("shop", "--pooler", "session")
    assert not Target.objects.exists()


def test_a_pooler_needs_a_host(shop: dict[str, Any]) -> None:
    Database.objects.create(name="shop", dbname="shop", credential="alias:shop")
    shop["HOST"] = ""
    with pytest.raises(CommandError, match="Add the pooler's by --host"):
        add("shop", "--pooler", "session")
    add("shop", "--pooler", "session", "--host", "/run/postgresql")
