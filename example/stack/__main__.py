"""Starts and stops the example stack: PostgreSQL, PgBouncer, Redis, a worker and the site."""

import argparse
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from example.env_file import read_env_file
from example.stack.control import Control
from example.stack.errors import StackError
from example.stack.lock import owner
from example.stack.place import Place
from example.stack.process import guarded, tail
from example.stack.stack import ALL, SERVERS, Stack
from example.stack.watch import answer_until, watch
from example.stack.web import CHECKOUT
from example.stack.web_steps import STEPS, variable

DIRECTORY = CHECKOUT / ".stack"
TIMEOUT_S = 60
#: How long to wait for a stack that another process starts.
READY_S = 180


class Stopped(Exception):
    """Raised by Ctrl-C, SIGTERM or SIGHUP."""


def main() -> int:
    options = parse()
    for wanted in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(wanted, _stopped)
    try:
        return int(options.command(options) or 0)
    except Stopped:
        return 0
    except (StackError, OSError) as error:
        print(f"stack: {error}", file=sys.stderr)
        return 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m example.stack", description=__doc__)
    parser.add_argument(
        "--directory", type=Path, default=DIRECTORY, help="the directory of the stack (default: .stack)"
    )
    commands = parser.add_subparsers(required=True)
    start = commands.add_parser("up", help="start the stack in the background")
    start.set_defaults(command=up)
    commands.add_parser("down", help="stop the stack and wait for its end").set_defaults(command=down)
    commands.add_parser("clean", help="stop the stack and delete its data").set_defaults(command=clean)
    foreground = commands.add_parser("run", help="run the stack in the foreground until Ctrl-C")
    foreground.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    foreground.set_defaults(command=run)
    one = commands.add_parser("exec", help="run a command with the stack; start it if it is not running")
    one.add_argument("--all", action="store_true", help="also start the worker and the site")
    one.add_argument(
        "--stay", action="store_true", help="keep the stack running after the command, until Ctrl-C"
    )
    one.add_argument("words", nargs="+", metavar="-- COMMAND")
    one.set_defaults(command=execute)
    for each in (start, foreground, one):
        each.add_argument(
            "--web", nargs="?", const=",".join(STEPS), default="", type=_steps, metavar="STEPS",
            help="also start the web servers of these steps, separated by commas (default: all)",
        )  # fmt: skip
    return parser.parse_args()


def up(options: argparse.Namespace) -> None:
    """Start the stack and return when all parts answer."""
    if not owner(options.directory):
        _start_in_background(options.directory, options.web)
    env = _variables(options.directory)
    _check_web(options, env)
    _announce(env)


def down(options: argparse.Namespace) -> None:
    pid = owner(options.directory)
    if not pid:
        return
    pidfd = os.pidfd_open(pid)
    signal.pidfd_send_signal(pidfd, signal.SIGTERM)
    ended = select.poll()
    ended.register(pidfd, select.POLLIN)
    if not ended.poll(TIMEOUT_S * 1000):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        ended.poll()


def clean(options: argparse.Namespace) -> None:
    down(options)
    Place(options.directory).remove()


def run(options: argparse.Namespace) -> None:
    with Stack(options.directory, [*ALL, *options.web]) as stack:
        if options.ready_fd is None:
            _announce(stack.env)
        else:
            os.write(options.ready_fd, b"ready")
            os.close(options.ready_fd)
        watch(stack.running, stack.control)


def execute(options: argparse.Namespace) -> int:
    if owner(options.directory):
        env = _variables(options.directory)
        _check_web(options, env)
        code = _call(options.words, env)
        if options.stay:
            _announce(env)
        return code
    with Stack(options.directory, [*(ALL if options.all else SERVERS), *options.web]) as stack:
        code = _call(options.words, stack.env, stack.control)
        if options.stay and code == 0:
            _announce(stack.env)
            print("Press Ctrl-C to stop.", flush=True)
            watch(stack.running, stack.control)
        return code


def _steps(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    if unknown := [name for name in names if name not in STEPS]:
        raise argparse.ArgumentTypeError(f"no step {', '.join(unknown)}; choose from {', '.join(STEPS)}")
    return names


def _variables(directory: Path) -> dict[str, str]:
    """Of the running stack. Another process may still start it, which writes their file last."""
    path, deadline = directory / "env", time.monotonic() + READY_S
    while not path.exists():
        pid = owner(directory)
        if not pid:
            raise StackError(f"the stack in {directory} ended before it was ready; start it again")
        if time.monotonic() > deadline:
            raise StackError(f"the stack in {directory} (process {pid}) is not ready after {READY_S} s")
        time.sleep(0.1)
    return read_env_file(path)


def _check_web(options: argparse.Namespace, env: Mapping[str, str]) -> None:
    """Raises StackError if the running stack lacks web servers that the user wants."""
    lacking = [name for name in options.web if variable(name) not in env]
    if lacking:
        raise StackError(f"the stack runs without {', '.join(lacking)}; stop it first: `make down`")


def _start_in_background(directory: Path, web: Sequence[str]) -> None:
    """Start `run` as a separate process; a pipe reports that it is ready or has ended."""
    directory.mkdir(mode=0o700, exist_ok=True)
    log = directory / "supervisor.log"
    reader, writer = os.pipe()
    command = [
        sys.executable,
        "-m",
        "example.stack",
        f"--directory={directory}",
        "run",
        f"--ready-fd={writer}",
        f"--web={','.join(web)}",
    ]
    with open(log, "wb") as output:
        subprocess.Popen(command, cwd=CHECKOUT, pass_fds=[writer], start_new_session=True,
                         stdin=subprocess.DEVNULL, stdout=output, stderr=output)  # fmt: skip
    os.close(writer)
    with open(reader, "rb") as pipe:
        if pipe.read() != b"ready":
            raise StackError(f"the stack did not start; {log} ends:\n{tail(log)}")


def _call(words: list[str], env: Mapping[str, str], control: Control | None = None) -> int:
    """Run the command and return its exit code. It gets SIGTERM if this process dies first.

    `control` answers the command's requests.
    """
    argv, variables = guarded(words, signal.SIGTERM), {**os.environ, **env}
    if not control:
        return subprocess.run(argv, env=variables, check=False).returncode
    with subprocess.Popen(argv, env=variables) as process:
        return answer_until(process, control)


def _announce(env: Mapping[str, str]) -> None:
    if "PGPERF_URL" in env:
        print(f"Site   {env['PGPERF_URL']}")
        print(f"Admin  {env['PGPERF_URL']}admin/")
        for name in STEPS:
            if variable(name) in env:
                print(f"Step   {env[variable(name)]}  {name}")
        print(f"Login  {env['PGPERF_ADMIN_USER']} / {env['PGPERF_ADMIN_PASSWORD']}", flush=True)


def _stopped(number: int, frame: FrameType | None) -> None:
    for wanted in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(wanted, signal.SIG_IGN)
    raise Stopped


if __name__ == "__main__":
    sys.exit(main())
