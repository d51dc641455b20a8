"""The layers pgperf can measure: what each is, what it needs, how its client starts. A new one is one entry."""

import ctypes.util
import importlib.util
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from pgperf.core.protocol import MODES


@dataclass(frozen=True)
class Layer:
    """One kind of client. `modules`: any one of them must be importable."""

    name: str
    title: str
    program: str = ""  # a module of pgperf.clients.programs, or "" for the C client
    modules: tuple[str, ...] = ()
    modes: tuple[str, ...] = MODES
    mode_reason: str = ""  # why the modes it lacks are lacking
    remedy: str = ""  # how to get its driver, where `build --drivers` does not bring it
    loads_libpq: bool = False  # its driver looks for the system's libpq when it starts


_ON_CLIENT = "psycopg2 always binds on the client: it has neither extended nor prepared statements"
_DJANGO_DRIVERS = ("psycopg", "psycopg2")

#: In the order of tables and charts: each rung above the one that it stands on.
LAYERS: dict[str, Layer] = {
    layer.name: layer
    for layer in (
        Layer("libpq", "libpq (C)"),
        Layer("psycopg2", "psycopg2", "psycopg2_client", ("psycopg2",), ("simple",), _ON_CLIENT),
        Layer(
            "django_cursor_psycopg2",
            "Django cursor on psycopg2",
            "django_client",
            ("psycopg2",),
            ("simple",),
            _ON_CLIENT,
        ),
        Layer(
            "django_orm_psycopg2",
            "Django ORM on psycopg2",
            "django_client",
            ("psycopg2",),
            ("simple",),
            _ON_CLIENT,
        ),
        Layer("psycopg", "psycopg 3", "psycopg_client", ("psycopg",)),
        Layer(
            "psycopg_c",
            "psycopg 3 (C)",
            "psycopg_client",
            ("psycopg_c",),
            remedy="pip install 'psycopg[c]', which needs a C compiler and libpq's headers",
        ),
        Layer("psycopg_binary", "psycopg 3 (binary)", "psycopg_client", ("psycopg_binary",)),
        Layer("psycopg_python", "psycopg 3 (Python)", "psycopg_client", ("psycopg",), loads_libpq=True),
        Layer("psycopg_async", "psycopg 3, async", "psycopg_async_client", ("psycopg",)),
        Layer(
            "asyncpg",
            "asyncpg",
            "asyncpg_client",
            ("asyncpg",),
            ("extended", "prepared"),
            "asyncpg reads rows through the extended protocol only: it has no mode simple",
        ),
        Layer("django_cursor", "Django cursor", "django_client", _DJANGO_DRIVERS),
        Layer("django_orm", "Django ORM", "django_client", _DJANGO_DRIVERS),
        Layer("fake", "fake (no database)", "fake_client"),
    )
}

C_CLIENT = "pgperf-libpq"
#: Below BUILD_DIR: the virtual environment that `pgperf build --drivers` makes.
DRIVERS = "drivers"
#: Layer -> Python that runs its client, where the site named none.
NO_INTERPRETERS: Mapping[str, str] = MappingProxyType({})
_ALONE = str(Path(__file__).parent.parent / "clients" / "isolated.py")


def django_driver() -> str:
    """The driver Django uses in this environment: psycopg 3 where it is installed, as Django prefers it."""
    return "psycopg" if importlib.util.find_spec("psycopg") else "psycopg2"


def unavailable(
    layer: str, mode: str, build_dir: str, interpreters: Mapping[str, str] = NO_INTERPRETERS
) -> str:
    """Why this machine cannot run the layer in that mode, with the remedy; "" if it can."""
    entry = LAYERS[layer]
    if mode not in entry.modes:
        return entry.mode_reason
    if needs_site(layer) and django_driver() == "psycopg2":
        if layer.endswith("_psycopg2"):
            return f"Django uses psycopg2 here anyway: choose {layer.removesuffix('_psycopg2')}"
        if mode != "simple":
            return f"Django over psycopg2 binds on the client; {mode} needs psycopg 3"
    if not entry.program and not c_client(build_dir):
        return "the C client is not built: run `manage.py pgperf build`"
    if entry.program and not interpreter(layer, build_dir, interpreters):
        return _no_driver(entry)
    if entry.loads_libpq and not _system_libpq():
        return "psycopg in Python loads the system's libpq, and there is none (Debian: apt install libpq5)"
    return ""


def unavailable_in_all(layer: str, build_dir: str, interpreters: Mapping[str, str] = NO_INTERPRETERS) -> str:
    """Why this machine cannot run the layer in any mode; "" if it can in one."""
    return unavailable(layer, LAYERS[layer].modes[0], build_dir, interpreters)


@cache
def _system_libpq() -> str:
    """Found as ctypes finds it, by asking other programs; hence once."""
    return ctypes.util.find_library("pq") or ""


def needs_site(layer: str) -> bool:
    """Does the layer measure the site's own Django, which lives in the site's own environment?"""
    return LAYERS[layer].program == "django_client"


def may_run_elsewhere(layer: str) -> bool:
    """Is it a driver alone that the layer measures, so that any Python with that driver will do?"""
    return bool(LAYERS[layer].modules) and not needs_site(layer)


def in_site(layer: str) -> bool:
    """Is there a driver for the layer in this environment?"""
    modules = LAYERS[layer].modules
    return not modules or any(importlib.util.find_spec(name) for name in modules)


def interpreter(layer: str, build_dir: str, interpreters: Mapping[str, str] = NO_INTERPRETERS) -> str:
    """The Python that runs the layer's client: the one named for it, else this one if it has the driver, else the one
    of pgperf's own environment if that has it; "" if none has.
    """
    if layer in interpreters and may_run_elsewhere(layer):
        return shutil.which(interpreters[layer]) or ""
    if in_site(layer):
        return sys.executable
    own = Path(build_dir) / DRIVERS
    if needs_site(layer) or not any(
        any(own.glob(f"lib/python*/site-packages/{name}/__init__.py")) for name in LAYERS[layer].modules
    ):
        return ""
    return shutil.which(str(own / "bin" / "python")) or ""


def _no_driver(entry: Layer) -> str:
    if needs_site(entry.name):
        return f"not installed: pip install {entry.modules[0]}"
    if entry.remedy:
        return f"{entry.modules[0]} is not installed here: {entry.remedy}"
    return f"{entry.modules[0]} is not installed here: run `manage.py pgperf build --drivers`"


def c_client(build_dir: str) -> str:
    """Path of the built C client, or ""."""
    return shutil.which(str(Path(build_dir) / C_CLIENT)) or ""


def command(layer: str, build_dir: str, interpreters: Mapping[str, str] = NO_INTERPRETERS) -> list[str]:
    """The argv that starts the layer's client. It never holds anything secret."""
    entry = LAYERS[layer]
    if not entry.program:
        return [c_client(build_dir)]
    python = interpreter(layer, build_dir, interpreters)
    if python == sys.executable:
        return [python, "-m", f"pgperf.clients.programs.{entry.program}"]
    return [python, "-I", _ALONE, entry.program]
