"""The name of an interpreter's script, and of nothing else that its command line has."""

import subprocess
import sys
from pathlib import Path

import pytest

from pgperf.runner.cpu.script_names import full_name


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("python3", ["/srv/site/manage.py", "runserver"], "python3 manage.py"),
        ("python3.12", ["-m", "celery", "--broker=redis://:secret@h/0"], "python3.12 celery"),
        ("bash", ["backup.sh", "secret"], "bash backup.sh"),
        ("python3", ["-c", "login('secret')"], "python3"),
        ("python3", ["-W", "secret", "x.py"], "python3"),
        ("python3", ["-m"], "python3"),
        ("python3", [], "python3"),
        ("sh", ["mail secret | send"], "sh"),
        ("python3", ["host=db password=secret"], "python3"),
        ("python3", ["s" * 41], "python3"),
        ("postgres", ["secret.py"], "postgres"),
        ("pythonista", ["secret.py"], "pythonista"),
    ],
)
def test_the_script_alone_is_named(tmp_path: Path, name: str, arguments: list[str], shown: str) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes("\0".join(["/usr/bin/python3", *arguments, ""]).encode())
    assert full_name(7, name, tmp_path) == shown


def test_a_process_that_has_ended_keeps_its_name(tmp_path: Path) -> None:
    assert full_name(7, "python3", tmp_path) == "python3"


def test_a_real_command_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "wait.py").write_text("import sys; print(flush=True); sys.stdin.read()")
    command = [sys.executable, str(tmp_path / "wait.py"), "secret"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert full_name(process.pid, "python3", Path("/proc")) == "python3 wait.py"
        process.communicate()
