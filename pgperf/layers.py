"""The layers pgperf can measure: what each is, what it needs, how its client starts. A new one is one entry."""

import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layer:
    """One kind of client. `modules`: any one of them must be importable. `below` is the layer it stands on."""

    name: str
    title: str
    modes: tuple[str, ...]
    program: str  # a module of pgperf.clients, or "" for the C client
    modules: tuple[str, ...] = ()
    below: str = ""
    mode_reason: str = ""  # why the modes it lacks are lacking


LAYERS: dict[str, Layer] = {
    layer.name: layer
    for layer in (
        Layer("libpq", "libpq (C)", ("simple", "prepared"), ""),
        Layer(
            "psycopg2",
            "psycopg2",
            ("simple",),
            "psycopg2_client",
            ("psycopg2",),
            "libpq",
            "psycopg2 binds on the client and has no prepared statements of its own",
        ),
        Layer("psycopg", "psycopg 3", ("simple", "prepared"), "psycopg_client", ("psycopg",), "libpq"),
        Layer(
            "django_cursor",
            "Django cursor",
            ("simple", "prepared"),
            "django_client",
            ("psycopg", "psycopg2"),
            "driver",
        ),
        Layer(
            "django_orm",
            "Django ORM",
            ("simple", "prepared"),
            "django_client",
            ("psycopg", "psycopg2"),
            "django_cursor",
        ),
        Layer("fake", "fake (no database)", ("simple", "prepared"), "fake_client"),
    )
}

C_CLIENT = "pgperf-libpq"


def django_driver() -> str:
    """The driver Django uses in this environment: psycopg 3 where it is installed, as Django prefers it."""
    return "psycopg" if importlib.util.find_spec("psycopg") else "psycopg2"


def unavailable(layer: str, mode: str, build_dir: str) -> str:
    """Why this machine cannot run the layer in that mode, with the remedy; "" if it can."""
    entry = LAYERS[layer]
    if mode not in entry.modes:
        return entry.mode_reason
    if entry.name.startswith("django") and mode == "prepared" and django_driver() == "psycopg2":
        return "Django over psycopg2 binds on the client; prepared statements need psycopg 3"
    if not entry.program and not c_client(build_dir):
        return "the C client is not built: run `manage.py pgperf build`"
    if entry.modules and not any(importlib.util.find_spec(name) for name in entry.modules):
        return f"not installed: pip install {entry.modules[0]}"
    return ""


def c_client(build_dir: str) -> str:
    """Path of the built C client, or ""."""
    return shutil.which(str(Path(build_dir) / C_CLIENT)) or ""


def command(layer: str, build_dir: str) -> list[str]:
    """The argv that starts the layer's client. It never holds anything secret."""
    entry = LAYERS[layer]
    if not entry.program:
        return [c_client(build_dir)]
    return [sys.executable, "-m", f"pgperf.clients.{entry.program}"]
