"""No layer sends a password that a server asks for in clear text, and no page shows one back."""

import os
import pwd
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.conf import settings
from psycopg import sql

from example.stack import certificates
from example.stack.place import Place
from pgperf.catalog import BENCHMARKS
from pgperf.core import layers, protocol
from pgperf.core.connection_errors import CLEAR_TEXT
from pgperf.core.exceptions import ClientFailed, LayerUnavailable
from pgperf.core.records import Definition, Page, Route, Variant, WorkloadDefinition
from pgperf.delay.relay import DelayRelay
from pgperf.install import launch
from pgperf.models import Database, Run, Target
from pgperf.runner import authentication, client_process, client_spec, client_startup, site_connection
from pgperf.runner.capture.wire_proxy import WireProxy
from pgperf.runner.client_process import ClientProcess
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.pgbouncer_console import PgBouncerConsole
from pgperf.runs import state
from pgperf.runs.definitions import Overrides
from pgperf.worker import execution
from tests.factories import make_benchmark
from tests.impostor import CLEAR_TEXT as ASKS_FOR_CLEAR_TEXT
from tests.impostor import MD5, SASL, SHOWN, Impostor, error
from tests.impostor import authentication as asks
from tests.runner.forked_clients import PLAIN, with_modules_of_site
from tests.security import client_certificates
from tests.security.conftest import DATABASE, Harm

SECRET = "correct horse 9"
REFUSED = "asks for the password in clear text"
CLEAR = asks(ASKS_FOR_CLEAR_TEXT)
SCRAM = asks(SASL, b"SCRAM-SHA-256\0\0")
#: Every layer that connects, in one of its modes. psycopg_c is compiled where it is installed:
#: tests/clients/test_psycopg_c.py tries it.
LAYERS = [
    (layer.name, layer.modes[-1])
    for layer in layers.LAYERS.values()
    if layer.connects and layer.name != "psycopg_c"
]
PGBENCH = str(settings.PGPERF["PGBENCH"])
PAGE = WorkloadDefinition("page", "", page=Page("/books/"))
every_layer = pytest.mark.parametrize(("layer", "mode"), LAYERS)


@pytest.fixture(scope="module", autouse=True)
def nursery() -> Iterator[None]:
    """Most clients are forked, and then log in as any other."""
    with with_modules_of_site("django_orm_async", *PLAIN) as found, found.raising():
        yield


class Certificate(NamedTuple):
    """Files: a server's certificate, its key, and the certificate of the authority."""

    server: Path
    key: Path
    authority: Path


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certificate]:
    place = Place(tmp_path_factory.mktemp("tls"))
    place.prepare()
    authority = certificates.ensure(place)
    directory = place.directory("certificates")
    yield Certificate(directory / "server.crt", directory / "server.key", authority)
    place.remove()


def route(server: Impostor, **changes: Any) -> Route:
    return Route(
        **{
            "name": "tcp", "host": server.host, "port": server.port, "dbname": "app", "user": "app",
            "password": SECRET, **changes,
        }
    )  # fmt: skip


def variant(layer: str, mode: str) -> tuple[Definition, Variant]:
    work = PAGE if layers.requests_pages(layer) else BENCHMARKS["orm-overhead"].workloads[0]
    definition = Definition(
        benchmark="x", workloads=(work,), layers=(layer,), routes=("tcp",), modes=(mode,), clients=(1,),
    )  # fmt: skip
    return definition, Variant(
        workload=work.name, layer=layer, mode=mode, route="tcp", clients=1, connect="persistent",
        placement="scheduler",
    )  # fmt: skip


def start(layer: str, mode: str, where: Route, build_dir: Path) -> None:
    """Start a client as a block does."""
    definition, what = variant(layer, mode)
    programs = {"pgbench": PGBENCH}
    with client_startup.started(
        definition, [(what, "pgperf-x")], {"tcp": where}, str(build_dir), False, None, programs
    ):
        pass


def start_alone(layer: str, mode: str, where: Route, build_dir: Path, **interpreters: str) -> str:
    """Start a client without asking the server first; its error."""
    definition, what = variant(layer, mode)
    programs = {"pgbench": PGBENCH, **interpreters}
    reason = launch.unavailable(layer, mode, str(build_dir), programs)
    if reason:
        raise LayerUnavailable(reason)
    how = client_startup.client_start(definition, what, str(build_dir), programs, None)
    with ClientProcess(layer, how.argv, where.password, how.process_environment) as client:
        client.send(client_spec.spec(definition, what, where, "x", False, client.spawned_ns))
        with pytest.raises(ClientFailed) as caught:
            client.expect(protocol.Ready, 60)
    return str(caught.value)


@every_layer
def test_no_layer_answers_a_request_for_clear_text(c_client: Path, layer: str, mode: str) -> None:
    with Impostor() as server:
        with pytest.raises(ClientFailed, match=REFUSED):
            start(layer, mode, route(server), c_client.parent)
        assert server.startups
        assert server.passwords == []


@pytest.mark.parametrize(
    ("layer", "mode"),
    [each for each in LAYERS if each[0] not in ("asyncpg", "asyncpg_uvloop", "psycopg_python")],
)
def test_libpq_16_and_newer_refuse_by_themselves(c_client: Path, layer: str, mode: str) -> None:
    """Even where the server's answer to the runner was another one."""
    with Impostor() as server:
        assert CLEAR_TEXT in start_alone(layer, mode, route(server), c_client.parent)
        assert server.passwords == []


def test_an_older_pgbench_on_a_newer_libpq_refuses_by_itself(tmp_path: Path) -> None:
    """Debian with PostgreSQL's own packages: pgbench 15 loads the newest libpq."""
    program = tmp_path / "pgbench"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "pgbench (PostgreSQL) 15.18" && exit\nexec {PGBENCH} "$@"\n'
    )
    program.chmod(0o755)
    with Impostor() as server:
        assert CLEAR_TEXT in start_alone("pgbench", "simple", route(server), tmp_path, pgbench=str(program))
        assert server.passwords == []


@pytest.mark.parametrize(
    ("layer", "mode", "form"),
    [
        *((layer, mode, "reversed") for layer, mode in LAYERS),
        *(("psycopg", "simple", form) for form in SHOWN),
        *(("asyncpg", "prepared", form) for form in SHOWN),
    ],
)
def test_a_password_shown_back_is_not_shown_on(c_client: Path, layer: str, mode: str, form: str) -> None:
    """The route allows clear text, so the server receives the password."""
    with Impostor(show=SHOWN[form]) as server:
        text = start_alone(layer, mode, route(server, allow_cleartext_password=True), c_client.parent)
        assert server.passwords == [SECRET]
    for written in (SECRET, SECRET[::-1], SECRET.encode().hex()):
        assert written not in text


OTHER_CONNECTIONS: dict[str, Callable[[Route], Any]] = {
    "control connection": lambda where: ControlConnection(where).__enter__(),
    "PgBouncer's console": lambda where: PgBouncerConsole(where, "x").__enter__(),
    "an own workload's": lambda where: site_connection.check(where, {"orm": "tests.counting"}, "x"),
}


@pytest.mark.parametrize("name", OTHER_CONNECTIONS)
def test_no_other_connection_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.site_settings")
    with Impostor() as server:
        with pytest.raises(ClientFailed, match=REFUSED):
            OTHER_CONNECTIONS[name](route(server))
        assert server.passwords == []


def test_no_delayed_route_answers_even_where_its_target_allows_it() -> None:
    with Impostor() as server, DelayRelay(server.host, server.port, 0) as relay:
        far = relay.over(route(server, allow_cleartext_password=True))
        with pytest.raises(ClientFailed, match=REFUSED):
            ControlConnection(far).__enter__()
        assert server.passwords == []


def test_the_wire_proxy_does_not_pass_the_request_on() -> None:
    with Impostor() as server, WireProxy(route(server)) as proxy:
        text = start_alone("asyncpg", "prepared", replace(proxy.route, password=SECRET), Path("/nowhere"))
        assert server.startups
        assert server.passwords == []
        assert "server closed the connection" in text
        with pytest.raises(ClientFailed, match=REFUSED):
            proxy.recorded()


# What the runner asks.


def test_a_unix_socket_is_asked_too(tmp_path: Path) -> None:
    with Impostor(directory=tmp_path) as server, pytest.raises(ClientFailed, match=REFUSED):
        authentication.check(route(server))


@pytest.mark.parametrize(
    ("plain", "encrypted", "sslmode", "refused"),
    [
        (SCRAM, CLEAR, "prefer", True),
        (CLEAR, SCRAM, "prefer", True),  # the client tries again without TLS where the login fails
        (CLEAR, b"nonsense", "prefer", True),
        (CLEAR, SCRAM, "require", False),
        (SCRAM, CLEAR, "require", True),
        (SCRAM, CLEAR, "verify-full", True),
        (SCRAM, SCRAM, "prefer", False),
        (SCRAM, CLEAR, "disable", False),
    ],
)
def test_every_way_to_connect_is_asked(
    certificate: Certificate, plain: bytes, encrypted: bytes, sslmode: str, refused: bool
) -> None:
    with Impostor(plain, certificate=certificate[:2], ask_encrypted=encrypted) as server:
        if refused:
            with pytest.raises(ClientFailed, match=REFUSED):
                authentication.check(route(server, sslmode=sslmode))
        else:
            authentication.check(route(server, sslmode=sslmode))
        assert server.startups
        assert server.passwords == []


@pytest.mark.parametrize(
    "answer",
    [
        SCRAM,
        asks(MD5, b"salt"),
        asks(0),
        error("no pg_hba.conf entry", "28000"),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"R\0\0\0\4",
        b"R\x7f\xff\xff\xff",
    ],
)
def test_other_answers_are_left_to_the_client(answer: bytes) -> None:
    with Impostor(answer) as server:
        authentication.check(route(server))
        assert server.startups


def test_notices_before_the_request_are_skipped() -> None:
    notice = b"N" + error("hello")[1:]
    with Impostor(notice + CLEAR) as server, pytest.raises(ClientFailed, match=REFUSED):
        authentication.check(route(server))


def test_a_server_that_does_not_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "_TIMEOUT_S", 0.2)
    with Impostor(b"") as server, pytest.raises(ClientFailed, match="did not ask for a login within"):
        authentication.check(route(server))


@pytest.mark.parametrize("changes", [{"password": ""}, {"allow_cleartext_password": True}])
def test_a_route_without_a_password_or_with_permission_is_not_asked(changes: dict[str, Any]) -> None:
    with Impostor() as server:
        authentication.check(route(server, **changes))
        assert server.startups == []


# Real servers.


@pytest.fixture
def pooler(harm: Harm, pooled: Callable[..., int]) -> Callable[..., Route]:
    """A route through a PgBouncer that authenticates in that way."""

    def made(kind: str, **settings: str) -> Route:
        port = pooled(auth_type=kind, pool_mode="session", **settings)
        return replace(harm.route("harm_reader"), port=port, pooler="session")

    return made


@pytest.mark.parametrize("kind", ["scram-sha-256", "md5", "trust"])
def test_other_kinds_of_login_work(pooler: Callable[..., Route], c_client: Path, kind: str) -> None:
    where = pooler(kind)
    for layer, mode in (
        ("psycopg", "simple"), ("asyncpg", "prepared"), ("libpq", "simple"), ("pgbench", "simple")
    ):  # fmt: skip
        with pytest.raises(ClientFailed, match=r"pgperf\.site"):  # connected; the table is not there
            start(layer, mode, where, c_client.parent)


#: The clients that log in by code of their own. The stack's libpq knows no TLS: psycopg has another.
BY_TLS = [("psycopg", "simple"), ("asyncpg", "prepared"), ("django_cursor", "simple")]
CLIENTS = [*BY_TLS, ("psycopg2", "simple"), ("libpq", "simple"), ("pgbench", "simple")]


@pytest.fixture
def peer(harm: Harm, stack: dict[str, str]) -> Iterator[Route]:
    """The server's socket, where the system's name of this user is its login."""
    user, admin = pwd.getpwuid(os.geteuid()).pw_name, harm.superuser
    (path,) = admin.execute("SHOW hba_file").fetchone() or ("",)
    rules = Path(path).read_text()
    admin.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(user)))
    Path(path).write_text(f'local {DATABASE} "{user}" peer\n{rules}')
    admin.execute("SELECT pg_reload_conf()")
    where = harm.route(user, host=stack["PGPERF_DB_SOCKET"], name="socket", password=SECRET)
    while authentication.conditions(where).authentication == "scram-sha-256":
        pass  # until the server has read its rules again
    yield where
    Path(path).write_text(rules)
    admin.execute("SELECT pg_reload_conf()")
    admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(user)))


def test_a_login_by_peer_works(peer: Route, c_client: Path) -> None:
    """The role has no password, whatever the credential says."""
    assert authentication.conditions(peer).authentication == "none (trust, peer or certificate)"
    assert_logs_in(peer, CLIENTS, c_client)


def assert_logs_in(where: Route, clients: list[tuple[str, str]], c_client: Path) -> None:
    authentication.check(where)
    with ControlConnection(where) as connection:
        assert connection.query("SELECT current_user") == [[where.user]]
    for layer, mode in clients:
        with pytest.raises(ClientFailed, match=r"pgperf\.site"):  # connected; the table is not there
            start(layer, mode, where, c_client.parent)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of the worker's user, for clients too: they ask the system for it."""
    clean = client_process._clean_environment()
    monkeypatch.setattr(
        client_process, "_clean_environment", lambda: {**clean, "HOME": str(tmp_path / "home")}
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def certifying(pooler: Callable[..., Route], certificate: Certificate, home: Path) -> Route:
    """A PgBouncer that lets in whom a certificate names, as the one in the home does."""
    authority = certificate.server.with_name("clients.crt")
    client_certificates.issue(home, "harm_reader", authority)
    where = pooler(
        "cert", client_tls_sslmode="verify-full", client_tls_ca_file=str(authority),
        client_tls_cert_file=str(certificate.server), client_tls_key_file=str(certificate.key),
    )  # fmt: skip
    return replace(where, host="localhost", sslmode="verify-full", sslrootcert=str(certificate.authority))


def test_a_login_by_certificate_works(certifying: Route, c_client: Path) -> None:
    assert_logs_in(certifying, BY_TLS, c_client)


def test_without_the_certificate_there_is_no_login(certifying: Route, c_client: Path, home: Path) -> None:
    (home / ".postgresql" / "postgresql.crt").unlink()
    authentication.check(certifying)
    with pytest.raises(ClientFailed):
        ControlConnection(certifying).__enter__()
    for layer, mode in BY_TLS:
        with pytest.raises(ClientFailed) as refused:
            start(layer, mode, certifying, c_client.parent)
        assert "pgperf.site" not in str(refused.value)


@pytest.mark.parametrize("sslmode", ["prefer", "require", "verify-full"])
def test_a_server_that_demands_a_certificate_before_it_asks_is_refused(
    certificate: Certificate, home: Path, tmp_path: Path, sslmode: str
) -> None:
    """A check without the certificate would not reach the request that the client answers."""
    authority = tmp_path / "clients.crt"
    client_certificates.issue(home, "app", authority)
    with Impostor(
        SCRAM, certificate=certificate[:2], ask_encrypted=CLEAR, client_authority=authority
    ) as server:
        authorities = str(certificate.authority) if sslmode == "verify-full" else ""
        where = route(server, sslmode=sslmode, sslrootcert=authorities)
        with pytest.raises(ClientFailed, match=REFUSED):
            start("asyncpg", "prepared", where, tmp_path)
        assert server.passwords == []


def test_a_pooler_that_asks_for_clear_text_needs_the_targets_permission(
    pooler: Callable[..., Route], certificate: Certificate
) -> None:
    """Over TLS with the server verified, as the permission demands."""
    where = replace(
        pooler(
            "plain", client_tls_sslmode="require", client_tls_cert_file=str(certificate.server),
            client_tls_key_file=str(certificate.key),
        ),
        host="localhost", sslmode="verify-full", sslrootcert=str(certificate.authority),
    )  # fmt: skip
    with pytest.raises(ClientFailed, match=REFUSED):
        ControlConnection(where).__enter__()
    with ControlConnection(replace(where, allow_cleartext_password=True)) as connection:
        assert connection.query("SELECT current_database()") == [[DATABASE]]


# A whole run.


@pytest.fixture
def attacked(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[tuple[Impostor, Database]]:
    (tmp_path / "app").write_text(SECRET)
    settings.PGPERF = {**settings.PGPERF, "SECRETS_DIR": str(tmp_path)}
    database = Database.objects.create(name="demo", dbname="app", user="app", credential="file:app")
    with Impostor() as server:
        Target.objects.create(
            database=database, route="tcp", host=server.host, port=server.port, sslmode="disable"
        )
        yield server, database


def test_a_run_is_refused_before_the_password_is_sent(attacked: tuple[Impostor, Database]) -> None:
    server, database = attacked
    benchmark = make_benchmark(routes=["tcp"])
    run = state.request(benchmark, database, Overrides(), foreground=True)
    done = execution.perform(run.pk, "tests")
    assert (done.status, server.passwords) == (Run.Status.FAILED, [])
    assert REFUSED in done.error
    assert "allow clear-text password" in done.error
