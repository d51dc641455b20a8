"""The stack: a context manager that starts its parts in order and stops them in reverse order."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from example.env_file import write_env_file
from example.stack import distance, pgbouncer, postgres, redis_server, web, web_servers, web_steps
from example.stack.control import Control
from example.stack.environment import environment
from example.stack.errors import StackError
from example.stack.lock import Lock
from example.stack.part import Part
from example.stack.place import Place
from example.stack.postgres import READER, TRUSTED
from example.stack.process import guarded, tail
from example.stack.state import SITE_PORT, State

SERVERS = (
    "postgres", "pgbouncer", "pgbouncer_trust", "pgbouncer_transaction", *distance.DISTANCES, "redis",
)  # fmt: skip
ALL = (*SERVERS, "worker", "site")
#: In start order. The pooler with one connection is started only by name. Web steps start between
#: the two groups.
BEFORE_SITE = ("postgres", *pgbouncer.POOLINGS, *distance.DISTANCES, "redis")
SITE = ("worker", "site")


class Stack:
    """Runs PostgreSQL and other parts during the context, at most as long as this process.

    Each stack needs its own `directory`. `parts` are names of BEFORE_SITE, SITE and
    web_steps.STEPS; they include postgres, and SERVERS if there are steps. `keep` keeps the data
    for the next start. `env` has the variables with all addresses and passwords.
    Raises StackError if a part does not start, or if a stack is already running in the directory.
    """

    def __init__(self, directory: Path | str, parts: Sequence[str] = SERVERS, keep: bool = True) -> None:
        self.place = Place(Path(directory))
        self.parts = parts
        self.keep = keep
        self.steps = [name for name in web_steps.STEPS if name in parts]
        self.running: list[Part] = []
        self.env: dict[str, str] = {}
        self.web: web_servers.WebServers | None = None
        self.control: Control | None = None
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
        web_servers.check(self.steps)
        self.place.prepare()
        self._lock.take()
        (self.place.own / "env").unlink(missing_ok=True)  # that of a stack that was killed
        if not self.keep:
            self.place.clear()
        self._save_state()
        self._start(BEFORE_SITE)
        if "worker" in self.parts or self.steps:
            self._set_up_site()
        if self.steps:
            self._start_web()
        self._start(SITE)
        write_env_file(self.place.own / "env", self.env)

    def stop(self) -> None:
        """Stop every part in reverse order and wait for its end. A second call does nothing."""
        if self.control:
            self.control.close()
        if self.web:
            self.web.stop()
        while self.running:
            self.running.pop().stop()
        if self._lock.held:
            (self.place.own / "env").unlink(missing_ok=True)
            self._lock.release()
            if not self.keep:
                self.place.remove()

    def _save_state(self) -> None:
        """Save passwords and ports before any server uses them."""
        path = self.place.servers / "state.json"
        self.state = State.load(path)
        self.state.choose_ports(
            [*(name for name in self.parts if name not in self.steps), *web_steps.ports_of(self.steps)],
            # Sites of tests start at the same time, and would all find the usual port free.
            site=SITE_PORT if self.keep else 0,
        )
        self.state.save(path)
        self.place.own_file(self.place.secrets() / READER, self.state.reader_password)
        self.place.own_file(self.place.secrets() / TRUSTED, "")
        self.env = environment(self.place, self.state, self.parts)

    def _run(self, part: Part) -> None:
        part.pass_fds = [self._lock.fd]
        self.running.append(part)
        part.start()

    def _start(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self.parts:
                self._run(self._part(name))
            if name == "postgres":
                postgres.create_roles_and_database(self.place, self.state)

    def _start_web(self) -> None:
        self.web = web_servers.WebServers(self.place, self.state, self.env, self._lock.fd, self.running)
        self.web.start_anew(self.steps)
        self.control = Control(self.place.control(), self.web.start_anew)

    def _part(self, name: str) -> Part:
        env = {**os.environ, **self.env}
        if name in pgbouncer.POOLINGS:
            return pgbouncer.part(self.place, self.state, name)
        if name in distance.DISTANCES:
            return distance.part(self.place, self.state, name)
        if name == "worker":
            return web.worker(self.place.own, env)
        if name == "site":
            return web.site(self.place.own, env, self.state.ports["site"])
        return (postgres if name == "postgres" else redis_server).part(self.place, self.state)

    def _set_up_site(self) -> None:
        """Run set_up_site, which is idempotent, at every start."""
        log = self.place.own / "setup.log"
        command = guarded([sys.executable, "manage.py", "set_up_site"], signal.SIGKILL)
        with open(log, "wb") as output:
            env = {**os.environ, **self.env}
            done = subprocess.run(
                command, cwd=web.CHECKOUT, env=env, stdout=output, stderr=output, check=False
            )
        if done.returncode:
            raise StackError(f"setting up the site failed; {log} ends:\n{tail(log)}")
