"""The site's Django connects over a route, whatever the OPTIONS of its alias demand."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from pgperf.core import protocol, sql_parameters
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import Route
from pgperf.install import launch
from pgperf.runner import site_connection
from pgperf.runner.client_process import ClientProcess, login, site_environment
from tests.runner.forked_clients import with_modules_of_site

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


@pytest.fixture(scope="module", autouse=True)
def nursery() -> Iterator[None]:
    """Clients are forked, and then set Django up themselves."""
    with with_modules_of_site() as found, found.raising():
        yield


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
    options({**OVERRIDDEN, **KEPT})
    site_connection.check(route, WORKLOAD, "pgperf-test")
    socket = routes["socket"]
    site_connection.check(socket, WORKLOAD, "pgperf-test")


@pytest.mark.parametrize("mode", ["extended", "prepared"])
def test_the_mode_overrides_the_class_of_the_cursor(mode: str, route: Route, options: Any) -> None:
    options({"cursor_factory": "no class"})
    assert connected(route, mode).versions["django"]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"cursor_factory": "no.Class"}, r"OPTIONS\['cursor_factory'\], of type str, of the alias 'default'"),
        ({"cursor_factory": "import:builtins.dict"}, r"OPTIONS\['cursor_factory'\], a class, of the alias"),
        ({"row_factory": "no.function", "keepalives": 1}, r": OPTIONS\['row_factory'\], of type str, of the"),
        ([["keepalives", 1]], "OPTIONS of the alias 'default' of DATABASES: of type list; write a dict"),
    ],
)
def test_an_option_that_neither_django_nor_the_driver_can_use_is_named(
    route: Route, options: Any, found: Any, words: str
) -> None:
    options(found)
    with pytest.raises(ClientFailed, match=words) as caught:
        site_connection.check(route, WORKLOAD, "pgperf-test")
    assert ".py, line" not in str(caught.value)
    assert "no." not in str(caught.value)


def test_an_error_of_the_operation_is_not_one_of_its_options(route: Route, options: Any) -> None:
    options({"keepalives": 1})
    failing = {"orm": "tests.failing"}
    with pytest.raises(ClientFailed, match=r"ValueError in site_workloads\.py, line"):
        connected(route, "simple", layer="django_orm", workload=failing)


def connected(
    route: Route, mode: str, layer: str = "django_cursor", workload: dict[str, str] = WORKLOAD
) -> protocol.Ready:
    """A client of the site's Django in that mode, once it has run its operation."""
    statements = sql_parameters.statements("SELECT 1", ())
    spec = protocol.Spec(
        layer=layer, mode=mode, **login(route), **workload, statements=statements, site=True, cold=False
    )  # fmt: skip
    argv = launch.command(layer, "")
    with ClientProcess("the site's Django", argv, route.password, site_environment()) as client:
        client.send(spec._replace(runner_pid=os.getpid(), spawned_ns=client.spawned_ns))
        return client.expect(protocol.Ready, 60)


def test_a_refused_option_is_named(route: Route, options: Any) -> None:
    options({"replication": "database"})
    with pytest.raises(
        ClientFailed, match=r"OPTIONS\['replication'\] of the alias 'default': Django cannot run"
    ):
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
