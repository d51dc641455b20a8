"""The delay relay: its delays, its data, and the end of connections."""

import hashlib
import os
import queue
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest

from pgperf.core.exceptions import ClientFailed, InvalidDefinition
from pgperf.core.records import Route
from pgperf.delay import relay as module
from pgperf.delay.relay import DelayRelay
from pgperf.runner.processes import pooler_process
from tests.waiting import until

RTT_S = 0.02
EARLY = 0.9
DEADLINE_S = 30.0


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that gives each connection to `answer`, in a thread of its own, and
    closes it then.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=_answered, args=(answer, connection), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _answered(answer: Callable[[socket.socket], None], connection: socket.socket) -> None:
    with closing(connection):
        answer(connection)


def echo(connection: socket.socket) -> None:
    while data := connection.recv(1 << 16):
        connection.sendall(data)


def connected(port: int) -> socket.socket:
    return socket.create_connection((module.HOST, port), timeout=DEADLINE_S)


def everything(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def asked(connection: socket.socket, text: bytes) -> float:
    """Seconds until the echo of the text is there."""
    began = time.monotonic()
    connection.sendall(text)
    answer = b""
    while len(answer) < len(text):
        answer += connection.recv(1 << 16)
    assert answer == text
    return time.monotonic() - began


def test_each_answer_takes_a_round_trip_and_the_first_another_one() -> None:
    """The second is the handshake's.

    What is early is so by what waking up usually takes; how late is the machine's.
    """
    rtt_s = 5 * RTT_S
    with serving(echo) as port, DelayRelay("127.0.0.1", port, rtt_s * 1000) as far:
        began = time.monotonic()
        with connected(far.port) as client:
            asked(client, b"first")
            assert time.monotonic() - began >= 2 * rtt_s * EARLY
            took = [asked(client, b"x") for _ in range(10)]
    assert min(took) >= rtt_s * EARLY
    assert min(took) < 2 * rtt_s


def heard_whole(connection: socket.socket) -> None:
    connection.sendall(hashlib.sha256(everything(connection)).digest())


def test_order_and_bytes_are_kept() -> None:
    """More than is held back at once, so that the sender is made to wait."""
    sent = os.urandom(1 << 20) * 40
    with (
        serving(heard_whole) as port,
        DelayRelay("127.0.0.1", port, RTT_S * 1000) as far,
        connected(far.port) as client,
    ):
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        assert everything(client) == hashlib.sha256(sent).digest()


def test_data_does_not_wait_for_earlier_data() -> None:
    """20 words, one after the other: if each waited for the one before, they would take 10 s and
    the answer 0.5 s.
    """
    with (
        serving(heard_whole) as port,
        DelayRelay("127.0.0.1", port, 1000) as far,
        connected(far.port) as client,
    ):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.monotonic()
        for _ in range(20):
            client.sendall(b"word")
            time.sleep(0.005)  # or they would be read as one
        client.shutdown(socket.SHUT_WR)
        assert everything(client) == hashlib.sha256(b"word" * 20).digest()
        assert time.monotonic() - began < 8


@pytest.mark.parametrize("first", ["client", "server"])
def test_either_side_may_close_first_and_still_hear_the_other(first: str) -> None:
    heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def answer(connection: socket.socket) -> None:
        if first == "server":
            connection.sendall(b"the server's last words")
            connection.shutdown(socket.SHUT_WR)
        heard.put(everything(connection))
        if first == "client":
            connection.sendall(b"the server's last words")

    with serving(answer) as port, DelayRelay("127.0.0.1", port, 1) as far, connected(far.port) as client:
        if first == "client":
            client.sendall(b"the client's last words")
            client.shutdown(socket.SHUT_WR)
        assert everything(client) == b"the server's last words"
        if first == "server":
            client.sendall(b"the client's last words")
            client.shutdown(socket.SHUT_WR)
        assert heard.get(timeout=DEADLINE_S) == b"the client's last words"


def test_a_connection_that_is_over_leaves_nothing_behind() -> None:
    with serving(echo) as port, DelayRelay("127.0.0.1", port, 1) as far:
        relay = psutil.Process(far.pid)
        asked_once(far.port)
        before = relay.num_fds()
        for _ in range(20):
            asked_once(far.port)
        until(lambda: relay.num_fds() <= before, DEADLINE_S, "the connections are closed")
        idle = relay.cpu_times().user + relay.cpu_times().system
        with connected(far.port) as broken:
            broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            broken.sendall(b"x")
        until(lambda: relay.num_fds() <= before, DEADLINE_S, "the connections are closed")
        time.sleep(0.3)  # nothing can be awaited: were it to spin, it would spin now
        assert relay.cpu_times().user + relay.cpu_times().system - idle < 0.15


def asked_once(port: int) -> None:
    with connected(port) as client:
        asked(client, b"x")


@pytest.mark.parametrize("left", [2, 3])
def test_a_client_is_refused_when_no_descriptors_are_left(left: int) -> None:
    """A connection takes two. Those that are there go on, and there is room again when they end."""
    with serving(echo) as port, DelayRelay("127.0.0.1", port, 1) as far:
        relay = psutil.Process(far.pid)
        before = relay.num_fds()
        resource.prlimit(far.pid, resource.RLIMIT_NOFILE, (before + left, before + left))
        with connected(far.port) as client:
            asked(client, b"there")
            for _ in range(3):
                with connected(far.port) as refused:
                    assert refused.recv(1) == b""
            asked(client, b"still there")
        until(lambda: relay.num_fds() <= before, DEADLINE_S, "the connections are closed")
        asked_once(far.port)


def test_an_unreachable_database_ends_the_connection() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with DelayRelay("127.0.0.1", taken.getsockname()[1], 1) as far, connected(far.port) as client:
            try:
                assert client.recv(1) == b""
            except ConnectionResetError:
                pass


@pytest.mark.parametrize("name", ["tcp", "pgbouncer"])
def test_a_database_over_it(routes: dict[str, Route], name: str) -> None:
    near = routes[name]
    with DelayRelay(near.host, near.port, RTT_S * 1000) as far:
        route = far.over(near)
        assert (route.host, route.port) == (module.HOST, far.port)
        with psycopg.connect(
            host=route.host, port=route.port, dbname=route.dbname, user=route.user, password=route.password,
            sslmode="disable", autocommit=True,
        ) as client:  # fmt: skip
            began = time.monotonic()
            client.execute("SELECT generate_series(1, 100000)").fetchall()
            assert time.monotonic() - began >= RTT_S * EARLY


@pytest.mark.parametrize(
    ("sslmode", "name"), [("verify-full", "db.example"), ("verify-ca", ""), ("require", ""), ("disable", "")]
)
def test_the_name_in_a_certificate_is_the_servers(routes: dict[str, Route], sslmode: str, name: str) -> None:
    """tests/runner/test_tls_support.py connects with it."""
    near = replace(routes["tcp"], host="db.example", sslmode=sslmode)
    far = DelayRelay("db.example", 5432, 1).over(near)
    assert (far.host, far.sslmode, far.certificate_name) == (module.HOST, sslmode, name)
    assert far.relayed_host == "db.example"
    assert DelayRelay(module.HOST, 1, 1).over(far).certificate_name == name


def test_it_listens_on_loopback_only_and_is_not_a_pooler() -> None:
    with serving(echo) as port, DelayRelay("127.0.0.1", port, 1) as far:
        listens = [
            c.laddr for c in psutil.Process(far.pid).net_connections() if c.status == psutil.CONN_LISTEN
        ]
        assert listens == [("127.0.0.1", far.port)]
        assert module.is_relay(far.pid)
        assert pooler_process.process(far.port) is None
    assert not module.is_relay(os.getpid())
    assert not psutil.pid_exists(far.pid)


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    """A killed parent cannot stop its relay."""
    program = (
        "import sys, time; from pgperf.delay.relay import DelayRelay\n"
        "with DelayRelay('127.0.0.1', 1, 1) as far:\n    print(far.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        relay = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    relay.wait(DEADLINE_S)


def look_up_finds(hosts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """These addresses, for every name."""

    def looked_up(name: str, port: int, **kind: int) -> list[object]:
        found = [(socket.AF_INET6 if ":" in host else socket.AF_INET, (host, port)) for host in hosts]
        return [(family, socket.SOCK_STREAM, 6, "", address) for family, address in found]

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)


@pytest.mark.parametrize("hosts", [["127.0.0.2", "127.0.0.1"], ["::1", "127.0.0.1"]])
def test_of_several_addresses_of_a_name_it_takes_one_that_accepts(
    hosts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    look_up_finds(hosts, monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        assert module._resolved("db.example", address[1]) == (socket.AF_INET, address)


def test_a_name_of_which_no_address_accepts_keeps_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    look_up_finds(["127.0.0.1", "127.0.0.2"], monkeypatch)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        port = taken.getsockname()[1]
        assert module._resolved("db.example", port) == (socket.AF_INET, ("127.0.0.1", port))


def test_it_leads_to_no_unix_socket() -> None:
    """The server would take every client for the relay's user."""
    with pytest.raises(InvalidDefinition, match=r"^host: /run/postgresql is .*; name a route to .* TCP port"):
        DelayRelay("/run/postgresql", 5432, 1)


@pytest.mark.parametrize("rtt_ms", [-1, 1e9, float("nan"), float("inf")])
def test_invalid_round_trips_are_refused(rtt_ms: float) -> None:
    with pytest.raises(InvalidDefinition, match=r"^rtt_ms: "):
        DelayRelay("127.0.0.1", 5432, rtt_ms)


def test_a_relay_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRAM", "pgperf.no_such_program")
    with pytest.raises(ClientFailed, match=r"^distance: "), DelayRelay("127.0.0.1", 5432, 1):
        pass


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to", "127.0.0.1:x", "--rtt-ms", "1"], "pgperf.delay.relay: "),
        (["--to", "127.0.0.1:1", "--rtt-ms", "-1"], "rtt_ms: choose"),
        (["--to", "/run/postgresql:5432", "--rtt-ms", "1"], "host: /run/postgresql is the directory"),
        (["--to", "127.0.0.1:1", "--rtt-ms", "1", "--port", "1"], "pgperf.delay.relay: "),
    ],
)
def test_the_command_line_reports_errors_in_one_line(options: list[str], said: str) -> None:
    if "--port" in options:
        options[-1] = str(taken_port())
    done = subprocess.run(
        [sys.executable, "-m", "pgperf.delay.relay", *options],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def taken_port() -> int:
    """A port on which this process listens until it ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    _kept.append(listener)
    return int(listener.getsockname()[1])


_kept: list[socket.socket] = []


def test_a_port_that_does_not_exist_is_no_traceback() -> None:
    options = ["--to", "127.0.0.1:5432", "--rtt-ms", "1", "--port", "70000"]
    done = subprocess.run(
        [sys.executable, "-m", module.PROGRAM, *options], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"{module.PROGRAM}: ")
    assert "Traceback" not in done.stderr
