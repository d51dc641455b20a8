"""The state of a stack between starts: passwords and ports."""

import contextlib
import json
import os
import random
import secrets
import socket
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

PORTS = range(15000, 32000)  # below the kernel's range for outgoing connections
SITE_PORT = 8000  # Django's usual port, if it is free


def _password() -> str:
    return secrets.token_urlsafe(18)


@dataclass
class State:
    """Random passwords of one stack, and the ports of its last start."""

    superuser_password: str = field(default_factory=_password, repr=False)
    site_password: str = field(default_factory=_password, repr=False)
    reader_password: str = field(default_factory=_password, repr=False)
    redis_password: str = field(default_factory=_password, repr=False)
    admin_password: str = field(default_factory=_password, repr=False)
    django_secret_key: str = field(default_factory=lambda: secrets.token_urlsafe(48), repr=False)
    ports: dict[str, int] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> "State":
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def save(self, path: Path) -> None:
        """Write atomically, readable only by the current user."""
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(self), file)
        new.replace(path)

    def choose_ports(self, names: Iterable[str], site: int = SITE_PORT) -> None:
        """Keep each part's last port if it is free; otherwise choose another. `site`: the one that the
        site tries first, 0 for any.
        """
        for name in names:
            last = self.ports.get(name, site if name == "site" else 0)
            self.ports[name] = last if is_free(last) else free_port(taken=set(self.ports.values()))


def free_port(taken: set[int]) -> int:
    """A free loopback port."""
    candidates = random.sample(own_ports(), 200)
    return next(port for port in candidates if port not in taken and is_free(port))


def own_ports() -> range:
    """All; in a process of pytest-xdist its own share, which no other one chooses from.

    They start stacks at the same time, and a port stays free until the server listens.
    """
    worker, count = os.environ.get("PYTEST_XDIST_WORKER"), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    return PORTS[int(worker.removeprefix("gw")) :: int(count)] if worker else PORTS


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port; False for port 0."""
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return port != 0
