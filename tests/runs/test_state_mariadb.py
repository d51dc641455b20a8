"""The Run state machine on MariaDB, which differs in unique nulls, JSON, times and locks."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from example.stack.part import Part
from tests.runs.test_state_sqlite import SCRIPT

pytestmark = pytest.mark.registry
NEEDS = "apt install mariadb-server-core mariadb-client-core libmariadb-dev pkg-config"
MARIADB = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin") or ""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    """The socket of an empty MariaDB with a database named site; root needs no password."""
    assert MARIADB, NEEDS
    data, socket, log = tmp_path / "data", tmp_path / "mariadb.sock", tmp_path / "mariadb.log"
    account = "root" if os.getuid() == 0 else os.environ["USER"]
    make = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--user={account}", "--skip-test-db"]
    subprocess.run([*make, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    words = [
        f"--datadir={data}",
        f"--socket={socket}",
        f"--user={account}",
        "--skip-networking",
        "--default-time-zone=+02:00",
    ]  # not that of the site
    part = Part(
        name="MariaDB",
        argv=[MARIADB, "--no-defaults", *words],
        log=log,
        answers=lambda part: "ready for connections" in part.log_since_start(),
    )
    try:
        part.start()
        ask = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root"]
        subprocess.run([*ask, "--execute=CREATE DATABASE site CHARACTER SET utf8mb4"], check=True)
        yield socket
    finally:
        part.stop()


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A directory with Django's driver for MariaDB and nothing else."""
    folder = tmp_path / "packages"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--target", str(folder), "mysqlclient>=2.2.1"], check=True)
    return folder


def test_the_state_machine_on_mariadb(server: Path, packages: Path) -> None:
    own = {
        "ENGINE": "django.db.backends.mysql", "NAME": "site", "USER": "root", "HOST": str(server),
        "OPTIONS": {"charset": "utf8mb4"},
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(SCRIPT), json.dumps(own)],
        cwd=SCRIPT.parent.parent,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.stderr, done.stdout) == ("", "conflict, lost, done, cancelled; 1 of 20 won\n")
