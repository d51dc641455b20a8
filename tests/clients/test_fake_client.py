"""The fake client does what its docstring says, and misbehaves only when asked to."""

import sys
from collections.abc import Iterator

import pytest

from pgperf import sql, wire
from pgperf.clients.fake_client import PATIENCE
from pgperf.exceptions import ProtocolError
from tests.clients.driving import Driven

SLICE = wire.Slice(1, 0, PATIENCE, 0, 0, PATIENCE)


def fake(text: str, nominal_us: float = 0.0) -> wire.Spec:
    return wire.Spec(layer="fake", statements=sql.statements(text, ()), nominal_us=nominal_us)


@pytest.fixture
def client() -> Iterator[Driven]:
    with Driven([sys.executable, "-m", "pgperf.clients.fake_client"]) as driven:
        yield driven


def test_an_operation_lasts_what_it_was_told_and_reads_one_row(client: Driven) -> None:
    client.send(fake("SELECT 1", nominal_us=50))
    ready = client.read(wire.Ready)
    assert (ready.rows_per_op, ready.backend_pid, ready.server_version) == (1, 0, "fake")
    reply, durations = client.slice(wire.Slice(1, 0, 2, 0, 0, 20))
    assert reply.rows == 20
    assert min(durations) >= 50_000


def test_it_answers_queries_with_their_text(client: Driven) -> None:
    client.send(wire.Spec(layer="fake"), wire.Query("SHOW anything"))
    client.read(wire.Ready)
    assert client.read(wire.Rows).rows == [["SHOW anything"]]


@pytest.mark.parametrize(("word", "code"), [("die", -9), ("quit", 0)])
@pytest.mark.parametrize("stage", ["connect", "ready", "slice"])
def test_it_ends_unasked(client: Driven, word: str, code: int, stage: str) -> None:
    client.send(fake(word if stage == "slice" else f"{word} at {stage}"))
    if stage == "slice":
        client.read(wire.Ready)
        client.send(SLICE)
    assert client.wait() == code
    assert client.at_end()


@pytest.mark.parametrize("stage", ["connect", "ready", "slice"])
def test_it_fails(client: Driven, stage: str) -> None:
    client.send(fake(f"fail at {stage}"))
    if stage == "slice":
        client.read(wire.Ready)
        client.send(SLICE)
    assert client.read(wire.Error) == wire.Error(stage, "P0001", "the fake was asked to fail")
    assert client.wait() == wire.EXIT_FAILED


def test_it_sends_garbage(client: Driven) -> None:
    client.send(fake("garbage"), SLICE)
    client.read(wire.Ready)
    with pytest.raises(ProtocolError):
        client.read(wire.SliceReply)


def test_it_cuts_a_reply_short(client: Driven) -> None:
    client.send(fake("cut"), SLICE)
    client.read(wire.Ready)
    reply = client.read(wire.SliceReply)
    assert reply.nbytes == 8000
    with pytest.raises(AssertionError, match="cut short"):
        client.samples(reply)


def test_it_hangs(client: Driven) -> None:
    client.send(fake("hang at connect"))
    with pytest.raises(AssertionError, match="no answer"):
        client.read(wire.Ready, deadline_s=0.3)
    assert client.process.poll() is None


def test_its_noise_does_not_reach_the_replies(client: Driven) -> None:
    client.send(fake("noise"), SLICE, wire.Bye())
    client.read(wire.Ready)
    reply = client.read(wire.SliceReply)
    assert len(client.samples(reply)) == PATIENCE
    assert client.wait() == wire.EXIT_OK
    assert client.at_end()
    assert client.last_words().count("more noise") >= PATIENCE
