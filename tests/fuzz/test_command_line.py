"""`manage.py pgperf` with hostile arguments: an exit code and one line, no traceback."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import Client
from hypothesis import strategies as st

from pgperf.models import Benchmark, Target
from tests.fuzz.cases import fuzzed
from tests.fuzz.hostile import VALUES

CHECKOUT = Path(__file__).resolve().parents[2]
#: Without `build`, which compiles, and `doctor`, which has no arguments.
COMMANDS = ("list", "run", "export", "compare", "confirm", "reconcile", "prune", "nonsense", "")
OPTIONS = (
    "--database", "--workloads", "--layers", "--routes", "--clients", "--placement", "--slice-ms", "--rounds",
    "--blocks", "--quick", "--json", "--format", "--raw", "--fail-on", "--baseline", "--comparisons", "--fixtures",
    "--", "-h", "--version", "--settings",
)  # fmt: skip
WORDS = st.lists(
    st.sampled_from(OPTIONS) | st.sampled_from(["1", "2", "orm-overhead", "demo", "csv"]) | VALUES, max_size=6
)


@pytest.fixture
def nothing_to_run(site: Client) -> None:
    """No route is enabled, so that no run can start."""
    Target.objects.update(enabled=False)
    Benchmark.objects.update(database=None)


@fuzzed("command line", 6, command=st.sampled_from(COMMANDS), words=WORDS)
def test_arguments_are_accepted_or_refused_in_one_line(
    nothing_to_run: None, command: str, words: list[str]
) -> None:
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    try:
        with transaction.atomic():
            call_command("pgperf", *filter(None, [command]), *words, stdout=out, stderr=err)
    except CommandError as error:
        err.write(str(error))
        code = error.returncode
    except SystemExit as end:
        code = end.code
    assert code in (0, 1, 2, 3)
    assert "Traceback" not in out.getvalue() + err.getvalue()


BYTES = st.lists(VALUES.map(lambda text: text.encode()[:2000]) | st.binary(max_size=30), max_size=4)


@fuzzed(
    "command line",
    0.1,
    command=st.sampled_from(COMMANDS),
    words=BYTES,
    locale=st.sampled_from(["C", "C.UTF-8", "POSIX"]),
)
def test_a_process_ends_with_an_exit_code(
    stack: dict[str, str], command: str, words: list[bytes], locale: str
) -> None:
    """A separate process, with arguments that are not UTF-8, on an empty database."""
    argv = [word.replace(b"\0", b"") for word in (command.encode(), *words)]
    done = subprocess.run(
        [sys.executable, "manage.py", "pgperf", *argv], cwd=CHECKOUT, capture_output=True, timeout=120, check=False,
        env={**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert done.returncode in (0, 1, 2)
    assert b"Traceback" not in done.stderr
