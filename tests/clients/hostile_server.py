"""A hostile server: a real PostgreSQL or PgBouncer behind a proxy that forges its answers."""

import struct
from collections.abc import Callable, Mapping

from pgperf.runner.capture.pg_messages import MessageSplitter, PgMessage
from tests.clients.proxy import Proxy, Pump

HTML = b"<script>alert('pgperf')</script>"
#: In the text of the statements whose answers are forged.
MARK = "/* hostile */"
#: Returns the messages to send instead of one of the server's.
Forge = Callable[[PgMessage], bytes]


class HostileServer(Proxy):
    """Forges the answers to statements that contain a mark of `forges`, the first that fits.

    The empty mark fits every statement, and the beginning of a connection.
    """

    def __init__(self, target_port: int, forges: Mapping[str, Forge]) -> None:
        self._forges = forges
        super().__init__(target_port)

    def pumps(self) -> tuple[Pump, Pump]:
        requests, answers = MessageSplitter(starting=True), MessageSplitter(starting=False)
        forge = self._forge_of("")

        def follow(data: bytes) -> bytes:
            nonlocal forge
            for message in requests.feed(data):
                if message.kind in ("Q", "P"):
                    forge = self._forge_of(message.body.decode(errors="replace"))
            return data

        def forged(data: bytes) -> bytes:
            return b"".join(forge(each) for each in answers.feed(data))

        return follow, forged

    def _forge_of(self, statement: str) -> Forge:
        return next(
            (forge for mark, forge in self._forges.items() if mark in statement), lambda each: each.raw
        )


def message(kind: str, body: bytes) -> bytes:
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


def columns(names: list[bytes], oid: int = 25) -> bytes:
    """A RowDescription."""
    fields = (name + b"\0" + struct.pack("!ihIhih", 0, 0, oid, -1, -1, 0) for name in names)
    return message("T", struct.pack("!h", len(names)) + b"".join(fields))


def row(values: list[bytes | None]) -> bytes:
    """A DataRow."""
    cells = (struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values)
    return message("D", struct.pack("!h", len(values)) + b"".join(cells))


def notice() -> bytes:
    text = b"SWARNING\0VWARNING\0C01000\0M" + HTML + b"\0\0"
    return message("N", text) + message("S", b"application_name\0" + HTML + b"\0")


def count(each: PgMessage) -> int:
    """The number of columns of a row or its description."""
    return int(struct.unpack_from("!h", each.body)[0])


def instead(**kinds: Forge) -> Forge:
    """Forge the messages of these kinds; pass on the others."""
    return lambda each: kinds[each.kind](each) if each.kind in kinds else each.raw


def every_value(value: bytes | None) -> Forge:
    return instead(D=lambda each: row([value] * count(each)))


def every_name(name: bytes) -> Forge:
    return instead(T=lambda each: columns([name] * count(each)))


def wide(number: int, name: Callable[[int], bytes] = lambda at: b"c%d" % at) -> Forge:
    return instead(
        T=lambda each: columns([name(at) for at in range(number)]), D=lambda each: row([b"1"] * number)
    )


def one_wide_row(number: int) -> Forge:
    """One row of so many columns, also where the server has none."""
    made = [b"c%d" % at for at in range(number)]
    return instead(T=fixed(columns(made)), D=fixed(b""), C=lambda each: row([b"1"] * number) + each.raw)


def parameter(name: bytes, value: bytes) -> Forge:
    """The server reports this value of a parameter, such as its version."""
    raw = message("S", name + b"\0" + value + b"\0")
    return instead(S=lambda each: raw if each.body.startswith(name + b"\0") else each.raw)


def one_row(*values: bytes | None) -> Forge:
    """This row only, also where the server has none."""
    return instead(D=fixed(b""), C=lambda each: row(list(values)) + each.raw)


def fixed(raw: bytes) -> Forge:
    return lambda each: raw


def nothing() -> Forge:
    return instead(D=fixed(b""))


#: Forged answers to a statement.
ANSWERS: dict[str, Forge] = {
    "HTML in values": every_value(HTML),
    "HTML as names": every_name(HTML),
    "values in no UTF-8": every_value(b"caf\xe9 \xff\xfe\x80"),
    "names in no UTF-8": every_name(b"caf\xe9 \xff"),
    "NUL in values": every_value(b"a\0b"),
    "NULL everywhere": every_value(None),
    "1,600 columns": wide(1600),
    "no columns": wide(0),
    "a name twice": wide(3, lambda at: b"id"),
    "an unknown type": instead(T=lambda each: columns([b"id"] * count(each), 4_000_000_000)),
    "notices and parameters between rows": instead(D=lambda each: notice() + each.raw + notice()),
    "an empty query": instead(T=fixed(b""), D=fixed(b""), C=fixed(message("I", b""))),
    "no rows": nothing(),
    "fewer values than columns": instead(D=fixed(row([]))),
    "a value of negative length": instead(D=fixed(message("D", struct.pack("!hi", 1, -2)))),
    "a row cut short": instead(D=fixed(message("D", struct.pack("!hi", 1, 100) + b"x"))),
    "a message of negative length": instead(D=fixed(b"D" + struct.pack("!i", -5))),
    "an unknown message": instead(D=fixed(message("?", HTML))),
    "a tag without a number": instead(C=fixed(message("C", b"SELECT " + HTML + b"\0"))),
    "a huge number of rows": instead(C=fixed(message("C", b"SELECT 99999999999999999999\0"))),
    "an error of HTML": instead(D=fixed(message("E", b"SERROR\0CXX000\0M" + HTML + b"\0\0"))),
    "another protocol": instead(T=fixed(b"HTTP/1.1 400 Bad Request\r\n\r\n" + HTML)),
}
#: Forged messages of a connection's beginning.
GREETINGS: dict[str, Forge] = {
    "a negative pid": instead(K=fixed(message("K", struct.pack("!ii", -5, 1)))),
    "a huge pid": instead(K=fixed(message("K", struct.pack("!II", 0xFFFFFFFF, 1)))),
    "no pid": instead(K=fixed(b"")),
    "a version of HTML": parameter(b"server_version", HTML),
    "a parameter in no UTF-8": parameter(b"server_version", b"\xff18"),
    "notices": lambda each: notice() + each.raw if each.kind == "Z" else each.raw,
}
#: Forged rows of every statement, for queries of pgperf's own.
ROWS: dict[str, Forge] = {
    "text": every_value(HTML),
    "a huge number": every_value(b"9" * 40),
    "NULL": every_value(None),
    "NUL": every_value(b"\0"),
    "a command of psql": every_value(b"\x1b]0;x\x07\n\\! false"),
    "no rows": nothing(),
    "1,600 columns": one_wide_row(1600),
    "no columns": one_wide_row(0),
    "three columns": one_wide_row(3),
    "one name": every_name(b"database"),
}
