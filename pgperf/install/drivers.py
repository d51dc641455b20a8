"""pgperf's own virtual environment for drivers that the site lacks (standard library only).

psycopg installed beside psycopg2 would become the site's Django driver. In this environment only
pgperf's clients see it.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pgperf.core.exceptions import LayerUnavailable
from pgperf.core.layers import LAYERS
from pgperf.install.build_dir import make
from pgperf.install.launch import DRIVERS, VENV_FILE, in_site

_INSTALL_SECONDS = 600


@dataclass(frozen=True)
class DriversResult:
    """The environment's Python and the installed requirements; empty if the site has every driver."""

    python: str
    requirements: tuple[str, ...]


def build_drivers(build_dir: str | Path) -> DriversResult:
    """Make or refresh the environment below `build_dir`. Raises LayerUnavailable with the cause."""
    wanted = missing()
    if not wanted:
        return DriversResult("", ())
    folder = make(build_dir) / DRIVERS
    python = str(folder / "bin" / "python")
    _run(
        [sys.executable, "-m", "venv", *_cleared(folder), str(folder)],
        "no virtual environment (Debian: apt install python3-venv)",
    )
    _run(
        [python, "-I", "-m", "pip", "install", "--quiet", "--upgrade", *wanted],
        "pip cannot install the drivers",
    )
    return DriversResult(python, wanted)


def _cleared(folder: Path) -> tuple[str, ...]:
    """An earlier environment keeps the link to its Python, which may be another one or gone. A folder
    of something else is left as it is.
    """
    return ("--clear",) if (folder / VENV_FILE).is_file() else ()


def missing() -> tuple[str, ...]:
    """The requirements of layers that lack a driver or an event loop here, except drivers that must be
    compiled.
    """
    lacking = (
        requirement
        for name, layer in LAYERS.items()
        if layer.may_run_elsewhere and not in_site(name)
        for requirement in layer.requirements
    )
    return tuple(dict.fromkeys(lacking))


def _run(argv: Sequence[str], trouble: str) -> None:
    try:
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=_INSTALL_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LayerUnavailable(f"{trouble}: {error}") from error
    if done.returncode:
        raise LayerUnavailable(f"{trouble}:\n{done.stdout.strip()[-2000:]}")
