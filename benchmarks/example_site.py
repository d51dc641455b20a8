"""Run manage.py of the example site from the scripts of this directory."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, NamedTuple

from example.stack.control import Control
from example.stack.watch import answer_until

ROOT = Path(__file__).resolve().parent.parent


class Ended(NamedTuple):
    """How a command ended: its exit code, and what it wrote to its output and to its errors."""

    code: int
    said: str
    failed: str


def manage(stack_env: dict[str, str], *words: str, control: Control | None = None) -> str:
    """The output of a manage.py command of the example site.

    `control` answers what the command asks of the stack. The script exits if the command fails.
    """
    ended = _ended(stack_env, words, control)
    if ended.code:
        raise _cannot_measure(ended)
    return ended.said


def run_benchmark(stack_env: dict[str, str], *words: str, control: Control | None = None) -> dict[str, Any]:
    """The JSON of one `pgperf run` with these arguments."""
    return dict(json.loads(manage(stack_env, "pgperf", "run", "--json", *words, control=control)))


def try_benchmark(stack_env: dict[str, str], *words: str, control: Control | None = None) -> dict[str, Any]:
    """The same, also of a run that failed: its `run.status` and `run.error` say so."""
    ended = _ended(stack_env, ("pgperf", "run", "--json", *words), control)
    if not ended.said:
        raise _cannot_measure(ended)
    return dict(json.loads(ended.said))


def _ended(stack_env: dict[str, str], words: tuple[str, ...], control: Control | None = None) -> Ended:
    admin = {
        "PGPERF_ADMIN_USER": "admin",
        "PGPERF_ADMIN_PASSWORD": secrets.token_urlsafe(),
    }  # no login follows
    env = {**os.environ, **admin, **stack_env}
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as failed:
        command = [sys.executable, "manage.py", *words]
        with subprocess.Popen(command, cwd=ROOT, env=env, stdout=said, stderr=failed) as process:
            code = answer_until(process, control) if control else process.wait()
        return Ended(code, _text(said), _text(failed))


def _cannot_measure(ended: Ended) -> SystemExit:
    return SystemExit(f"verdict: cannot measure: {ended.failed[-2000:]}")


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
