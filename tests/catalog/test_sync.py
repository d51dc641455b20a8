"""The catalog's benchmarks as rows: missing rows are created, existing ones stay."""

import sys
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.apps.registry import Apps
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS

from pgperf import catalog
from pgperf.catalog import BENCHMARKS, sync
from pgperf.catalog.sync import copy_catalog
from pgperf.db import validators
from pgperf.models import Benchmark, Workload
from pgperf.runs.definitions import freeze
from tests.factories import make_database

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_rows() -> None:
    Benchmark.objects.all().delete()
    Workload.objects.all().delete()


def copy() -> None:
    copy_catalog(apps=apps, using=DEFAULT_DB_ALIAS)


def test_migrate_copies_them() -> None:
    call_command("migrate", verbosity=0)
    assert set(Benchmark.objects.values_list("name", flat=True)) == set(BENCHMARKS)


def test_the_rows_are_valid_and_equal_the_catalog() -> None:
    copy()
    database = make_database()
    for row in Benchmark.objects.all():
        row.full_clean()
        for work in row.workloads:
            work.full_clean()
        validators.layer_list(row.layers)
        assert freeze(row, database).workloads == BENCHMARKS[row.name].workloads


def test_a_row_that_the_site_changed_stays() -> None:
    copy()
    Benchmark.objects.update(title="ours", rounds=1)
    Workload.objects.update(sql="SELECT 1")
    copy()
    assert Benchmark.objects.filter(title="ours", rounds=1).count() == len(BENCHMARKS)
    assert Workload.objects.filter(sql="SELECT 1").exists()


def test_a_database_without_pgperfs_tables_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.db.router.allow_migrate_model", lambda alias, model: False)
    copy()
    assert not Benchmark.objects.exists()


def test_migrating_backwards_creates_no_rows() -> None:
    copy_catalog(apps=Apps(), using=DEFAULT_DB_ALIAS)
    assert not Benchmark.objects.exists()


def test_columns_of_later_migrations_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As while a new database is migrated to an earlier state."""
    later = {"not_there_yet": 1}
    monkeypatch.setattr(sync, "_benchmark_fields", lambda shipped: {"title": shipped.title, **later})
    monkeypatch.setattr(sync, "_workload_fields", lambda title, work: {"sql": "SELECT 1", **later})
    copy()
    assert set(Benchmark.objects.values_list("name", flat=True)) == set(BENCHMARKS)


def test_a_benchmark_comes_with_its_workloads_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("django.db.models.QuerySet.bulk_create", interrupted)
    with pytest.raises(KeyboardInterrupt):
        copy()
    assert not Benchmark.objects.exists()


def test_a_new_benchmark_is_one_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "brand_new.py").write_text(
        "from pgperf.catalog.base import CatalogBenchmark\n"
        "from pgperf.catalog.orm_overhead import SITE_BY_DOMAIN\n"
        "NEW = CatalogBenchmark('brand-new', 'Brand new', 'text', (SITE_BY_DOMAIN,), ('libpq',), ('tcp',))\n"
    )
    monkeypatch.setattr(catalog, "__path__", [*catalog.__path__, str(tmp_path)])
    found = catalog.find_benchmarks()
    monkeypatch.delitem(sys.modules, "pgperf.catalog.brand_new")
    assert list(found) == [*BENCHMARKS, "brand-new"]
    monkeypatch.setattr(catalog, "BENCHMARKS", found)
    copy()
    assert [row.name for row in Benchmark.objects.get(name="brand-new").workloads] == ["site-by-domain"]
