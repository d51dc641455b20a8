"""`pgperf distance`: a relay until Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from psycopg.conninfo import make_conninfo

from pgperf.models import Target
from tests.factories import make_database

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


@pytest.fixture
def tcp(transactional_db: None, stack: dict[str, str]) -> Target:
    """A committed row, visible to another process."""
    row = make_database()
    row.targets.filter(route="tcp").update(host="127.0.0.1", port=int(stack["PGPERF_DB_PORT"]))
    return row.targets.get(route="tcp")


@pytest.fixture
def running(tcp: Target) -> Iterator[subprocess.Popen[str]]:
    name = str(connection.settings_dict["NAME"])
    command = [sys.executable, "manage.py", "pgperf", "distance", "--to", "tcp", "--rtt-ms", "20"]
    environment = {**os.environ, "PGPERF_DB_NAME": name, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where a suite is in the background
    )  # fmt: skip
    with process:
        yield process
        process.kill()


def test_relays_to_the_database_until_ctrl_c(running: subprocess.Popen[str], stack: dict[str, str]) -> None:
    assert running.stdout
    said = running.stdout.readline()
    assert "demo · tcp and adds 20 ms" in said
    port = re.match(r"127\.0\.0\.1:(\d+) ", said)
    assert port
    with psycopg.connect(make_conninfo(stack["PGPERF_DSN_TCP"], port=port[1])) as far:
        assert far.execute("SELECT 1").fetchone() == (1,)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 0
    assert "Traceback" not in running.stderr.read()  # type: ignore[union-attr]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "vpn", "--rtt-ms", "1"], "No database has an enabled target 'vpn'. Databases: demo, other"),
        (
            ["--to", "vpn", "--rtt-ms", "1", "--database", "demo"],
            "database 'demo' has no enabled target 'vpn'",
        ),
        (["--to", "tcp", "--rtt-ms", "1"], "Choose a database with --database: demo, other"),
        (
            ["--to", "tcp", "--rtt-ms", "-1", "--database", "demo"],
            "rtt_ms: choose a round trip of 0 to 10000 ms",
        ),
        (
            ["--to", "socket", "--rtt-ms", "1", "--database", "demo"],
            "host: /run/postgresql is the directory of a Unix socket",
        ),
        (
            ["--to", "tcp", "--rtt-ms", "1", "--database", "demo", "--port", "70000"],
            "port: choose 1 to 65535 to listen on, or 0 for a free one",
        ),
        (["--to", "web", "--rtt-ms", "1"], "to: route 'web' leads to a web server"),
    ],
)
def test_errors_are_one_line(words: list[str], said: str) -> None:
    make_database().targets.create(route="web", url="http://127.0.0.1:8000")
    make_database("other")
    with pytest.raises(CommandError, match=re.escape(said)):
        call_command("pgperf", "distance", *words)
