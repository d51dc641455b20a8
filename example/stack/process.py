"""Starts and stops processes that end with this process."""

import os
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


def stop(process: subprocess.Popen[bytes], polite: signal.Signals) -> None:
    """Send `polite`, wait, then kill the process group."""
    if process.poll() is None:
        process.send_signal(polite)
    try:
        process.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join(text.splitlines()[-lines:])
