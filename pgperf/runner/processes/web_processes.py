"""The processes of a web server on this machine: a proxy, and the servers that run the site.

They are found by their listening socket. gunicorn, Apache and nginx open it in one process, and the
others inherit it. mod_wsgi's daemons listen on nothing: they are children of the process that opened
the socket, as all other processes of a server are. Another program may keep the socket for a server,
as systemd does, and is none of its processes.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

import psutil

from pgperf.runner.cpu import schedstat
from pgperf.runner.processes import pooler_process, tcp_sockets, unix_sockets
from pgperf.runner.processes.backends import Endpoint, unmapped
from pgperf.runner.processes.process_name import process_name
from pgperf.runner.processes.tcp_sockets import TcpSocket

#: The names of programs that pass requests on. Any other that listens is a web server.
PROXIES = ("nginx", "haproxy", "caddy", "traefik", "envoy")
#: Whom a proxy may ask for the addresses of its servers.
_DIRECTORIES = ("dockerd", "podman")
#: Those whose listening processes pass them on to daemons, where there are some (mod_wsgi).
_WITH_DAEMONS = ("apache2", "httpd")
#: How long the connections of processes are read again and again.
_LOOK_S = 0.1
#: The first process of a machine or a container, from which all others descend.
_INIT = 1
#: Which sockets a process holds, by pid.
Sockets = Mapping[int, set[int]]


@dataclass(frozen=True)
class WebProcesses:
    """The pids of the proxy and of the servers that run the site.

    None: not visible; empty: there are none. `workers`: the servers' processes without those that
    only start others. `forwarded`: a forwarder between the proxy and the servers hides these.
    """

    proxy: list[int] | None = None
    web: list[int] | None = None
    workers: list[int] = field(default_factory=list)
    forwarded: bool = False


#: Of a variant whose clients connect to a database.
NO_WEB_SERVER = WebProcesses(proxy=[], web=[])


def find(end: Endpoint, working: Callable[[], AbstractContextManager[object]] = nullcontext) -> WebProcesses:
    """The processes behind an address and TCP port of this machine, which are not visible behind a
    forwarder. A proxy's servers are found by the connections that it makes, perhaps one for each
    request: `working` lets it serve some.
    """
    sockets, held = tcp_sockets.read(), _held()
    listening = _listening(_at(end, sockets), held)
    if not listening or _forwards(listening):
        return WebProcesses()
    accepting = {each.inode for each in sockets if each.listens}
    if process_name(listening[0]) not in PROXIES:
        return WebProcesses(proxy=[], web=listening, workers=_workers(listening, accepting, held))
    with working():
        peers, unix = connections(listening).peers, _unix_servers(listening)
    reached = [*(_at(each, sockets) for each in sorted(peers)), *({each} for each in sorted(unix))]
    servers = [_behind(listening, inodes, held) for inodes in reached]
    if any(map(_forwards, servers)):
        return WebProcesses(proxy=listening, forwarded=True)
    workers = [_workers(server, accepting | unix, held) for server in servers]
    return WebProcesses(proxy=listening, web=_all(servers) or None, workers=_all(workers))


def _all(found: Iterable[Iterable[int]]) -> list[int]:
    """Each pid once."""
    return list(dict.fromkeys(pid for each in found for pid in each))


@dataclass(frozen=True)
class Connections:
    """The own ends of the TCP connections that some processes have made, and the other ends that are
    on this machine.
    """

    own_ends: frozenset[Endpoint] = frozenset()
    peers: frozenset[Endpoint] = frozenset()

    @property
    def peer_ports(self) -> frozenset[int]:
        return frozenset(port for _address, port in self.peers)


def connections(pids: Collection[int]) -> Connections:
    """Those of these processes, without those that they have accepted. A connection may last for one
    request only, so they are read again and again.
    """
    if not pids:
        return Connections()
    with _held_meanwhile(pids) as own:
        sockets = {each for _ in _looks() for each in tcp_sockets.read()}
    made = _made(own, sockets)
    own_ends = frozenset((unmapped(each.address), each.port) for each in made)
    return Connections(own_ends, _peers_here(made))


def _peers_here(made: Iterable[TcpSocket]) -> frozenset[Endpoint]:
    """Another machine's port says nothing of the program that listens on the same one here."""
    peers = {(unmapped(each.peer_address), each.peer_port) for each in made}
    here = set(filter(pooler_process.is_own, {address for address, _port in peers}))
    return frozenset((address, port) for address, port in peers if address in here)


@contextmanager
def _held_meanwhile(pids: Collection[int]) -> Iterator[set[int]]:
    """The sockets that the processes hold at any time meanwhile; complete when the context ends.

    A thread of its own reads them: the kernel takes longer to list all connections of a busy machine
    than a connection lasts.
    """
    found: set[int] = set()
    ends = threading.Event()

    def read() -> None:
        last = False
        while not last:
            last = ends.is_set()
            for pid in pids:
                found.update(unix_sockets.held(pid))

    reader = threading.Thread(target=read, name="pgperf-sockets", daemon=True)
    reader.start()
    try:
        yield found
    finally:
        ends.set()
        reader.join()


def _made(own: Collection[int], sockets: Collection[TcpSocket]) -> list[TcpSocket]:
    listened = {each.port for each in sockets if each.listens and each.inode in own}
    open_ = [each for each in sockets if not each.listens and each.inode in own]
    return [each for each in open_ if each.port not in listened]


def _looks() -> Iterator[None]:
    """One after the other, at least one."""
    end_s = time.monotonic() + _LOOK_S
    yield
    while time.monotonic() < end_s:
        yield


def _held() -> Sockets:
    return {pid: unix_sockets.held(pid) for pid in psutil.pids()}


def _at(end: Endpoint, sockets: Sequence[TcpSocket]) -> set[int]:
    """The inodes of the sockets that accept a connection to this end. As in the kernel, those of the
    address itself go before those of all addresses (0.0.0.0), and these before those of both IP
    versions (::). The kernel lists addresses without the scope that a local one of IPv6 may have.
    """
    address, port = unmapped(end[0].partition("%")[0]), end[1]
    listening = [
        (unmapped(each.address), each.inode) for each in sockets if each.listens and each.port == port
    ]
    for bound in (address, "::") if ":" in address else (address, "0.0.0.0", "::"):
        if found := {inode for own, inode in listening if own == bound}:
            return found
    return set()


def _forwards(server: Sequence[int]) -> bool:
    """Do the processes forward connections to a program that is not visible? Docker's daemon reserves
    the ports that the kernel forwards to containers.
    """
    return bool(server) and process_name(server[0]) in (*pooler_process.FORWARDERS, *_DIRECTORIES)


def _listening(inodes: set[int], held: Sockets) -> list[int]:
    """The server that listens on these sockets, with all its processes."""
    return _server(_holders(inodes, held), inodes, held)


def _behind(proxy: Collection[int], inodes: set[int], held: Sockets) -> list[int]:
    """The web server that the proxy has reached by these sockets."""
    serving = [pid for pid in _holders(inodes, held) if process_name(pid) not in _DIRECTORIES]
    return [pid for pid in _server(serving, inodes, held) if pid not in proxy]


def _unix_servers(proxy: Sequence[int]) -> set[int]:
    """The listening Unix sockets that the proxy connects to, perhaps for each request anew. Its output
    and errors may go to a log, which serves no request.
    """
    found: set[int] = set()
    for _ in _looks():
        own = {inode for pid in proxy for inode in unix_sockets.held(pid, streams=False)}
        found |= unix_sockets.servers_of(own)
    return found


def _holders(inodes: set[int], held: Sockets) -> list[int]:
    return [pid for pid, own in held.items() if not inodes.isdisjoint(own)] if inodes else []


def _server(pids: Iterable[int], inodes: set[int], held: Sockets) -> list[int]:
    """The first of the processes that share these sockets, and all its descendants; without those that
    only keep the sockets for it.
    """
    serving = [pid for pid in pids if not _keeps(pid, inodes, held)]
    roots = dict.fromkeys(_first(pid, inodes, held) for pid in serving)
    return list(dict.fromkeys(pid for root in roots for pid in _tree(root)))


def _keeps(pid: int, inodes: set[int], held: Sockets) -> bool:
    """Does a process that holds sockets keep them for another program? Its children that hold them run
    that one. The children of the first process may be all others.
    """
    children = schedstat.children(pid)
    heirs = [child for child in children if not inodes.isdisjoint(held.get(child, ()))]
    return bool(children) if pid == _INIT else bool(heirs) and all(_differ(pid, heir) for heir in heirs)


def _first(pid: int, inodes: set[int], held: Sockets) -> int:
    """The first process of the server: its parent does not hold the sockets, or keeps them for it."""
    while (parent := schedstat.parent(pid)) and not inodes.isdisjoint(held.get(parent, ())):
        if parent == _INIT or _differ(pid, parent):
            break
        pid = parent
    return pid


def _differ(pid: int, other: int) -> bool:
    """Do the two run different programs, as far as these are visible?"""
    try:
        return os.readlink(f"/proc/{pid}/exe") != os.readlink(f"/proc/{other}/exe")
    except OSError:
        return False


def _tree(pid: int) -> list[int]:
    return [pid, *(each for child in schedstat.children(pid) for each in _tree(child))]


def _workers(pids: Collection[int], listening: Set[int], held: Sockets) -> list[int]:
    """The processes of one server that run the site: those without children that accept requests, or
    the only one there is; of Apache with daemons, the daemons. What accepts none beside others that
    do is a helper, such as the resource tracker of Python's multiprocessing.
    """
    leaves = [pid for pid in pids if not schedstat.children(pid)]
    accepting = [pid for pid in leaves if held.get(pid, set()) & listening]
    passing = {pid for pid in accepting if process_name(pid) in _WITH_DAEMONS}
    serving = [pid for pid in accepting if pid not in passing]
    daemons = [pid for pid in leaves if pid not in passing]
    return serving or daemons or leaves or list(pids)
