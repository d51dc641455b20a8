"""Run manage.py of the example site from the scripts of this directory."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

from example.stack.control import Control
from example.stack.watch import answer_until

ROOT = Path(__file__).resolve().parent.parent


def manage(stack_env: dict[str, str], *words: str, control: Control | None = None) -> str:
    """The output of a manage.py command of the example site.

    `control` answers what the command asks of the stack. The script exits if the command fails.
    """
    admin = {
        "PGPERF_ADMIN_USER": "admin",
        "PGPERF_ADMIN_PASSWORD": secrets.token_urlsafe(),
    }  # no login follows
    env = {**os.environ, **admin, **stack_env}
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as failed:
        command = [sys.executable, "manage.py", *words]
        with subprocess.Popen(command, cwd=ROOT, env=env, stdout=said, stderr=failed) as process:
            code = answer_until(process, control) if control else process.wait()
        if code:
            raise SystemExit(f"verdict: cannot measure: {_text(failed)[-2000:]}")
        return _text(said)


def run_benchmark(stack_env: dict[str, str], *words: str, control: Control | None = None) -> dict[str, Any]:
    """The JSON of one `pgperf run` with these arguments."""
    return dict(json.loads(manage(stack_env, "pgperf", "run", "--json", *words, control=control)))


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
