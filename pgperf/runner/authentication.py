"""Reads how a server wants a login to authenticate, before any client sends it a password.

It is a condition of a measurement too: SCRAM takes most of the time of a new connection.

A server, or a program that listens on its port, may ask for the password in clear text. libpq 16
and newer refuse that themselves (`require_auth`). Older ones and asyncpg answer, so this module asks
first: it sends the startup message, reads the server's request, and ends the connection.
"""

import base64
import os
import re
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, NamedTuple

from pgperf.core import client_certificate
from pgperf.core.connection_errors import CLEAR_TEXT
from pgperf.core.exceptions import ClientFailed
from pgperf.core.records import Route
from pgperf.runner.client_process import POLL_S, look_up

_PROTOCOL_3 = 196608
#: Asks the server for TLS.
SSL_REQUEST = struct.pack("!ii", 8, 80877103)
_AUTHENTICATION, _CLEAR_TEXT_PASSWORD, _SASL, _SASL_CONTINUE = b"R", 3, 10, 11
#: The names in pg_hba.conf, by the code of the request. The server asks for nothing in three cases.
_METHODS = {0: "none (trust, peer or certificate)", 3: "password", 5: "md5", 7: "gss", 9: "sspi"}
_SCRAM = "SCRAM-SHA-256"
_ITERATIONS = re.compile(rb"(?:^|,)i=([1-9][0-9]{0,8})(?:,|$)")
#: Messages that may precede the request: a notice, and the versions that the server speaks.
_BEFORE = (b"N", b"v")
_TIMEOUT_S = 10.0
_MAX_BYTES = 30_000  # libpq's limit for messages at this stage


@dataclass(frozen=True)
class LoginConditions:
    """How a route's clients log in; None is unknown.

    `authentication` is the method as pg_hba.conf names it, `tls` the version of TLS or "none".
    """

    authentication: str | None = None
    scram_iterations: int | None = None
    tls: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Without the iterations, where another method has none."""
        found = asdict(self)
        if self.scram_iterations is None:
            del found["scram_iterations"]
        return found


def conditions(route: Route, application_name: str = "pgperf") -> LoginConditions:
    """How the route's clients log in, over the first way that answers. No password is sent.

    Raises nothing: what cannot be read is unknown.
    """
    for address, encrypted in product(_addresses(route), _encryptions(route)):
        try:
            found = _conditions(route, address, encrypted, application_name)
        except (OSError, ValueError):
            continue
        if found:
            return found
    return LoginConditions()


def _conditions(
    route: Route, address: "_Address", encrypted: bool, application_name: str
) -> LoginConditions | None:
    deadline = time.monotonic() + _TIMEOUT_S
    with _session(route, address, encrypted) as connection:
        if connection is None:
            return None
        request = _answer(connection, route, application_name, deadline)
        if request is None:
            return None
        tls = connection.version() if isinstance(connection, ssl.SSLSocket) else "none"
        if request.code != _SASL:
            return LoginConditions(_METHODS.get(request.code), None, tls)
        if _SCRAM.encode() not in request.body.split(b"\0"):
            return LoginConditions(None, None, tls)
        return LoginConditions(_SCRAM.lower(), _scram_iterations(connection, deadline), tls)


def _scram_iterations(connection: socket.socket, deadline: float) -> int | None:
    """The number in the server's first message (RFC 5802), which answers the client's nonce."""
    first = b"n,,n=,r=" + base64.b64encode(os.urandom(18))
    body = _SCRAM.encode() + b"\0" + struct.pack("!i", len(first)) + first
    connection.sendall(b"p" + struct.pack("!i", len(body) + 4) + body)
    answer = _request_in(*_message(connection, deadline))
    found = _ITERATIONS.search(answer.body) if answer and answer.code == _SASL_CONTINUE else None
    return int(found[1]) if found else None


def check(route: Route, application_name: str = "pgperf") -> None:
    """Raises ClientFailed if a server of the route asks for the password in clear text, unless the
    route allows that.

    Every way by which a client may connect is tried: each address of the host, and for sslmode
    prefer with and without TLS. Other failures are left to the client, whose errors name them.
    """
    if not route.password or route.allow_cleartext_password:
        return
    for address, encrypted in product(_addresses(route), _encryptions(route)):
        try:
            request = _request(route, address, encrypted, application_name)
        except TimeoutError:
            raise ClientFailed(
                f"connection over {route.name}: the server did not ask for a login within {_TIMEOUT_S:.0f} s"
            ) from None
        except OSError:
            continue
        if request == _CLEAR_TEXT_PASSWORD:
            raise ClientFailed(f"connection over {route.name}: {CLEAR_TEXT}")


_Address = tuple[socket.AddressFamily, object]


def _addresses(route: Route) -> Iterator[_Address]:
    if route.host.startswith("/"):
        yield socket.AF_UNIX, f"{route.host}/.s.PGSQL.{route.port}"
        return
    with suppress(OSError):
        for family, _, _, _, address in socket.getaddrinfo(route.host, route.port, type=socket.SOCK_STREAM):
            yield family, address


def _encryptions(route: Route) -> tuple[bool, ...]:
    if route.host.startswith("/") or route.sslmode in ("disable", "allow"):
        return (False,)
    return (True, False) if route.sslmode == "prefer" else (True,)


def _request(route: Route, address: _Address, encrypted: bool, application_name: str) -> int | None:
    """The code of the server's authentication request; None if it sends another answer.

    Raises OSError if there is no connection, TimeoutError if there is no answer.
    """
    deadline = time.monotonic() + _TIMEOUT_S
    with _session(route, address, encrypted) as connection:
        request = _answer(connection, route, application_name, deadline) if connection else None
        return request.code if request else None


@contextmanager
def _session(route: Route, address: "_Address", encrypted: bool) -> Iterator[socket.socket | None]:
    """A connection, with TLS if asked for; None if the server has no TLS."""
    look_up()
    with _connected(address) as plain:
        look_up()
        if not encrypted:
            yield plain
            return
        plain.sendall(SSL_REQUEST)
        if plain.recv(1) != b"S":
            yield None
            return
        with _unverified().wrap_socket(plain, server_hostname=route.tls_name) as secure:
            yield secure


def _connected(address: _Address) -> socket.socket:
    """Raises ConnectionError instead of TimeoutError: the client will not connect either."""
    family, place = address
    each = socket.socket(family, socket.SOCK_STREAM)
    try:
        each.settimeout(_TIMEOUT_S)
        each.connect(place)  # type: ignore[arg-type]
    except OSError as error:
        each.close()
        raise ConnectionError from error
    return each


def _unverified() -> ssl.SSLContext:
    """TLS without a check of the server's certificate: no secret is sent here, and the client checks
    it. A server may demand the client's before it asks for anything else.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    client_certificate.present(context)
    return context


class _Request(NamedTuple):
    """An authentication request: its code, and what follows."""

    code: int
    body: bytes


def _answer(
    connection: socket.socket, route: Route, application_name: str, deadline: float
) -> _Request | None:
    connection.sendall(_startup(route, application_name))
    kind, body = _message(connection, deadline)
    while kind in _BEFORE:
        kind, body = _message(connection, deadline)
    return _request_in(kind, body)


def _request_in(kind: bytes, body: bytes) -> _Request | None:
    """None if it is another message."""
    if kind != _AUTHENTICATION or len(body) < 4:
        return None
    (code,) = struct.unpack_from("!i", body)
    return _Request(int(code), body[4:])


def _startup(route: Route, application_name: str) -> bytes:
    parameters = {
        "user": route.user,
        "database": route.dbname,
        "client_encoding": "UTF8",
        "application_name": application_name,
        **({"options": route.options} if route.options else {}),
    }
    body = b"".join(f"{name}\0{value}\0".encode() for name, value in parameters.items()) + b"\0"
    return struct.pack("!ii", len(body) + 8, _PROTOCOL_3) + body


def _message(connection: socket.socket, deadline: float) -> tuple[bytes, bytes]:
    """The letter and the body of the server's next message."""
    header = _exactly(connection, 5, deadline)
    (length,) = struct.unpack_from("!i", header, 1)
    if not 4 <= length <= _MAX_BYTES:
        raise ConnectionError
    return header[:1], _exactly(connection, length - 4, deadline)


def _exactly(connection: socket.socket, count: int, deadline: float) -> bytes:
    data = b""
    while len(data) < count:
        chunk = _some(connection, count - len(data), deadline)
        if not chunk:
            raise ConnectionError
        data += chunk
    return data


def _some(connection: socket.socket, most: int, deadline: float) -> bytes:
    """What arrives next; b"" at the end of the connection."""
    while (left_s := deadline - time.monotonic()) > 0:
        look_up()
        connection.settimeout(min(POLL_S, left_s))
        with suppress(TimeoutError):
            return connection.recv(most)
    raise TimeoutError
