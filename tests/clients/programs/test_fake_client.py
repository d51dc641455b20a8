"""The fake client does what its docstring says, and misbehaves only when asked to."""

import sys
from collections.abc import Iterator

import pytest

from pgperf.clients.programs.fake_client import OPERATIONS_BEFORE
from pgperf.core import protocol, sql_parameters
from pgperf.core.exceptions import ProtocolError
from tests.clients.driving import Driven

SLICE = protocol.Slice(
    seq=1, start_ns=0, lead_in_ops=OPERATIONS_BEFORE, lead_in_ns=0, window_ns=0, count=OPERATIONS_BEFORE
)


def fake(text: str, nominal_us: float = 0.0) -> protocol.Spec:
    return protocol.Spec(layer="fake", statements=sql_parameters.statements(text, ()), nominal_us=nominal_us)


@pytest.fixture
def client() -> Iterator[Driven]:
    with Driven([sys.executable, "-m", "pgperf.clients.programs.fake_client"]) as driven:
        yield driven


def test_an_operation_has_the_given_duration_and_one_row(client: Driven) -> None:
    client.send(fake("SELECT 1", nominal_us=50))
    ready = client.read(protocol.Ready)
    assert (ready.rows_per_op, ready.backend_pid, ready.server_version) == (1, 0, "fake")
    reply, durations = client.slice(
        protocol.Slice(seq=1, start_ns=0, lead_in_ops=2, lead_in_ns=0, window_ns=0, count=20)
    )
    assert reply.rows == 20
    assert min(durations) >= 50_000


def test_it_answers_queries_with_their_text(client: Driven) -> None:
    client.send(protocol.Spec(layer="fake"), protocol.Query("SHOW anything"))
    client.read(protocol.Ready)
    assert client.read(protocol.Rows).rows == [["SHOW anything"]]


@pytest.mark.parametrize(("word", "code"), [("die", -9), ("quit", 0)])
@pytest.mark.parametrize("stage", ["connect", "ready", "slice"])
def test_it_ends_without_a_bye(client: Driven, word: str, code: int, stage: str) -> None:
    client.send(fake(word if stage == "slice" else f"{word} at {stage}"))
    if stage == "slice":
        client.read(protocol.Ready)
        client.send(SLICE)
    assert client.wait() == code
    assert client.at_end()


@pytest.mark.parametrize("stage", ["connect", "ready", "slice"])
def test_it_fails(client: Driven, stage: str) -> None:
    client.send(fake(f"fail at {stage}"))
    if stage == "slice":
        client.read(protocol.Ready)
        client.send(SLICE)
    assert client.read(protocol.Error) == protocol.Error(stage, "P0001", "the fake was asked to fail")
    assert client.wait() == protocol.EXIT_FAILED


def test_it_sends_garbage(client: Driven) -> None:
    client.send(fake("garbage"), SLICE)
    client.read(protocol.Ready)
    with pytest.raises(ProtocolError):
        client.read(protocol.SliceReply)


def test_it_cuts_a_reply_short(client: Driven) -> None:
    client.send(fake("cut"), SLICE)
    client.read(protocol.Ready)
    reply = client.read(protocol.SliceReply)
    assert reply.nbytes == 8000
    with pytest.raises(AssertionError, match="cut short"):
        client.samples(reply)


def test_it_hangs(client: Driven) -> None:
    client.send(fake("hang at connect"))
    with pytest.raises(AssertionError, match="no answer"):
        client.read(protocol.Ready, deadline_s=0.3)
    assert client.process.poll() is None


def test_its_output_does_not_reach_the_replies(client: Driven) -> None:
    client.send(fake("noise"), SLICE, protocol.Bye())
    client.read(protocol.Ready)
    reply = client.read(protocol.SliceReply)
    assert len(client.samples(reply)) == OPERATIONS_BEFORE
    assert client.wait() == protocol.EXIT_OK
    assert client.at_end()
    assert client.last_words().count("more noise") >= OPERATIONS_BEFORE
