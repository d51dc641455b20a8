"""The C client as a program, under ASan and UBSan: what only it can get wrong. test_conformance has
the rest.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pgperf.core import protocol
from pgperf.core.records import Route


@pytest.fixture(scope="module")
def client(c_program: Path) -> Path:
    return c_program


def spec(route: Route, **changes: Any) -> protocol.Spec:
    login = {name: getattr(route, name) for name in ("host", "port", "dbname", "user", "password")}
    return protocol.Spec(**{"layer": "libpq", "statements": [same("select 1")], **login, **changes})


def same(text: str) -> protocol.Statement:
    """A statement without arguments: its text is the same in every mode."""
    return protocol.Statement(literal=text, numbered=text)


def talk(client: Path, said: bytes, **env: str) -> tuple[int, list[protocol.Message], str]:
    """Exit code, replies and stderr of a client that is told all that at once."""
    done = subprocess.run([client], input=said, capture_output=True, timeout=60, env={**os.environ, **env})
    return done.returncode, list(replies(done.stdout)), done.stderr.decode()


def replies(data: bytes) -> Iterable[protocol.Message]:
    while data:
        line, _, data = data.partition(b"\n")
        message = protocol.decode(line)
        data = data[message.nbytes :] if isinstance(message, protocol.SliceReply) else data
        yield message


def say(*messages: protocol.Message) -> bytes:
    return b"".join(protocol.encode(message) for message in messages)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"hello\n", "the line: not an object"),
        (b'{"type":"spec","host":"\xff"}\n', "the line: not UTF-8"),
        (b'{"type":"spec"\0}\n', "the line: a NUL byte"),
        (b'{"type":"spec","port":' + b"9" * 10_000 + b"}\n", "port: must be an integer"),
        (b'{"type":"spec","orm_args":' + b"[" * 100_000 + b"\n", "orm_args: nested too deeply"),
        (b'{"type":"spec","protocol":1}\n', f"protocol: this client speaks version {protocol.PROTOCOL}"),
        (b'{"type":"bye"}\n', "the first message must be a spec"),
        (b'{"type":"spec"}', "an incomplete line"),
        (b"x" * protocol.MAX_LINE_BYTES + b"\n", "a line too long"),
    ],
)
def test_nonsense_ends_it_with_the_reason(client: Path, said: bytes, why: str) -> None:
    code, said_back, stderr = talk(client, said)
    assert (code, said_back) == (protocol.EXIT_PROTOCOL, [protocol.Error("spec", "", why)])
    assert stderr == f"pgperf-libpq: spec: {why}\n"


def test_a_mode_it_does_not_have_is_a_failure(client: Path) -> None:
    error = protocol.Error("spec", "", "mode: choose simple, extended or prepared")
    assert talk(client, say(protocol.Spec(mode="pipelined")))[:2] == (protocol.EXIT_FAILED, [error])


def test_it_exits_on_empty_input_or_another_parent(client: Path, routes: dict[str, Route]) -> None:
    assert talk(client, b"") == (protocol.EXIT_OK, [], "")
    assert talk(client, say(spec(routes["socket"], runner_pid=1))) == (protocol.EXIT_OK, [], "")


def test_slow_operations_have_no_ten_more_in_the_cold_phases(client: Path, routes: dict[str, Route]) -> None:
    for seconds, slow in ((1.01, True), (0, False)):
        statement = same(f"select pg_sleep({seconds})")
        _, (ready, *_), _ = talk(client, say(spec(routes["socket"], statements=[statement]), protocol.Bye()))
        assert isinstance(ready, protocol.Ready)
        assert ready.second_us
        assert (ready.next_ten_us is None) is slow


@pytest.mark.parametrize("mode", protocol.MODES)
@pytest.mark.parametrize("cold", [True, False])
def test_a_whole_conversation(client: Path, routes: dict[str, Route], mode: str, cold: bool) -> None:
    first = spec(routes["socket"], mode=mode, cold=cold, spawned_ns=1, runner_pid=os.getpid())
    code, said, stderr = talk(
        client, say(first, protocol.Slice(seq=7, lead_in_ns=0, count=5), protocol.Bye())
    )
    ready, reply = said
    assert (code, stderr) == (protocol.EXIT_OK, "")
    assert isinstance(ready, protocol.Ready)
    assert isinstance(reply, protocol.SliceReply)
    assert (reply.seq, reply.ops, reply.rows, reply.lead_in_ops, reply.nbytes) == (7, 5, 5, 10, 40)
    measured = [ready.startup_us, ready.connect_us, ready.first_us, ready.second_us, ready.next_ten_us]
    assert [value is not None for value in measured] == [cold] * 5
    assert ready.other_first_us is ready.other_second_us is None


@pytest.mark.parametrize("mode", ["extended", "prepared"])
def test_values_of_every_kind_go_through(client: Path, routes: dict[str, Route], mode: str) -> None:
    arguments = ["ä😀", None, "", "\\ ' \" \n"]
    as_sent = "$1 = U&'\\00e4\\+01f600' and $2::text is null and $3 = '' and length($4) = 7"
    check = f"select 1 / ({as_sent})::int"
    other = "select null, ''::text, repeat('x', 1000000) from generate_series(1, 3) where $1 > 0"
    first = spec(
        routes["tcp"], mode=mode,
        statements=[protocol.Statement(args=[1, None, True, 1e300, "ä"], args_text=arguments, numbered=check)],
        other_statements=[protocol.Statement(numbered=other, args_text=["1"])],
    )  # fmt: skip
    code, said, stderr = talk(client, say(first, protocol.Bye()))
    assert (code, stderr) == (protocol.EXIT_OK, "")
    assert isinstance(said[0], protocol.Ready)
    assert said[0].rows_per_op == 1
    assert said[0].other_second_us


def test_a_statement_that_fails_names_its_sqlstate(client: Path, routes: dict[str, Route]) -> None:
    code, said, _ = talk(client, say(spec(routes["socket"], statements=[same("select 1/0")])))
    assert (code, said) == (protocol.EXIT_FAILED, [protocol.Error("ready", "22012", "division by zero")])


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("", "the statement is empty"),
        ("copy (select 1) to stdout", "this client cannot run COPY"),
    ],
)
def test_an_invalid_query_is_refused(client: Path, routes: dict[str, Route], sql: str, why: str) -> None:
    error = protocol.Error("ready", "", why)
    assert talk(client, say(spec(routes["socket"], statements=[same(sql)])))[:2] == (
        protocol.EXIT_FAILED,
        [error],
    )


def test_an_operation_that_fails_in_a_slice_ends_it(client: Path, routes: dict[str, Route]) -> None:
    """The sequence is used up in the tenth run or so: after `ready`, in the slice's lead-in."""
    sql = "select nextval('pg_temp.few')"
    create = "create temp sequence if not exists few maxvalue 5"
    first = spec(routes["socket"], cold=False, statements=[same(f"{create}; {sql}")])
    code, said, _ = talk(client, say(first, protocol.Slice(seq=1, count=10)))
    assert code == protocol.EXIT_FAILED
    assert isinstance(said[1], protocol.Error)
    assert (said[1].stage, said[1].sqlstate) == ("slice", "2200H")


def test_the_password_is_in_no_message(client: Path, routes: dict[str, Route]) -> None:
    secret = routes["socket"].password
    code, said, stderr = talk(client, say(spec(routes["socket"], dbname=secret)))
    assert code == protocol.EXIT_FAILED
    assert isinstance(said[0], protocol.Error)
    assert (said[0].stage, 'database "<password>" does not exist' in said[0].message) == ("connect", True)
    assert secret not in stderr


def test_a_connection_string_is_not_a_database_name(client: Path, routes: dict[str, Route]) -> None:
    code, said, _ = talk(client, say(spec(routes["socket"], dbname="host=/nowhere")))
    assert code == protocol.EXIT_FAILED
    assert isinstance(said[0], protocol.Error)
    assert 'database "host=/nowhere" does not exist' in said[0].message


def test_the_environment_does_not_change_the_connection(
    client: Path, routes: dict[str, Route], tmp_path: Path
) -> None:
    passfile = tmp_path / "passfile"
    passfile.write_text(f"*:*:*:*:{routes['socket'].password}\n")
    passfile.chmod(0o600)
    env = {
        "PGHOSTADDR": "192.0.2.1",
        "PGOPTIONS": "-c nonsense=1",
        "PGSERVICE": "nowhere",
        "PGPASSFILE": str(passfile),
    }
    assert talk(client, say(spec(routes["socket"]), protocol.Bye()), **env)[0] == protocol.EXIT_OK
    code, said, _ = talk(client, say(spec(routes["socket"], password="")), **env)
    assert code == protocol.EXIT_FAILED
    assert isinstance(said[0], protocol.Error)
    assert "no password supplied" in said[0].message


def test_a_long_message_is_cut_and_the_session_is_in_utc(client: Path, routes: dict[str, Route]) -> None:
    sql = "do $$ begin raise '% %', current_setting('TimeZone'), repeat('\u00e4', 3000); end $$"
    _, said, _ = talk(client, say(spec(routes["socket"], statements=[same(sql)])), PGTZ="Asia/Tokyo")
    assert said == [protocol.Error("ready", "P0001", "UTC " + 998 * "\u00e4")]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("", protocol.Error("query", "", "this client cannot run the statement")),
        ("copy (select 1) to stdout", protocol.Error("query", "", "this client cannot run the statement")),
        ("select 1/0", protocol.Error("query", "22012", "division by zero")),
    ],
)
def test_a_query_that_cannot_be_answered(
    client: Path, routes: dict[str, Route], sql: str, why: protocol.Error
) -> None:
    code, said, _ = talk(client, say(spec(routes["socket"]), protocol.Query(sql)))
    assert (code, said[1]) == (protocol.EXIT_FAILED, why)


def test_it_exits_when_its_replies_are_not_read(client: Path, routes: dict[str, Route]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([client], input=say(spec(routes["socket"])), stdout=writing, timeout=60)
    os.close(writing)
    assert done.returncode == protocol.EXIT_OK


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_is_not_reused(client: Path, routes: dict[str, Route], closed: str) -> None:
    said = say(spec(routes["socket"]), protocol.Bye())
    done = subprocess.run(
        ["sh", "-c", f"exec {client} {closed}"], input=said, stdout=subprocess.PIPE, timeout=60
    )
    assert done.returncode == protocol.EXIT_OK
    assert bool(done.stdout) == (closed == "2>&-")
