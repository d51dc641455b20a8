"""One client process: deadlines, groups, honest last words.

The peers are tiny scripts that misbehave on purpose.
"""

import os
import select
import sys
from pathlib import Path

import pytest

from pgperf.core import protocol
from pgperf.core.exceptions import ClientFailed, ProtocolError, RunCancelled
from pgperf.runner import client_process
from pgperf.runner.client_process import ClientProcess, goodbye, while_waiting


def script(code: str, secret: str = "") -> ClientProcess:
    return ClientProcess("peer", [sys.executable, "-c", code], secret)


def test_a_message_comes_back() -> None:
    line = protocol.encode(protocol.Armed(7)).decode().strip()
    with script(f"print({line!r}, flush=True); input()") as client:
        assert client.expect(protocol.Armed, 10) == protocol.Armed(7)


def test_bytes_that_follow_a_message_are_read_exactly() -> None:
    line = protocol.encode(protocol.Armed(1)).decode().strip()
    with script(
        f"import sys; print({line!r}); sys.stdout.flush(); print('abcdef', flush=True); input()"
    ) as client:
        client.expect(protocol.Armed, 10)
        assert client.read_bytes(3, 10) == b"abc"
        assert client.read_bytes(4, 10) == b"def\n"


def test_silence_ends_at_the_deadline() -> None:
    with (
        script("input()") as client,
        pytest.raises(ClientFailed, match=r"peer: no answer within its deadline of 0\.01 s$"),
    ):
        client.expect(protocol.Ready, 0.01)


#: More than a pipe holds.
LONG = protocol.Error("spec", "", "x" * 1_000_000)


def test_a_message_that_nobody_reads_ends_at_the_deadline() -> None:
    with (
        script("import time; time.sleep(60)") as client,
        pytest.raises(ClientFailed, match=r"peer: no answer within its deadline of 0\.01 s$"),
    ):
        client.send(LONG, 0.01)


def test_a_message_that_nobody_reads_checks_for_a_cancel_request() -> None:
    client = script("import time; time.sleep(60)")
    with while_waiting(_cancel):
        with pytest.raises(RunCancelled, match="enough"):
            client.send(LONG)
        with pytest.raises(RunCancelled):
            client.goodbye()
    with pytest.raises(ProcessLookupError):
        os.kill(client.pid, 0)


def test_all_clients_are_asked_to_end_before_one_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one ends when the second one has been asked, and a busy machine kills neither."""
    monkeypatch.setattr(client_process, "_GOODBYE_S", 60.0)
    os.mkfifo(tmp_path / "asked")
    clients = [script(f"input(); open({str(tmp_path / 'asked')!r}, {mode!r})") for mode in "rw"]
    goodbye(clients)
    assert [client._process.returncode for client in clients] == [0, 0]


def _cancel() -> None:
    raise RunCancelled("enough")


def test_a_long_message_arrives_whole() -> None:
    line = protocol.encode(protocol.Armed(1)).decode().strip()
    code = f"import sys; n = len(sys.stdin.readline()); print({line!r}.replace('1', str(n)), flush=True); input()"
    with script(code) as client:
        client.send(LONG)
        assert client.expect(protocol.Armed, 10) == protocol.Armed(len(protocol.encode(LONG)))


def test_a_wait_checks_for_a_cancel_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_process, "POLL_S", 0.01)
    looks = iter([None, None, RunCancelled("enough")])

    def look() -> None:
        if error := next(looks):
            raise error

    with while_waiting(look), script("input()") as client, pytest.raises(RunCancelled, match="enough"):
        client.expect(protocol.Ready, 10)


def test_a_client_that_ends_unasked_is_quoted_without_its_secret() -> None:
    with (
        script("raise SystemExit('cannot log in with hunter2')", secret="hunter2") as client,
        pytest.raises(
            ClientFailed, match=r"ended unexpectedly \(exit code 1\): cannot log in with <password>"
        ),
    ):
        client.expect(protocol.Ready, 10)


@pytest.mark.parametrize("after", [1990, 2150])
def test_a_line_that_is_cut_within_a_secret_shows_no_part_of_it(after: int) -> None:
    secret = "correct-horse-16"
    with (
        script(f"raise SystemExit('cannot log in with {secret}' + 'y' * {after})", secret=secret) as client,
        pytest.raises(ClientFailed) as failed,
    ):
        client.expect(protocol.Ready, 10)
    assert "yyy" in str(failed.value)
    assert "16" not in str(failed.value)


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    with (
        script("import os; os.kill(os.getpid(), 40)") as client,
        pytest.raises(ClientFailed, match=r"ended unexpectedly \(signal 40\)"),
    ):
        client.expect(protocol.Ready, 10)


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("Cookie sessionid=abc123secret of ada@example.org", ""),
        ("django.db.utils.DataError: ada@example.org abc123secret", ": django.db.utils.DataError"),
        ("x" * 1998 + " ada: " + "y" * 1994, ""),
        ("MemoryError", "out of memory"),
        ("terminate called for ada@example.org: std::bad_alloc", "out of memory"),
    ],
)
def test_of_a_site_only_the_name_of_an_exception_is_quoted(said: str, quoted: str) -> None:
    """Its code may log the headers of a request, or values of its users."""
    code = f"import sys; input(); print({said!r}, file=sys.stderr); sys.exit(1)"
    with script(code, "hunter2") as client:
        client.send(protocol.Spec(site=True, page=protocol.Page("/", cookie="sessionid=abc123secret")))
        with pytest.raises(ClientFailed) as failed:
            client.expect(protocol.Ready, 10)
    assert quoted in str(failed.value)
    assert not any(part in str(failed.value) for part in ("abc123", "ada", "Cookie"))


@pytest.mark.parametrize(
    ("sqlstate", "said", "shown"),
    [
        ("22P02", 'invalid input for integer: "{"name": "Jane Doe"}"', "invalid input for integer: ?"),
        ("", 'server: invalid input for integer: "Jane Doe"', "server: invalid input for integer: ?"),
        ("42P01", 'relation "books" does not exist', 'relation "books" does not exist'),
        ("", "the page sends other values: 3", "the page sends other values: 3"),
    ],
)
def test_of_a_sites_own_statement_a_servers_error_shows_no_value(
    sqlstate: str, said: str, shown: str
) -> None:
    line = protocol.encode(protocol.Error("slice", sqlstate, said)).decode().strip()
    with script(f"input(); print({line!r}, flush=True); input()") as client:
        client.send(protocol.Spec(layer="libpq", site=True))
        with pytest.raises(ClientFailed) as failed:
            client.expect(protocol.Ready, 10)
    assert str(failed.value).startswith(f"peer: {shown}")
    assert "Jane" not in str(failed.value)


def test_the_key_of_a_session_is_scrubbed() -> None:
    code = "import sys; input(); sys.exit('Cookie: sessionid=abc123secret')"
    with script(code) as client:
        client.send(protocol.Spec(page=protocol.Page("/", cookie="sessionid=abc123secret")))
        with pytest.raises(ClientFailed, match="Cookie: sessionid=<session>"):
            client.expect(protocol.Ready, 10)


def test_a_killed_client_is_told_apart() -> None:
    with (
        script("import os; os.kill(os.getpid(), 9)") as client,
        pytest.raises(ClientFailed, match="signal SIGKILL"),
    ):
        client.expect(protocol.Ready, 10)


def test_an_error_message_becomes_the_error() -> None:
    line = protocol.encode(protocol.Error("slice", "42601", "syntax error")).decode().strip()
    words = r"peer: syntax error \[42601\] \(while: slice\)"
    with script(f"print({line!r}, flush=True); input()") as client, pytest.raises(ClientFailed, match=words):
        client.expect(protocol.SliceReply, 10)


@pytest.mark.parametrize("text", ["a field: unknown", "protocol: this client speaks version 3"])
def test_a_client_of_another_version_is_to_be_built_again(text: str) -> None:
    line = protocol.encode(protocol.Error("spec", "", text)).decode().strip()
    with (
        script(f"print({line!r}, flush=True); raise SystemExit({protocol.EXIT_PROTOCOL})") as client,
        pytest.raises(
            ClientFailed, match=rf"^peer: {text}\. .*run `manage\.py pgperf build` \(while: spec\)$"
        ),
    ):
        client.expect(protocol.Ready, 10)


def test_another_refusal_of_the_spec_is_told_as_it_is() -> None:
    line = protocol.encode(protocol.Error("spec", "", "mode: choose simple")).decode().strip()
    with (
        script(f"print({line!r}, flush=True); raise SystemExit({protocol.EXIT_FAILED})") as client,
        pytest.raises(ClientFailed, match=r"^peer: mode: choose simple \(while: spec\)$"),
    ):
        client.expect(protocol.Ready, 10)


@pytest.mark.parametrize("text", ["nonsense", '{"type":"armed"}', '{"type":"armed","seq":1,"more":2}', "[1]"])
def test_nonsense_is_a_protocol_error(text: str) -> None:
    with script(f"print({text!r}, flush=True); input()") as client, pytest.raises(ProtocolError):
        client.expect(protocol.Armed, 10)


def test_an_endless_line_is_cut_off() -> None:
    code = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    client = script(code)
    with pytest.raises(ProtocolError, match="a line of more than"):
        client.expect(protocol.Armed, 60)
    client.kill()  # it reads no goodbye


def test_the_whole_process_group_dies() -> None:
    code = "import subprocess; p = subprocess.Popen(['sleep', '1000']); print(p.pid, flush=True); input()"
    client = script(code)
    child = os.pidfd_open(int(client._read_line(10)))
    client.kill()
    assert _ended(child)


def test_the_environment_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    monkeypatch.setenv("SITE_SECRET", "hunter3")
    code = "import os; print(sorted(os.environ), flush=True); input()"
    with script(code) as client:
        names = client._read_line(10).decode()
    assert "PG" not in names
    assert "SECRET" not in names
    assert "HOME" not in names


def _ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(5000))
