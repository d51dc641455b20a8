"""Compiles a C test program of this folder together with the client's modules, under ASan and
UBSan.
"""

import subprocess
from pathlib import Path

from pgperf.install.c_client import FLAGS, SANITIZERS, SOURCE_DIR

HERE = Path(__file__).parent
NEEDS_LIBPQ = {"bulk.c", "main.c", "session.c", "cold.c", "reply.c"}


def compile_program(name: str, folder: Path) -> Path:
    """The path of the compiled `name`.c.

    Raises CalledProcessError, the compiler having said why on stderr.
    """
    modules = [path for path in SOURCE_DIR.glob("*.c") if path.name not in NEEDS_LIBPQ]
    program = folder / name
    command = [
        "cc",
        *FLAGS,
        *SANITIZERS,
        "-I",
        SOURCE_DIR,
        "-o",
        program,
        HERE / f"{name}.c",
        *modules,
        "-lm",
    ]
    subprocess.run([str(part) for part in command], check=True)
    return program
