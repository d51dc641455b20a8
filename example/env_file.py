"""`.stack/env`: a stack's variables as shell lines KEY=value, for people (`set -a; . .stack/env`) and settings."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path


def write_env_file(path: Path, env: Mapping[str, str]) -> None:
    """Shell lines KEY=value, for ourselves only: `set -a; . .stack/env`."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.writelines(f"{key}={shlex.quote(value)}\n" for key, value in env.items())


def read_env_file(path: Path) -> dict[str, str]:
    """What `write_env_file` wrote; empty if there is no such file."""
    if not path.exists():
        return {}
    lines = (shlex.split(line)[0] for line in path.read_text().split("\n") if line)
    return {key: value for key, _, value in (line.partition("=") for line in lines)}
