"""Layers whose libpq has no TLS are left out where a route demands it; the others are checked as
the route says.
"""

import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from pgperf.core import layers, protocol, sql_parameters
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import BulkInsert, Definition, LeftOut, Page, Route, WorkloadDefinition
from pgperf.delay.relay import DelayRelay, RelayLoop
from pgperf.install import launch
from pgperf.runner import tls_support
from pgperf.runner.capture import wire_proxy
from pgperf.runner.capture.statements import CaptureSettings
from pgperf.runner.client_process import ClientProcess, ProcessEnvironment, login
from pgperf.runner.plan import make_plan
from pgperf.runner.server.control_connection import ControlConnection

WORK = WorkloadDefinition("one", "SELECT 1")
#: psycopg's own libpq: the same version as the embedded PostgreSQL's, and built with OpenSSL.
WITH_TLS = sorted((Path(psycopg.__file__).parent.parent / "psycopg_binary.libs").glob("libpq-*.so*"))


@pytest.fixture(scope="session")
def tls(routes: dict[str, Route], stack: dict[str, str]) -> Route:
    """The pooler, whose certificate is to be checked in full."""
    authority = str(Path(stack["PGPERF_CREDENTIAL_DIR"]) / "ca.crt")
    return replace(routes["pgbouncer"], name="tls", sslmode="verify-full", sslrootcert=authority)


@pytest.fixture
def site(tls: Route, c_client: Path) -> CaptureSettings:
    return CaptureSettings(tls, str(c_client.parent))


def definition(*names: str, modes: tuple[str, ...] = ("simple",)) -> Definition:
    return Definition("b", (WORK,), names, ("tcp", "tls"), modes=modes)


def test_those_without_are_found_and_left_out(
    tls: Route, routes: dict[str, Route], site: CaptureSettings
) -> None:
    """The embedded PostgreSQL's libpq is built without OpenSSL, and the C client and psycopg2 stand
    on it.
    """
    wanted = definition("libpq", "psycopg2", "psycopg")
    both = {"tcp": routes["tcp"], "tls": tls}
    lacking = tls_support.refusals(wanted, both, site, [])
    assert [(each.layer, each.route) for each in lacking] == [("libpq", "tls"), ("psycopg2", "tls")]
    assert "PG_CONFIG" in lacking[0].reason
    left = {(variant.layer, variant.route) for variant in make_plan(wanted, lacking).variants}
    everything = {(layer, route) for layer in wanted.layers for route in wanted.routes}
    assert left == everything - {("libpq", "tls"), ("psycopg2", "tls")}


SITES_OWN = (
    WorkloadDefinition("page", "", page=Page("/books/visit/")),
    WorkloadDefinition("callable", "", orm="shop.touch"),
    WorkloadDefinition(
        "rows", "", bulk=BulkInsert("rows", "copy", "pgperf.rows", ("a",), ("int4",), (1,), 10)
    ),
)


@pytest.mark.parametrize("work", SITES_OWN, ids=lambda work: work.name)
def test_nothing_of_the_workload_runs_here(
    tls: Route, site: CaptureSettings, work: WorkloadDefinition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client runs its operation once before it is ready, and no session is read-only yet."""
    sent: list[protocol.Spec] = []

    def send(_client: ClientProcess, spec: protocol.Spec) -> None:
        sent.append(spec)
        raise ClientFailed("enough")

    monkeypatch.setattr(ClientProcess, "send", send)
    names = (
        "psycopg",
        "django_cursor",
        "django_orm",
        "django_orm_async",
        "django_view",
        "django_orm_psycopg2",
    )
    wanted = replace(definition(*names), workloads=(work,))
    assert tls_support.refusals(wanted, {"tls": tls}, site, []) == []
    cursors = [*["django_cursor"] * 4, "django_cursor_psycopg2"]
    assert [spec.layer for spec in sent] == ["psycopg", *cursors]
    for spec in sent:
        assert spec.statements == sql_parameters.statements("SELECT 1", ())
        assert (spec.site, spec.orm, spec.query, spec.page, spec.bulk) == (
            False, "", {}, protocol.Page(), protocol.Bulk(),
        )  # fmt: skip


def test_no_client_is_started_if_no_route_requires_tls(routes: dict[str, Route]) -> None:
    nothing = CaptureSettings(routes["tcp"], "/nonexistent")
    for sslmode in ("disable", "prefer"):
        route = replace(routes["tcp"], sslmode=sslmode)
        assert tls_support.refusals(definition("libpq"), {"tcp": route}, nothing, []) == []


def test_what_is_left_out_already_is_not_asked(tls: Route) -> None:
    nothing = CaptureSettings(tls, "/nonexistent")
    assert (
        tls_support.refusals(
            definition("libpq", "fake"), {"tls": tls}, nothing, [LeftOut(layer="libpq", reason="why")]
        )
        == []
    )


def test_another_trouble_is_the_runs_to_tell(tls: Route, site: CaptureSettings) -> None:
    gone = replace(tls, port=1)
    assert tls_support.refusals(definition("psycopg"), {"tls": gone}, site, []) == []


@pytest.fixture(scope="module")
def elsewhere(tls: Route) -> Iterator[Route]:
    """The same pooler under an address that its certificate does not have."""
    with socket.create_server(("127.0.0.2", 0)) as listener:
        threading.Thread(target=RelayLoop(listener, (tls.host, tls.port), 0).serve, daemon=True).start()
        yield replace(tls, host="127.0.0.2", port=listener.getsockname()[1])


def connect(route: Route, layer: str, mode: str, build_dir: Path) -> None:
    """Where its libpq lacks TLS the layer gets psycopg's."""
    environment = {"PATH": os.defpath, "PYTHONPATH": str(Path(layers.__file__).parent.parent.parent)}
    if layer in ("libpq", "psycopg2"):
        environment["LD_PRELOAD"] = str(WITH_TLS[0])
    spec = protocol.Spec(
        layer=layer, mode=mode, **login(route), statements=sql_parameters.statements("SELECT 1", ()), cold=False,
        runner_pid=os.getpid(),
    )  # fmt: skip
    argv = launch.command(layer, str(build_dir))
    with ClientProcess(layer, argv, route.password, ProcessEnvironment(environment, "/")) as client:
        client.send(spec)
        client.expect(protocol.Ready, 60)


each_driver = pytest.mark.parametrize(
    ("layer", "mode"),
    [
        ("libpq", "simple"),
        ("psycopg2", "simple"),
        ("psycopg", "simple"),
        ("psycopg_async", "extended"),
        ("psycopg_async_uvloop", "extended"),
        ("asyncpg", "prepared"),
        ("asyncpg_uvloop", "prepared"),
        ("django_cursor", "simple"),
    ],
)


@each_driver
def test_every_driver_checks_the_certificate(
    tls: Route, elsewhere: Route, c_client: Path, layer: str, mode: str
) -> None:
    connect(tls, layer, mode, c_client.parent)
    for wrong in (elsewhere, replace(tls, sslrootcert="")):
        with pytest.raises(ClientFailed, match=r"(?i)certificate"):
            connect(wrong, layer, mode, c_client.parent)
    connect(replace(elsewhere, sslmode="verify-ca"), layer, mode, c_client.parent)


@pytest.fixture(scope="module")
def distance(tls: Route) -> Iterator[DelayRelay]:
    """A relay on 127.0.0.1, an address that the pooler's certificate has too."""
    with DelayRelay(tls.host, tls.port, 1) as relay:
        yield relay


@each_driver
def test_over_a_relay_every_driver_checks_the_name_of_the_server(
    tls: Route, distance: DelayRelay, c_client: Path, layer: str, mode: str
) -> None:
    """The name is neither looked up nor connected to, and the relay's address is not what counts."""
    for own in ("localhost", "127.0.0.1"):
        connect(distance.over(replace(tls, host=own)), layer, mode, c_client.parent)
    for other in ("db.example", "127.0.0.3"):
        with pytest.raises(ClientFailed, match=r"(?i)certificate"):
            connect(distance.over(replace(tls, host=other)), layer, mode, c_client.parent)


def test_the_wire_proxy_checks_that_name_over_a_relay(tls: Route, distance: DelayRelay) -> None:
    """So do the clients behind it, whose connection to the proxy has no TLS."""
    wire_proxy.connect(distance.over(replace(tls, host="localhost"))).close()
    with pytest.raises(ClientFailed, match="does not match the host name"):
        wire_proxy.connect(distance.over(replace(tls, host="db.example")))
    with wire_proxy.WireProxy(distance.over(tls)) as wire, ControlConnection(wire.route) as connection:
        assert connection.query("SELECT 1") == [["1"]]
