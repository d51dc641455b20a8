"""The example site on a separate stack whose parts can be killed, stopped and restarted."""

import ctypes
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import psycopg

from example.stack import postgres
from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.stack import ALL, Stack
from soak.standby import standby

_PR_SET_CHILD_SUBREAPER = 36
_RESTART_S = 30.0
_KILLED_S = 5.0

#: Parts that a campaign can kill -> their names in the stack.
PARTS = {
    "worker": "Celery worker",
    "postmaster": "PostgreSQL",
    "PgBouncer": "PgBouncer",
    "Redis": "Redis",
    "web": "site",
}


class Site:
    """A running stack with worker and site.

    Orphans of its processes become children of this process.
    """

    def __init__(self, directory: Path) -> None:
        self._stack = Stack(directory, ALL, keep=False)

    def __enter__(self) -> Self:
        _become_subreaper()
        self._stack.__enter__()
        if dead := [part.name for part in self._stack.running if part.has_ended()]:
            self._stack.stop()
            raise StackError(f"ended right after its start: {', '.join(dead)}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, at)

    @property
    def env(self) -> dict[str, str]:
        return self._stack.env

    def keep_password(self, name: str, password: str) -> None:
        """In a credential file that `file:NAME` refers to."""
        self._stack.place.own_file(self._stack.place.secrets() / name, password)

    def part(self, name: str) -> Part:
        """One of PARTS."""
        return next(part for part in self._stack.running if part.name == PARTS[name])

    def pid(self, name: str) -> int:
        process = self.part(name).process
        assert process
        return process.pid

    def kill(self, name: str) -> None:
        """Send SIGKILL to a part and wait until it has ended."""
        process = self.part(name).process
        assert process
        process.kill()
        process.wait()

    def restart(self, name: str) -> None:
        """Start a part that has ended.

        PostgreSQL starts only after its old processes have ended.
        """
        part, deadline = self.part(name), time.monotonic() + _RESTART_S
        if not part.has_ended():
            return
        self.reap()
        while True:
            try:
                part.start()
            except StackError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """Suspend a part with SIGSTOP: it accepts connections and never answers."""
        pid = self.pid(name)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def superuser(self) -> psycopg.Connection:
        """A connection as the superuser of the stack's server, to the site's database."""
        return postgres.connect_superuser(self._stack.place, self._stack.state, postgres.DATABASE)

    def server_directory(self, name: str) -> Path:
        """A directory that only the servers' user can enter."""
        return self._stack.place.directory(name)

    def standby(self) -> AbstractContextManager[int]:
        """The port of a hot standby of the stack's server, which lives as long as the context."""
        return standby(self._stack, self.part("postmaster"))

    def listen(self, address: str, network: str) -> None:
        """Have PostgreSQL and Redis listen at this address too, for logins from that network. They
        restart.
        """
        postmaster, redis = self.part("postmaster"), self.part("Redis")
        with (self.server_directory("postgres") / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {network} scram-sha-256\n")
        postmaster.argv = [
            f"{word},{address}" if word.startswith("--listen_addresses=") else word
            for word in postmaster.argv
        ]
        settings = self.server_directory("redis") / "redis.conf"
        settings.write_text(settings.read_text().replace("bind 127.0.0.1", f"bind 127.0.0.1 {address}"))
        for part in (postmaster, redis):
            part.stop()
            part.start()

    def pool_children(self) -> list[int]:
        """PIDs of the worker's pool processes."""
        return [child.pid for child in _children(self.pid("worker")) if not is_client(child)]

    def clients(self) -> list[int]:
        """PIDs of all client processes below this process, orphans included; oldest first."""
        descendants = psutil.Process().children(recursive=True)
        return [process.pid for process in sorted(descendants, key=lambda p: p.pid) if is_client(process)]

    def reap(self) -> None:
        """Reap ended orphans that became our children. The stack reaps its own parts."""
        own = {part.process.pid for part in self._stack.running if part.process}
        for child in psutil.Process().children():
            if child.pid not in own and _status(child) == psutil.STATUS_ZOMBIE:
                try:
                    os.waitpid(child.pid, os.WNOHANG)
                except ChildProcessError:
                    pass


def is_client(process: psutil.Process) -> bool:
    """True for a running client program of pgperf."""
    try:
        words = process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
    return any(word.startswith("pgperf.clients.") or word.endswith("/pgperf-libpq") for word in words)


def kill_and_await(pid: int) -> None:
    """Send SIGKILL to a process and wait until it has ended, or until it is late."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        ended.poll(_KILLED_S * 1000)
    except ProcessLookupError:
        pass
    finally:
        os.close(pidfd)


def await_true(holds: Callable[[], bool], seconds: float, every_s: float = 0.05) -> float:
    """Poll until `holds()` is true; the seconds this took, or -1 after `seconds`.

    Other processes make the condition true, so polling is the only way.
    """
    begin = time.monotonic()
    while not holds():
        if time.monotonic() - begin > seconds:
            return -1.0
        time.sleep(every_s)
    return time.monotonic() - begin


class NotReached(AssertionError):
    """A case cannot begin: what it disturbs did not happen."""


def await_state(state: str, holds: Callable[[], bool], seconds: float, every_s: float = 0.05) -> None:
    """Poll until `holds()` is true. Raises NotReached, so that no case counts whose fault came in
    another state than the one it is about.
    """
    if await_true(holds, seconds, every_s) < 0:
        raise NotReached(f"not within {seconds:g} s: {state}")


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []


def _status(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return ""


def _become_subreaper() -> None:
    """Make this process the parent of every orphan below it, so that it finds all of them."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
