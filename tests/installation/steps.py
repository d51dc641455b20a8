"""The ten steps of docs/install.md, adapted to a project as the page says, and a shell that follows
them.
"""

import os
import pty
import re
import select
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from example.stack.part import Part
from tests.installation.environments import ROOT, run

PAGE = ROOT / "docs" / "install.md"
PASSWORD = "a-long-enough-word"


@dataclass(frozen=True)
class Step:
    """A command (`file` is empty), or an edit that appends `text` to a file."""

    number: int
    file: str
    text: str


@dataclass(frozen=True)
class Project:
    """What a reader of the page knows about the site."""

    package: str = "mysite"
    settings: str = "mysite.settings"
    #: The site's Celery application, as its workers name it; "" if the site has none.
    celery: str = ""
    has_driver: bool = False

    @property
    def settings_file(self) -> str:
        return f"{self.settings.replace('.', '/')}.py"


def steps(project: Project, wheel: Path) -> list[Step]:
    """The numbered steps, with the names of the project and without the parts that it has."""
    section = PAGE.read_text().partition("\n## The ten steps\n")[2].partition("\n## ")[0]
    found = []
    for number, body in re.findall(r"(?ms)^(\d+)\. (.*?)(?=^\d+\. |^\S|\Z)", section):
        (block,) = re.findall(r"(?ms)^ +```(\w+)\n(.*?)^ +```", body)
        language, text = block
        file = re.search(r"(?:Append to|Write) `(.+?)`", body) if language == "python" else None
        found.append(Step(int(number), file[1] if file else "", _dedent(text)))
    assert [step.number for step in found] == list(range(1, 11))
    return [
        _adapted(step, project, wheel) for step in found if not (project.celery and step.number in (3, 4))
    ]


def database_settings() -> str:
    """The edit for a new project, which the steps presuppose."""
    (text,) = re.findall(r"(?ms)Append to `mysite/settings.py`:\n\n```python\n(.*?)^```", PAGE.read_text())
    return str(text)


def _adapted(step: Step, project: Project, wheel: Path) -> Step:
    text = step.text.replace("/path/to/dist/", f"{wheel.parent}/")
    if project.has_driver:
        text = text.replace(' "psycopg[binary]"', "")
    if project.celery and step.number == 2:
        text = "".join(line for line in text.splitlines(True) if line.startswith("INSTALLED_APPS"))
    if project.celery:
        text = text.replace("-A mysite", f"-A {project.celery}")
    text = text.replace("mysite.settings", project.settings).replace("mysite", project.package)
    file = (
        project.settings_file
        if step.file == "mysite/settings.py"
        else step.file.replace("mysite", project.package)
    )
    return Step(step.number, file, text)


def _dedent(text: str) -> str:
    lines = text.splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "".join(f"{line[margin:]}\n" for line in lines)


@dataclass
class Shell:
    """A terminal in the project's directory with the virtual environment activated."""

    folder: Path
    env: dict[str, str]
    background: list[Part] = field(default_factory=list)

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
        said = self.run(f"{command} 2>&1")
        assert "pgperf.W" not in said, f"a step warns of what a later one mends: {said}"
        return said

    def run(self, command: str) -> str:
        return run(["bash", "-c", command], self.folder, self.env)

    def end(self) -> None:
        for part in self.background:
            part.stop()

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
