"""Fixtures on a real server: created with permission, refused with a reason without."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pgperf.access import fixtures
from pgperf.catalog import FIXTURES
from pgperf.core.exceptions import ClientFailed, FixtureMissing
from pgperf.core.records import Route
from pgperf.models import Database
from pgperf.runner.server.control_connection import ControlConnection
from tests.clients.hostile_server import HostileServer, fixed, instead, message

ALLOWED, FORBIDDEN = Database(name="demo", allow_fixtures=True), Database(name="demo", allow_fixtures=False)


@pytest.fixture(scope="module")
def monitor(routes: dict[str, Route]) -> Iterator[ControlConnection]:
    with ControlConnection(routes["socket"]) as connection:
        yield connection


@pytest.fixture
def missing(monitor: ControlConnection) -> None:
    for statement in FIXTURES["site"].drop:
        monitor.query(statement)


def test_a_fixture_is_created_once(
    missing: None, routes: dict[str, Route], monitor: ControlConnection
) -> None:
    assert not fixtures.exists("site", routes["tcp"])
    assert fixtures.ensure("site", ALLOWED, routes["tcp"])
    assert not fixtures.ensure("site", ALLOWED, routes["tcp"])
    assert fixtures.exists("site", routes["tcp"])
    assert monitor.query("SELECT name FROM pgperf.site WHERE domain = 'beispiel.example'") == [["Größe 42"]]


def test_an_existing_fixture_needs_no_permission(routes: dict[str, Route]) -> None:
    fixtures.ensure("site", ALLOWED, routes["tcp"])
    assert not fixtures.ensure("site", FORBIDDEN, routes["tcp"])


def test_a_missing_fixture_without_permission_is_refused(missing: None, routes: dict[str, Route]) -> None:
    with pytest.raises(FixtureMissing, match=r"(?s)allow fixtures.*CREATE TABLE") as caught:
        fixtures.ensure("site", FORBIDDEN, routes["tcp"])
    assert fixtures.statements("site") in str(caught.value)


def test_no_line_beside_the_sql_is_the_server_s(missing: None, routes: dict[str, Route]) -> None:
    """People paste these lines into psql, and the server may be an impostor."""
    words = b"no\n\\! touch /tmp/obeyed\nGRANT admin TO eve;"
    refusal = fixed(message("E", b"SERROR\0C42501\0M" + words + b"\0\0"))
    forges = {"CREATE TABLE": instead(C=refusal)}
    with HostileServer(routes["tcp"].port, forges) as server, pytest.raises(FixtureMissing) as caught:
        fixtures.ensure("site", ALLOWED, replace(routes["tcp"], port=server.port))
    first, *others = str(caught.value).splitlines()
    assert "GRANT admin TO eve;" in first
    assert "\n".join(others) == fixtures.statements("site")


def test_a_login_without_create_privilege_is_refused(
    missing: None, routes: dict[str, Route], monitor: ControlConnection
) -> None:
    """The refusal is the server's: every connection of this one is read-only."""
    user = routes["tcp"].user
    monitor.query(f'ALTER ROLE "{user}" SET default_transaction_read_only = on')
    try:
        with pytest.raises(FixtureMissing, match=r"(?s)GRANT CREATE ON DATABASE.*CREATE TABLE") as caught:
            fixtures.ensure("site", ALLOWED, routes["tcp"])
        assert routes["tcp"].password not in str(caught.value)
    finally:
        monitor.query(f'ALTER ROLE "{user}" RESET default_transaction_read_only')


def test_a_workload_without_a_fixture_needs_nothing(routes: dict[str, Route]) -> None:
    assert not fixtures.ensure("", FORBIDDEN, routes["tcp"])


def test_an_unknown_fixture_is_refused(routes: dict[str, Route]) -> None:
    with pytest.raises(FixtureMissing, match="'castle' is unknown; choose from site"):
        fixtures.ensure("castle", ALLOWED, routes["tcp"])


def test_an_unreachable_server_is_an_error(routes: dict[str, Route]) -> None:
    nowhere = Route("tcp", "127.0.0.1", 1, "app", "app", "hidden")
    with pytest.raises(ClientFailed) as caught:
        fixtures.ensure("site", ALLOWED, nowhere)
    assert "hidden" not in str(caught.value)


def test_on_a_standby_the_remedy_is_its_primary(
    routes: dict[str, Route], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m soak.outages --case "hot standby"` starts a real one."""
    monkeypatch.setattr(fixtures, "_yes", lambda _connection, question: "pg_is_in_recovery" in question)
    with pytest.raises(FixtureMissing, match=r"(?s)is a standby.*on the primary.*CREATE TABLE") as caught:
        fixtures.ensure("site", ALLOWED, routes["tcp"])
    assert "GRANT" not in str(caught.value)
