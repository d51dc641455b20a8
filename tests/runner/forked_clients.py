"""Clients forked from one process that has imported what they need, for tests of what clients say.

A client is still a process with the program, the messages and the connections of any other. It only
starts a second earlier. Tests of how clients start, or of their CPU time, start them themselves.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pgperf.core.layers import LAYERS
from pgperf.install import launch
from pgperf.runner import client_process
from pgperf.runner.server import control_connection
from tests.forking import ForkedProcess, ForkServer, importing

#: Those that use psycopg 3.
DJANGO = ("django_cursor", "django_orm", "django_view")
#: Those that belong to no site, and choose nothing before they import their driver.
PLAIN = ("psycopg2", "psycopg", "psycopg_async", "psycopg_async_uvloop", "asyncpg", "asyncpg_uvloop")
#: What takes long to import and needs no settings.
PACKAGES = (
    "celery.app.base",
    "django.core.serializers.json",
    "django.db.models",
    "django.http",
    "numpy",
    "openpyxl",
)
#: In argv, before the words of a client that is forked.
_FORKED = "forked"


class Nursery(ForkServer):
    """Has imported these modules, for clients of these layers."""

    def __init__(self, layers: Sequence[str], modules: Sequence[str], environment: Mapping[str, str]) -> None:
        super().__init__(importing(*modules), environment)
        self._layers = layers

    @contextmanager
    def raising(self, only: ModuleType | None = None) -> Iterator[None]:
        """Clients that start meanwhile come from here; `only` those that this module starts."""
        around = SimpleNamespace(**{**vars(subprocess), "Popen": self._started})
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(client_process, "subprocess", around)
            if only:
                patched.setattr(only, "launch", SimpleNamespace(command=self._command(launch.command)))
            else:
                patched.setattr(launch, "command", self._command(launch.command))
            yield

    def _command(self, alone: Any) -> Any:
        def command(layer: str, *around: Any) -> list[str]:
            argv: list[str] = alone(layer, *around)
            ours = layer in self._layers and argv[1] == "-m"  # another Python has another word there
            return [_FORKED, *argv[1:]] if ours else argv

        return command

    def _started(self, argv: list[str], **around: Any) -> "ForkedProcess | subprocess.Popen[bytes]":
        if _FORKED not in argv:
            return subprocess.Popen(argv, **around)
        words = argv[argv.index(_FORKED) + 1 :]
        return self.start(words, around["stderr"], around["env"], around["cwd"])


def of_site(settings_module: str, *others: str) -> Nursery:
    """Of Django's clients, in a site with these settings. They find it set up. `others` are layers
    whose clients belong to no site.
    """
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings_module}
    return Nursery((*DJANGO, *others), ["tests.forking.set_up", *_drivers(others)], environment)


def with_modules_of_site(*others: str) -> Nursery:
    """Of Django's clients, which set the site up themselves, but find the packages that it needs."""
    return Nursery((*DJANGO, *others), ["psycopg", *_drivers(others), *PACKAGES], _without_site())


@contextmanager
def control_connections() -> Iterator[None]:
    """Come from a nursery; clients that are measured start by themselves."""
    with of_no_site("psycopg") as found, found.raising(only=control_connection):
        yield


def of_no_site(*layers: str) -> Nursery:
    """Of clients that belong to no site."""
    return Nursery(layers, _drivers(layers), _without_site())


def _drivers(layers: Sequence[str]) -> list[str]:
    return [*(module for layer in layers for module in LAYERS[layer].modules), "pgperf.clients.loop"]


def _without_site() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("DJANGO_")}
