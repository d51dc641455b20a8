"""`pgperf list`: benchmarks, databases with their targets, and the layers this machine can run."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import OutputWrapper

from pgperf import layers
from pgperf.catalog import BENCHMARKS
from pgperf.cli.text import names, table
from pgperf.conf import get_settings
from pgperf.models import Benchmark, Database, Target


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")


def run(options: dict[str, Any], out: OutputWrapper) -> None:
    found = {"benchmarks": benchmarks(), "databases": databases(), "layers": abilities()}
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
            "layers": row.layers,
            "routes": row.routes,
            "modes": row.modes,
            "clients": row.clients,
        }
        for row in Benchmark.objects.select_related("workload", "database")
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


def abilities() -> list[dict[str, Any]]:
    """Every layer with its modes ("" or why this machine cannot run it so), and the Python its client runs in."""
    settings = get_settings()
    known = settings.BUILD_DIR, settings.INTERPRETERS
    return [
        {
            "name": layer.name,
            "title": layer.title,
            "modes": {mode: layers.unavailable(layer.name, mode, *known) for mode in ("simple", "prepared")},
            "python": layers.interpreter(layer.name, *known) if layer.program else "",
        }
        for layer in layers.LAYERS.values()
    ]


def _target(target: Target) -> dict[str, Any]:
    fields = ("route", "host", "port", "sslmode", "pooler", "enabled")
    return {name: getattr(target, name) for name in fields}


def _tables(found: dict[str, list[dict[str, Any]]]) -> str:
    return "\n\n".join(
        (_benchmarks(found["benchmarks"]), _databases(found["databases"]), _layers(found["layers"]))
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


def _layers(rows: list[dict[str, Any]]) -> str:
    cells = [
        (row["name"], *(_ability(reason) for reason in row["modes"].values()), _elsewhere(row["python"]))
        for row in rows
    ]
    return table(("Layer", "simple", "prepared", ""), cells, left=4)


def _elsewhere(python: str) -> str:
    """Worth telling only where it is not this very environment."""
    return f"runs in {python}" if python not in ("", sys.executable) else ""


def _ability(reason: str) -> str:
    return f"no: {reason}" if reason else "yes"
