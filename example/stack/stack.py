"""The stack as a whole: a context manager that starts its parts in order and ends them in the reverse order."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from example.env_file import write_env_file
from example.stack import pgbouncer, postgres, redis_server, web
from example.stack.environment import environment
from example.stack.errors import StackError
from example.stack.lock import Lock
from example.stack.part import Part
from example.stack.place import Place
from example.stack.process import guarded, tail
from example.stack.state import State

SERVERS = ("postgres", "pgbouncer", "redis")
ALL = (*SERVERS, "worker", "site")


class Stack:
    """PostgreSQL and what else is asked for, running while the context lasts and never longer than this process.

    `directory` is the stack's own: two stacks need two. `parts` is any of ALL that begins with postgres. With `keep`
    the data stay for next time. `env` holds the variables by which settings, tests and benchmarks find everything.
    Raises StackError when a part does not start or the directory's stack is already running.
    """

    def __init__(self, directory: Path | str, parts: Sequence[str] = SERVERS, keep: bool = True) -> None:
        self.place = Place(Path(directory))
        self.parts = parts
        self.keep = keep
        self.running: list[Part] = []
        self.env: dict[str, str] = {}
        self._lock = Lock(self.place.own)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start every part and return when all answer."""
        self.place.prepare()
        self._lock.take()
        self._remember()
        for name in ALL:
            if name in self.parts:
                getattr(self, f"_start_{name}")()
        write_env_file(self.place.own / "env", self.env)

    def stop(self) -> None:
        """End every part, the last one first, and wait for it. Does nothing the second time."""
        while self.running:
            self.running.pop().stop()
        if self._lock.held:
            (self.place.own / "env").unlink(missing_ok=True)
            self._lock.release()
            if not self.keep:
                self.place.remove()

    def _remember(self) -> None:
        """Passwords and ports are on disk before anything is made with them."""
        path = self.place.servers / "state.json"
        self.state = State.load(path)
        self.state.choose_ports(self.parts)
        self.state.save(path)
        self.env = environment(self.place, self.state, self.parts)

    def _run(self, part: Part) -> None:
        part.pass_fds = [self._lock.fd]
        self.running.append(part)
        part.start()

    def _start_postgres(self) -> None:
        self._run(postgres.part(self.place, self.state))
        postgres.create_role_and_database(self.place, self.state)

    def _start_pgbouncer(self) -> None:
        self._run(pgbouncer.part(self.place, self.state))

    def _start_redis(self) -> None:
        self._run(redis_server.part(self.place, self.state))

    def _start_worker(self) -> None:
        self._set_up_site()
        self._run(web.worker(self.place.own, {**os.environ, **self.env}))

    def _start_site(self) -> None:
        self._run(web.site(self.place.own, {**os.environ, **self.env}, self.state.ports["site"]))

    def _set_up_site(self) -> None:
        """Migrations, static files, the admin's user, the demo's targets and rows; idempotent, so at every start."""
        log = self.place.own / "setup.log"
        command = guarded([sys.executable, "manage.py", "set_up_site"], signal.SIGKILL)
        with open(log, "wb") as output:
            env = {**os.environ, **self.env}
            done = subprocess.run(
                command, cwd=web.CHECKOUT, env=env, stdout=output, stderr=output, check=False
            )
        if done.returncode:
            raise StackError(f"setting up the site failed; {log} ends:\n{tail(log)}")
