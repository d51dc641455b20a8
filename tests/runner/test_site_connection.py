"""The site's Django connects over a route, whatever the OPTIONS of its alias demand."""

import json
from typing import Any

import pytest

from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import Route
from pgperf.runner import site_connection

READ_ONLY = "-c default_transaction_read_only=on"
WORKLOAD = {"orm": "tests.counting"}
#: Each alone makes a connection over the tests' routes impossible, or leads it elsewhere.
OVERRIDDEN = {
    "target_session_attrs": "read-write",
    "service": "elsewhere",
    "passfile": "/nowhere",
    "hostaddr": "192.0.2.1",
    "sslnegotiation": "direct",
    "sslcertmode": "require",
    "channel_binding": "require",
    "requirepeer": "nobody",
    "gssencmode": "require",
    "connect_timeout": "no number",
    "client_encoding": "LATIN1",
    "user": "other",
    "password": "other",
    "dbname": "other",
    "pool": {"min_size": 4},
    "prepare_threshold": 1,
    "cursor_factory": "no class",
}
KEPT = {
    "isolation_level": 4,
    "keepalives": 1,
    "keepalives_idle": 30,
    "tcp_user_timeout": 30000,
    "sslcert": "/nowhere.crt",
    "sslcompression": 0,
    "options": "-c search_path=pg_catalog",
    "assume_role": "pgperf",
    "fallback_application_name": "site",
}


@pytest.fixture
def route(routes: dict[str, Route]) -> Route:
    tcp = routes["tcp"]
    return Route("tcp", tcp.host, tcp.port, tcp.dbname, tcp.user, tcp.password, options=READ_ONLY)


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the OPTIONS of the site's aliases."""

    def write(found: dict[str, Any]) -> None:
        monkeypatch.setenv("PGPERF_TEST_OPTIONS", json.dumps(found))

    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.settings_options")
    return write


def test_overridden_and_kept_options_let_it_connect(
    route: Route, routes: dict[str, Route], options: Any
) -> None:
    options({**OVERRIDDEN, **KEPT} | {"cursor_factory": None})
    site_connection.check(route, WORKLOAD, "pgperf-test")
    socket = routes["socket"]
    site_connection.check(socket, WORKLOAD, "pgperf-test")


def test_a_refused_option_is_named(route: Route, options: Any) -> None:
    options({"replication": "database"})
    with pytest.raises(ClientFailed, match=r"OPTIONS\['replication'\] of the alias: Django cannot run"):
        site_connection.check(route, WORKLOAD, "pgperf-test")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"no_such_key": 1}, 'invalid connection option "no_such_key"'),
        ({"ssl_min_protocol_version": "none"}, "invalid value of OPTIONS: ssl_min_protocol_version"),
        ({"assume_role": "no_such_role"}, r"the role that it should assume \[22023\]"),
        ({"options": "-c no_such_setting=1"}, r"does not know a setting .* \[42704\]"),
        ({"isolation_level": 99}, "Invalid transaction isolation level 99"),
    ],
)
def test_a_failure_says_what_fails(route: Route, options: Any, found: dict[str, Any], words: str) -> None:
    options(found)
    with pytest.raises(ClientFailed, match=words) as caught:
        site_connection.check(route, WORKLOAD, "pgperf-test")
    assert ".py, line" not in str(caught.value)
