"""`pgperf list`: benchmarks, databases with their targets, the site's registered workloads, and the layers this machine
can run.
"""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from pgperf import registry
from pgperf.catalog import BENCHMARKS
from pgperf.cli.text_table import names, table
from pgperf.conf import get_settings
from pgperf.core import layers
from pgperf.core.records import MODES
from pgperf.install import launch
from pgperf.models import Benchmark, Database, Target
from pgperf.workloads import discovery


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    found = {
        "benchmarks": benchmarks(),
        "databases": databases(),
        "workloads": workloads(),
        "layers": abilities(),
    }
    out.write(json.dumps(found, indent=2) if options["json"] else _tables(found))


def benchmarks() -> list[dict[str, Any]]:
    """Those that are saved; `catalog` says which of them pgperf ships."""
    return [
        {
            "name": row.name,
            "title": row.title,
            "catalog": row.name in BENCHMARKS,
            "database": row.database.name if row.database else None,
            "workload": row.workload.name,
            "compared_with": row.compared_with.name if row.compared_with else None,
            "layers": row.layers,
            "routes": row.routes,
            "modes": row.modes,
            "clients": row.clients,
        }
        for row in Benchmark.objects.select_related("workload", "compared_with", "database")
    ]


def databases() -> list[dict[str, Any]]:
    """Each with its targets. Credentials stay out, even the references."""
    return [
        {
            "name": row.name,
            "production": row.production,
            "targets": [_target(target) for target in row.targets.all()],
        }
        for row in Database.objects.prefetch_related("targets")
    ]


def workloads() -> list[dict[str, Any]]:
    """The callables that the site registered, and each module that cannot be imported, with its `error`."""
    found = [{"name": name, "title": registry.title(name), "error": ""} for name in discovery.names()]
    failed = [{"name": f.module, "title": "", "error": f.error} for f in discovery.discover()]
    return [*found, *failed]


def abilities() -> list[dict[str, Any]]:
    """Every layer with its modes ("" or why this machine cannot run it so), and the Python its client runs in."""
    settings = get_settings()
    known = settings.BUILD_DIR, settings.INTERPRETERS
    return [
        {
            "name": layer.name,
            "title": layer.title,
            "modes": {mode: launch.unavailable(layer.name, mode, *known) for mode in MODES},
            "python": launch.interpreter(layer.name, *known) if layer.program else "",
        }
        for layer in layers.LAYERS.values()
    ]


def _target(target: Target) -> dict[str, Any]:
    fields = ("route", "host", "port", "sslmode", "sslrootcert", "pooler", "enabled")
    return {name: getattr(target, name) for name in fields}


def _tables(found: dict[str, list[dict[str, Any]]]) -> str:
    return "\n\n".join(
        (
            _benchmarks(found["benchmarks"]),
            _databases(found["databases"]),
            _workloads(found["workloads"]),
            _layers(found["layers"]),
        )
    )


def _benchmarks(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "Benchmarks: none. `manage.py migrate` copies those of the catalog."
    cells = [
        (row["name"], "catalog" if row["catalog"] else "saved", names(row["routes"]), row["title"])
        for row in rows
    ]
    return table(("Benchmark", "from", "routes", "title"), cells, left=4)


def _databases(rows: list[dict[str, Any]]) -> str:
    if not any(row["targets"] for row in rows):
        return "Targets: none. Add a database with its targets in the admin."
    cells = [
        (
            row["name"],
            target["route"],
            f"{target['host']}:{target['port']}",
            target["pooler"] or "direct",
            _note(target),
        )
        for row in rows
        for target in row["targets"]
    ]
    return table(("Database", "route", "address", "pooler", ""), cells, left=5)


def _note(target: dict[str, Any]) -> str:
    return "" if target["enabled"] else "disabled"


def _workloads(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "Workloads of this site: none. Register one with @workload in an app's pgperf_workloads.py."
    cells = [
        (row["name"], f"cannot be imported: {row['error']}" if row["error"] else row["title"]) for row in rows
    ]
    return table(("Workload of this site", ""), cells, left=2)


def _layers(rows: list[dict[str, Any]]) -> str:
    cells = [
        (row["name"], *("no" if reason else "yes" for reason in row["modes"].values()), _remark(row))
        for row in rows
    ]
    return table(("Layer", *MODES, ""), cells, left=2 + len(MODES))


def _remark(row: dict[str, Any]) -> str:
    """Why a layer lacks a mode, each reason once, and where it runs."""
    reasons = dict.fromkeys(reason for reason in row["modes"].values() if reason)
    return "; ".join([*reasons, *filter(None, [_elsewhere(row["python"])])])


def _elsewhere(python: str) -> str:
    """Worth telling only where it is not this very environment."""
    return f"runs in {python}" if python not in ("", sys.executable) else ""
