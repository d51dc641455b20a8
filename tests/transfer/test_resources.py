"""Every field is exported and imported exactly, in every format."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import models

from pgperf.models import Benchmark, Database, Target, Workload
from pgperf.transfer import files
from pgperf.transfer.cells import cell_of
from pgperf.transfer.importing import import_table
from pgperf.transfer.resources import (
    LEFT_OUT,
    BenchmarkResource,
    DatabaseResource,
    DefinitionResource,
    WorkloadResource,
)
from tests import factories
from tests.transfer.permissions import ALL

pytestmark = pytest.mark.django_db

RESOURCES = [DatabaseResource, WorkloadResource, BenchmarkResource]
NASTY = '=1+1\r\n\'-2\t@Größe \U0001f600 \x0b _x000D_ "a",b;\n\n '

#: A value other than the default for every field of every definition. A new field fails the tests
#: until it has a value here: check first that it may be exported, and who may import it.
SAMPLES: dict[type[models.Model], dict[str, Any]] = {
    Database: {
        "name": "shop", "dbname": "app-1", "user": "reader", "credential": "env:PGPERF_SECRET_SHOP", "production": True,
        "allow_fixtures": True, "agent": "db1", "notes": NASTY, "groups": ["+ops", "readers"],
        "restricted": True,
    },
    Target: {
        "route": "pooled", "host": "10.0.0.5", "port": 6432, "sslmode": "verify-full",
        "sslrootcert": "ca.crt", "allow_cleartext_password": True, "pooler": "transaction", "user": "reader",
        "credential": "file:reader", "url": "https://shop.example", "builds_on": "plain", "enabled": False,
    },
    Workload: {
        "name": "orders", "title": f"'{NASTY}".strip(), "sql": "SELECT -%s, %s\r\n -- +",
        "args": ["=x\n", None, 1.5, True],
        "orm": "pgperf.site_by_domain", "model": "books.Book", "fetch": "list",
        "lookup": {"title": "=1", "year__gte": 2000},
        "select_related": ["publisher"], "prefetch_related": ["authors"], "ordering": ["-year"], "values": ["title"],
        "limit": 20, "other_sql": "-- x\nSELECT 1", "other_args": [1], "other_orm": "pgperf.sites_by_name",
        "path": "/books/?q=-1", "method": "HEAD", "page_user": "reader", "one_capture": True,
        "bulk": "copyfrom", "fixture": "site", "groups": ["+ops"], "restricted": True,
    },
    Benchmark: {
        "name": "mine", "title": "-1", "description": NASTY, "workloads": ["orders", "others"],
        "database": "shop", "layers": ["libpq", "psycopg"], "routes": ["tcp"], "modes": ["simple", "prepared"],
        "clients": [1, 8], "connection_modes": ["persistent", "pool"], "workers": 3,
        "environments": ["default", "old"], "rates": [None, 100, 250.5], "schedule": "constant",
        "latency_limit_ms": 12.5, "rate_search_ms": 7.5, "load_hosts": [0, 4],
        "load_host_names": ["a", "b", "c", "d"], "may_lose_hosts": True,
        "row_type": "named", "transaction": "driver_default", "bulk_api": "dbapi",
        "placement": "together", "idle": "system", "blocks": 7, "rounds": 9, "slice_ms": 250,
        "diagnostic_ms": 300, "precision": 0.5, "budget_s": 90, "groups": ["readers"], "restricted": True,
    },
}  # fmt: skip


def named(model: type[models.Model], **fields: Any) -> Any:
    """The sample's row, saved without validation, which is not under test here."""
    values = {**SAMPLES[model], **fields}
    several = {name: values.pop(name) for name in [field.name for field in model._meta.many_to_many]}
    workloads = values.pop("workloads", [])
    for field in model._meta.concrete_fields:
        if isinstance(field, models.ForeignKey) and isinstance(values.get(field.name), str):
            values[field.name] = field.related_model._default_manager.get(name=values[field.name])
    row = model._default_manager.create(**values)
    for name, names in several.items():
        getattr(row, name).set(Group.objects.filter(name__in=names))
    if workloads:
        row.set_workloads([Workload.objects.get(name=name) for name in workloads])
    return row


@pytest.fixture(autouse=True)
def allowed(settings: Any) -> None:
    """The samples' URL."""
    named = {"old": "/opt/old/bin/python"}
    settings.PGPERF = {**settings.PGPERF, "WEB_URLS": ["https://shop.example"], "ENVIRONMENTS": named}


@pytest.fixture
def site() -> dict[type[models.Model], Any]:
    Benchmark.objects.all().delete()
    Workload.objects.all().delete()
    for name in ("+ops", "readers"):
        Group.objects.create(name=name)
    named(Workload, name="others")
    made = {model: named(model) for model in (Database, Workload, Benchmark)}
    named(Target, database=made[Database])
    return made


def row_of(resource: type[DefinitionResource], name: str) -> dict[str, Any]:
    return next(row for row in resource().plain_rows() if row["name"] == name)


@pytest.mark.parametrize("resource", RESOURCES)
def test_every_field_is_exported(resource: type[DefinitionResource]) -> None:
    model = resource._meta.model
    fields = [field.name for field in (*model._meta.concrete_fields, *model._meta.many_to_many)]
    travelling = [name for name in fields if name not in LEFT_OUT]
    extra = {Database: ["targets"], Benchmark: ["workloads"]}.get(model, [])
    assert [*resource().fields] == [*travelling, *extra]
    assert sorted(SAMPLES[model]) == sorted({*travelling, *extra} - {"targets"})


def test_every_field_of_a_target_is_exported() -> None:
    row = Target(**{name: value for name, value in SAMPLES[Target].items() if name != "groups"})
    travelling = [f.name for f in Target._meta.concrete_fields if f.name not in ("id", "database")]
    assert sorted(SAMPLES[Target]) == sorted(travelling)
    for field in Target._meta.concrete_fields:
        assert field.name in ("id", "database") or field.value_from_object(row) != field.get_default()


@pytest.mark.parametrize("model", [Database, Workload, Benchmark])
def test_every_sample_differs_from_the_default(model: type[models.Model]) -> None:
    new = model()
    for field in model._meta.concrete_fields:
        if field.name in SAMPLES[model]:
            assert SAMPLES[model][field.name] != getattr(new, field.attname), field.name


@pytest.mark.parametrize("resource", RESOURCES)
def test_an_export_has_the_stored_values(resource: type[DefinitionResource], site: Any) -> None:
    model = resource._meta.model
    expected = {**SAMPLES[model], **({"targets": [SAMPLES[Target]]} if model is Database else {})}
    assert row_of(resource, expected["name"]) == expected


@pytest.mark.parametrize("kind", list(files.FORMATS))
@pytest.mark.parametrize("resource", RESOURCES)
def test_an_export_imports_unchanged(
    resource: type[DefinitionResource], kind: str, site: Any, monkeypatch: Any
) -> None:
    """Validation is off: the samples mix the kinds of workload and of target."""
    monkeypatch.setattr(Workload, "clean", lambda self: None)
    monkeypatch.setattr(Target, "clean", lambda self: None)
    model = resource._meta.model
    before = resource().plain_rows()
    content = files.write(kind, before)
    kept = site[model].pk
    Benchmark.objects.all().delete()
    if model is Workload:
        Workload.objects.all().delete()
    if model is Database:
        Database.objects.all().delete()
    outcome = import_table(resource(permissions=ALL), files.read(f"x.{kind}", content))
    assert outcome.problems == []
    assert len(outcome.changes) == len(before)
    assert resource().plain_rows() == before
    assert not model._default_manager.filter(pk=kept).exists()


@pytest.mark.parametrize("kind", list(files.FORMATS))
@pytest.mark.parametrize("resource", RESOURCES)
def test_an_unchanged_row_is_not_written(
    resource: type[DefinitionResource], kind: str, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Target, "clean", lambda self: None)
    rows = resource().plain_rows()
    outcome = import_table(resource(permissions=ALL), files.read(f"x.{kind}", files.write(kind, rows)))
    assert (outcome.problems, outcome.changes, outcome.same) == ([], [], len(rows))


def test_an_export_contains_no_secret(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPERF_SECRET_SHOP", "canary-secret")
    for kind in files.FORMATS:
        content = files.write(kind, DatabaseResource().plain_rows())
        assert b"canary-secret" not in content
    assert row_of(DatabaseResource, "shop")["credential"] == "env:PGPERF_SECRET_SHOP"


def test_a_field_type_without_a_cell_raises() -> None:
    with pytest.raises(TypeError, match="no cell for DurationField"):
        cell_of(models.DurationField())


def test_the_catalog_can_be_exported_and_imported() -> None:
    """The catalog's definitions pass validation."""
    factories.make_database()
    rows = BenchmarkResource().plain_rows()
    assert "orm-overhead" in [row["name"] for row in rows]
    works = WorkloadResource().plain_rows()
    Benchmark.objects.all().delete()
    Workload.objects.all().delete()
    for resource, data in ((WorkloadResource, works), (BenchmarkResource, rows)):
        outcome = import_table(resource(permissions=ALL), files.read("x.csv", files.write("csv", data)))
        assert outcome.problems == []
    assert BenchmarkResource().plain_rows() == rows
