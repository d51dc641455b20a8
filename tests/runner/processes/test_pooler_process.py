"""The pooler process of an address, and the addresses of this machine."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from example.stack.state import free_port
from pgperf.core.records import Route
from pgperf.runner.processes import pooler_process

LISTEN = """
import socket, sys
end = socket.socket()
end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
end.bind(("127.0.0.1", int(sys.argv[1])))
end.listen()
print(flush=True)
sys.stdin.read()
"""


def listening(program: Path, port: int) -> "subprocess.Popen[bytes]":
    """A process that shares that port with others; it ends with its stdin."""
    process = subprocess.Popen(
        [program, "-I", "-c", LISTEN, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout
    assert process.stdout.readline() == b"\n"
    return process


def other_address() -> str:
    """One of this machine's addresses that is not loopback; "" if it has none."""
    cards = psutil.net_if_addrs().values()
    found = (each.address for card in cards for each in card if each.family == socket.AF_INET)
    return next((address for address in found if not address.startswith("127.")), "")


def test_the_stack_s_pooler_is_found(routes: dict[str, Route]) -> None:
    pid = pooler_process.process(routes["pgbouncer"].port)
    assert pid
    assert psutil.Process(pid).name() == "pgbouncer"


def test_pgbouncer_has_one_thread_and_others_are_unknown(routes: dict[str, Route]) -> None:
    assert pooler_process.processors(pooler_process.process(routes["pgbouncer"].port)) == 1
    assert pooler_process.processors(None) == 1
    assert pooler_process.processors(os.getpid()) is None


def test_an_agent_knows_its_own_host_by_name() -> None:
    """Whatever address that name leads to here: on some machines it is loopback."""
    assert pooler_process.is_own(socket.gethostname(), from_elsewhere=True)
    assert not pooler_process.is_own("localhost", from_elsewhere=True)


def test_a_server_is_not_a_pooler(routes: dict[str, Route]) -> None:
    assert pooler_process.process(routes["tcp"].port) is None


def test_a_proxy_is_not_a_pooler() -> None:
    with socket.create_server(("127.0.0.1", 0)) as end:
        assert pooler_process.process(end.getsockname()[1]) is None


def test_several_processes_on_one_port_have_no_known_pooler(tmp_path: Path) -> None:
    """PgBouncer's so_reuseport: each serves a part of the connections, so the time of one says
    nothing.
    """
    program, port = tmp_path / "pgbouncer", free_port(set())
    program.symlink_to(os.path.realpath(sys.executable))
    with listening(program, port) as first:
        assert pooler_process.process(port) == first.pid
        with listening(program, port) as second:
            assert pooler_process.process(port) is None
            second.communicate()
        assert pooler_process.process(port) == first.pid
        first.communicate()
    assert pooler_process.process(port) is None


@pytest.mark.parametrize("host", ["/run/postgresql", "127.0.0.1", "127.0.1.1", "localhost", "::1"])
def test_loopback_belongs_to_each_machine_alone(host: str) -> None:
    assert pooler_process.is_own(host)
    assert not pooler_process.is_own(host, from_elsewhere=True)


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1", "x" * 300])
def test_an_address_of_another_machine(host: str) -> None:
    assert not pooler_process.is_own(host)
    assert not pooler_process.is_own(host, from_elsewhere=True)


@pytest.mark.skipif(not other_address(), reason="this machine has loopback addresses only")
def test_an_address_that_others_reach_too() -> None:
    assert pooler_process.is_own(other_address())
    assert pooler_process.is_own(other_address(), from_elsewhere=True)


def test_the_machine_s_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian gives it 127.0.1.1."""
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, port: [(socket.AF_INET, None, 0, "", ("127.0.1.1", 0))]
    )
    assert pooler_process.is_own("db1")
