"""The pgperf relay process of a delayed route."""

from collections.abc import Collection, Iterable

from pgperf.core.records import Route
from pgperf.delay import relay
from pgperf.runner.processes import listeners

#: The only addresses on which relays listen.
_HOSTS = (relay.HOST, "localhost")


def find(routes: Iterable[Route]) -> dict[str, int]:
    """Route -> the pid of its relay, for the routes with a visible relay."""
    ports = {route.name: route.port for route in routes if route.host in _HOSTS}
    found = _relays(ports.values())
    return {name: found[port] for name, port in ports.items() if port in found}


def at(ports: Collection[int]) -> list[int]:
    """The pids of the relays that listen on these ports of this machine."""
    found = _relays(ports)
    return [found[port] for port in sorted(found)]


def _relays(ports: Collection[int]) -> dict[int, int]:
    """Port -> the relay that listens on it."""
    listening = listeners.by_port() if ports else {}
    pairs = ((port, pid) for port in ports for pid in listening.get(port, ()))
    return {port: pid for port, pid in pairs if pid and relay.is_relay(pid)}
