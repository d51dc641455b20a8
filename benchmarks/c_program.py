"""Compile one of the C files of this directory."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def compiled(source: Path) -> Iterator[str]:
    """The path of the program, as long as the context lasts. The script exits without a compiler."""
    if not shutil.which("cc"):
        raise SystemExit("verdict: cannot measure: no C compiler (Debian: apt install gcc libc6-dev)")
    with tempfile.TemporaryDirectory(prefix="pgperf-") as folder:
        program = str(Path(folder, source.stem))
        subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-o", program, str(source)], check=True)
        yield program
