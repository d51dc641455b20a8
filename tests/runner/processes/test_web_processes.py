"""The processes of web servers, found by their sockets: real processes that share them as gunicorn,
Apache and nginx do, and real gunicorn and nginx.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import psutil
import pytest

from pgperf.core.records import Page, Route, WorkloadDefinition
from pgperf.runner.cpu import schedstat
from pgperf.runner.processes import pooler_process, tcp_sockets, unix_sockets, web_processes
from pgperf.runner.processes.tcp_sockets import TcpSocket
from pgperf.runner.processes.web_processes import WebProcesses
from tests.example.web_programs import HAS_NGINX
from tests.runner.builders import definition
from tests.runner.cpu.test_accounting import measured
from tests.runner.processes import real_web_servers

needs_nginx = pytest.mark.skipif(not HAS_NGINX, reason="nginx is not installed: make nginx")

#: Opens a socket, or has inherited one, and prints its port. Children inherit it; `daemon` closes it,
#: as mod_wsgi's do, and as Python's multiprocessing has a helper without it. On a Unix socket they
#: accept nothing.
_SERVER = """
import os, socket, sys, time
upstream, inherited = sys.argv[1:]
if inherited:
    listener = socket.socket(fileno=int(inherited))
else:
    listener = socket.create_server(("127.0.0.1", 0))
host, _, at = upstream.rpartition(":")
if host == "unix":
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(at)
elif host:
    connected = socket.create_connection((host, int(at)))
set_up, says_so = os.pipe()
pids = [os.getpid()]
for kind in ("worker", "worker", "daemon"):
    pid = os.fork()
    if not pid:
        sys.stdout.close()
        os.close(1)
        if kind == "daemon":
            listener.close()
        os.write(says_so, b".")
        if kind != "daemon" and listener.family == socket.AF_INET:
            kept = listener.accept()
        time.sleep(3600)
    pids.append(pid)
    os.read(set_up, 1)
print(listener.getsockname()[1] if listener.family == socket.AF_INET else 0, *pids, flush=True)
sys.stdin.read()
for pid in pids[1:]:
    os.kill(pid, 9)
"""
#: Starts a program, and holds the sockets that it has given to it.
_KEEPER = ("sh", "-c", '"$@"; :', "sh")

Start = Callable[..., tuple[int, list[int]]]


def find(
    port: int, working: Callable[[], AbstractContextManager[object]] = nullcontext, address: str = "127.0.0.1"
) -> WebProcesses:
    return web_processes.find((address, port), working)


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server, perhaps on a socket that belongs to it from then on, or to what starts it
    (`by`); returns its port and its pids, the first process first.
    """
    running: list[subprocess.Popen[str]] = []

    def run(
        upstream: str = "",
        listener: socket.socket | None = None,
        by: Sequence[str] = (),
        errors: socket.socket | None = None,
    ) -> tuple[int, list[int]]:
        given = (listener.fileno(),) if listener else ()
        process = subprocess.Popen(
            [*by, sys.executable, "-c", _SERVER, upstream, "".join(map(str, given))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors.fileno() if errors else None,
            pass_fds=given,
            text=True,
        )
        running.append(process)
        if listener:
            listener.close()
        assert process.stdout
        port, *pids = map(int, process.stdout.readline().split())
        return port, pids

    yield run
    for process in running:
        process.communicate()


def test_a_server_is_all_processes_below_the_one_that_opened_the_socket(start: Start) -> None:
    port, pids = start()
    found = find(port)
    assert found.proxy == []
    assert sorted(found.web or []) == sorted(pids)
    assert os.getpid() not in (found.web or [])


def test_a_helper_beside_processes_that_accept_requests_is_no_worker(start: Start) -> None:
    """As multiprocessing's resource tracker beside the workers of uvicorn."""
    port, pids = start()
    assert sorted(find(port).workers) == sorted(pids[1:3])


def test_apaches_daemons_run_the_site_and_its_listening_processes_do_not(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_processes, "process_name", lambda pid: "apache2")
    port, pids = start()
    found = find(port)
    assert sorted(found.web or []) == sorted(pids)
    assert found.workers == pids[3:]


@pytest.mark.parametrize("proxy", ["nginx", "haproxy", "caddy", "traefik", "envoy"])
def test_a_proxys_servers_are_at_the_other_ends_of_its_connections(
    start: Start, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    behind, servers = start()
    port, proxies = start(f"127.0.0.1:{behind}")
    monkeypatch.setattr(web_processes, "process_name", lambda pid: proxy if pid in proxies else "gunicorn")
    found = find(port)
    assert sorted(found.proxy or []) == sorted(proxies)
    assert sorted(found.web or []) == sorted(servers)
    made = web_processes.connections(proxies)
    assert made.peers == {("127.0.0.1", behind)}
    assert {address for address, _port in made.own_ends} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("address", "ports"),
    [
        ("127.0.0.1", {8000}), ("::1", {8000}), ("::ffff:127.0.0.1", {8000}),
        ("192.0.2.7", set()), ("2001:db8::7", set()), ("::ffff:192.0.2.7", set()),
    ],
)  # fmt: skip
def test_a_connection_to_another_machine_leads_to_no_program_here(
    monkeypatch: pytest.MonkeyPatch, address: str, ports: set[int]
) -> None:
    """Whatever listens on the same port here."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    made = TcpSocket(False, packed, 40_000, packed, 8000, inode=4711)
    monkeypatch.setattr(tcp_sockets, "read", lambda: [made])
    monkeypatch.setattr(unix_sockets, "held", lambda pid: {4711})
    assert web_processes.connections([os.getpid()]).peer_ports == ports


def test_two_servers_on_one_port_are_told_by_their_addresses(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And two behind proxies."""
    port, servers = start()
    _port, others = start(listener=socket.create_server(("127.0.0.2", port)))
    assert sorted(find(port).web or []) == sorted(servers)
    assert sorted(find(port, address="127.0.0.2").web or []) == sorted(others)
    assert find(port, address="127.0.0.3") == WebProcesses()
    before, proxies = start(f"127.0.0.2:{port}")
    monkeypatch.setattr(web_processes, "process_name", lambda pid: "nginx" if pid in proxies else "gunicorn")
    found = find(before)
    assert sorted(found.web or []) == sorted(others)
    assert sorted(found.workers) == sorted(others[1:3])


@pytest.mark.parametrize(
    ("bound", "address", "inodes"),
    [
        (["127.0.0.1", "0.0.0.0", "::"], "127.0.0.1", {0}),
        (["127.0.0.2", "0.0.0.0", "::"], "127.0.0.1", {1}),
        (["127.0.0.2", "::"], "127.0.0.1", {1}),
        (["::ffff:127.0.0.1", "0.0.0.0"], "127.0.0.1", {0}),
        (["127.0.0.1", "0.0.0.0", "::"], "::1", {2}),
        (["::1", "::"], "::1", {0}),
        (["0.0.0.0", "0.0.0.0"], "127.0.0.1", {0, 1}),  # SO_REUSEPORT
        (["127.0.0.1"], "::1", set()),
        (["fe80::1", "::"], "fe80::1%eth0", {0}),  # as a resolver gives it
    ],
)
def test_an_address_of_its_own_goes_before_all_addresses(
    bound: list[str], address: str, inodes: set[int]
) -> None:
    def listening_at(inode: int, own: str) -> TcpSocket:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in own else socket.AF_INET, own)
        return TcpSocket(True, packed, 8000, bytes(len(packed)), 0, inode)

    sockets = [listening_at(*each) for each in enumerate(bound)]
    assert web_processes._at((address, 8000), sockets) == inodes
    assert web_processes._at((address, 8001), sockets) == set()


@pytest.mark.parametrize("name", [*pooler_process.FORWARDERS, "dockerd"])
def test_a_forwarder_is_no_web_server(start: Start, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What it forwards to is not visible."""
    port, _pids = start()
    monkeypatch.setattr(web_processes, "process_name", lambda pid: name)
    assert find(port) == WebProcesses()


def test_servers_behind_a_proxy_and_a_forwarder_are_not_visible(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind, _servers = start()
    port, proxies = start(f"127.0.0.1:{behind}")
    monkeypatch.setattr(
        web_processes, "process_name", lambda pid: "nginx" if pid in proxies else "docker-proxy"
    )
    found = find(port)
    assert (sorted(found.proxy or []), found.web, found.workers) == (sorted(proxies), None, [])
    assert found.forwarded


def test_nothing_is_known_of_a_port_on_which_nothing_listens(start: Start) -> None:
    port, _pids = start()
    assert find(1).web is None
    assert web_processes.connections([os.getpid()]).peer_ports.isdisjoint({port})


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_who_keeps_the_socket_of_a_server_is_none_of_it(
    kind: str, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As systemd keeps that of gunicorn.socket, and as many programs are its children."""
    listener, upstream = listening(kind, tmp_path)
    behind, servers = start(listener=listener, by=_KEEPER)
    if kind == "tcp":
        assert sorted(find(behind).web or []) == sorted(servers)
    port, proxies = start(upstream)
    monkeypatch.setattr(web_processes, "process_name", lambda pid: "nginx" if pid in proxies else "gunicorn")
    found = find(port)
    assert sorted(found.proxy or []) == sorted(proxies)
    assert sorted(found.web or []) == sorted(servers)


def test_the_first_process_of_all_is_no_server_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may run the same program as they do: an interpreter."""
    parents = {7: 1, 8: 7, 9: 1}
    monkeypatch.setattr(schedstat, "parent", parents.get)
    monkeypatch.setattr(schedstat, "children", lambda pid: [each for each in parents if parents[each] == pid])
    monkeypatch.setattr(web_processes, "_differ", lambda pid, other: False)
    held = {1: {5}, 7: {5}, 8: {5}, 9: {6}}
    assert web_processes._server([1, 7, 8], {5}, held) == [7, 8]
    assert web_processes._server([1], {5}, {1: {5}}) == [], "it has not started the server yet"


def test_a_server_behind_a_unix_socket_is_found_while_no_process_holds_the_connection(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a short request is closed before its holder is looked for; here it is not accepted."""
    listener, upstream = listening("unix", tmp_path)
    _port, servers = start(listener=listener)
    port, proxies = start(upstream)
    monkeypatch.setattr(web_processes, "process_name", lambda pid: "nginx" if pid in proxies else "gunicorn")
    found = find(port)
    assert sorted(found.web or []) == sorted(servers)
    assert sorted(found.workers) == sorted(servers[1:3])


def test_apaches_daemons_are_workers_beside_those_of_another_server(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One proxy passes requests on to both."""
    listener, upstream = listening("unix", tmp_path)
    _port, servers = start(listener=listener)
    behind, apaches = start()
    names = dict.fromkeys(apaches, "apache2")
    monkeypatch.setattr(web_processes, "process_name", lambda pid: names.get(pid, "gunicorn"))
    port, proxies = start(upstream)
    names |= dict.fromkeys(proxies, "nginx")
    reached = web_processes.Connections(peers=frozenset({("127.0.0.1", behind)}))
    monkeypatch.setattr(web_processes, "connections", lambda pids: reached)
    found = find(port)
    assert sorted(found.web or []) == sorted([*apaches, *servers])
    assert sorted(found.workers) == sorted([apaches[3], *servers[1:3]])


def test_who_tells_a_proxy_its_servers_is_none_of_them(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Traefik asks Docker's daemon, which also starts them."""
    listener, upstream = listening("unix", tmp_path)
    start(listener=listener)
    port, proxies = start(upstream)
    monkeypatch.setattr(web_processes, "process_name", lambda pid: "traefik" if pid in proxies else "dockerd")
    found = find(port)
    assert (sorted(found.proxy or []), found.web) == (sorted(proxies), None)


def test_a_log_that_a_proxy_writes_to_is_no_web_server(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As systemd's journal, to which the errors of services go."""
    listener, _ = listening("unix", tmp_path)
    path = listener.getsockname()
    start(listener=listener)
    with socket.socket(socket.AF_UNIX) as log:
        log.connect(path)
        port, proxies = start(errors=log)
    monkeypatch.setattr(web_processes, "process_name", lambda pid: "nginx" if pid in proxies else "journal")
    found = find(port)
    assert (sorted(found.proxy or []), found.web) == (sorted(proxies), None)


def tree(process: psutil.Process) -> list[int]:
    return sorted([process.pid, *(child.pid for child in process.children(recursive=True))])


@pytest.fixture
def held() -> Iterator[real_web_servers.Holder]:
    with real_web_servers.holder() as found:
        yield found


def test_gunicorn_is_the_web_server_of_its_socket(tmp_path: Path, held: real_web_servers.Holder) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with real_web_servers.gunicorn(tmp_path, held, listener) as server, held.holding(port):
        found = find(port)
        assert found.proxy == []
        assert sorted(found.web or []) == tree(server)
        assert sorted(found.workers) == sorted(child.pid for child in server.children())
        made = web_processes.connections(found.web or [])
        assert made.peer_ports == {held.listener.getsockname()[1]}


def listening(kind: str, directory: Path) -> tuple[socket.socket, str]:
    """A socket of that kind, and how nginx names it."""
    if kind == "tcp":
        found = socket.create_server(("127.0.0.1", 0))
        return found, f"127.0.0.1:{found.getsockname()[1]}"
    path = str(directory / "socket")
    return socket.create_server(path, family=socket.AF_UNIX), f"unix:{path}"


@needs_nginx
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_nginx_is_the_proxy_of_its_socket_and_gunicorn_the_web_server_behind(
    kind: str, tmp_path: Path, held: real_web_servers.Holder
) -> None:
    """nginx opens a connection for each request, so gunicorn is found while some are served."""
    behind, upstream = listening(kind, tmp_path)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with (
        real_web_servers.gunicorn(tmp_path, held, behind) as server,
        real_web_servers.proxy(tmp_path, upstream, listener) as proxy,
    ):
        assert psutil.Process(proxy.pid).name() == "nginx"
        found = find(port, lambda: held.holding(port))
        assert sorted(found.proxy or []) == tree(proxy)
        assert sorted(found.web or []) == tree(server)
        assert sorted(found.workers) == sorted(child.pid for child in server.children())


@needs_nginx
def test_their_cpu_time_is_that_of_proxy_and_web_servers(
    tmp_path: Path, held: real_web_servers.Holder
) -> None:
    pytest.importorskip("pycurl")
    behind, upstream = listening("tcp", tmp_path)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    route = Route("web", "127.0.0.1", port, "", "", "", url=f"http://127.0.0.1:{port}")
    page = WorkloadDefinition("page", "", page=Page("/"))
    what = definition(
        workloads=(page,), layers=("http",), routes=("web",), web_routes={"web": ""}, clients=(2,), rounds=2,
        slice_ms=200,
    )  # fmt: skip
    with (
        real_web_servers.gunicorn(tmp_path, held, behind),
        real_web_servers.proxy(tmp_path, upstream, listener),
    ):
        for block in measured(what, {"web": route}):
            assert block.cpu_account["web_workers"] == real_web_servers.SERVING
            for piece in block.slices:
                assert piece.web_ns > 0
                assert piece.proxy_ns > 0
