"""PostgreSQL's protocol 3: splits bytes into messages and follows the statements of a session.
Pure.

`MessageSplitter` splits one direction of a connection into messages. `FrontendParser` finds the
statement and the parameters of each Execute; `BackendParser` counts its rows.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pgperf.core.exceptions import ProtocolError
from pgperf.core.sql_masking import of_server

_SSL_REQUEST, _GSS_REQUEST, _CANCEL_REQUEST = 80877103, 80877104, 80877102
#: The worker holds a whole message in its memory, so a longer one (a very wide row) is refused.
_LONGEST = 1 << 26
_SASL = 10
#: SQLSTATE of a statement that may not write.
_READ_ONLY = "25006"


class PgMessage(NamedTuple):
    """One message. `kind` is its letter; "" for those that begin a connection and have none."""

    kind: str
    body: bytes
    raw: bytes

    @property
    def asks_for_encryption(self) -> bool:
        """SSLRequest or GSSENCRequest, which the server answers with one byte."""
        return not self.kind and self.body[:4] in _ENCRYPTION

    @property
    def asks_for_clear_text(self) -> bool:
        """The server's request for the password in clear text."""
        return self.kind == "R" and self.body[:4] == _CLEAR_TEXT_PASSWORD

    @property
    def refused_write(self) -> str:
        """The server's words, if this is its refusal to write in a read-only session; else ""."""
        if self.kind != "E":
            return ""
        fields = {field[:1]: field[1:].decode(errors="replace") for field in self.body.split(b"\0")}
        if fields.get(b"C") != _READ_ONLY:
            return ""
        return of_server(fields.get(b"M", ""), _READ_ONLY, fields.get(b"F", ""))

    @property
    def is_cancel(self) -> bool:
        return not self.kind and self.body[:4] == struct.pack("!i", _CANCEL_REQUEST)


_CLEAR_TEXT_PASSWORD = struct.pack("!i", 3)
_ENCRYPTION = (struct.pack("!i", _SSL_REQUEST), struct.pack("!i", _GSS_REQUEST))


class MessageSplitter:
    """Splits a stream of bytes into messages.

    `starting`: it begins with a client's messages without a type letter.
    """

    def __init__(self, *, starting: bool) -> None:
        self._buffer = bytearray()
        self._starting = starting

    def feed(self, data: bytes) -> Iterator[PgMessage]:
        """The messages that `data` completes. Raises ProtocolError for an invalid length."""
        self._buffer += data
        while (message := self._next()) is not None:
            yield message

    def _next(self) -> PgMessage | None:
        letters = 0 if self._starting else 1
        if len(self._buffer) < letters + 4:
            return None
        (length,) = struct.unpack_from("!i", self._buffer, letters)
        if not 4 <= length <= _LONGEST:
            raise ProtocolError(_refusal(length))
        end = letters + length
        if len(self._buffer) < end:
            return None
        raw = bytes(self._buffer[:end])
        del self._buffer[:end]
        message = PgMessage(raw[:letters].decode("latin-1"), raw[letters + 4 :], raw)
        self._starting = self._starting and message.asks_for_encryption
        return message


def _refusal(length: int) -> str:
    if length > _LONGEST:
        return f"not PostgreSQL's protocol, or a row longer than {_LONGEST:,} bytes: a message of {length:,}"
    return f"not PostgreSQL's protocol: a message of {length} bytes"


class ExecutedStatement(NamedTuple):
    """One execution requested by a client.

    Parameters as on the wire; `formats`: 0 text, 1 binary, one each.
    """

    text: str
    simple: bool
    params: tuple[bytes | None, ...] = ()
    formats: tuple[int, ...] = ()
    oids: tuple[int, ...] = ()


class FrontendParser:
    """Follows the messages of a client. `executed` grows until it is cleared."""

    def __init__(self) -> None:
        self.executed: list[ExecutedStatement] = []
        self._prepared: dict[bytes, tuple[str, tuple[int, ...]]] = {}
        self._portals: dict[bytes, ExecutedStatement] = {}

    def take(self, message: PgMessage) -> None:
        """Follow one message. Raises ProtocolError if it is malformed."""
        follow = {"Q": self._query, "P": self._parse, "B": self._bind, "E": self._execute, "F": self._call}
        try:
            if message.kind in follow:
                follow[message.kind](_Reader(message.body))
        except (struct.error, ValueError, KeyError, IndexError) as error:
            raise ProtocolError(f"message {message.kind} cannot be read: {type(error).__name__}") from None

    def _query(self, body: "_Reader") -> None:
        self.executed.append(ExecutedStatement(body.text(), simple=True))

    def _parse(self, body: "_Reader") -> None:
        name, text = body.name(), body.text()
        self._prepared[name] = text, body.many("!I")

    def _bind(self, body: "_Reader") -> None:
        portal = body.name()
        text, oids = self._prepared[body.name()]
        formats = body.many("!h")
        params = tuple(body.value() for _ in range(body.number("!h")))
        each = formats if len(formats) == len(params) else (formats or (0,)) * len(params)
        known = (*oids, *(0 for _ in params))[: len(params)]
        self._portals[portal] = ExecutedStatement(text, False, params, each, known)

    def _execute(self, body: "_Reader") -> None:
        self.executed.append(self._portals[body.name()])

    def _call(self, body: "_Reader") -> None:
        self.executed.append(ExecutedStatement("CALL of a function by its number", simple=True))


class BackendParser:
    """Follows the messages of the server: `rows` has the number of data rows of each completed
    execution. `failed`: has one failed since the server was ready last?
    """

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.failed = False
        self._rows = 0

    def take(self, message: PgMessage) -> None:
        if message.kind == "D":
            self._rows += 1
        elif message.kind in "CIs":  # complete, empty query, suspended
            self.rows.append(self._rows)
            self._rows = 0
        elif message.kind == "E":
            self._rows, self.failed = 0, True


def without_channel_binding(message: PgMessage) -> PgMessage:
    """The server's SASL mechanisms without channel binding, since the client has no TLS connection
    to the server.
    """
    if message.kind != "R" or message.body[:4] != struct.pack("!i", _SASL):
        return message
    offered = [name for name in message.body[4:].split(b"\0") if name and not name.endswith(b"-PLUS")]
    body = message.body[:4] + b"".join(name + b"\0" for name in offered) + b"\0"
    return PgMessage("R", body, b"R" + struct.pack("!i", len(body) + 4) + body)


class _Reader:
    """Reads the values of a message's body in order."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    def name(self) -> bytes:
        end = self._body.index(0, self._at)
        found, self._at = self._body[self._at : end], end + 1
        return found

    def text(self) -> str:
        return self.name().decode()

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._body, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def many(self, form: str) -> tuple[int, ...]:
        """A list preceded by its length in two bytes."""
        return tuple(self.number(form) for _ in range(self.number("!h")))

    def value(self) -> bytes | None:
        length = self.number("!i")
        if length < 0:
            return None
        found = self._body[self._at : self._at + length]
        if len(found) != length:
            raise ValueError("cut short")
        self._at += length
        return found
