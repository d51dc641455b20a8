"""PostgreSQL's protocol: any split of the bytes gives the same messages, and invalid bytes are
refused.
"""

import struct
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.exceptions import ProtocolError
from pgperf.runner.capture.pg_messages import (
    BackendParser,
    ExecutedStatement,
    FrontendParser,
    MessageSplitter,
    PgMessage,
    without_channel_binding,
)

STARTUP = struct.pack("!ii", 8 + 5, 196608) + b"user\0"
SSL_REQUEST = struct.pack("!ii", 8, 80877103)


def message(kind: str, body: bytes) -> bytes:
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


def parse(name: bytes, text: bytes, *oids: int) -> bytes:
    return message("P", name + b"\0" + text + b"\0" + struct.pack(f"!h{len(oids)}I", len(oids), *oids))


def bind(name: bytes, *params: bytes | None, formats: tuple[int, ...] = ()) -> bytes:
    values = b"".join(
        struct.pack("!i", -1) if param is None else struct.pack("!i", len(param)) + param for param in params
    )
    head = struct.pack(f"!h{len(formats)}h", len(formats), *formats) + struct.pack("!h", len(params))
    return message("B", b"\0" + name + b"\0" + head + values + struct.pack("!h", 0))


EXECUTE = message("E", b"\0" + struct.pack("!i", 0))
SYNC = message("S", b"")

frames = st.lists(
    st.tuples(st.sampled_from("QPBEDSCHXFdcfpRTZ12tnIs"), st.binary(max_size=40)).map(
        lambda each: message(*each)
    ),
    max_size=12,
)


def framed(data: bytes, *, starting: bool, cuts: list[int] | None = None) -> list[PgMessage]:
    framer = MessageSplitter(starting=starting)
    edges = [0, *sorted(cuts or []), len(data)]
    return [frame for a, b in pairwise(edges) for frame in framer.feed(data[a:b])]


@given(frames, st.booleans(), st.data())
def test_any_split_of_the_stream_gives_the_same_messages(
    pieces: list[bytes], starting: bool, data: st.DataObject
) -> None:
    stream = (SSL_REQUEST + STARTUP if starting else b"") + b"".join(pieces)
    cuts = data.draw(st.lists(st.integers(0, len(stream))))
    found = framed(stream, starting=starting, cuts=cuts)
    assert found == framed(stream, starting=starting)
    assert b"".join(frame.raw for frame in found) == stream
    assert [frame.kind for frame in found if frame.kind] == [chr(piece[0]) for piece in pieces]


@given(st.binary(max_size=300), st.booleans())
def test_bytes_that_are_no_messages_are_refused_or_waited_for(data: bytes, starting: bool) -> None:
    frontend, backend = FrontendParser(), BackendParser()
    with suppress(ProtocolError):
        found = framed(data, starting=starting)
        assert data.startswith(b"".join(frame.raw for frame in found))
        for frame in found:
            without_channel_binding(frame)
            assert not frame.refused_write or frame.kind == "E"
            backend.take(frame)
            frontend.take(frame)


@given(frames)
def test_following_a_client_never_fails_otherwise(pieces: list[bytes]) -> None:
    frontend = FrontendParser()
    for frame in framed(b"".join(pieces), starting=False):
        with suppress(ProtocolError):
            frontend.take(frame)


def followed(*pieces: bytes) -> list[ExecutedStatement]:
    frontend = FrontendParser()
    for frame in framed(STARTUP + b"".join(pieces), starting=True):
        frontend.take(frame)
    return frontend.executed


def test_a_query_is_its_text() -> None:
    assert followed(message("Q", "SELECT 'ä'\0".encode())) == [ExecutedStatement("SELECT 'ä'", simple=True)]


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [("E", b"25006", "cannot execute UPDATE"), ("E", b"42501", ""), ("N", b"25006", ""), ("E", b"", "")],
)
def test_only_the_refusal_of_a_write_has_words(kind: str, code: bytes, words: str) -> None:
    fields = b"SERROR\0VERROR\0C" + code + b"\0Mcannot execute UPDATE\0DC25006\0\0"
    (found,) = framed(message(kind, fields), starting=False)
    assert found.refused_write == words


def test_an_execution_is_the_statement_with_what_was_bound() -> None:
    found = followed(
        parse(b"", b"SELECT $1, $2", 23, 25), bind(b"", b"\0\0\0\7", None, formats=(1, 0)), EXECUTE, SYNC
    )
    assert found == [ExecutedStatement("SELECT $1, $2", False, (b"\0\0\0\7", None), (1, 0), (23, 25))]


def test_a_prepared_statement_is_known_by_its_name_from_then_on() -> None:
    found = followed(
        parse(b"s1", b"SELECT $1", 25),
        SYNC,
        bind(b"s1", b"a"),
        EXECUTE,
        SYNC,
        bind(b"s1", b"b"),
        EXECUTE,
        SYNC,
    )
    assert [(each.text, each.params) for each in found] == [("SELECT $1", (b"a",)), ("SELECT $1", (b"b",))]


def test_one_format_holds_for_all_parameters_and_types_may_be_left_out() -> None:
    (found,) = followed(parse(b"", b"SELECT $1, $2"), bind(b"", b"a", b"b", formats=(1,)), EXECUTE)
    assert found.formats == (1, 1)
    assert found.oids == (0, 0)


def test_a_cancel_request_is_told_from_a_startup() -> None:
    (cancel,) = framed(struct.pack("!iiii", 16, 80877102, 1, 2), starting=True)
    (startup,) = framed(STARTUP, starting=True)
    assert cancel.is_cancel
    assert not startup.is_cancel
    assert not startup.asks_for_encryption


@pytest.mark.parametrize("length", [-1, 0, 3, 1 << 30 | 1])
def test_a_length_that_cannot_be_is_refused(length: int) -> None:
    with pytest.raises(ProtocolError, match="not PostgreSQL's protocol"):
        framed(b"Q" + struct.pack("!i", length), starting=False)


def test_rows_are_counted_for_each_execution() -> None:
    backend = BackendParser()
    row, done = message("D", b"\0\0"), message("C", b"SELECT 2\0")
    for frame in framed(
        row + row + done + message("Z", b"I") + done + row + message("E", b"S\0\0"), starting=False
    ):
        backend.take(frame)
    assert backend.rows == [2, 0]


def test_mechanisms_bound_to_tls_are_not_offered_further() -> None:
    offer = message("R", struct.pack("!i", 10) + b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0")
    (frame,) = framed(offer, starting=False)
    (filtered,) = framed(without_channel_binding(frame).raw, starting=False)
    assert filtered.body == struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0"
    (ok,) = framed(message("R", struct.pack("!i", 0)), starting=False)
    assert without_channel_binding(ok) == ok
