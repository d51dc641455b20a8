"""One process of the stack: its start, its readiness check and its stop."""

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from example.stack import cgroup
from example.stack.errors import StackError
from example.stack.place import Account
from example.stack.process import ask_to_stop, has_ended, kill_group, spawn, stop, tail

TIMEOUT_S = 60.0


@dataclass
class Part:
    """A process of the stack.

    `death`: its signal if this process dies; `polite`: the signal to stop it, after which its
    process group is killed; `cgroup`: the control
    group of its own, None for this process's.
    """

    name: str
    argv: Sequence[str]
    log: Path
    answers: Callable[["Part"], bool]
    death: signal.Signals = signal.SIGKILL
    polite: signal.Signals = signal.SIGTERM
    account: Account | None = None
    cwd: Path | None = None
    env: Mapping[str, str] | None = None
    pass_fds: Sequence[int] = ()
    cgroup: Path | None = None
    timeout_s: float = TIMEOUT_S
    process: subprocess.Popen[bytes] | None = None
    started: float = field(default=0.0)
    _log_start: int = 0

    def start(self) -> None:
        """Start the process and wait until it answers.

        Raises StackError with the end of its log.
        """
        self.launch()
        self.await_answer()

    def launch(self) -> None:
        """Start the process. Children that an earlier one has left end before."""
        if self.process:
            kill_group(self.process)
        self.started = time.monotonic()
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        if self.cgroup:
            cgroup.keep(self.cgroup)
        self.process = spawn(
            self.argv, self.log, self.death, self.account, cwd=self.cwd, env=self.env, pass_fds=self.pass_fds,
            cgroup=self.cgroup,
        )  # fmt: skip

    def await_answer(self) -> None:
        """Wait until the started process answers. Raises StackError with the end of its log."""
        assert self.process
        while not self.answers(self) or self.has_ended():  # another server may answer on its port
            self._check_starting(self.process)
            time.sleep(0.02)

    def ask_to_stop(self) -> None:
        """Send the signal to stop, so that several parts stop at the same time."""
        if self.process:
            ask_to_stop(self.process, self.polite)

    def stop(self) -> None:
        """Stop the process, wait for its end, and kill the children that outlive it."""
        if self.process:
            stop(self.process, self.polite)
        if self.cgroup:
            cgroup.remove(self.cgroup)

    def has_ended(self) -> bool:
        return self.process is not None and has_ended(self.process)

    def age_s(self) -> float:
        return time.monotonic() - self.started

    def log_since_start(self) -> str:
        """The log since the last start."""
        with open(self.log, "rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def _check_starting(self, process: subprocess.Popen[bytes]) -> None:
        if has_ended(process):
            kill_group(process)
            raise StackError(
                f"{self.name} ended with code {process.returncode}; {self.log} ends:\n{tail(self.log)}"
            )
        if self.age_s() > self.timeout_s:
            raise StackError(
                f"{self.name} did not answer in {self.timeout_s:g} s; {self.log} ends:\n{tail(self.log)}"
            )
