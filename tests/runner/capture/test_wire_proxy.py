"""The wire proxy between real clients and a real server."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import Route
from pgperf.runner.capture import wire_proxy
from pgperf.runner.capture.pg_messages import ExecutedStatement, MessageSplitter
from pgperf.runner.capture.wire_proxy import RefusedWrite, WireProxy
from tests import impostor
from tests.impostor import Impostor
from tests.security import client_certificates


def connected(route: Route) -> psycopg.Connection:
    return psycopg.connect(
        host=route.host, port=route.port, dbname=route.dbname, user=route.user, password=route.password,
        sslmode=route.sslmode, autocommit=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["socket", "tcp", "pgbouncer"])
def test_statements_are_recorded_over_every_route(routes: dict[str, Route], name: str) -> None:
    with WireProxy(routes[name]) as wire, connected(wire.route) as client:
        wire.reset()
        assert client.execute("SELECT generate_series(1, %s), %s", [3, "ä"]).fetchall() == [
            (n, "ä") for n in (1, 2, 3)
        ]
        psycopg.ClientCursor(client).execute("SELECT 1 WHERE %s", [False])
        heard = wire.recorded()
    assert [each.text for each in heard.executed] == [
        "SELECT generate_series(1, $1), $2",
        "SELECT 1 WHERE false",
    ]
    assert [each.simple for each in heard.executed] == [False, True]
    assert heard.rows == (3, 0)


@pytest.mark.parametrize("cursor", [psycopg.Cursor, psycopg.ClientCursor])
def test_a_statement_that_fails_returns_no_rows(routes: dict[str, Route], cursor: Any) -> None:
    """Those of the next statement are its own."""
    with WireProxy(routes["tcp"]) as wire, connected(wire.route) as client:
        wire.reset()
        for sql in ("SELECT * FROM no_such_table", "SELECT 1 / (3 - g) FROM generate_series(1, 5) g"):
            with pytest.raises(psycopg.Error):
                cursor(client).execute(sql)
            cursor(client).execute("SELECT generate_series(1, 5)")
        heard = wire.recorded()
    assert len(heard.executed) == 4
    assert heard.rows == (0, 5, 0, 5)


@pytest.mark.parametrize("cursor", [psycopg.Cursor, psycopg.ClientCursor])
def test_a_refused_write_is_recorded_with_the_server_s_words(routes: dict[str, Route], cursor: Any) -> None:
    """Of one operation, and not those before it; the statement that came after it is another."""
    with WireProxy(routes["tcp"]) as wire, connected(wire.route) as client:
        client.execute("SET default_transaction_read_only = on")
        for table in ("earlier", "later"):
            wire.reset()
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                cursor(client).execute(f"CREATE TABLE {table} AS SELECT %s::text", ["4711"])
            cursor(client).execute("SELECT 1")
        (refused,) = wire.recorded().refused
    assert refused.statement.startswith("CREATE TABLE later AS SELECT ")
    assert refused.words == "cannot execute CREATE TABLE AS in a read-only transaction"


def test_the_words_of_a_function_that_refuses_are_not_kept(routes: dict[str, Route]) -> None:
    """They may hold values of the site's rows."""
    with WireProxy(routes["tcp"]) as wire, connected(wire.route) as client:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            client.execute("DO $$ BEGIN RAISE 'Jane Doe may not' USING ERRCODE = '25006'; END $$")
        (refused,) = wire.recorded().refused
    assert refused.words.startswith("a function of the database raised an error")
    assert "Jane" not in refused.words


def test_a_password_in_the_server_s_words_is_scrubbed(routes: dict[str, Route]) -> None:
    wire, password = WireProxy(routes["tcp"]), routes["tcp"].password
    (message,) = MessageSplitter(starting=False).feed(impostor.error(f"not {password}", "25006"))
    wire._keep_refusal(message, [ExecutedStatement("SELECT f()", simple=True)])
    wire.__exit__(None, None, None)
    assert wire.refused == [RefusedWrite("SELECT f()", "not <password>")]


def test_a_big_answer_passes_whole(routes: dict[str, Route]) -> None:
    with WireProxy(routes["tcp"]) as wire, connected(wire.route) as client:
        (row,) = client.execute("SELECT repeat('x', 3000000)").fetchall()
        assert len(row[0]) == 3_000_000


def test_each_connection_begins_a_record_of_its_own(routes: dict[str, Route]) -> None:
    with WireProxy(routes["tcp"]) as wire:
        for number in (1, 2):
            with connected(wire.route) as client:
                client.execute(f"SELECT {number}")
                assert [each.text for each in wire.recorded().executed] == [f"SELECT {number}"]


def test_the_connections_that_sent_statements_are_counted(routes: dict[str, Route]) -> None:
    with WireProxy(routes["tcp"]) as wire, connected(wire.route) as first, connected(wire.route) as second:
        first.execute("SELECT 1")
        assert wire.recorded().connections == 1
        second.execute("SELECT 2")
        assert wire.recorded().connections == 2
        wire.reset()
        first.execute("SELECT 3")
        recorded = wire.recorded()
        assert [each.text for each in recorded.executed] == ["SELECT 3"]
        assert (recorded.rows, recorded.connections) == ((1,), 1)


def test_other_users_cannot_connect_and_the_directory_is_removed(routes: dict[str, Route]) -> None:
    with WireProxy(routes["tcp"]) as wire:
        directory = Path(wire.route.host)
        assert directory.stat().st_mode & 0o777 == 0o700
    assert not directory.exists()


def test_a_server_that_is_not_there_ends_the_connection(routes: dict[str, Route]) -> None:
    with WireProxy(replace(routes["tcp"], port=1)) as wire:
        with pytest.raises(psycopg.OperationalError):
            connected(wire.route)
        with pytest.raises(ClientFailed, match="the server cannot be reached"):
            wire.recorded()


def test_tls_is_required_where_the_route_says_so(routes: dict[str, Route]) -> None:
    """The stack's server has none."""
    with pytest.raises(ClientFailed, match="does not offer TLS"):
        wire_proxy.connect(replace(routes["tcp"], sslmode="require"))
    wire_proxy.connect(replace(routes["tcp"], sslmode="prefer")).close()


def test_the_reason_of_a_refused_certificate_is_told(
    routes: dict[str, Route], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tests/core/test_server_certificate.py compares what is refused with libpq."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with WireProxy(replace(routes["pgbouncer"], sslmode="verify-full")) as wire:
        with pytest.raises(psycopg.OperationalError):
            connected(wire.route)
        with pytest.raises(ClientFailed, match="sslrootcert: the file of root certificates does not exist"):
            wire.check()


def test_the_client_certificate_of_the_user_is_presented(
    routes: dict[str, Route], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As libpq does, so that a server that demands one can be captured."""
    client_certificates.issue(tmp_path, "u", tmp_path / "client-ca.crt")
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / ".postgresql"
    certificate = (place / "postgresql.crt", place / "postgresql.key")
    with Impostor(certificate=certificate, client_authority=tmp_path / "client-ca.crt") as server:
        route = replace(routes["tcp"], host=server.host, port=server.port, sslmode="require")
        with wire_proxy.connect(route) as connection:
            connection.sendall(b"\0\0\0\x08\0\x03\0\0")
            assert connection.recv(1) == b"R"
