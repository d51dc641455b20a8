"""The command that starts a layer's client here, or why none can (standard library only)."""

import ctypes.util
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from pgperf.core import pgbench
from pgperf.core.layers import DJANGO_DRIVERS, LAYERS, Layer, place_of

C_CLIENT = "pgperf-libpq"
#: Below BUILD_DIR: the virtual environment that `pgperf build --drivers` makes.
DRIVERS = "drivers"
#: The file by which a virtual environment is known, with its Python's version.
VENV_FILE = "pyvenv.cfg"
#: Layer -> Python that runs its client, and name of a tool -> its program; the default, with no
#: setting of the site.
NO_INTERPRETERS: Mapping[str, str] = MappingProxyType({})
_ALONE = str(Path(__file__).parent.parent / "clients" / "isolated.py")


def django_driver() -> str:
    """The driver that Django uses in this environment."""
    return next((name for name in DJANGO_DRIVERS if importlib.util.find_spec(name)), DJANGO_DRIVERS[-1])


def unavailable(
    layer: str, mode: str, build_dir: str, interpreters: Mapping[str, str] = NO_INTERPRETERS
) -> str:
    """Why this machine cannot run the layer in that mode, with the remedy; "" if it can."""
    entry = LAYERS[layer]
    if mode not in entry.modes:
        return entry.mode_reason
    if entry.needs_site and django_driver() == "psycopg2":
        if entry.driver == "psycopg2":
            return f"Django uses psycopg2 here anyway: choose {place_of(layer)}"
        if mode != "simple":
            return f"Django over psycopg2 binds on the client; {mode} needs psycopg 3"
    return _lacking(entry, build_dir, interpreters)


def _lacking(entry: Layer, build_dir: str, interpreters: Mapping[str, str]) -> str:
    """The program, driver or library that the layer lacks here, with the remedy; "" if none."""
    if not entry.program and not c_client(build_dir):
        return "the C client is not built: run `manage.py pgperf build`"
    if entry.program and not interpreter(entry.name, build_dir, interpreters):
        return _no_driver(entry)
    if entry.tool:
        return _no_pgbench(interpreters)
    if entry.loads_libpq and not _system_libpq():
        return "psycopg in Python loads the system's libpq, and there is none (Debian: apt install libpq5)"
    return ""


def connection_unavailable(
    layer: str, connection_mode: str, build_dir: str, interpreters: Mapping[str, str] = NO_INTERPRETERS
) -> str:
    """Why this machine cannot run a layer that it has in that connection mode; "" if it can."""
    entry = LAYERS[layer]
    if connection_mode not in entry.connection_modes:
        return entry.connection_reason
    if connection_mode != "pool" or not entry.pool_module:
        return ""
    if entry.needs_site and django_driver() == "psycopg2":
        return "Django has a pool over psycopg 3 only"
    python = interpreter(layer, build_dir, interpreters)
    if not python or _has_module(python, entry.pool_module):
        return ""  # `unavailable` names a missing driver
    return f"{entry.pool_module} is not installed here: pip install 'psycopg[pool]'"


#: A Python on a mount that hangs must not hold up a worker.
_START_SECONDS = 10


@cache
def _has_module(python: str, module: str) -> bool:
    """Does this Python have the module? Another one is started for it, so the result is cached."""
    if python == sys.executable:
        return importlib.util.find_spec(module) is not None
    argv = [python, "-I", "-c", f"import {module}"]
    try:
        return subprocess.run(argv, capture_output=True, check=False, timeout=_START_SECONDS).returncode == 0
    except (subprocess.TimeoutExpired, OSError):
        return False


def unavailable_in_all(layer: str, build_dir: str, interpreters: Mapping[str, str] = NO_INTERPRETERS) -> str:
    """Why this machine cannot run the layer in any mode; "" if it can in one."""
    return unavailable(layer, LAYERS[layer].modes[0], build_dir, interpreters)


@cache
def _system_libpq() -> str:
    """The library that ctypes finds. It starts other programs, so the result is cached."""
    return ctypes.util.find_library("pq") or ""


def in_site(layer: str) -> bool:
    """Are there a driver and an event loop for the layer in this environment?"""
    return all(map(_is_found, LAYERS[layer].needed_modules))


def _is_found(modules: Iterable[str]) -> bool:
    """Is one of the modules in this environment?"""
    return any(importlib.util.find_spec(name) for name in modules)


def interpreter(layer: str, build_dir: str, interpreters: Mapping[str, str] = NO_INTERPRETERS) -> str:
    """The Python that runs the layer's client; "" if none has the driver and the event loop.

    The site's setting comes first, then this Python, then pgperf's own environment for drivers.
    """
    if layer in interpreters and LAYERS[layer].may_run_elsewhere:
        return shutil.which(interpreters[layer]) or ""
    if in_site(layer):
        return sys.executable
    own = Path(build_dir) / DRIVERS
    if LAYERS[layer].needs_site or not all(_is_below(own, group) for group in LAYERS[layer].needed_modules):
        return ""
    return shutil.which(str(own / "bin" / "python")) or ""


def _is_below(environment: Path, modules: Iterable[str]) -> bool:
    """Has the environment's own Python one of the modules? Those of an earlier Python may be there."""
    version = _python_version(environment)
    if not version:
        return False
    packages = f"lib/python{version}*/site-packages"  # that of a free-threaded one ends in t
    return any(any(environment.glob(f"{packages}/{name}/__init__.py")) for name in modules)


def _python_version(environment: Path) -> str:
    """Such as 3.12; "" if there is no environment."""
    try:
        text = (environment / VENV_FILE).read_text()
    except OSError:
        return ""
    found = re.search(r"^version\s*=\s*(\d+\.\d+)", text, re.MULTILINE)
    return found[1] if found else ""


def _no_driver(entry: Layer) -> str:
    if entry.needs_site:
        return f"not installed: pip install {entry.modules[0]}"
    if entry.remedy:
        return f"{entry.modules[0]} is not installed here: {entry.remedy}"
    lacking = [group[0] for group in entry.needed_modules if not _is_found(group)] or entry.modules[:1]
    verb = "is" if len(lacking) == 1 else "are"
    return f"{' and '.join(lacking)} {verb} not installed here: run `manage.py pgperf build --drivers`"


def tool(name: str, programs: Mapping[str, str] = NO_INTERPRETERS) -> str:
    """The path of a PostgreSQL program, "" if there is none.

    The site's setting comes first, then PATH, then the directory that pg_config names.
    """
    if named := programs.get(name):
        return shutil.which(named) or ""
    if found := shutil.which(name):
        return found
    pg_config = shutil.which(programs.get("pg_config") or "pg_config")
    return shutil.which(str(Path(_said(pg_config, "--bindir"), name))) or "" if pg_config else ""


def _no_pgbench(programs: Mapping[str, str]) -> str:
    """Why pgbench cannot be used, with the remedy; "" if it can."""
    path = tool("pgbench", programs)
    if not path and programs.get("pgbench"):
        return f"PGPERF['PGBENCH'] is not an executable file: {programs['pgbench']}"
    if not path:
        return (
            "pgbench is not installed here: install PostgreSQL's programs (Debian: apt install postgresql-contrib), or"
            " name it in PGPERF['PGBENCH']"
        )
    refusal = pgbench.version_refusal(pgbench.version_of(_said(path, "--version")))
    return f"{path} {refusal}: name another one in PGPERF['PGBENCH']" if refusal else ""


@cache
def _said(program: str, argument: str) -> str:
    """What a program prints about itself; "" if it cannot be started. Cached: it is a process."""
    try:
        done = subprocess.run(
            [program, argument], capture_output=True, text=True, errors="replace", timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def c_client(build_dir: str) -> str:
    """Path of the built C client, or ""."""
    return shutil.which(str(Path(build_dir) / C_CLIENT)) or ""


def command(layer: str, build_dir: str, interpreters: Mapping[str, str] = NO_INTERPRETERS) -> list[str]:
    """The argv that starts the layer's client. It never holds anything secret."""
    entry = LAYERS[layer]
    if not entry.program:
        return [c_client(build_dir)]
    python = interpreter(layer, build_dir, interpreters)
    named = [tool(entry.tool, interpreters)] if entry.tool else []
    if python == sys.executable:
        return [python, "-m", entry.program, *named]
    return [python, "-I", _ALONE, entry.program, *named]
