"""Loads `pgperf_workloads.py` of every installed app when the registered workloads are first
needed.

If a module cannot be imported, its workloads are missing and a message says why. The site and the
other modules are not affected.
"""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.apps import apps
from django.db import connections, router

from pgperf import registry
from pgperf.core.protocol import scrub

MODULE = "pgperf_workloads"


@dataclass(frozen=True)
class ImportFailure:
    """A module that cannot be imported: its dotted name, and the error as one line."""

    module: str
    error: str

    def __str__(self) -> str:
        return f"{self.module} cannot be imported: {self.error}"


@cache
def discover() -> list[ImportFailure]:
    """Import the modules once; those that fail, in the order of INSTALLED_APPS."""
    return [failure for config in apps.get_app_configs() if (failure := _load(config.name))]


def names() -> list[str]:
    """The site's own registered workloads, sorted. pgperf's are left out."""
    discover()
    return [name for name in registry.names() if not registry.is_own(name)]


def aliases() -> dict[str, dict[str, Any]]:
    """The aliases of DATABASES that own workloads can use, each with one such workload.

    The workload is `{"orm": name}` or `{"query": {"model": label}}`, as in a client's spec.
    """
    by_model = {router.db_for_read(model): model._meta.label for model in apps.get_models()}
    found: dict[str, dict[str, Any]] = {
        str(alias): {"query": {"model": label}} for alias, label in by_model.items()
    }
    return {**found, **{registry.find(name).using: {"orm": name} for name in names()}}


def _load(app: str) -> ImportFailure | None:
    """Import one app's module; returns the failure, or None if there is none or no such module."""
    module = f"{app}.{MODULE}"
    try:
        if find_spec(module) is None:
            return None
        import_module(module)
    except Exception as error:
        return ImportFailure(module, _one_line(error))
    return None


def _one_line(error: Exception) -> str:
    """A module may connect as it is imported, and quote what it connected with."""
    text = str(error).strip()
    for alias in connections.databases.values():
        text = scrub(text, {"password": str(alias.get("PASSWORD") or "")})
    lines = text.splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
