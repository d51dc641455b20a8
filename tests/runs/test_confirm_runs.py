"""Real runs that test verdicts, with real clients, a real server and the delay relay."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from pgperf.analysis.interventions import FREES, FREES_NOT
from pgperf.analysis.verdict import CONFIRMED, UNDECIDED, WITHDRAWN, Verdict
from pgperf.analysis.verdict_kinds import confirm, confirmation_evidence
from pgperf.catalog.light import LIGHT
from pgperf.models import Benchmark, Database, Run, Target, VariantResult
from pgperf.runs import confirmation, confirmation_definition
from pgperf.runs.definitions import Overrides, freeze
from pgperf.worker import execution
from tests.analysis.rows import row as measured
from tests.factories import make_run


@pytest.fixture
def database(
    transactional_db: None,
    stack: dict[str, str],
    c_client: Path,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Database:
    settings.PGPERF = {**settings.PGPERF, "BUILD_DIR": c_client.parent, "CONNECTION_SHARE": 0.9}
    monkeypatch.setattr(confirmation_definition, "BLOCKS", 1)
    monkeypatch.setattr(confirmation_definition, "ROUNDS", 2)
    name = str(connection.settings_dict["NAME"])
    row = Database.objects.create(name="demo", dbname=name, credential="alias:default", allow_fixtures=True)
    port = int(stack["PGPERF_DB_PORT"])
    Target.objects.create(database=row, route="tcp", host="127.0.0.1", port=port, sslmode="disable")
    return row


def claim(
    database: Database, layer: str, clients: int, word: str, intervention: str, workers: int = 1
) -> VariantResult:
    """A variant of an invented run, with that verdict, and 8 ms of latency."""
    benchmark = Benchmark.objects.get(name="orm-overhead")
    small = Overrides(
        quick=True, layers=(layer,), routes=("tcp",), slice_ms=60, diagnostic_ms=100, workers=workers
    )
    definition = freeze(benchmark, database, small)
    run = make_run(benchmark=benchmark, database=database, definition=definition.to_json())
    numbers = measured(8100.0, client=50.0, server=50.0, clients=clients)
    known = {
        name: numbers[name]
        for name in ("us_per_op", "ops_per_s", "cpu_us_per_op", "cpu_account", "diagnostics")
    }
    verdict = Verdict(word, "likely", intervention=intervention).to_json()
    return VariantResult.objects.create(
        run=run, position=0, label=f"{layer} · tcp", layer=layer, route="tcp", mode="simple", clients=clients,
        workers=workers,
        connect="persistent", workload="site-by-domain", placement="apart", verdict=verdict, **known,
    )  # fmt: skip


def carried_out(row: VariantResult) -> tuple[Run, dict[str, VariantResult]]:
    """The run that tests it, done, and its variants by label.

    Whatever it found is written to the row.
    """
    run = execution.perform(confirmation.request(row, foreground=True).pk, "tests")
    assert (run.status, run.error) == (Run.Status.DONE, "")
    row.refresh_from_db()
    assert row.verdict["confirmation"]["run"] == run.pk
    assert confirmation_evidence(row.record.verdict)
    return run, {each.label: each for each in run.variants.filter(control=0)}


def test_an_added_delay_appears_in_each_operation(database: Database) -> None:
    run, rows = carried_out(claim(database, "libpq", 2, "latency", "add_distance"))
    assert list(rows) == ["libpq · tcp · 2 clients", "libpq · tcp+4ms · 2 clients"]
    assert rows["libpq · tcp+4ms · 2 clients"].latency_us["min"] > 3000.0
    near, far = (rows[label].cpu_account["runner"] * rows[label].cpu_account["cpus"] for label in rows)
    assert far > near  # the relay works for it
    assert run.intervention == "add_distance"


def test_processes_run_beside_threads_and_their_throughput_decides(database: Database) -> None:
    """Whatever this machine makes of the threads: measured again as `interpreter`, they are judged by
    their throughput beside that of the processes.
    """
    row = claim(database, "django_orm", 1, "interpreter", "processes", workers=3)
    claimed = row.record.verdict
    run, rows = carried_out(row)
    assert (run.intervention, row.verdict["confirmation"]["intervention"]) == ("processes", "processes")
    assert list(rows) == ["django_orm · tcp · 3 workers", "django_orm · tcp · 3 clients"]
    threads, processes = (each.record for each in rows.values())
    assert [(each.clients, each.workers) for each in (threads, processes)] == [(1, 3), (3, 1)]
    assert all(each.rows == each.ops > 0 for each in rows.values())

    own, changed = confirmation_definition.told_apart([processes, threads], row.record)
    assert changed is not None
    assert claimed is not None
    found = confirm(claimed, "processes", replace(own, verdict=claimed), changed)
    times = (changed.ops_per_s or 0) / (own.ops_per_s or 1)
    expected = CONFIRMED if times >= FREES else WITHDRAWN if times <= FREES_NOT else UNDECIDED
    assert found.outcome == expected
    assert found.numbers is not None


def test_the_light_statement_runs_in_the_orm_too(database: Database) -> None:
    run, rows = carried_out(claim(database, "django_orm", 1, "server_cpu", "light_statement"))
    assert list(rows) == ["django_orm · tcp · site-by-domain", f"django_orm · tcp · {LIGHT.name}"]
    assert all(row.rows == row.ops > 0 for row in rows.values())
    assert run.environment.get("captures") is None
