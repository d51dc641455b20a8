"""Run manage.py of the example site from the scripts of this directory."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def manage(stack_env: dict[str, str], *words: str) -> str:
    """The output of a manage.py command of the example site.

    The script exits if the command fails.
    """
    admin = {
        "PGPERF_ADMIN_USER": "admin",
        "PGPERF_ADMIN_PASSWORD": secrets.token_urlsafe(),
    }  # no login follows
    env = {**os.environ, **admin, **stack_env}
    done = subprocess.run(
        [sys.executable, "manage.py", *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"verdict: cannot measure: {done.stderr[-2000:]}")
    return done.stdout


def run_benchmark(stack_env: dict[str, str], *words: str) -> dict[str, Any]:
    """The JSON of one `pgperf run` with these arguments."""
    return dict(json.loads(manage(stack_env, "pgperf", "run", "--json", *words)))
