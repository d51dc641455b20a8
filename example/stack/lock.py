"""A lock that permits one stack per directory."""

import fcntl
import os
import time
from pathlib import Path

from example.stack.errors import StackError

TIMEOUT_S = 20


class Lock:
    """A file lock that every part inherits: it is free once the last process of the stack has
    ended.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.fd = -1

    @property
    def held(self) -> bool:
        return self.fd >= 0

    def take(self) -> None:
        """Raises StackError if the stack is running, or if processes of an earlier stack do not end
        in time.
        """
        fd = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + TIMEOUT_S
        while not _try(fd):
            pid = owner(self.directory)
            if pid or time.monotonic() > deadline:
                os.close(fd)
                raise StackError(
                    f"a stack is already running in {self.directory} (process {pid or 'unknown'}); stop it first"
                )
            time.sleep(0.05)
        self.fd = fd
        (self.directory / "pid").write_text(str(os.getpid()))

    def release(self) -> None:
        (self.directory / "pid").unlink(missing_ok=True)
        os.close(self.fd)
        self.fd = -1


def owner(directory: Path) -> int:
    """Process ID of the stack's supervisor in this directory; 0 if it is not running."""
    try:
        fd = os.open(directory / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        return 0 if _try(fd) else _living(directory / "pid")
    finally:
        os.close(fd)


def _living(path: Path) -> int:
    try:
        pid = int(path.read_text())
        os.kill(pid, 0)
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return 0
    return pid


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
