"""The streams of a command in a real process: closed pipes, a full disk, a locale without a sign."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from pgperf.cli.output import Lasting
from tests.factories import make_results, make_run

CHECKOUT = Path(__file__).resolve().parents[2]


def typed(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a shell says of a line with `pgperf`; the exit code is that of a pipe's first command."""
    own = {
        "PGPERF_DB_NAME": str(connection.settings_dict["NAME"]),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    command = f'pgperf() {{ "{sys.executable}" manage.py pgperf "$@"; }}; {line}; exit ${{PIPESTATUS[0]}}'
    return subprocess.run(
        ["bash", "-c", command], cwd=CHECKOUT, env={**os.environ, **own, **variables},
        capture_output=True, text=True, errors="replace", timeout=60,
    )  # fmt: skip


@pytest.fixture
def slower(transactional_db: None) -> str:
    """The numbers of two runs, the later one slower."""
    before, after = make_results(make_run()), make_results(make_run(), slower={"django_orm": 1.1})
    return f"{before.pk} {after.pk}"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_does_not_change_the_answer(slower: str, unbuffered: str) -> None:
    done = typed(f"pgperf compare {slower} --fail-on 10% 2>&1 | true", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 3


def test_a_stream_goes_on_without_a_reader() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        lasting = Lasting(stream)
        for _ in range(2):
            lasting.write("10 %\n")
            lasting.flush()
        assert lasting.reader_left


def test_a_full_disk_is_said_in_a_sentence(slower: str) -> None:
    done = typed("pgperf list > /dev/full")
    assert (done.returncode, done.stderr) == (
        1,
        "CommandError: The system reports: No space left on device.\n",
    )
    assert typed(f"pgperf compare {slower} --fail-on 10% > /dev/full").returncode == 3


def test_a_sign_that_the_locale_lacks_is_a_question_mark(slower: str) -> None:
    compared = typed(f"pgperf compare {slower}", PYTHONIOENCODING="iso-8859-1")
    assert (compared.returncode, compared.stderr) == (0, "")
    shown = typed("pgperf run --help", PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stderr) == (0, "")


def test_a_stream_without_a_file_raises_its_own_error() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        Lasting(Full()).write("text")
