"""Copies the benchmarks that ship in code into rows, where a site may change them: missing rows
only.
"""

from typing import Any

from django.apps import apps as installed
from django.apps.registry import Apps
from django.db import router, transaction

from pgperf import catalog
from pgperf.core import records


def copy_catalog(*, using: str, apps: Apps = installed, **_: Any) -> None:
    """post_migrate handler. Makes the rows that are missing by name; a row that is there is the
    site's own.

    `apps` is the state migrated to; `flush` sends none.
    """
    try:
        workloads, benchmarks, links = (
            apps.get_model("pgperf", name) for name in ("Workload", "Benchmark", "BenchmarkWorkload")
        )
    except LookupError:  # migrated backwards: the tables are gone, or are those of an older release
        return
    if not router.allow_migrate_model(using, benchmarks):
        return
    for shipped in catalog.BENCHMARKS.values():
        with transaction.atomic(using=using):
            _copy(shipped, using, workloads, benchmarks, links)


def _copy(shipped: catalog.CatalogBenchmark, using: str, workloads: Any, benchmarks: Any, links: Any) -> None:
    rows = [
        workloads.objects.using(using).get_or_create(
            name=work.name, defaults=_known(workloads, _workload_fields(_title(shipped, work), work))
        )[0]
        for work in shipped.workloads
    ]
    benchmark, made = benchmarks.objects.using(using).get_or_create(
        name=shipped.name, defaults=_known(benchmarks, _benchmark_fields(shipped))
    )
    if made:
        links.objects.using(using).bulk_create(
            links(benchmark=benchmark, workload=row, position=at) for at, row in enumerate(rows)
        )


def _known(model: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """Those that the model has: it may be that of an older migration."""
    known = {field.name for field in model._meta.get_fields()}
    return {name: value for name, value in fields.items() if name in known}


def _title(shipped: catalog.CatalogBenchmark, workload: records.WorkloadDefinition) -> str:
    """A benchmark's only workload has the benchmark's title."""
    return shipped.title if len(shipped.workloads) == 1 else f"{shipped.title}: {workload.name}"


def _workload_fields(title: str, workload: records.WorkloadDefinition) -> dict[str, Any]:
    plain = ("name", "sql", "orm", "other_sql", "other_orm", "fixture")
    fields: dict[str, Any] = {name: getattr(workload, name) for name in plain}
    fields["bulk"] = workload.bulk.name if workload.bulk else ""
    return {**fields, "args": list(workload.args), "other_args": list(workload.other_args), "title": title}


def _benchmark_fields(shipped: catalog.CatalogBenchmark) -> dict[str, Any]:
    names = ("layers", "routes", "modes", "clients", "connection_modes", "environments", "load_hosts")
    lists = {name: list(getattr(shipped, name)) for name in names}
    plain = (
        "title",
        "description",
        "placement",
        "idle",
        "blocks",
        "rounds",
        "slice_ms",
        "diagnostic_ms",
        "precision",
        "budget_s",
        "rate_search_ms",
        "workers",
        "row_type",
        "transaction",
        "bulk_api",
    )
    return {**lists, **{name: getattr(shipped, name) for name in plain}}
