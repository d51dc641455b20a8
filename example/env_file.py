"""Reads and writes `.stack/env`: the stack's variables as shell lines KEY=value."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path


def write_env_file(path: Path, env: Mapping[str, str]) -> None:
    """Write lines that a shell can load with `set -a; . .stack/env`.

    Only the owner can read the file. It appears whole, for those who wait for it.
    """
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(f"{key}={shlex.quote(value)}\n" for key, value in env.items())
    new.replace(path)


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of a file of `write_env_file`; empty if the file does not exist."""
    if not path.exists():
        return {}
    lines = (shlex.split(line)[0] for line in path.read_text().split("\n") if line)
    return {key: value for key, _, value in (line.partition("=") for line in lines)}
