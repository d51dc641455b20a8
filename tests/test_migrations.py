"""Migrations: the newest state is the models', and a database filled at any released migration
survives the later ones.

`tests/migrations/NAME.json` holds the rows of a database at migration NAME. Every migration but the
newest needs one; docs/architecture.md says how it is written. The newest is filled by the
factories.
"""

import json
import os
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from pgperf.models import (
    Benchmark,
    ChangePoint,
    Database,
    LoadShare,
    MachineLook,
    Run,
    Sampling,
    StatementList,
    Workload,
)
from pgperf.reports.raw_slices import slices_csv
from pgperf.reports.run_json import run_json
from pgperf.runs import pause, store
from tests import factories

pytestmark = pytest.mark.django_db

APP = "pgperf"
STORED = Path(__file__).parent / "migrations"
#: Set it to write the rows of the newest migration into STORED.
WRITE = "PGPERF_WRITE_MIGRATION_ROWS"
Rows = dict[str, list[dict[str, Any]]]


def names() -> list[str]:
    """pgperf's migrations, the oldest first."""
    folder = Path(__file__).parent.parent / APP / "migrations"
    return sorted(path.stem for path in folder.glob("0*.py"))


def migrate(name: str | None) -> Any:
    """The models as of that migration; None: none applied. PostgreSQL alters no table with waiting
    constraints.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    MigrationExecutor(connection).migrate([(APP, name)])
    return MigrationExecutor(connection).loader.project_state([(APP, name)] if name else []).apps


def models(apps: Any) -> list[Any]:
    """Every model of pgperf, with those between two, as that state has them."""
    return [model for model in apps.get_models(include_auto_created=True) if model._meta.app_label == APP]


def read(apps: Any) -> Rows:
    """All rows as JSON has them: table -> column -> value."""
    return {
        model._meta.db_table: [
            {field.attname: _plain(field, row) for field in model._meta.concrete_fields}
            for row in model._default_manager.order_by("pk")
        ]
        for model in models(apps)
    }


def _plain(field: Any, row: Any) -> Any:
    return None if field.value_from_object(row) is None else field.value_to_string(row)


def fill(apps: Any, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """Put these rows into the empty tables of that state, in any order of its models."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    for model in models(apps):
        model._default_manager.all().delete()
    for model in models(apps):
        fields = {field.attname: field for field in model._meta.concrete_fields}
        for row in rows[model._meta.db_table]:
            model._default_manager.create(
                **{name: fields[name].to_python(value) for name, value in row.items()}
            )
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), models(apps)):
            cursor.execute(statement)


def measured_rows() -> Rows:
    """A row or more in every table, as runs leave them behind."""
    run = factories.make_blocks(factories.make_results(factories.make_run()))
    factories.make_run(Run.Status.FAILED, confirms=run, confirms_variant="libpq · tcp", error="no")
    factories.make_worker()
    pause.begin("ada")
    factories.make_schedule(days=["mon"], owner=None).runs.add(run)
    StatementList.objects.create(database=run.database, statements=[], error="no")
    Sampling.objects.create(run=run, attempt=1, queue="pgperf-agent-x", readings=b"\x00\xff")
    queue = "pgperf-load-x"
    LoadShare.objects.create(run=run, attempt=1, name="x", queue=queue, busy_queue=queue)
    levels = {"before_us": 100.0, "after_us": 112.0, "low_us": 9.0, "high_us": 15.0}
    ChangePoint.objects.create(run=run, label="libpq · tcp", found_by=run.pk, **levels)
    MachineLook.objects.create(asked_at=timezone.now(), host="here", findings={"seconds": 5.0})
    assert run.benchmark
    rows = read(migrate(names()[-1]))
    assert [table for table, found in rows.items() if not found and not table.endswith("_groups")] == []
    return rows


def assert_readable() -> None:
    """What is stored still reads: the figures, the blocks, the raw slices."""
    runs = list(Run.objects.all())
    assert runs
    for run in runs:
        assert run_json(run)["run"]["id"] == run.pk
        assert len("".join(slices_csv(run)).splitlines()) == 1 + sum(
            len(block.slices) for block in store.load_blocks(run)
        )


def test_the_models_need_no_migration() -> None:
    call_command("makemigrations", APP, check=True, dry_run=True, verbosity=0)


def test_every_migration_but_the_newest_has_its_rows() -> None:
    lacking = [name for name in names()[:-1] if not (STORED / f"{name}.json").exists()]
    assert lacking == [], f"check out the commit before the next migration, and run the tests with {WRITE}=1"


def survives(name: str, apps: Any, rows: Rows) -> None:
    """From that migration, where the database is, to the newest."""
    fill(apps, json.loads(json.dumps(rows)))
    apps = migrate(names()[-1])
    assert_readable()
    now = read(apps)
    assert {
        table: len(now[table]) >= len(found) for table, found in rows.items() if table in now
    } == dict.fromkeys(rows.keys() & now.keys(), True)
    if name == names()[-1]:
        assert now == rows


def what_fails(name: str, apps: Any, rows: Rows) -> str:
    """The migrations after that one are undone at the end, as PostgreSQL can."""
    try:
        with transaction.atomic():
            survives(name, apps, rows)
            transaction.set_rollback(True)
    except Exception:
        return f"filled at {name}: {traceback.format_exc()}"
    return ""


def test_a_database_filled_at_a_migration_survives_the_later_ones() -> None:
    """Each migration in turn, from none on."""
    newest = names()[-1]
    measured = measured_rows()
    if os.environ.get(WRITE):
        STORED.mkdir(exist_ok=True)
        (STORED / f"{newest}.json").write_text(json.dumps(measured, indent=1) + "\n")
    migrate(None)
    failures = []
    for name in names():
        apps = migrate(name)
        rows = measured if name == newest else json.loads((STORED / f"{name}.json").read_text())
        failures += filter(None, [what_fails(name, apps, rows)])
    assert failures == [], "\n".join(failures)


def test_a_benchmark_keeps_its_workloads_in_order_both_ways() -> None:
    migrate(None)
    old = migrate("0005_connection_modes_and_workers")
    workload, benchmark = (old.get_model(APP, name) for name in ("Workload", "Benchmark"))
    benchmark.objects.all().delete()
    one, two = (workload.objects.create(name=name, title=name) for name in ("z-first", "a-second"))
    benchmark.objects.create(name="alone", title="x", workload=one)
    benchmark.objects.create(name="pair", title="x", workload=one, compared_with=two)
    benchmark.objects.create(name="twice", title="x", workload=two, compared_with=two)
    migrate(names()[-1])
    found = {row.name: [work.name for work in row.workloads] for row in Benchmark.objects.all()}
    assert found == {"alone": ["z-first"], "pair": ["z-first", "a-second"], "twice": ["a-second"]}
    old = migrate("0005_connection_modes_and_workers")
    rows = old.get_model(APP, "Benchmark").objects.select_related("workload", "compared_with")
    pairs = {row.name: (row.workload.name, row.compared_with and row.compared_with.name) for row in rows}
    assert pairs == {
        "alone": ("z-first", None),
        "pair": ("z-first", "a-second"),
        "twice": ("a-second", None),
    }
    migrate(names()[-1])


def test_rows_with_groups_and_runs_without_a_parent_become_restricted() -> None:
    """Whether a parent that is gone was restricted is not known any more."""
    migrate(None)
    old = migrate("0001_first_release")
    database, workload, benchmark, run = (
        old.get_model(APP, name) for name in ("Database", "Workload", "Benchmark", "Run")
    )
    for model in (run, benchmark, database):
        model.objects.all().delete()
    work = workload.objects.create(name="work", title="w")
    hidden, plain = (database.objects.create(name=name) for name in ("hidden", "plain"))
    database.groups.through.objects.create(database_id=hidden.pk, group_id=7)
    through, own, free = (
        benchmark.objects.create(name=name, title=name, workload=work, database=usual)
        for name, usual in (("through", hidden), ("own", None), ("free", plain))
    )
    benchmark.groups.through.objects.create(benchmark_id=own.pk, group_id=7)
    pairs = {
        "on hidden": (free, hidden),
        "through": (through, plain),
        "own": (own, plain),
        "no benchmark": (None, plain),
        "no database": (free, None),
        "free": (free, plain),
    }
    for number, (name, (of, on)) in enumerate(pairs.items()):
        asked = {"request_token": name} if number % 2 else {}
        run.objects.create(
            notes=name, benchmark=of, database=on, definition={}, requested_at=timezone.now(),
            message="Waits for secret #6, which is running on this machine.", **asked,
        )  # fmt: skip
    migrate(names()[-1])
    assert [*Database.objects.filter(restricted=True).values_list("name", flat=True)] == ["hidden"]
    assert [*Benchmark.objects.filter(restricted=True).values_list("name", flat=True)] == ["own"]
    assert not Workload.objects.filter(restricted=True).exists()
    assert {row.notes for row in Run.objects.filter(restricted=False)} == {"free"}
    assert all(row.by_user == bool(row.request_token) for row in Run.objects.all())
    assert {row.message for row in Run.objects.all()} == {"Waits for its turn."}
