"""What there is to run, as JSON and as tables: benchmarks, databases, the site's workloads, layers."""

import sys
from collections.abc import Sequence
from typing import Any

from pgperf import registry
from pgperf.catalog import BENCHMARKS
from pgperf.conf import get_settings
from pgperf.core import layers
from pgperf.core.records import CONNECTION_MODES, MODES
from pgperf.install import launch
from pgperf.models import Benchmark, Database, Target
from pgperf.reports.table import Table, text_column, words
from pgperf.workloads import discovery

Rows = list[dict[str, Any]]


def benchmarks() -> Rows:
    """Those that are saved; `catalog` says which of them pgperf ships."""
    return [
        {
            "name": row.name,
            "title": row.title,
            "catalog": row.name in BENCHMARKS,
            "database": row.database.name if row.database else None,
            "workloads": [work.name for work in row.workloads],
            **{name: getattr(row, name) for name in _choices()},
        }
        for row in Benchmark.objects.select_related("database").prefetch_related("workload_links__workload")
    ]


def _choices() -> list[str]:
    """The fields of a benchmark that say how it measures."""
    told = ("id", "name", "title", "description", "database", "restricted")
    return [field.name for field in Benchmark._meta.concrete_fields if field.name not in told]


def databases() -> Rows:
    """Each with its targets. Credentials stay out, even the references."""
    return [
        {
            "name": row.name,
            "production": row.production,
            "targets": [_target(target) for target in row.targets.all()],
        }
        for row in Database.objects.prefetch_related("targets")
    ]


def workloads() -> Rows:
    """The callables that the site registered, and each module that cannot be imported, with its
    `error`.
    """
    found = [{"name": name, "title": registry.title(name), "error": ""} for name in discovery.names()]
    failed = [{"name": f.module, "title": "", "error": f.error} for f in discovery.discover()]
    return [*found, *failed]


def abilities() -> Rows:
    """Every layer with its modes ("" or why this machine cannot run it so), and the Python its
    client runs in.
    """
    settings = get_settings()
    known = settings.BUILD_DIR, settings.programs
    return [
        {
            "name": layer.name,
            "title": layer.title,
            "modes": {mode: launch.unavailable(layer.name, mode, *known) for mode in MODES},
            "connection_modes": {
                mode: launch.connection_unavailable(layer.name, mode, *known) for mode in CONNECTION_MODES
            },
            "python": launch.interpreter(layer.name, *known) if layer.program else "",
        }
        for layer in layers.LAYERS.values()
    ]


def _target(target: Target) -> dict[str, Any]:
    fields = (
        "route", "host", "port", "sslmode", "sslrootcert", "allow_cleartext_password", "pooler", "url",
        "builds_on", "enabled",
    )  # fmt: skip
    return {name: getattr(target, name) for name in fields}


def benchmark_table(rows: Rows) -> Table:
    shown = [
        (row["name"], "catalog" if row["catalog"] else "saved", ", ".join(row["routes"]), row["title"])
        for row in rows
    ]
    return _table("Benchmarks", ("Benchmark", "From", "Routes", "Title"), shown)


def target_table(rows: Rows) -> Table:
    shown = [
        (
            row["name"],
            target["route"],
            target["url"] or f"{target['host']}:{target['port']}",
            target["pooler"] or "direct",
            "" if target["enabled"] else "disabled",
        )
        for row in rows
        for target in row["targets"]
    ]
    return _table("Targets", ("Database", "Route", "Address", "Pooler", ""), shown)


def workload_table(rows: Rows) -> Table:
    shown = [
        (row["name"], f"cannot be imported: {row['error']}" if row["error"] else row["title"]) for row in rows
    ]
    return _table("Workloads of this site", ("Workload", "Title"), shown)


def layer_table(rows: Rows) -> Table:
    """`rows` are those of `abilities`."""
    shown = [
        (row["name"], *("no" if reason else "yes" for reason in row["modes"].values()), _remark(row))
        for row in rows
    ]
    return _table("Layers of this machine", ("Layer", *MODES, ""), shown)


def _table(caption: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """All words."""
    return Table(caption, tuple(map(text_column, heads)), [tuple(map(words, row)) for row in rows], "listing")


def _remark(row: dict[str, Any]) -> str:
    """Why a layer lacks a mode, each reason once, and the Python it runs in where that is another."""
    reasons = dict.fromkeys(reason for reason in row["modes"].values() if reason)
    elsewhere = row["python"] not in ("", sys.executable)
    return "; ".join([*reasons, *([f"runs in {row['python']}"] if elsewhere else [])])
