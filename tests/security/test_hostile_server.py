"""Whole runs on a hostile server: every layer reads its rows, the run is stored, pages and files show
it.
"""

from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils.html import escape

from example.stack.postgres import READER
from pgperf.admin import downloads
from pgperf.core.layers import LAYERS
from pgperf.models import Database, Run, Target, Workload
from pgperf.runs.definitions import Overrides
from pgperf.worker import execution
from tests import factories
from tests.admin import hostile_texts
from tests.clients.hostile_server import MARK, Forge, HostileServer, columns, instead, parameter, row
from tests.runner.forked_clients import PLAIN, of_site
from tests.short_runs import request

#: The layers of asyncpg, which has no mode simple, have a run of their own.
_CONNECTED = [layer for layer in LAYERS.values() if layer.connects]
_SIMPLE = [layer.name for layer in _CONNECTED if "simple" in layer.modes]
_PREPARED = [layer.name for layer in _CONNECTED if "simple" not in layer.modes]
_COLUMNS = [f"{text} {at}".encode() for at, text in enumerate(islice(cycle(hostile_texts.TEXTS), 1599))]
_VERSION = ("18.6 " + "".join(hostile_texts.TEXTS)).encode()
#: What the server answers, by a part of the statement: to the workload's, 1,600 columns with hostile
#: names and values; to pgperf's own queries, hostile settings and wait events.
FORGED: Mapping[str, Forge] = {
    MARK: instead(T=lambda each: columns([b"id", *_COLUMNS]), D=lambda each: row([b"1", *_COLUMNS])),
    "huge_pages": instead(D=lambda each: row([b"server_version", _VERSION])),
    "pgperf diagnosis": instead(D=lambda each: row([*_COLUMNS[:3], b"5"])),
    "": parameter(b"server_version", _VERSION),
}
NOT_UTF_8: Mapping[str, Forge] = {
    MARK: instead(
        T=lambda each: columns([b"caf\xe9 \xff"]), D=lambda each: row([b"\xff\xfe\x80 <pgperf-hostile>"])
    ),
}


SITE_SETTINGS = "tests.site_settings"


@pytest.fixture(scope="module", autouse=True)
def nursery() -> Iterator[None]:
    """Most clients, and control connections, are forked where Django is set up."""
    with of_site(SITE_SETTINGS, "django_orm_async", *PLAIN) as found, found.raising():
        yield


@pytest.fixture
def build(transactional_db: None, c_client: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", SITE_SETTINGS)
    settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": c_client.parent}


@pytest.fixture
def forging(build: None, stack: dict[str, str]) -> Iterator[Database]:
    """The tests' database behind a server that forges what `FORGED` says."""
    with HostileServer(int(stack["PGPERF_DB_PORT"]), FORGED) as server:
        yield database(server, dbname=str(connection.settings_dict["NAME"]), credential="alias:default")


@pytest.fixture
def not_utf_8(build: None, stack: dict[str, str]) -> Iterator[Database]:
    """The stack's database, for its login that cannot write, behind a server of another encoding."""
    with HostileServer(int(stack["PGPERF_DB_PORT"]), NOT_UTF_8) as server:
        yield database(server, dbname=stack["PGPERF_DB_NAME"], user=READER, credential=f"file:{READER}")


def database(server: HostileServer, **fields: Any) -> Database:
    made = Database.objects.create(name="hostile", **fields)
    Target.objects.create(database=made, route="tcp", host="127.0.0.1", port=server.port, sslmode="disable")
    return made


def performed(on: Database, layers: list[str], mode: str = "simple", **work: Any) -> Run:
    workload = Workload.objects.create(name="hostile", title="Hostile", **work)
    benchmark = factories.new_benchmark(
        [workload], name="hostile", title="Hostile", database=on, layers=layers, routes=["tcp"],
        modes=[mode], clients=[1],
    )  # fmt: skip
    small = Overrides(
        blocks=1, rounds=1, slice_ms=10, diagnostic_ms=200, quick=True, placement="scheduler", idle="system"
    )
    asked = request(benchmark, on, small, foreground=True)
    return execution.perform(asked.pk, "tests")


def assert_is_shown_harmlessly(run: Run) -> str:
    """Returns its page."""
    boss, other = Client(), factories.make_results(factories.make_run(database=run.database))
    boss.force_login(User.objects.create_superuser("boss"))
    page = hostile_texts.assert_pages_are_harmless(boss, run, other)
    for name in downloads.FILES:
        hostile_texts.assert_file_is_harmless(boss, run, name)
    assert hostile_texts.read_back(run)["run"]["status"] == run.status
    return page


@pytest.mark.parametrize(
    ("layers", "mode"), [(_SIMPLE, "simple"), (_PREPARED, "prepared")], ids=["simple", "prepared"]
)
def test_every_layer_finishes_with_hostile_names_values_and_versions(
    forging: Database, layers: list[str], mode: str
) -> None:
    run = performed(forging, layers, mode, orm="tests.hostile")
    assert run.error == ""
    assert run.status == Run.Status.DONE
    lacking = {each["layer"] for each in run.summary["skipped"]}
    assert {row.layer for row in run.variants.all()} == {*layers} - lacking
    assert lacking <= {"psycopg_c", "django_view"}  # the workload is no page
    assert run.environment["server"]["server_version"] == _VERSION.decode()
    events = [variant.diagnostics["wait_events"] or {} for variant in run.variants.all()]
    assert {name for each in events for name in each} == {_COLUMNS[1].decode()}
    assert escape(_VERSION.decode()) in assert_is_shown_harmlessly(run)


@pytest.mark.parametrize(("layer", "status"), [("libpq", Run.Status.DONE), ("psycopg", Run.Status.FAILED)])
def test_values_and_names_in_no_utf_8_are_read_or_reported(
    not_utf_8: Database, layer: str, status: str
) -> None:
    run = performed(not_utf_8, [layer], sql=f"SELECT 1 {MARK}")
    assert run.status == status
    assert "Unexpected" not in run.error
    assert_is_shown_harmlessly(run)
