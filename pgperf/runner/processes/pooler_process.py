"""The pooler process behind an address of this machine."""

import ipaddress
import socket

import psutil

from pgperf.runner.processes import listeners
from pgperf.runner.processes.process_name import process_name

#: The names of poolers that have one process each. The first also has only one thread. Proxies
#: (HAProxy) and forwarders are not poolers. Poolers with many processes (pgpool, pgagroal) are not
#: supported.
NAMES = ("pgbouncer", "odyssey", "pgcat", "pgdog")
#: Programs that listen for another one, which may be in a container or on another machine: whose port
#: they forward is not visible.
FORWARDERS = (
    "docker-proxy", "rootlesskit", "rootlessport", "slirp4netns", "pasta", "pasta.avx2", "ssh", "sshd",
    "sshd-session", "kubectl", "socat", "systemd-socket-proxyd", "rinetd",
)  # fmt: skip


def is_own(host: str, *, from_elsewhere: bool = False) -> bool:
    """Does the host name this machine: a socket directory, one of its addresses, or a name of one?

    `from_elsewhere`: another machine uses the name, so its sockets and loopback are not this
    machine's.
    """
    if host.startswith("/"):
        return not from_elsewhere
    if from_elsewhere and host == socket.gethostname():
        return True  # on some machines this name resolves to loopback
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    loopback = {address for address in found if ipaddress.ip_address(address).is_loopback}
    own = {address.address for card in psutil.net_if_addrs().values() for address in card}
    return (bool(loopback) and not from_elsewhere) or not own.isdisjoint(found - loopback)


def process(port: int) -> int | None:
    """The pooler that listens on a TCP port of this machine.

    None if it is not visible, if several processes share the port, or if the process is not a known
    pooler.
    """
    listening = listeners.by_port().get(port, set())
    pid = listening.pop() if len(listening) == 1 else None
    return pid if pid and process_name(pid) in NAMES else None


def processors(pid: int | None) -> int | None:
    """How many CPUs a pooler can use at once: 1 for PgBouncer, which has one thread; None (unknown)
    for others.

    A pooler on another machine is assumed to be PgBouncer.
    """
    return 1 if pid is None or process_name(pid) == NAMES[0] else None
