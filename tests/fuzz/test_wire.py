"""The clients' protocol: any bytes are a message or a ProtocolError, in any chunks."""

import io
import json
from contextlib import suppress
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import pytest
from hypothesis import strategies as st

from pgperf.core import protocol
from pgperf.core.exceptions import ClientFailed, ProtocolError
from pgperf.runner.client_process import ClientProcess
from tests.core.test_protocol import Trickle
from tests.fuzz.cases import fuzzed
from tests.fuzz.hostile import CHARACTERS, JSON_VALUES, spliced

KINDS: tuple[type[protocol.Message], ...] = get_args(protocol.Message)
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63 - 1),
    str: st.text(CHARACTERS, max_size=40),
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    NoneType: st.none(),
}
_PLAIN[Any] = st.one_of(*_PLAIN.values())


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type annotation of the protocol."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(kind, UnionType):
        return st.one_of(*map(of, get_args(kind)))
    if get_origin(kind) is list:
        return st.lists(of(get_args(kind)[0]), max_size=3)
    if get_origin(kind) is dict:
        return st.dictionaries(*map(of, get_args(kind)), max_size=3)
    return st.builds(kind, **{name: of(member) for name, member in kind.__annotations__.items()})


MESSAGES: st.SearchStrategy[protocol.Message] = st.sampled_from(KINDS).flatmap(of)
NEAR_MISSES = st.builds(
    spliced, MESSAGES.map(protocol.encode), st.integers(0, 9999), st.binary(max_size=6), st.integers(0, 40)
)
BODIES = st.builds(
    lambda kind, body, more: json.dumps({"type": kind, **body, **more}).encode(),
    st.sampled_from(list(protocol._TYPES)) | st.text(max_size=5),
    MESSAGES.map(lambda message: json.loads(protocol.encode(message))),
    st.dictionaries(
        st.sampled_from([name for kind in KINDS for name in kind._fields]), JSON_VALUES, max_size=2
    ),
)
LINES = st.one_of(st.binary(max_size=300), NEAR_MISSES, BODIES)


def heard(line: bytes) -> protocol.Message | None:
    try:
        return protocol.decode(line)
    except ProtocolError:
        return None


@fuzzed("wire", 4, message=MESSAGES)
def test_a_message_is_encoded_and_decoded_unchanged(message: protocol.Message) -> None:
    line = protocol.encode(message)
    assert line.count(b"\n") == 1
    assert protocol.decode(line) == message


@fuzzed("wire", 8, line=LINES)
def test_a_line_is_a_message_or_a_protocol_error(line: bytes) -> None:
    message = heard(line)
    if message is not None:
        again = protocol.decode(protocol.encode(message))
        assert repr(again) == repr(message)  # a NaN is not equal to itself


@fuzzed("wire", 4, lines=st.lists(LINES, max_size=4), cut=st.integers(0, 200))
def test_chunk_boundaries_do_not_matter(lines: list[bytes], cut: int) -> None:
    data = b"\n".join(lines)
    data = data[: len(data) - cut % (len(data) + 1)]
    assert read_all(io.BytesIO(data)) == read_all(io.BufferedReader(Trickle(data), 1))


def read_all(stream: Any) -> list[str]:
    found = []
    try:
        while (message := protocol.read_message(stream)) is not None:
            found.append(repr(message))
    except ProtocolError as error:
        found.append(str(error))
    return found


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("client") / "said"


@fuzzed("wire", 0.5, line=LINES, wanted=st.sampled_from(KINDS), count=st.integers(0, 300))
def test_a_client_with_invalid_output_has_failed(
    said: Path, line: bytes, wanted: type[protocol.Message], count: int
) -> None:
    """Its output is invalid or truncated, and then it ends."""
    said.write_bytes(line)
    with ClientProcess("forger", ["cat", str(said)]) as client, suppress(ClientFailed):
        assert isinstance(client.expect(wanted, 20), wanted)
        assert len(client.read_bytes(count, 20)) == count
