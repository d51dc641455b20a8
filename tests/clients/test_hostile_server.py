"""Every client program against forged answers: it reads them, or reports what it cannot read."""

from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from pgperf.core import protocol
from pgperf.core.exceptions import ClientFailed, ProtocolError
from pgperf.core.records import Route
from pgperf.runner.client_process import ClientProcess
from tests.clients.driving import Subject, forked, spec, with_workloads
from tests.clients.hostile_server import ANSWERS, GREETINGS, MARK, Forge, HostileServer
from tests.clients.test_conformance import AT_ONCE, FAKE, PROGRAMS, is_asyncpg, select

_SQL = f"SELECT 'a' AS id, 'b' AS domain, 'c' AS name FROM generate_series(1, 3) {MARK}"

#: psycopg_async reads its answers as psycopg does, on either event loop.
_TRIED = [each for each in PROGRAMS if each != FAKE and not each.layer.startswith("psycopg_async")]
#: After these, asyncpg waits for messages that do not come; its deadline ends it.
_ASYNCPG_WAITS = ("an empty query", "a message of negative length", "another protocol")

every_program = pytest.mark.parametrize("subject", _TRIED, ids=str)
pytestmark = pytest.mark.usefixtures("admin")


def outcome(
    subject: Subject, c_program: Path, tcp: Route, forge: Forge, mark: str, within_s: float = 30.0
) -> str:
    """ "" if the client ran its operation, else the error that the runner shows."""
    work = select(_SQL)
    changes = {"orm_args": [work.sql]} if subject.calls_orm else {}
    with HostileServer(tcp.port, {mark: forge}) as server, started(subject, c_program) as client:
        client.send(spec(subject, tcp, work, host="127.0.0.1", port=server.port, **changes))
        try:
            client.expect(protocol.Ready, within_s)
            client.send(AT_ONCE)
            client.read_bytes(client.expect(protocol.SliceReply, 30).nbytes, 30)
        except ProtocolError:
            raise
        except ClientFailed as error:
            return str(error)
    return ""


def started(subject: Subject, c_program: Path) -> ClientProcess:
    """A client as the runner has it; one in Python is forked from a process that has its imports."""
    if not subject.module:
        return ClientProcess("client", [str(c_program)])
    program = replace(subject, module=with_workloads(subject)) if subject.calls_orm else subject
    with mock.patch("pgperf.runner.client_process.subprocess") as subprocess:
        subprocess.Popen = lambda argv, stderr, **_: forked(program, stderr)
        return ClientProcess("client", [])


def check(text: str) -> None:
    assert "ended unexpectedly" not in text
    assert "no answer within" not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("answer", ANSWERS)
@every_program
def test_a_forged_answer_is_read_or_reported(
    subject: Subject, answer: str, c_program: Path, tcp: Route
) -> None:
    if is_asyncpg(subject) and answer in _ASYNCPG_WAITS:
        assert "no answer within" in outcome(subject, c_program, tcp, ANSWERS[answer], MARK, 3.0)
    else:
        check(outcome(subject, c_program, tcp, ANSWERS[answer], MARK))


@pytest.mark.parametrize("greeting", GREETINGS)
@every_program
def test_a_forged_greeting_is_read_or_reported(
    subject: Subject, greeting: str, c_program: Path, tcp: Route
) -> None:
    check(outcome(subject, c_program, tcp, GREETINGS[greeting], ""))


@every_program
def test_the_proxy_alone_changes_nothing(subject: Subject, c_program: Path, tcp: Route) -> None:
    assert outcome(subject, c_program, tcp, lambda each: each.raw, MARK) == ""
