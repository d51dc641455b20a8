"""Compiles a C test program of this folder together with the client's modules, under ASan and
UBSan.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from pgperf.install.c_client import FLAGS, SANITIZERS, SOURCE_DIR

HERE = Path(__file__).parent
NEEDS_LIBPQ = {"bulk.c", "main.c", "session.c", "cold.c", "reply.c"}


def compile_modules(folder: Path) -> list[Path]:
    """The objects of the client's modules.

    Raises CalledProcessError, the compiler having said why on stderr.
    """
    modules = [path for path in SOURCE_DIR.glob("*.c") if path.name not in NEEDS_LIBPQ]
    _compile(["-c", *modules], folder)
    return [folder / f"{path.stem}.o" for path in modules]


def compile_program(name: str, folder: Path, modules: list[Path]) -> Path:
    """The path of the compiled `name`.c. Raises as `compile_modules` does."""
    program = folder / name
    _compile(["-I", SOURCE_DIR, "-o", program, HERE / f"{name}.c", *modules, "-lm"], folder)
    return program


def _compile(arguments: Sequence[str | Path], folder: Path) -> None:
    command = ["cc", *FLAGS, *SANITIZERS, *arguments]
    subprocess.run([str(part) for part in command], check=True, cwd=folder)
