"""Real runs that test the verdicts on a page, which gunicorn serves from the tests' own database."""

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from pgperf.analysis.interventions import FLAT, FREES, FREES_NOT, GROWS
from pgperf.analysis.verdict import CONFIRMED, UNDECIDED, WITHDRAWN, Verdict
from pgperf.analysis.verdict_kinds import DISTURBED, UNKNOWN, confirmation_evidence
from pgperf.models import Database, Run, Target, VariantResult, Workload
from pgperf.runs import confirmation, confirmation_definition
from pgperf.runs.definitions import Overrides, freeze
from pgperf.worker import execution
from tests.factories import make_run, new_benchmark

pytest.importorskip("pycurl")

#: One query and three milliseconds of CPU time.
PATH = "/tests/busy/"
#: One step, with one process.
ONE = {"web": 1}


@contextmanager
def gunicorn(processes: int) -> Iterator[str]:
    """The URL of so many processes that serve the page: each serves one request at a time."""
    site = {"DJANGO_SETTINGS_MODULE": "tests.settings_served", "PGPERF_DB_NAME": _database_name()}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        words = (
            f"--bind=fd://{listener.fileno()} --workers={processes} --no-control-socket --log-level=critical"
        )
        program = str(Path(sys.executable).with_name("gunicorn"))
        command = [program, "django.core.wsgi:get_wsgi_application()", *words.split()]
        server = subprocess.Popen(command, pass_fds=[listener.fileno()], env={**os.environ, **site})
    # From here on gunicorn alone listens: whoever holds the socket counts as a web server.
    with server:
        try:
            with urllib.request.urlopen(f"{url}{PATH}", timeout=60) as answer:
                assert answer.status == 200
            yield url
        finally:
            server.terminate()


def _database_name() -> str:
    return str(connection.settings_dict["NAME"])


@pytest.fixture
def web(transactional_db: None) -> Iterator[str]:
    with gunicorn(processes=1) as url:
        yield url


@pytest.fixture
def database(web: str, stack: dict[str, str], settings: Any, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.page_settings")
    monkeypatch.setattr(confirmation_definition, "BLOCKS", 1)
    monkeypatch.setattr(confirmation_definition, "ROUNDS", 2)
    settings.PGPERF = {**settings.PGPERF, "CONNECTION_SHARE": 0.9, "WEB_URLS": [web]}
    settings.ROOT_URLCONF = "tests.page_urls"
    row = Database.objects.create(name="demo", dbname=_database_name(), credential="alias:default")
    port = int(stack["PGPERF_DB_PORT"])
    Target.objects.create(database=row, route="tcp", host="127.0.0.1", port=port, sslmode="disable")
    Target.objects.create(database=row, route="web", url=web)
    return row


@pytest.fixture
def wide(database: Database, settings: Any) -> Iterator[str]:
    """The route of a second step, the same with three processes."""
    with gunicorn(processes=3) as url:
        settings.PGPERF = {**settings.PGPERF, "WEB_URLS": [*settings.PGPERF["WEB_URLS"], url]}
        yield Target.objects.create(database=database, route="wide", url=url, builds_on="web").route


def claim(
    database: Database, clients: int, word: str, intervention: str, processes: Mapping[str, int] = ONE
) -> VariantResult:
    """The page over HTTP in an invented run, with that verdict. `processes`: of each step."""
    work = Workload.objects.create(name="busy", title="Busy", path=PATH)
    benchmark = new_benchmark(
        [work],
        name="busy",
        title="Busy",
        layers=["http"],
        routes=[*processes],
        modes=["simple"],
        clients=[clients],
    )
    # One process of the web server uses one CPU of this machine, and the others are free for it.
    small = Overrides(quick=True, placement="scheduler", idle="system", slice_ms=100, diagnostic_ms=100)
    asked = freeze(benchmark, database, small)
    run = make_run(benchmark=benchmark, database=database, definition=asked.to_json())
    rows = [
        VariantResult.objects.create(
            run=run, position=at, label=f"http · {route}", layer="http", route=route, mode="simple",
            clients=clients, connect="persistent", workload=work.name, placement="scheduler",
            cpu_account={"web_workers": count},
            verdict=Verdict(word, "likely", intervention=intervention).to_json(),
        )
        for at, (route, count) in enumerate(processes.items())
    ]  # fmt: skip
    return rows[0]


def carried_out(row: VariantResult) -> tuple[VariantResult, VariantResult]:
    """The variant measured again and the changed one, of the run that tests the verdict."""
    run = execution.perform(confirmation.request(row, foreground=True).pk, "tests")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    row.refresh_from_db()
    assert row.verdict["confirmation"]["run"] == run.pk
    own, changed = sorted(
        run.variants.filter(control=0),
        key=lambda each: (each.layer != "http", each.route != "web", each.clients),
    )
    return own, changed


def word(row: VariantResult) -> str:
    return str(row.verdict["word"])


def test_the_view_in_process_uses_the_cpu_time_of_the_web_server(database: Database) -> None:
    """Confirmed, unless other programs disturb this machine so much that no word is certain."""
    row = claim(database, 1, "web_cpu", "in_process")
    own, changed = carried_out(row)
    assert [(each.layer, each.route) for each in (own, changed)] == [("http", "web"), ("django_view", "tcp")]
    assert own.cpu_account["web_workers"] == 1
    assert own.cpu_us_per_op["web"] > 2900
    assert changed.cpu_us_per_op["client_user"] + changed.cpu_us_per_op["client_sys"] > 2900
    found = row.record.verdict.confirmation
    if DISTURBED in (word(own), word(changed)):
        assert found.outcome == UNDECIDED
        return
    assert (word(own), word(changed)) == ("web_cpu", "client_cpu")
    assert (found.outcome, row.verdict["certainty"]) == (CONFIRMED, CONFIRMED)
    assert "in process the view takes" in confirmation_evidence(row.record.verdict)


def test_more_clients_get_no_more_from_a_web_server_whose_only_process_is_busy(database: Database) -> None:
    """Confirmed, unless other programs hold up one of the two variants more than the other."""
    row = claim(database, 3, "web_workers", "double_clients")
    own, changed = carried_out(row)
    assert [each.clients for each in (own, changed)] == [3, 6]
    assert own.cpu_account["web_workers"] == changed.cpu_account["web_workers"] == 1
    growth = changed.ops_per_s / own.ops_per_s
    found = row.record.verdict.confirmation
    if word(own) in (DISTURBED, UNKNOWN):
        expected = UNDECIDED
    elif word(own) != "web_workers" or growth >= GROWS:
        expected = WITHDRAWN
    else:
        expected = CONFIRMED if word(changed) == "web_workers" and growth <= FLAT else UNDECIDED
    assert found.outcome == expected
    if found.outcome == CONFIRMED:
        assert row.verdict["certainty"] == CONFIRMED
        assert found.numbers.growth == growth
        said = confirmation_evidence(row.record.verdict)
        assert "times the throughput, and the verdict “all web workers busy”" in said


def test_more_processes_serve_more_where_the_only_one_is_busy(database: Database, wide: str) -> None:
    """Confirmed where this machine has CPUs for three of them."""
    row = claim(database, 3, "web_workers", "double_clients", {"web": 1, wide: 3})
    own, changed = carried_out(row)
    assert [(each.route, each.clients) for each in (own, changed)] == [("web", 3), (wide, 3)]
    assert [each.cpu_account["web_workers"] for each in (own, changed)] == [1, 3]
    growth = changed.ops_per_s / own.ops_per_s
    found = row.record.verdict.confirmation
    assert found.intervention == "web_processes"
    if word(own) in (DISTURBED, UNKNOWN):
        expected = UNDECIDED
    elif word(own) != "web_workers" or growth <= FREES_NOT:
        expected = WITHDRAWN
    else:
        expected = CONFIRMED if growth >= FREES else UNDECIDED
    assert found.outcome == expected
    if found.numbers:
        assert (found.numbers.growth, found.numbers.changed_processes) == (growth, 3)
        assert "3 instead of 1; " in confirmation_evidence(row.record.verdict)
