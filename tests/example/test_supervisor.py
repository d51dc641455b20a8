"""The stack as a program: `up`, `down`, `exec`, and no processes left after kill -9."""

import os
import signal
import stat
import subprocess
import sys
import urllib.request
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from example.env_file import read_env_file, write_env_file
from example.stack import __main__ as program
from example.stack import lock
from example.stack.environment import ADMIN_USER
from example.stack.errors import StackError
from example.stack.web import CHECKOUT
from tests.example.web_programs import STARTED
from tests.process_ends import await_ends, open_pidfds

OWN = ("PGPERF_", "DJANGO_")


@dataclass
class Supervisor:
    """A stack's directory and its command line, separate from the stack of the test session."""

    directory: Path

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        process = self.start(*words)
        out, err = process.communicate(timeout=240)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def start(self, *words: str) -> subprocess.Popen[str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith(OWN)}
        argv = [sys.executable, "-m", "example.stack", f"--directory={self.directory}", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, cwd=CHECKOUT, env=env, stdout=pipe, stderr=pipe, text=True)

    def processes(self) -> list[psutil.Process]:
        supervisor = psutil.Process(lock.owner(self.directory))
        return [supervisor, *supervisor.children(recursive=True)]

    @property
    def env(self) -> dict[str, str]:
        return read_env_file(self.directory / "env")


@pytest.fixture(scope="module")
def kept_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of stacks that start one after the other: only the first makes a database and fills it."""
    directory = tmp_path_factory.mktemp("kept") / "own"
    yield directory
    Supervisor(directory).command("clean")


@pytest.fixture
def supervisor(kept_directory: Path) -> Iterator[Supervisor]:
    """A stack that does not run, before the test and after it."""
    one = Supervisor(kept_directory)
    yield one
    if one.directory.exists():
        one.command("down")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    one = Supervisor(tmp_path_factory.mktemp("stack") / "own")
    started = one.command("up")
    assert started.returncode == 0, started.stderr
    yield one
    one.command("clean")


@pytest.mark.parametrize(
    ("path", "expected"),
    [("", "pgperf"), ("books/", '<th scope="col">Author</th>'), ("admin/login/", 'name="username"')],
)
def test_pages_answer_when_up_returns(running: Supervisor, path: str, expected: str) -> None:
    with urllib.request.urlopen(running.env["PGPERF_URL"] + path, timeout=10) as response:
        assert response.status == 200
        assert expected in response.read().decode()


def test_static_files_are_served(running: Supervisor) -> None:
    with urllib.request.urlopen(running.env["PGPERF_URL"], timeout=10) as response:
        page = response.read().decode()
    style = page.partition('rel="stylesheet" href="/')[2].partition('"')[0]
    with urllib.request.urlopen(running.env["PGPERF_URL"] + style, timeout=10) as response:
        assert response.headers["Content-Type"].startswith("text/css")


def command_lines(running: Supervisor) -> Iterator[str]:
    """Of the processes that still run: one that has just ended has none."""
    for process in running.processes():
        with suppress(psutil.NoSuchProcess):
            yield " ".join(process.cmdline())


def test_the_worker_and_the_servers_run(running: Supervisor) -> None:
    commands = " ".join(command_lines(running))
    for part in (
        "bin/postgres",
        "pgbouncer",
        "redis-server",
        "celery -A example worker -Q pgperf",
        "runserver",
    ):
        assert part in commands


def test_no_password_is_in_any_argv(running: Supervisor) -> None:
    passwords = [value for key, value in running.env.items() if "PASSWORD" in key or "SECRET" in key]
    passwords.append(running.env["PGPERF_REDIS_URL"].split(":")[2].split("@")[0])
    commands = " ".join(command_lines(running))
    assert len(passwords) == 4
    assert not [password for password in passwords if password in commands]


def test_no_password_is_in_any_log(running: Supervisor) -> None:
    passwords = [value for key, value in running.env.items() if "PASSWORD" in key or "SECRET" in key]
    logs = [path.read_text(errors="replace") for path in running.directory.glob("*.log")]
    assert logs
    assert not [password for password in passwords for log in logs if password in log]


def test_the_variables_are_private_and_contain_the_login(running: Supervisor) -> None:
    assert stat.S_IMODE((running.directory / "env").stat().st_mode) == 0o600
    assert running.env["PGPERF_ADMIN_USER"] == ADMIN_USER


def test_up_twice_is_one_stack(running: Supervisor) -> None:
    before = lock.owner(running.directory)
    again = running.command("up")
    assert running.env["PGPERF_URL"] in again.stdout
    assert lock.owner(running.directory) == before


def test_web_servers_that_a_running_stack_lacks_need_a_restart(running: Supervisor) -> None:
    for words in (["up", "--web=web_gunicorn"], ["exec", "--web=web_gunicorn", "--", "true"]):
        done = running.command(*words)
        assert done.returncode == 1
        assert "runs without web_gunicorn; stop it first: `make down`" in done.stderr


def test_an_unknown_step_lists_the_known_ones(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path / "own")
    done = supervisor.command("up", "--web=web_caddy")
    assert done.returncode == 2
    assert "no step web_caddy; choose from web_apache, web_gunicorn" in done.stderr
    assert not supervisor.directory.exists()


def test_exec_uses_the_running_stack(running: Supervisor) -> None:
    done = running.command("exec", "--", "sh", "-c", "echo $PGPERF_DB_PORT; exit 7")
    assert (done.stdout.strip(), done.returncode) == (running.env["PGPERF_DB_PORT"], 7)


def test_exec_starts_servers_for_a_command_that_can_have_them_started_anew_and_stops_them(
    supervisor: Supervisor,
) -> None:
    ask = (
        "import os, pathlib; from example.stack import control; print(os.environ['PGPERF_DB_PORT']);"
        "control.start_anew(pathlib.Path(os.environ['PGPERF_STACK_CONTROL']), ['web_gunicorn'], 1)"
    )
    done = supervisor.command("exec", "--web=web_gunicorn", "--", sys.executable, "-c", ask)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip().isdigit()
    assert lock.owner(supervisor.directory) == 0


def test_exec_with_stay_serves_until_interrupted(supervisor: Supervisor) -> None:
    demo = supervisor.start("exec", "--all", "--stay", "--", "echo", "the ladder")
    assert demo.stdout is not None
    lines = list(iter(demo.stdout.readline, "Press Ctrl-C to stop.\n"))
    assert lines[0] == "the ladder\n"
    assert supervisor.env["PGPERF_URL"] in lines[1]
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=30)
    assert (demo.returncode, errors) == (0, "")
    assert lock.owner(supervisor.directory) == 0


def test_exec_with_stay_ends_if_the_command_fails(supervisor: Supervisor) -> None:
    assert supervisor.command("exec", "--stay", "--", "false").returncode == 1


def test_no_process_is_left_however_the_supervisor_ends_and_up_finds_the_same_passwords(
    supervisor: Supervisor,
) -> None:
    passwords = set()
    for how in (signal.SIGKILL, signal.SIGTERM, "down"):
        steps = [] if how == "down" else STARTED
        started = supervisor.command("up", f"--web={','.join(steps)}")
        assert started.returncode == 0, started.stderr
        passwords.add(supervisor.env["PGPERF_ADMIN_PASSWORD"])
        processes = supervisor.processes()
        assert len(processes) > 8 + len(steps)
        pidfds = open_pidfds(processes)
        if isinstance(how, signal.Signals):
            signal.pidfd_send_signal(pidfds[0], how)
            assert await_ends(pidfds, seconds=60) == 0, how
        else:
            assert supervisor.command("down").returncode == 0
            assert await_ends(pidfds, seconds=0) == 0, "it waits for the end"
            assert supervisor.env == {}
    assert len(passwords) == 1


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[None]:
    """A stack that another process, this one, still starts."""
    one = lock.Lock(tmp_path)
    one.take()
    yield
    one.release()


def test_exec_waits_for_a_stack_that_another_process_still_starts(starting: None, tmp_path: Path) -> None:
    waiting = Supervisor(tmp_path).start("exec", "--", "sh", "-c", "echo $PGPERF_DB_PORT")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(timeout=2)
    write_env_file(tmp_path / "env", {"PGPERF_DB_PORT": "5433"})
    out, err = waiting.communicate(timeout=60)
    assert (out.strip(), err, waiting.returncode) == ("5433", "", 0)


def test_a_stack_that_ends_before_it_is_ready_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="ended before it was ready"):
        program._variables(tmp_path)


def test_waiting_for_a_stack_has_a_limit(
    starting: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "READY_S", 0)
    with pytest.raises(StackError, match="is not ready after 0 s"):
        program.up(Namespace(directory=tmp_path, web=[]))


def test_a_stack_that_cannot_start_shows_the_reason(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path / "own")
    supervisor.directory.mkdir(parents=True)
    (supervisor.directory / "lock").mkdir()
    done = supervisor.command("up")
    assert done.returncode == 1
    assert "lock" in done.stderr
    assert "Traceback" not in done.stderr
