"""Load hosts and one more for the database: network namespaces, joined by virtual cables.

Each load host has a Celery worker and a monotonic clock of its own. The owner of the runs is on the
database's host. The machine is one: what the hosts do together is no faster than what one does.
"""

import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from example.stack import web
from example.stack.network_hosts import Host, star
from example.stack.network_site import environment, start_broker, start_server
from example.stack.part import Part
from example.stack.place import Place
from example.stack.state import State

#: Two management commands in one process.
_SET_UP = """
import django
from django.core.management import call_command
django.setup()
call_command("migrate", verbosity=0)
call_command("pgperf", "add", "default", "--allow-fixtures")
"""


@dataclass
class Fleet:
    """The database's host, where the owner runs, and the load hosts by name."""

    db: Host
    hosts: dict[str, Host]
    environment: dict[str, str]

    def argv(self, *words: str) -> list[str]:
        """The command line of a management command on the database's host."""
        return self.db.inside(sys.executable, "manage.py", *words, cwd=web.CHECKOUT)

    def python(self, *argv: str) -> str:
        """What a program prints on the database's host. Raises CalledProcessError."""
        return self.db.run(sys.executable, *argv, cwd=web.CHECKOUT, env=self.environment)


@contextmanager
def fleet(directory: Path, ahead_s: Mapping[str, int | None], network: str) -> Iterator[Fleet]:
    """The load hosts of `ahead_s`: by how much the monotonic clock of each is ahead of this machine's,
    None without a clock of its own. `network`: the first three numbers of their addresses.
    """
    place, state = Place(directory / "stack"), State()
    place.prepare()
    state.choose_ports(["postgres", "redis"])
    try:
        with ExitStack() as stack:
            db = stack.enter_context(Host())
            hosts = {name: stack.enter_context(Host(ahead)) for name, ahead in ahead_s.items()}
            address = star(db, list(hosts.values()), network)
            start_server(db, address, f"{network}.0/24", place, state)
            start_broker(db, address, state)
            found = Fleet(db, hosts, environment(address, address, state))
            found.python("-c", _SET_UP)
            _workers(found, directory).start()
            yield found
    finally:
        place.remove()


def _workers(fleet: Fleet, directory: Path) -> Part:
    """One on each load host; they end with their hosts.

    All are of one session. Where the kernel gives each session its share of a busy machine
    (autogroup), four sessions would have more than one.
    """
    commands = [
        shlex.join(host.inside(*web.worker(directory, {}, f"pgperf-load-{name}").argv, cwd=web.CHECKOUT))
        for name, host in fleet.hosts.items()
    ]
    return Part(
        name="load hosts",
        argv=["sh", "-c", " & ".join([*commands, "wait"])],
        log=directory / "workers.log",
        answers=lambda part: part.log_since_start().count(" ready.") == len(commands),
        polite=signal.SIGTERM,
        env=fleet.environment,
    )
