"""The TCP sockets of this machine, by the kernel's diagnostics and by /proc."""

import os
import socket
import struct
from pathlib import Path

import pytest

from pgperf.runner.processes import sock_diag, tcp_sockets
from pgperf.runner.processes.tcp_sockets import TcpSocket

WAYS = pytest.mark.parametrize("read", [tcp_sockets.read, tcp_sockets.of_proc])


def inode(sock: socket.socket) -> int:
    return os.fstat(sock.fileno()).st_ino


@WAYS
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_server_and_both_ends_of_a_connection_are_read(read, family) -> None:  # type: ignore[no-untyped-def]
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    own_host = "127.0.0.2" if family == socket.AF_INET else "::1"
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("this machine has no IPv6")
    port, address = listener.getsockname()[1], socket.inet_pton(family, host)
    own_address = socket.inet_pton(family, own_host)
    with listener, socket.create_connection((host, port), source_address=(own_host, 0)) as client:
        accepted, _ = listener.accept()
        with accepted:
            own = client.getsockname()[1]
            found = {each.inode: each for each in read()}
            ends = (own_address, own), (address, port)
            assert found[inode(client)] == TcpSocket(False, *ends[0], *ends[1], inode(client))
            assert found[inode(accepted)] == TcpSocket(False, *ends[1], *ends[0], inode(accepted))
            assert found[inode(listener)].listens
            assert found[inode(listener)].port == port


@WAYS
def test_a_connection_that_has_ended_is_not_read(read) -> None:  # type: ignore[no-untyped-def]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as client:
            accepted, _ = listener.accept()
            own = client.getsockname()[1]
            client.shutdown(socket.SHUT_WR)
            assert accepted.recv(1) == b""
            accepted.close()
            assert client.recv(1) == b""  # it is in TIME_WAIT now
        assert own not in {each.port for each in read()}


def test_without_diagnostics_proc_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(question: bytes) -> list[bytes]:
        raise OSError(2, "No such file or directory")

    monkeypatch.setattr(sock_diag, "dump", missing)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert inode(listener) in {each.inode for each in tcp_sockets.read()}


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    assert tcp_sockets.of_proc(str(tmp_path)) == []


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7", "::ffff:127.0.0.1"])
def test_an_address_of_either_ip_version_is_in_network_order(address: str) -> None:
    packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    assert tcp_sockets._packed("".join(f"{word:08X}" for word in words)) == packed


def test_a_family_without_diagnostics_is_an_error() -> None:
    with pytest.raises(OSError, match=r".+"):
        sock_diag.dump(bytes([255]) + bytes(55))
