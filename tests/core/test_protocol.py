"""The protocol with clients: messages round trip, and anything else is refused."""

import io
import json
import urllib.parse
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import protocol
from pgperf.core.exceptions import ProtocolError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
WHOLE = st.integers(0, 2**63 - 1)
SCALAR = st.none() | st.booleans() | WHOLE | TEXT | st.floats(allow_nan=False)
US = st.none() | st.floats(0, 1e9)


def made(
    kind: type[protocol.Message], **fields: st.SearchStrategy[Any]
) -> st.SearchStrategy[protocol.Message]:
    return st.fixed_dictionaries({}, optional=fields).map(
        lambda given: kind(**{**_LEAST.get(kind, {}), **given})
    )


_LEAST: dict[type, dict[str, Any]] = {
    protocol.Ready: {"pid": 1, "backend_pid": 0, "versions": {}, "server_version": "", "rows_per_op": 0},
}
ARGS = st.lists(SCALAR, max_size=4)
STATEMENTS = st.lists(
    st.builds(
        protocol.Statement, TEXT, st.none() | ARGS, TEXT, TEXT, st.lists(st.none() | TEXT, max_size=4),
        st.lists(WHOLE, max_size=4),
    ),
    max_size=3,
)  # fmt: skip
MESSAGES: st.SearchStrategy[protocol.Message] = st.one_of(
    made(
        protocol.Spec, layer=TEXT, mode=TEXT, host=TEXT, port=WHOLE, dbname=TEXT, user=TEXT, password=TEXT,
        statements=STATEMENTS, orm=TEXT, orm_args=ARGS, other_statements=STATEMENTS, other_orm=TEXT,
        query=st.dictionaries(TEXT, SCALAR, max_size=3), site=st.booleans(),
        spawned_ns=WHOLE, runner_pid=WHOLE, cold=st.booleans(), nominal_us=st.floats(0, 1e9),
    ),
    made(
        protocol.Ready, pid=WHOLE, backend_pid=WHOLE, versions=st.dictionaries(TEXT, TEXT, max_size=4),
        server_version=TEXT, rows_per_op=WHOLE, startup_us=US, connect_us=US, first_us=US, other_second_us=US,
    ),
    st.builds(
        protocol.Slice, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, statement=WHOLE,
        rate=st.floats(0, protocol.MAX_RATE), schedule=st.sampled_from(protocol.SCHEDULES),
        seed=WHOLE, offset_ns=WHOLE, latency_limit_ns=WHOLE,
    ),
    st.builds(protocol.Armed, WHOLE),
    st.builds(
        protocol.SliceReply, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, st.booleans(), WHOLE,
        skipped=WHOLE, backlog=WHOLE,
    ),
    st.builds(protocol.Query, TEXT),
    st.builds(protocol.Rows, st.lists(st.lists(st.none() | TEXT, max_size=3), max_size=3)),
    st.just(protocol.Trace()),
    st.builds(protocol.Traced, STATEMENTS),
    st.just(protocol.Bye()),
    st.builds(protocol.Error, TEXT, TEXT, TEXT),
)  # fmt: skip

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


class Trickle(io.RawIOBase):
    """A stream that hands out one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._data.read(1)
        buffer[: len(piece)] = piece
        return len(piece)


@given(MESSAGES)
def test_decode_reverses_encode(message: protocol.Message) -> None:
    line = protocol.encode(message)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert protocol.decode(line) == message


@given(st.lists(MESSAGES, max_size=5))
def test_a_stream_of_messages_ends_with_none(messages: list[protocol.Message]) -> None:
    stream = io.BufferedReader(Trickle(b"".join(map(protocol.encode, messages))))
    assert [protocol.read_message(stream) for _ in messages] == messages
    assert protocol.read_message(stream) is None


@given(MESSAGES, st.data())
def test_a_line_cut_short_is_no_message(message: protocol.Message, data: st.DataObject) -> None:
    line = protocol.encode(message)
    piece = line[: data.draw(st.integers(1, len(line) - 1))]
    with pytest.raises(ProtocolError, match="incomplete line"):
        protocol.read_message(io.BytesIO(piece))


def test_a_line_too_long_is_refused_unread() -> None:
    stream = io.BytesIO(b"x" * (protocol.MAX_LINE_BYTES + 100) + b"\n")
    with pytest.raises(ProtocolError, match="too long"):
        protocol.read_message(stream)
    assert stream.tell() == protocol.MAX_LINE_BYTES


def test_the_longest_line_is_read() -> None:
    bare = len(protocol.encode(protocol.Query("")))
    message = protocol.Query("x" * (protocol.MAX_LINE_BYTES - bare))
    assert protocol.read_message(io.BytesIO(protocol.encode(message))) == message


@given(st.binary(max_size=200))
def test_bytes_are_a_message_or_a_protocol_error(line: bytes) -> None:
    try:
        message = protocol.decode(line)
    except ProtocolError:
        return
    assert protocol.decode(protocol.encode(message)) == message


@given(JSON)
def test_json_that_is_no_message_is_a_protocol_error(body: Any) -> None:
    with pytest.raises(ProtocolError):
        protocol.decode(json.dumps(body).encode())


@given(st.sampled_from(["spec", "ready", "slice", "armed", "query", "rows", "traced", "error"]), st.data())
def test_a_field_of_the_wrong_type_is_refused(name: str, data: st.DataObject) -> None:
    kind = protocol._TYPES[name]
    field = data.draw(st.sampled_from(kind._fields))
    filled = {"int": 1, "str": "", "bool": True, "float": 0.5}
    body = {f: filled.get(getattr(t, "__name__", ""), []) for f, t in kind.__annotations__.items()}
    body |= {f: {} for f in ("versions", "query", "bulk", "page") if f in body} | {
        f: None for f in body if f.endswith("_us")
    }
    body |= {"nominal_us": 1.0} if name == "spec" else {"rows_per_op": None} if name == "ready" else {}
    assert protocol.decode(json.dumps({"type": name, **body}).encode())
    wrong: Any = [1] if field in ("query", "bulk", "page") else {"wrong": [1]}
    with pytest.raises(ProtocolError, match=field):
        protocol.decode(json.dumps({"type": name, **body, field: wrong}).encode())


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"slice","seq":true}',
        b'{"type":"slice","seq":1.0}',
        b'{"type":"slice","seq":1,"surprise":2}',
        b'{"type":"slice"}',
        b'{"type":"spec","sql":"select 1"}',
        b'{"type":"spec","statements":["select 1"]}',
        b'{"type":"spec","statements":{"sql":"select 1"}}',
        b'{"type":"spec","statements":[{"sql":"select 1","surprise":2}]}',
        b'{"type":"spec","statements":[{"sql":1}]}',
        b'{"type":"spec","statements":[{"args_text":[1]}]}',
        b'{"type":"spec","statements":[{"arg_oids":["text"]}]}',
        b'{"type":"rows","rows":[[1]]}',
        b'{"type":["slice"],"seq":1}',
        b'{"type":"slice","seq":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
    ],
)
def test_near_misses_are_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError):
        protocol.decode(line)


def test_text_is_utf_8_and_control_characters_stay_inside_the_line() -> None:
    line = protocol.encode(protocol.Query("Größe\n\u2028\x00"))
    assert "Größe".encode() in line
    assert line.count(b"\n") == 1


@given(TEXT.filter(bool), TEXT, TEXT)
def test_scrub_removes_every_form_of_the_secret(secret: str, before: str, after: str) -> None:
    scrubbed = protocol.scrub(f"{before}\x00{secret}\x00{after}", {"": secret})
    assert secret not in scrubbed.replace("<>", "\x01") or secret in "<>\x00\x01"


def test_scrub_writes_the_name_and_skips_empty_secrets() -> None:
    assert (
        protocol.scrub("login hunter2 failed", {"password": "hunter2", "other": ""})
        == "login <password> failed"
    )


@pytest.mark.parametrize("secret", ["pl41n", "it's", 'say "hi"', "back\\slash", "a'b\\c \"d%ü\n", "%20&="])
@pytest.mark.parametrize(
    "quote",
    [
        str,
        repr,
        ascii,
        json.dumps,
        lambda secret: json.dumps(secret, ensure_ascii=False),
        lambda secret: urllib.parse.quote(secret, safe=""),
        lambda secret: secret.replace("'", "''"),
        lambda secret: repr(f"password='{secret}'"),
        lambda secret: "".join(f"\\{c}" if c in "\\'" else c for c in secret),
    ],
)
def test_scrub_removes_a_quoted_secret(secret: str, quote: Callable[[str], str]) -> None:
    text = f"failed with {quote(secret)} there"
    scrubbed = protocol.scrub(text, {"password": secret})
    assert "<password>" in scrubbed
    assert secret not in scrubbed
