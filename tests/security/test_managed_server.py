"""A managed PostgreSQL: no superuser, TLS required, and no view of its host.

The test follows the recipe in docs/remote.md. The server has process ids of its own, so that the
worker sees none of its processes, as with a server on another host.
"""

import io
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from example.stack import certificates
from example.stack.network_hosts import refusal
from example.stack.part import Part
from example.stack.place import Place
from example.stack.process import guarded
from example.stack.state import free_port
from pgperf.analysis import verdict_kinds
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.models import Database, Run, Target, VariantResult, Workload
from pgperf.runner import machine_look
from pgperf.runs.definitions import Overrides
from pgperf.worker import execution
from tests.analysis import rows
from tests.factories import new_benchmark
from tests.machine_looks import look
from tests.short_runs import request

PASSWORD = "managed only"
READER = "pgperf_reader_shop"
PAGE = Path(__file__).parents[2] / "docs" / "remote.md"
#: Debian keeps the programs of each version there, and none of them in PATH.
_DEBIAN = Path("/usr/lib/postgresql")
_RULES = "local all postgres trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
#: As a provider prepares it: the administrator's login is no superuser.
_PROVIDER = (
    f"CREATE ROLE cloud_admin LOGIN CREATEROLE CREATEDB PASSWORD '{PASSWORD}'",
    "GRANT pg_monitor TO cloud_admin WITH ADMIN OPTION",
)
#: The site's owner has made the application's login and database.
_SITE = (
    f"CREATE ROLE shop LOGIN PASSWORD '{PASSWORD}'",
    "GRANT shop TO CURRENT_USER",
    "CREATE DATABASE shop OWNER shop",
    "REVOKE shop FROM CURRENT_USER",
)


def programs() -> Path:
    """The directory of a PostgreSQL that is built with TLS; the embedded one is not."""
    found = [name for name in (shutil.which("postgres"), *sorted(_DEBIAN.glob("*/bin/postgres"))) if name]
    if refusal() or not found:
        pytest.skip(refusal() or "takes a PostgreSQL with TLS (Debian: postgresql)")
    return Path(found[0]).resolve().parent


@dataclass(frozen=True)
class Managed:
    """The server's address, and logins to it."""

    port: int
    authority: Path

    def connect(self, user: str, **changes: Any) -> psycopg.Connection[Any]:
        values = {"dbname": "shop", "sslmode": "verify-full", "sslrootcert": str(self.authority), **changes}
        return psycopg.connect(
            host="localhost", port=self.port, user=user, password=PASSWORD, autocommit=True, **values
        )


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    bin_directory, place = programs(), Place(tmp_path_factory.mktemp("managed"))
    place.prepare()
    port, authority, data = free_port(set()), certificates.ensure(place), place.directory("data") / "data"
    initdb = [
        str(bin_directory / "initdb"),
        "-D",
        str(data),
        "-U",
        "postgres",
        "--auth=trust",
        "--no-sync",
        "-EUTF8",
    ]
    subprocess.run(
        guarded(initdb, signal.SIGKILL, place.account), cwd=place.servers, check=True, capture_output=True
    )
    (data / "pg_hba.conf").write_text(_RULES)
    part = _part(bin_directory, place, data, port)
    part.start()
    try:
        with psycopg.connect(_bootstrap(place, port), autocommit=True) as superuser:
            for statement in _PROVIDER:
                superuser.execute(statement)
        server = Managed(port, authority)
        with server.connect("cloud_admin", dbname="postgres") as admin:
            for statement in _SITE:
                admin.execute(statement)
        with server.connect("shop") as owner:
            owner.execute(
                "CREATE TABLE item AS SELECT n AS id, 'item ' || n AS name FROM generate_series(1, 100) n"
            )
        yield server
    finally:
        part.stop()
        place.remove()


def _bootstrap(place: Place, port: int) -> str:
    return f"host={place.socket_directory()} port={port} dbname=postgres user=postgres connect_timeout=5"


def _part(bin_directory: Path, place: Place, data: Path, port: int) -> Part:
    keys = place.servers / "certificates"
    settings = {
        "port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": place.socket_directory(),
        "ssl": "on", "ssl_cert_file": keys / "server.crt", "ssl_key_file": keys / "server.key",
    }  # fmt: skip
    own_processes = ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child=SIGKILL"]
    server = [str(bin_directory / "postgres"), "-D", str(data), *(f"--{k}={v}" for k, v in settings.items())]

    def answers(_: Part) -> bool:
        try:
            psycopg.connect(_bootstrap(place, port)).close()
        except psycopg.OperationalError:
            return False
        return True

    return Part(
        name="managed PostgreSQL",
        argv=[*own_processes, "setpriv", *place.account.setpriv(), "--pdeathsig=KILL", *server],
        log=place.own / "postgres.log",
        answers=answers,
        polite=signal.SIGKILL,  # unshare waits for its child on any other
        cwd=place.servers,
        env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
    )


@pytest.fixture
def shop(
    managed: Managed, transactional_db: None, settings: Any, c_client: Path, monkeypatch: pytest.MonkeyPatch
) -> Database:
    """Its Database and the route of the application's login. A look at the machine takes no time."""
    monkeypatch.setattr(machine_look, "look", look)
    settings.PGPERF = {
        **settings.PGPERF, "BUILD_DIR": c_client.parent, "SECRETS_DIR": managed.authority.parent,
        "ALLOWED_HOSTS": [f"localhost:{managed.port}"],
    }  # fmt: skip
    monkeypatch.setenv("PGPERF_SECRET_SHOP", PASSWORD)
    row = Database.objects.create(
        name="shop", dbname="shop", user="shop", credential="env:PGPERF_SECRET_SHOP", production=True
    )
    Target.objects.create(
        database=row,
        route="tcp",
        host="localhost",
        port=managed.port,
        sslmode="verify-full",
        sslrootcert="ca.crt",
    )
    return row


def doctor() -> str:
    out = io.StringIO()
    call_command("pgperf", "doctor", stdout=out)
    return out.getvalue()


def recipe() -> list[str]:
    """The SQL blocks of the page's section."""
    section = PAGE.read_text().partition("## Managed PostgreSQL")[2].partition("\n## ")[0]
    return re.findall(r"```sql\n(.*?)```", section, re.DOTALL)


def printed_script(report: str) -> str:
    """The SQL in doctor's report without psql's \\password, which asks at a terminal."""
    script = report.partition(f"-- {READER} can read shop")[2].partition(f'\\password "{READER}"')[0]
    return f"-- {script}"


def test_a_connection_without_tls_is_refused(managed: Managed, shop: Database) -> None:
    with pytest.raises(psycopg.OperationalError, match="no encryption"):
        managed.connect("shop", sslmode="disable", sslrootcert=None)
    shop.targets.update(sslmode="disable", sslrootcert="")
    with pytest.raises(CommandError, match="problem"):
        doctor()


def test_the_recipe_measures_and_shows_the_rest_as_unknown(managed: Managed, shop: Database) -> None:
    before, after = recipe()
    with managed.connect("cloud_admin") as admin:
        admin.execute(before)
        report = doctor()
        assert "shop · tcp: PostgreSQL" in report
        assert "shop · login: shop can write" in report
        admin.execute(printed_script(report))
        admin.execute(f"ALTER ROLE {READER} PASSWORD '{PASSWORD}'")
        admin.execute(after)
    shop.targets.update(user=READER, credential="env:PGPERF_SECRET_SHOP")
    assert f"shop · login: {READER} cannot write" in doctor()

    run = measured(shop)
    assert (run.status, run.error) == (Run.Status.DONE, "")
    assert run.environment["access"] == {"tcp": f"{READER}: cannot write, proved"}
    assert (run.environment["load"]["at_start"]["lag_s"], "unknown" in run.environment["load"]) == (0, False)
    assert "on another host, and its database names no agent" in run.environment["server_host"]["unknown"]
    variants = list(run.variants.all())
    assert {row.layer for row in variants} == {"psycopg", "django_cursor"}
    for row in variants:
        assert row.us_per_op > 0
        assert row.cpu_us_per_op["client_user"] is not None
        assert (row.cpu_us_per_op["server"], row.cpu_us_per_op["auxiliaries"]) == (None, None)
        assert row.diagnostics["wait_events"]
        assert "pg_stat_statements" in row.diagnostics["notes"]["statements"]
        verdict = verdict_kinds.judge(on_a_quiet_host(row))
        assert (verdict.word, verdict.finding.missing) == ("unknown", ("server CPU",))


def on_a_quiet_host(row: VariantResult) -> VariantSummary:
    """The variant with fixed figures for those that its run measured: 20 of 100 µs on the client's
    CPU, no CPU that other processes use, a server that waits for the client. The rest stays unknown.
    """
    figures = rows.remote(100.0, client=20.0, agent=False)
    summary = VariantSummary.from_json(_with_figures(vars(row), figures))
    assert summary.diagnostics
    events = figures["diagnostics"]["wait_events"]
    return replace(summary, diagnostics=replace(summary.diagnostics, wait_events=events))


def _with_figures(measured: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """`measured` with these figures where it has numbers, also in its parts."""
    found = dict(measured)
    for name, value in measured.items():
        if isinstance(value, dict):
            found[name] = _with_figures(value, figures.get(name) or {})
        elif isinstance(value, int | float):
            found[name] = figures.get(name, value)
    return found


def measured(shop: Database) -> Run:
    work = Workload.objects.create(
        name="items", title="Items", sql="SELECT name FROM item WHERE id = %s", args=[7]
    )
    benchmark = new_benchmark(
        [work], name="items", title="Items", database=shop, layers=["psycopg", "django_cursor"],
        routes=["tcp"], modes=["simple"], clients=[1],
    )  # fmt: skip
    small = Overrides(
        blocks=1, rounds=2, slice_ms=10, diagnostic_ms=1000, quick=True, placement="scheduler", idle="system"
    )
    asked = request(benchmark, shop, small, foreground=True, confirmed="shop")
    return execution.perform(asked.pk, "tests")
