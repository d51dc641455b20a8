"""The site's own Django inside a client: what is replaced, what stays, what is refused and what is
told.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.db import ConnectionHandler, connections
from psycopg.types.numeric import Int4

from example.books.models import Book
from pgperf.clients import instrumentation, site_django
from pgperf.core import protocol
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import Route

ALIASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "site",
        "USER": "site",
        "PASSWORD": "secret",
        "HOST": "db.example",
        "OPTIONS": {
            "service": "elsewhere", "sslmode": "verify-full", "sslrootcert": "/ca.pem",
            "options": "-c search_path=shop", "server_side_binding": True, "pool": True,
        },
        "CONN_HEALTH_CHECKS": True,
    },
    "replica": {"ENGINE": "django.db.backends.postgresql", "NAME": "site"},
    "old": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}  # fmt: skip
SPEC = protocol.Spec(
    layer="django_orm", mode="prepared", host="127.0.0.1", port=5433, dbname="app", user="reader", password="pw",
    sslmode="disable", application_name="pgperf-1", options="-c default_transaction_read_only=on", site=True,
)  # fmt: skip


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectionHandler]:
    copies = {name: {**alias, "OPTIONS": dict(alias.get("OPTIONS", {}))} for name, alias in ALIASES.items()}
    handler = ConnectionHandler(copies)
    monkeypatch.setattr(site_django, "connections", handler)
    yield handler
    site_django.connection_created.disconnect(dispatch_uid="pgperf.one_alias")


def test_only_the_address_and_login_are_replaced(handler: ConnectionHandler) -> None:
    site_django.redirect("default", SPEC)
    alias = handler["default"].settings_dict
    assert (alias["HOST"], alias["PORT"], alias["NAME"], alias["USER"], alias["PASSWORD"]) == (
        "127.0.0.1", 5433, "app", "reader", "pw",
    )  # fmt: skip
    assert alias["ENGINE"] == ALIASES["default"]["ENGINE"]
    options = alias["OPTIONS"]
    assert options["sslrootcert"] == "/ca.pem"
    assert options["sslmode"] == "disable"
    assert options["options"] == "-c search_path=shop -c default_transaction_read_only=on"
    assert options["application_name"] == "pgperf-1"
    assert (options["server_side_binding"], options["prepare_threshold"]) == (True, 0)
    assert "service" not in options
    assert "pool" not in options
    assert alias["CONN_MAX_AGE"] is None
    assert not alias["CONN_HEALTH_CHECKS"]


def test_over_a_relay_the_certificate_is_to_name_the_server(handler: ConnectionHandler) -> None:
    """libpq connects to `hostaddr` and checks the certificate against HOST."""
    site_django.redirect("default", SPEC._replace(sslmode="verify-full", certificate_name="db.example"))
    alias = handler["default"].settings_dict
    assert (alias["HOST"], alias["OPTIONS"]["hostaddr"]) == ("db.example", "127.0.0.1")
    site_django.redirect("default", SPEC)
    alias = handler["default"].settings_dict
    assert (alias["HOST"], alias["OPTIONS"].get("hostaddr")) == ("127.0.0.1", None)


@pytest.mark.parametrize(("mode", "binding"), [("simple", None), ("extended", True), ("prepared", True)])
def test_the_mode_decides_where_values_are_bound(
    handler: ConnectionHandler, mode: str, binding: bool | None
) -> None:
    site_django.redirect("default", SPEC._replace(mode=mode))
    assert handler["default"].settings_dict["OPTIONS"].get("server_side_binding") is binding


def test_an_unknown_or_non_postgresql_alias_is_refused(handler: ConnectionHandler) -> None:
    with pytest.raises(InvalidDefinition, match="no alias 'nowhere'; it has default, replica, old"):
        site_django.redirect("nowhere", SPEC)
    with pytest.raises(InvalidDefinition, match="'old' of DATABASES is not a PostgreSQL database"):
        site_django.redirect("old", SPEC)


@pytest.mark.django_db
def test_every_other_alias_is_closed_before_it_connects(handler: ConnectionHandler) -> None:
    site_django.close_others("default")
    with pytest.raises(InvalidDefinition, match=r"alias 'replica' .* but only 'default' .* using='replica'"):
        handler["replica"].cursor()
    with pytest.raises(InvalidDefinition, match="alias 'old'"):
        handler["old"].ensure_connection()


def test_another_thread_s_connection_to_another_alias_is_closed_again(handler: ConnectionHandler) -> None:
    site_django.close_others("default")
    closed: list[bool] = []
    other = SimpleNamespace(alias="replica", close=lambda: closed.append(True))
    with pytest.raises(InvalidDefinition, match="alias 'replica'"):
        site_django.connection_created.send(sender=object, connection=other)
    assert closed == [True]
    site_django.connection_created.send(sender=object, connection=SimpleNamespace(alias="default"))


@pytest.mark.parametrize(
    ("sql", "params", "statement"),
    [
        ("SELECT %s, %s", ("a", 1), protocol.Statement(sql="SELECT %s, %s", args=["a", 1])),
        ("SELECT %s", [Int4(7)], protocol.Statement(sql="SELECT %s", args=[7])),
        ("SELECT %s, %s", (True, None), protocol.Statement(sql="SELECT %s, %s", args=[True, None])),
        ("SELECT '10 %'", None, protocol.Statement(sql="SELECT '10 %%'", args=[])),
        ("SELECT %s", (b"bytes",), protocol.Statement(args=None)),
        ("SELECT %s", (float("nan"),), protocol.Statement(args=None)),
        ("SELECT %(a)s", {"a": 1}, protocol.Statement(args=None)),
        (object(), (), protocol.Statement(args=None)),
    ],
)
def test_given_converts_the_arguments_of_a_cursor(
    sql: Any, params: Any, statement: protocol.Statement
) -> None:
    found = site_django.given(sql, params, many=False)
    assert found == statement
    assert [type(arg) for arg in found.args or []] == [type(arg) for arg in statement.args or []]


def test_executemany_is_not_replayed() -> None:
    assert site_django.given("SELECT %s", [(1,), (2,)], many=True).args is None


def test_instrumentation_is_named(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connections["default"]
    connection.ensure_connection()
    plain = instrumentation.found(connection, tools={})

    def watch(execute: Any, *args: Any) -> Any:
        return execute(*args)

    with connection.execute_wrapper(watch):
        found = instrumentation.found(connection, tools={"json": "a tool"})
    assert plain == "none found"
    assert found.startswith("a tool, execute wrapper tests.clients.test_site_django.")
    original = connection.Database.connect
    monkeypatch.setattr(connection.Database, "connect", lambda *args, **kwargs: original(*args, **kwargs))
    assert "the driver's connect is wrapped by tests.clients.test_site_django" in instrumentation.found(
        connection
    )


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (Book.DoesNotExist("Book matching query does not exist."), "DoesNotExist: Book matching query does not exist."),
        (Book.DoesNotExist("no book of Jane Doe"), "DoesNotExist"),
        (Book.MultipleObjectsReturned("get() returned more than one Book -- it returned 2!"),
         "MultipleObjectsReturned: get() returned more than one Book -- it returned ?!"),
        (Book.MultipleObjectsReturned("two of Jane Doe"), "MultipleObjectsReturned"),
    ],
)  # fmt: skip
def test_of_a_query_set_only_django_s_own_words_are_told(error: Exception, shown: str) -> None:
    assert site_django.describe(error) == shown


def test_the_words_of_a_function_of_the_database_are_not_told(routes: dict[str, Route]) -> None:
    """PL/pgSQL puts values into its errors, under any SQLSTATE."""
    tcp = routes["tcp"]
    with (
        psycopg.connect(
            host=tcp.host, port=tcp.port, dbname=tcp.dbname, user=tcp.user, password=tcp.password
        ) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege) as raised,
    ):
        connection.execute("DO $$ BEGIN RAISE 'not Jane Doe' USING ERRCODE = '42501'; END $$")
    assert site_django.describe(raised.value).startswith("a function of the database raised an error")
