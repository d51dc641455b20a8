"""The directory `PGPERF["BUILD_DIR"]`, which `pgperf build` makes (standard library only)."""

import os
from pathlib import Path

from pgperf.core.exceptions import LayerUnavailable
from pgperf.install.launch import C_CLIENT, DRIVERS

GITIGNORE = "# `manage.py pgperf build` makes this directory again.\n*\n"


def make(build_dir: str | Path) -> Path:
    """The directory, made if it is missing. Raises LayerUnavailable if it cannot be made or written.

    Git ignores a directory that has nothing but pgperf's own files. Any other is left as it is.
    """
    folder = Path(build_dir).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if {entry.name for entry in folder.iterdir()} <= {C_CLIENT, DRIVERS}:
            (folder / ".gitignore").write_text(GITIGNORE)
    except OSError as error:
        raise LayerUnavailable(
            f"{folder} cannot be made or written: {error.strerror}; choose another PGPERF['BUILD_DIR']"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LayerUnavailable(f"{folder} is not writable; choose another PGPERF['BUILD_DIR']")
    return folder
