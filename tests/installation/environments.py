"""A wheel of pgperf, virtual environments without the checkout, and a site in one of them."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def build_distributions(folder: Path, *targets: str) -> list[Path]:
    """The "wheel" or "sdist" that `hatchling build` makes of the checkout."""
    chosen = [word for target in targets for word in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *chosen]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return sorted(folder.iterdir())


def overlay(folder: Path, wheel: Path) -> Path:
    """The Python of an environment with the wheel, and with the running one's packages for all
    else.

    As an install would do it, but in a second: the wheel holds only files, and found first they
    hide the checkout.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python, celery = folder / "bin" / "python", folder / "bin" / "celery"
    celery.write_text(f"#!{python}\nfrom celery.__main__ import main\nmain()\n")
    celery.chmod(0o755)
    return python


def bare_environment(**more: str) -> dict[str, str]:
    """Environment variables without those of the checkout and its stack."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PGPERF_", "DJANGO_", "PYTHON", "VIRTUAL_ENV", "COV_"))
    }
    return {**kept, "PYTHONUNBUFFERED": "1", **more}


@dataclass
class Site:
    """A project directory with the Python that runs it."""

    folder: Path
    python: Path
    env: Mapping[str, str]

    def run(self, *words: str, code: int = 0) -> str:
        """Run a Python program of the site and return its stdout.

        An unexpected exit code fails with its output.
        """
        return run([str(self.python), *words], self.folder, self.env, code)

    def manage(self, *words: str, code: int = 0) -> str:
        return self.run("manage.py", *words, code=code)


def run(argv: Sequence[str], folder: Path, env: Mapping[str, str], code: int = 0) -> str:
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == code, (
        f"{' '.join(argv)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    )
    return done.stdout


def address(stack: Mapping[str, str], dbname: str = "") -> dict[str, str]:
    """The stack's PostgreSQL as values of DATABASES."""
    return {
        "NAME": dbname or stack["PGPERF_DB_NAME"],
        "USER": stack["PGPERF_DB_USER"],
        "PASSWORD": stack["PGPERF_DB_PASSWORD"],
        "HOST": "127.0.0.1",
        "PORT": stack["PGPERF_DB_PORT"],
    }


def harbour_environment(stack: Mapping[str, str], build_dir: Path) -> dict[str, str]:
    """The variables that tests/installation/harbour/settings.py reads."""
    return bare_environment(
        HARBOUR_WAREHOUSE=json.dumps(address(stack)),
        HARBOUR_REDIS=stack["PGPERF_REDIS_URL"],
        HARBOUR_BUILD_DIR=str(build_dir),
        HARBOUR_PG_CONFIG=stack["PGPERF_PG_CONFIG"],
        HARBOUR_USE_TZ="1",
    )
