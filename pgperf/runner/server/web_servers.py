"""Who serves the requests of a variant: the proxy, the web servers, their pooler and their backends.

A proxy's connections to its servers, and those of a site that connects for each request, exist only
while a request is served. So the variant's clients work while its processes are looked for.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlsplit

from pgperf.core import protocol
from pgperf.core.records import Route
from pgperf.runner.client_group import ClientGroup
from pgperf.runner.processes import pooler_process, relay_process, unix_sockets, web_processes
from pgperf.runner.processes.backends import Endpoint, Sessions
from pgperf.runner.processes.web_processes import WebProcesses
from pgperf.runner.timed_slice import armed

_PORTS = {"http": 80, "https": 443}
#: How long the clients have worked when each look begins, s, until the servers behind a proxy are
#: found: requests from far away take several round trips. Those behind a forwarder never are.
_LOOKS_AFTER_S = (0.0, 0.1, 0.2, 0.4, 0.8)
_MOMENT = protocol.Slice(seq=0, lead_in_ops=1, lead_in_ns=0, window_ns=250_000_000)


def find(groups: Sequence[ClientGroup], route: Route, read_sessions: Callable[[], Sessions]) -> None:
    """Fill in the processes that serve the groups of a web route. All stay unknown where its web
    server is on another machine. A delay relay may be between them and the database.
    """
    busiest = max(groups, key=lambda group: group.variant.connections)
    busiest.web = WebProcesses()
    if is_here(route):
        _look(busiest, _end(route))
        _find_backends(busiest, read_sessions)
    for group in groups:
        group.web, group.server_pids = busiest.web, busiest.server_pids
        group.server_elsewhere = busiest.server_elsewhere
        group.pooled, group.pooler_pid = busiest.pooled, busiest.pooler_pid
        group.relay_pid = busiest.relay_pid


def is_here(route: Route) -> bool:
    """Is the web server of a route on this machine, so that its processes can be looked for?"""
    address, _port = _end(route)
    return all(map(pooler_process.is_own, (urlsplit(route.url).hostname or "", address)))


def _end(route: Route) -> Endpoint:
    """Where the web server listens: the checked address, behind a delay relay if there is one."""
    url = urlsplit(route.url)
    return route.relayed_host or route.host, url.port or _PORTS[url.scheme]


def _look(group: ClientGroup, end: Endpoint) -> None:
    """Find the web servers, and their pooler, while the group's clients work."""
    for after_s in _LOOKS_AFTER_S:
        group.web = web_processes.find(end, partial(_working, group, after_s))
        if group.web.web or group.web.forwarded or not group.web.proxy:
            break
    if group.web.web:
        with _working(group, after_s):
            ports = web_processes.connections(group.web.web).peer_ports
        poolers = filter(None, map(pooler_process.process, sorted(ports)))
        group.pooler_pid = next(poolers, None)
        group.relay_pid = next(iter(relay_process.at(ports)), None)
    group.pooled = group.pooler_pid is not None


@contextmanager
def _working(group: ClientGroup, after_s: float = 0.0) -> Iterator[None]:
    """The group's clients make requests meanwhile, and have done so for that long."""
    after_ns = int(after_s * 1e9)
    moment = armed(group, _MOMENT._replace(window_ns=_MOMENT.window_ns + after_ns))
    group.begin(moment)
    try:
        begins_ns = (moment.start_ns or time.monotonic_ns()) + after_ns
        time.sleep(max(0, begins_ns - time.monotonic_ns()) / 1e9)
        yield
    finally:
        group.collect(moment)


def _find_backends(group: ClientGroup, read_sessions: Callable[[], Sessions]) -> None:
    """By both ends of the connections of the web servers, of their pooler, or of a delay relay. Where
    these have none while the clients are idle, they are looked for again while the clients work.
    """
    nearest = group.pooler_pid or group.relay_pid
    clients = [nearest] if nearest else group.web.web or []
    sessions = read_sessions()
    group.server_pids = _backends(clients, web_processes.connections(clients).own_ends, sessions)
    seen = bool(group.server_pids) or not (clients and sessions.here)
    group.server_elsewhere = not (seen or _reach(group, clients, read_sessions))


def _reach(group: ClientGroup, clients: Sequence[int], read_sessions: Callable[[], Sessions]) -> bool:
    """Do they have backends of this server while the clients work, or no connections at all?"""
    connected = False
    for after_s in _LOOKS_AFTER_S:
        with _working(group, after_s):
            before = web_processes.connections(clients).own_ends
            sessions = read_sessions()
            ends = before | web_processes.connections(clients).own_ends
        if _backends(clients, ends, sessions):
            return True
        connected = connected or bool(ends)
    return not connected


def _backends(clients: Sequence[int], ends: Collection[Endpoint], sessions: Sessions) -> list[int]:
    """The backends at the other ends of TCP connections with these ends, and of Unix sockets."""
    local = [session.pid for session in sessions.here if session.port < 0]
    by_socket = [pid for each in clients for pid in unix_sockets.connected(each, local)] if local else []
    return list(dict.fromkeys([*sessions.from_ends(ends), *by_socket]))
