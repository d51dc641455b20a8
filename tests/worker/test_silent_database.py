"""A run whose site database stops answering without closing its connections: a suspended relay."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from django.db import connection

from pgperf.delay.relay import DelayRelay
from pgperf.models import Run, Target
from pgperf.runs import store
from tests.factories import make_database, make_run
from tests.process_ends import argv, await_ends, open_pidfds
from tests.runner.builders import definition
from tests.waiting import until

PROGRAM = Path(__file__).with_name("perform_a_run.py")
#: STALE_SECONDS of the program, the lifeline's grace, and as much again for a busy machine.
ENDS_S = 2 * (2.0 + 5.0)

pytestmark = pytest.mark.django_db(transaction=True)


def ask() -> Run:
    database = make_database(credential="alias:default")
    Target.objects.filter(route="tcp").update(route="here")
    frozen = definition(blocks=500, rounds=5, slice_ms=20)
    return make_run(Run.Status.QUEUED, database=database, busy_key=None, definition=frozen.to_json())


def performing(run: Run, relay: DelayRelay) -> "subprocess.Popen[bytes]":
    site = {"PGPERF_DB_NAME": str(connection.settings_dict["NAME"])}
    over = {"PGPERF_DB_HOST": "127.0.0.1", "PGPERF_DB_PORT": str(relay.port)}
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), str(run.pk)],
        env={**os.environ, **site, **over, "PYTHONPATH": str(PROGRAM.parents[2])},
        stderr=subprocess.PIPE,
    )


def clients_of(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "pgperf.clients" in argv(child)]


def test_the_process_of_a_run_ends_with_its_clients_when_the_database_falls_silent() -> None:
    run, port = ask(), int(connection.settings_dict["PORT"])
    with DelayRelay("127.0.0.1", port, rtt_ms=0) as relay, performing(run, relay) as process:
        until(lambda: store.load_blocks(run) and clients_of(process), 60, "a finished block, and clients")
        os.kill(relay.pid, signal.SIGSTOP)
        pidfds = open_pidfds([psutil.Process(process.pid), *clients_of(process)])
        try:
            assert await_ends(pidfds, ENDS_S) == 0
        finally:
            process.kill()
        assert process.stderr
        assert b"the site's database has not answered for 2 s" in process.stderr.read()
        assert process.wait() == -signal.SIGKILL
    run.refresh_from_db()
    assert run.status == Run.Status.RUNNING  # until others find it lost
