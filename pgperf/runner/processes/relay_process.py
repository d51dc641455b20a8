"""The pgperf relay process of a delayed route."""

from collections.abc import Collection, Iterable, Iterator

import psutil

from pgperf.core.records import Route
from pgperf.delay import relay

#: The only addresses on which relays listen.
_HOSTS = (relay.HOST, "localhost")


def find(routes: Iterable[Route]) -> dict[str, int]:
    """Route -> the pid of its relay, for the routes with a visible relay."""
    ports = {route.name: route.port for route in routes if route.host in _HOSTS}
    listening = _listening() if ports else {}
    found = {name: listening[port] for name, port in ports.items() if port in listening}
    return {name: pid for name, pid in found.items() if relay.is_relay(pid)}


def at(ports: Collection[int]) -> Iterator[int]:
    """The pids of the relays that listen on these ports of this machine."""
    listening = _listening() if ports else {}
    yield from (
        listening[port] for port in sorted(ports) if port in listening and relay.is_relay(listening[port])
    )


def _listening() -> dict[int, int]:
    """Port -> a process that listens on it; empty if that is not visible."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return {}
    return {
        each.laddr.port: each.pid for each in connections if each.status == psutil.CONN_LISTEN and each.pid
    }
