"""Runs the steps of docs/install.md verbatim in a new `django-admin startproject` project."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from example.stack.part import Part
from tests.installation.environments import ROOT, bare_environment, run

PAGE = ROOT / "docs" / "install.md"
PASSWORD = "a-long-enough-word"


@dataclass(frozen=True)
class Step:
    """A command (`file` is empty), or an edit that appends `text` to a file."""

    number: int
    file: str
    text: str


def steps() -> list[Step]:
    """The numbered steps under the first heading."""
    section = PAGE.read_text().split("\n## ")[1]
    found = []
    for number, body in re.findall(r"(?ms)^(\d+)\. (.*?)(?=^\d+\. |^\S|\Z)", section):
        (block,) = re.findall(r"(?ms)^ +```(\w+)\n(.*?)^ +```", body)
        language, text = block
        file = re.search(r"(?:Append to|Write) `(.+?)`", body) if language == "python" else None
        found.append(Step(int(number), file[1] if file else "", _dedent(text)))
    return found


def _dedent(text: str) -> str:
    lines = text.splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "".join(f"{line[margin:]}\n" for line in lines)


def test_the_documentation_has_ten_steps() -> None:
    found = steps()
    assert [step.number for step in found] == list(range(1, 11))
    assert all(step.file or step.text.count("\n") == 1 for step in found), "one command each"


@dataclass
class Shell:
    """A terminal in the project's directory with the virtual environment activated."""

    folder: Path
    env: dict[str, str]
    background: list[Part]

    def follow(self, step: Step) -> str:
        if step.file:
            path = self.folder / step.file
            path.write_text((path.read_text() if path.exists() else "") + step.text)
            return ""
        command = step.text.strip()
        if command.startswith("celery "):
            return self._start(command)
        if "createsuperuser" in command:
            return self._answer(command, ["captain", "", PASSWORD, PASSWORD])
        return run(["bash", "-c", command], self.folder, self.env)

    def _start(self, command: str) -> str:
        part = Part(
            name=command,
            argv=["bash", "-c", f"exec {command}"],
            log=self.folder / "worker.log",
            answers=lambda part: True,  # it says nothing more; the run waits in the queue until it is there
            polite=signal.SIGQUIT,
            cwd=self.folder,
            env=self.env,
        )
        self.background.append(part)
        part.start()
        return ""

    def _answer(self, command: str, answers: list[str]) -> str:
        """Run a command on a pseudo-terminal and answer each prompt that ends with a colon."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe("bash", ["bash", "-c", command], self.env)
        said, deadline = "", time.monotonic() + 60
        try:
            while time.monotonic() < deadline and select.select([terminal], [], [], 60)[0]:
                said += os.read(terminal, 4096).decode()
                if answers and said.rstrip(" ").endswith(":"):
                    os.write(terminal, f"{answers.pop(0)}\n".encode())
        except OSError:  # the other end is closed
            pass
        finally:
            os.close(terminal)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert code == 0, said
        return said


@pytest.fixture
def shell(
    wheel: Path, stack: dict[str, str], new_database: Callable[[str], str], tmp_path: Path
) -> Iterator[Shell]:
    """A virtual environment with Django only, an empty project, and the servers' addresses."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    # pip resolves the name to the local wheel: the only difference to an installation by a user.
    constraints = tmp_path / "constraints.txt"
    constraints.write_text(f"pgperf @ {wheel.as_uri()}\n")
    tools = Path(stack["PGPERF_PG_CONFIG"]).parent
    env = bare_environment(
        PATH=f"{tmp_path / 'venv' / 'bin'}:{tools}:{os.environ['PATH']}",
        PIP_CONSTRAINT=str(constraints),
        DB_NAME=new_database("mysite"),
        DB_USER=stack["PGPERF_DB_USER"],
        DB_PASSWORD=stack["PGPERF_DB_PASSWORD"],
        DB_HOST="127.0.0.1",
        DB_PORT=stack["PGPERF_DB_PORT"],
        REDIS_URL=stack["PGPERF_REDIS_URL"],
    )
    project = tmp_path / "project"
    project.mkdir()
    run(["pip", "install", "--quiet", "Django>=5.2,<6.2"], project, env)
    run(["django-admin", "startproject", "mysite", "."], project, env)
    shell = Shell(project, env, [])
    try:
        yield shell
    finally:
        for part in shell.background:
            part.stop()


@pytest.mark.registry
def test_from_pip_install_to_the_first_finished_run(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    begin = time.monotonic()
    said = ""
    for step in steps():
        since = time.monotonic()
        said = shell.follow(step)
        with capsys.disabled():
            what = step.file or step.text.strip()
            print(f"  {step.number:>2}  {time.monotonic() - since:5.1f} s  {what}")
    with capsys.disabled():
        print(f"      {time.monotonic() - begin:5.1f} s  in all")
    assert ": done" in said
    assert "Django ORM" in said
    assert "libpq (C)" in said
    findings = run(["python", "manage.py", "pgperf", "doctor"], shell.folder, shell.env)
    assert "problem" not in findings
    run(
        ["python", "manage.py", "check", "--fail-level=WARNING", "--database=default"],
        shell.folder,
        shell.env,
    )
