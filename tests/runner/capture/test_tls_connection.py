"""A TLS connection with a real server at the other end of a pair of sockets."""

import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

from pgperf.runner.capture.tls_connection import TlsConnection
from tests.security import client_certificates

TIMEOUT_S = 60.0


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """The server's."""
    home = tmp_path_factory.mktemp("home")
    client_certificates.issue(home, "localhost", home / "ca.crt")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(home / ".postgresql/postgresql.crt", home / ".postgresql/postgresql.key")
    return made


def accepting() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


@contextmanager
def connected(context: ssl.SSLContext) -> Iterator[tuple[TlsConnection, ssl.SSLSocket]]:
    here, there = socket.socketpair()
    for each in (here, there):
        each.settimeout(TIMEOUT_S)
    with ThreadPoolExecutor() as pool:
        serving = pool.submit(context.wrap_socket, there, server_side=True)
        with TlsConnection(here, accepting(), "localhost") as client, serving.result() as server:
            yield client, server


def test_what_is_sent_arrives_both_ways(context: ssl.SSLContext) -> None:
    """More than a record of TLS, and more than the sockets hold."""
    data = bytes(range(256)) * 20_000
    with connected(context) as (client, server), ThreadPoolExecutor() as pool:
        for sender, receiver in ((client, server), (server, client)):
            sent = pool.submit(sender.sendall, data)
            assert whole(receiver, len(data)) == data
            assert sent.result(TIMEOUT_S) is None


def whole(connection: TlsConnection | ssl.SSLSocket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += connection.recv(100_000)
    return found


def test_a_write_does_not_wait_for_the_reader(context: ssl.SSLContext) -> None:
    """The server sends its session tickets just then, where an SSLSocket sometimes waits forever."""
    for _ in range(200):
        with connected(context) as (client, server), ThreadPoolExecutor() as pool:
            answer = pool.submit(client.recv, 10)
            client.sendall(b"question")
            assert server.recv(10) == b"question"
            server.sendall(b"answer")
            assert answer.result() == b"answer"


@pytest.mark.parametrize("is_announced", [True, False])
def test_the_end_of_the_connection_is_no_data(context: ssl.SSLContext, is_announced: bool) -> None:
    with connected(context) as (client, server):
        if is_announced:
            server.settimeout(0)
            with pytest.raises(ssl.SSLWantReadError):
                server.unwrap()
        else:
            server.shutdown(socket.SHUT_RDWR)
        assert client.recv(10) == b""


def test_an_end_wakes_the_reader(context: ssl.SSLContext) -> None:
    with connected(context) as (client, _), ThreadPoolExecutor() as pool:
        answer = pool.submit(client.recv, 10)
        client.shutdown(socket.SHUT_RDWR)
        assert answer.result(TIMEOUT_S) == b""


class HalfATicket:
    """OpenSSL where the rest of a ticket has to come before data can be written, and does not come."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def write(self, data: bytes) -> int:
        again = self.asked.is_set()
        self.asked.set()
        raise ssl.SSLEOFError if again else ssl.SSLWantReadError


def test_a_failure_of_the_reader_ends_a_write_that_waits_for_it(context: ssl.SSLContext) -> None:
    with connected(context) as (client, _), ThreadPoolExecutor() as pool:
        client._tls = half = HalfATicket()  # type: ignore[assignment]
        sending = pool.submit(client.sendall, b"question")
        assert half.asked.wait(TIMEOUT_S)
        client.close()
        with pytest.raises(OSError, match="descriptor"):
            client._receive()
        assert isinstance(sending.exception(TIMEOUT_S), ssl.SSLEOFError)


def test_the_server_is_told_why_its_certificate_is_refused(context: ssl.SSLContext) -> None:
    here, there = socket.socketpair()
    strict = ssl.create_default_context()
    with closing(here), ThreadPoolExecutor() as pool:
        serving = pool.submit(context.wrap_socket, there, server_side=True)
        with pytest.raises(ssl.SSLCertVerificationError):
            TlsConnection(here, strict, "localhost")
        assert isinstance(failure := serving.exception(TIMEOUT_S), ssl.SSLError)
        assert "ALERT_UNKNOWN_CA" in str(failure)


def test_a_server_that_ends_in_the_handshake_is_an_error() -> None:
    here, there = socket.socketpair()
    with closing(here):
        there.shutdown(socket.SHUT_WR)
        with pytest.raises(OSError, match="EOF"):
            TlsConnection(here, accepting(), "localhost")
        there.close()
