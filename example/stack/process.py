"""Starts and stops processes that end with this process."""

import os
import select
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from example.stack.errors import StackError
from example.stack.place import Account

TIMEOUT_S = 15.0

# setpriv sets the parent death signal after the fork: check that the parent did not die in between.
GUARD = 'test "$PPID" = "$1" || exit 1; shift; exec "$@"'

# A process enters its control group before it gives up root, so all of its children begin there.
ENTER = 'echo $$ > "$1"; shift; exec "$@"'


def guarded(argv: Sequence[str], death: signal.Signals, account: Account | None = None) -> list[str]:
    """A command that runs `argv` as `account` and gets the signal `death` when the calling thread
    ends.
    """
    user = account.setpriv() if account else []
    deathsig = f"--pdeathsig={death.name.removeprefix('SIG')}"
    return ["setpriv", *user, deathsig, "sh", "-c", GUARD, "sh", str(os.getpid()), *argv]


def spawn(
    argv: Sequence[str],
    log: Path,
    death: signal.Signals = signal.SIGKILL,
    account: Account | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    cgroup: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start `argv` in a new session, and in a control group if one is named, and append its output
    to `log`.

    Main thread only: see `guarded`.
    """
    if threading.current_thread() is not threading.main_thread():
        raise StackError(
            "start the stack from the main thread: its processes end when the starting thread does"
        )
    enter = ["sh", "-c", ENTER, "sh", str(cgroup / "cgroup.procs")] if cgroup else []
    with open(log, "ab") as output:
        return subprocess.Popen(
            [*enter, *guarded(argv, death, account)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            cwd=cwd, env=env, pass_fds=pass_fds, start_new_session=True,
        )  # fmt: skip


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process has ended. It keeps its number until `kill_group` has waited for it."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def ask_to_stop(process: subprocess.Popen[bytes], polite: signal.Signals) -> None:
    """Send `polite` without waiting."""
    if not has_ended(process):
        os.kill(process.pid, polite)


def stop(process: subprocess.Popen[bytes], polite: signal.Signals) -> None:
    """Send `polite`, wait, then kill the process group, with children that outlive the process."""
    ask_to_stop(process, polite)
    if not has_ended(process):
        pidfd = os.pidfd_open(process.pid)
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        ended.poll(TIMEOUT_S * 1000)
        os.close(pidfd)
    kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a process and its children, and wait for the process.

    A process that was waited for is left alone: another may have its number.
    """
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join(text.splitlines()[-lines:])
