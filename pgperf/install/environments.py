"""What the Python of an environment has, and why it cannot run a layer (standard library only)."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pgperf
from pgperf.core.client_environment import DEFAULT, ClientEnvironment
from pgperf.core.exceptions import LayerUnavailable
from pgperf.core.layers import DJANGO_DRIVERS, LAYERS, NO_ENVIRONMENTS, Layer, distributions

_REPORT = str(Path(__file__).parent / "environment_report.py")
_START_SECONDS = 30
_MODULES = tuple(
    dict.fromkeys(
        [
            "django",
            *(module for layer in LAYERS.values() for group in layer.needed_modules for module in group),
            *(layer.pool_module for layer in LAYERS.values() if layer.pool_module),
        ]
    )
)
_DISTRIBUTIONS = ("Django", *distributions(), "psycopg-pool")


@dataclass(frozen=True)
class Installed:
    """What a Python reports about itself. `pgperf` is "" where it cannot be imported."""

    python: str
    pgperf: str
    packages: Mapping[str, str]
    modules: frozenset[str]
    path: tuple[str, ...]

    @property
    def django_driver(self) -> str:
        """The driver that Django uses there; "" without one."""
        return next((name for name in DJANGO_DRIVERS if name in self.modules), "")

    def to_json(self) -> dict[str, Any]:
        """The versions, for a run's environment and a worker's row."""
        return {"python": self.python, "pgperf": self.pgperf, "packages": dict(self.packages)}


def examine(environment: ClientEnvironment) -> Installed:
    """Start the Python once. Raises LayerUnavailable with the reason and the remedy."""
    if not shutil.which(environment.python):
        raise LayerUnavailable(f"{environment.python} is not an executable file")
    try:
        done = subprocess.run(
            [environment.python, _REPORT, ",".join(_MODULES), ",".join(_DISTRIBUTIONS)],
            env=interpreter_variables(environment), cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=_START_SECONDS, check=False,
        )  # fmt: skip
        report = json.loads((done.stdout.strip().splitlines() or [""])[-1])
        return Installed(
            python=report["python"],
            pgperf=report["pgperf"],
            packages=report["packages"],
            modules=frozenset(report["modules"]),
            path=tuple(report["path"]),
        )
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        raise LayerUnavailable(
            f"{environment.python} does not start as a Python ({type(error).__name__})"
        ) from error


@dataclass(frozen=True)
class UsableEnvironment:
    """An environment whose Python was examined and runs this pgperf."""

    environment: ClientEnvironment
    installed: Installed


def default() -> ClientEnvironment:
    """The worker's own Python."""
    return ClientEnvironment(DEFAULT, sys.executable)


def interpreter_variables(environment: ClientEnvironment) -> dict[str, str]:
    """The variables of a client that runs no code of the site."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
        **environment.variables,
    }


def refusal(installed: Installed) -> str:
    """Why the Python cannot run this pgperf's clients at all; "" if it can."""
    if not installed.pgperf:
        return f"pgperf is not installed there: install pgperf {pgperf.__version__}"
    return other_version(installed.pgperf)


def other_version(found: str) -> str:
    """The refusal of another version of pgperf than this one; "" for the same."""
    if found == pgperf.__version__:
        return ""
    return (
        f"pgperf {found} is installed there, and this is {pgperf.__version__}: install the same there, so that"
        " both sides measure alike"
    )


def unavailable(layer: str, mode: str, installed: Installed) -> str:
    """Why the environment cannot run the layer in that mode; "" if it can."""
    entry = LAYERS[layer]
    if not entry.has_environments:
        return NO_ENVIRONMENTS
    if mode not in entry.modes:
        return entry.mode_reason
    if lacking := _lacking(entry, installed):
        return lacking
    if entry.needs_site and installed.django_driver == "psycopg2" and mode != "simple":
        return f"Django over psycopg2 binds on the client; {mode} needs psycopg 3"
    return ""


def connection_unavailable(layer: str, connection_mode: str, installed: Installed) -> str:
    """Why the environment cannot run a layer that it has in that connection mode; "" if it can."""
    entry = LAYERS[layer]
    if connection_mode not in entry.connection_modes:
        return entry.connection_reason
    if connection_mode == "pool" and entry.pool_module and entry.pool_module not in installed.modules:
        return f"{entry.pool_module} is not installed there: pip install 'psycopg[pool]'"
    return ""


def _lacking(entry: Layer, installed: Installed) -> str:
    if entry.needs_site and "django" not in installed.modules:
        return "Django is not installed there"
    lacking = (group for group in entry.needed_modules if not installed.modules.intersection(group))
    return next((f"{' or '.join(group)} is not installed there" for group in lacking), "")
