"""Clients forked from one process that has imported what they need, for tests of what clients say.

A client is still a process with the program, the messages and the connections of any other. It only
starts a second earlier. Tests of how clients start, or of their CPU time, start them themselves.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import pytest

from pgperf.core.layers import LAYERS
from pgperf.install import launch
from pgperf.runner.server import control_connection

CHECKOUT = Path(__file__).parent.parent.parent.parent
DOOR = Path(__file__).parent / "door.py"
#: Those that use psycopg 3.
DJANGO = ("django_cursor", "django_orm", "django_view")
#: What takes long to import and needs no settings.
PACKAGES = (
    "celery.app.base",
    "django.core.serializers.json",
    "django.db.models",
    "django.http",
    "numpy",
    "openpyxl",
)


class Nursery:
    """A nursery that has imported these modules, for clients of these layers."""

    def __init__(
        self, directory: Path, layers: Sequence[str], modules: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self._address, self._layers = str(directory / "nursery"), layers
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._address)
            listener.listen(100)
            argv = [sys.executable, "-m", __name__, str(listener.fileno()), *modules]
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                cwd=CHECKOUT,
                env=dict(environment),
                pass_fds=[listener.fileno()],
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.__exit__(None, None, None)  # closes stdin, and waits

    @contextmanager
    def raising(self, only: ModuleType | None = None) -> Iterator[None]:
        """Clients that start meanwhile come from here; `only` those that this module starts."""
        started = launch.command

        def command(layer: str, *around: Any) -> list[str]:
            argv = started(layer, *around)
            if layer not in self._layers:
                return argv
            return [sys.executable, "-I", "-S", str(DOOR), self._address, *argv[2:]]

        with pytest.MonkeyPatch.context() as patched:
            if only:
                patched.setattr(only, "launch", SimpleNamespace(command=command))
            else:
                patched.setattr(launch, "command", command)
            yield


def of_site(directory: Path, settings_module: str) -> Nursery:
    """Of Django's clients, in a site with these settings. They find it set up."""
    return Nursery(directory, DJANGO, (), {**os.environ, "DJANGO_SETTINGS_MODULE": settings_module})


def with_modules_of_site(directory: Path) -> Nursery:
    """Of Django's clients, which set the site up themselves, but find the packages that it needs."""
    return Nursery(directory, DJANGO, ("psycopg", *PACKAGES), _without_site())


@contextmanager
def control_connections(directory: Path) -> Iterator[None]:
    """Come from a nursery; clients that are measured start by themselves."""
    with of_no_site(directory, "psycopg") as found, found.raising(only=control_connection):
        yield


def of_no_site(directory: Path, *layers: str) -> Nursery:
    """Of clients that belong to no site."""
    drivers = [module for layer in layers for module in LAYERS[layer].modules]
    return Nursery(directory, layers, (*drivers, "pgperf.clients.loop"), _without_site())


def _without_site() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("DJANGO_")}
