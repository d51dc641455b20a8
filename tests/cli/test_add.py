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
    with pytest.raises(CommandError, match=r"name: .*already exists"):
        add("shop")
    assert Target.objects.count() == 1
