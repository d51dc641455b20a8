"""The offset between two hosts' clocks, where the kernel knows the truth: time namespaces."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from example.stack.network_hosts import refusal
from pgperf.models import Run
from pgperf.runner.remote.clock_offset import ClockOffset
from pgperf.runs import database_clock
from tests.factories import make_run

REFUSAL = refusal() or ("" if os.path.exists("/proc/self/ns/time") else "this kernel has no time namespaces")
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(bool(REFUSAL), reason=REFUSAL),
]


@contextmanager
def shifted(seconds: int, run: Run) -> Iterator["subprocess.Popen[str]"]:
    """The process, whose monotonic clock is ahead by so much."""
    argv = ["unshare", "--time", f"--monotonic={seconds}", "--fork", "--kill-child=SIGKILL"]
    environment = {
        **os.environ,
        "PGPERF_DB_NAME": str(connection.settings_dict["NAME"]),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    command = [*argv, sys.executable, "-m", "tests.load.clock_process", str(run.pk)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield process
        assert process.stdin
        process.stdin.close()


def asked(process: "subprocess.Popen[str]") -> ClockOffset:
    assert process.stdin
    assert process.stdout
    process.stdin.write("now\n")
    process.stdin.flush()
    return ClockOffset.from_json(json.loads(process.stdout.readline()))


@pytest.mark.parametrize("minutes", [-3, 0, 1, 7, 600])
def test_the_offset_is_found_to_within_the_error_that_is_shown(minutes: int) -> None:
    """All of twenty times for each shift. Each side asks twelve times or more, and the quickest answer
    counts.
    """
    run = make_run(Run.Status.RUNNING, attempt=1)
    rows = Run.objects.filter(pk=run.pk)
    with shifted(60 * minutes, run) as host:
        for _ in range(20):
            begin_ns = time.monotonic_ns()
            found = asked(host).then_back(database_clock.offset(rows))
            spent_ns = time.monotonic_ns() - begin_ns
            assert abs(found.ns + 60 * minutes * 10**9) <= found.error_ns
            assert found.error_ns < spent_ns / 12
