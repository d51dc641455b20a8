"""Running pgbench, with programs that play its part."""

import os
import stat
from pathlib import Path

import pytest
from django.conf import settings

from pgperf.clients.pgbench import process
from pgperf.clients.pgbench.process import ConnectionFailed, Pgbench
from pgperf.core import protocol
from pgperf.core.exceptions import LayerUnavailable, PgperfError
from tests.clients.pgbench.test_report import KEPT
from tests.open_files import open_files

SPEC = protocol.Spec(
    host="db.example", dbname="a=b", user="o'hara", password="p:a\\secret9", options="-c x=1"
)


def playing(place: Path, does: str, version: str = "18.6", nowhere: str = "") -> str:
    """A program that gives that version, says `nowhere` without a server, and otherwise does this."""
    path = place / "pgbench"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "pgbench (PostgreSQL) {version}" && exit\n'
        f"case $PGDATABASE in host=/dev/null/none*) echo 'pgbench: error: {nowhere}' >&2; exit 1;; esac\n{does}\n"
    )
    path.chmod(0o755)
    return str(path)


def summary(place: Path, text: str = KEPT) -> str:
    (place / "summary").write_text(text)
    return f"cat {place}/summary"


def run(program: str, spec: protocol.Spec = SPEC, time_s: float | None = 5.0) -> process.Finished:
    return Pgbench(program, spec).run("SELECT 1;\n", ["--client=8"], time_s)


def test_it_gets_the_password_in_a_private_file(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    passfile = 'file=$(echo "$PGDATABASE" | sed "s/.*passfile=\'\\([^\']*\\)\'.*/\\1/")'
    looks = f"{passfile}; cat $file > {seen}; stat -L -c %a $file >> {seen}; env > {seen}.env; echo $* > {seen}.argv"
    assert run(playing(tmp_path, f"{looks}; {summary(tmp_path)}")).summary.transactions == 27225
    assert seen.read_text() == "*:*:*:*:p\\:a\\\\secret9\n600\n"
    for other in ("env", "argv"):
        assert "secret9" not in Path(f"{seen}.{other}").read_text()


def test_over_a_relay_the_certificate_is_to_name_the_server(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    over = SPEC._replace(host="127.0.0.1", certificate_name="db.example", sslmode="verify-full")
    run(playing(tmp_path, f'echo "$PGDATABASE" > {seen}; {summary(tmp_path)}'), over)
    assert "host='db.example' hostaddr='127.0.0.1' " in seen.read_text()
    run(playing(tmp_path, f'echo "$PGDATABASE" > {seen}; {summary(tmp_path)}'))
    assert "hostaddr" not in seen.read_text()


def test_its_environment_has_the_address_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "elsewhere")
    monkeypatch.setenv("PGSERVICE", "other")
    seen = tmp_path / "seen"
    run(playing(tmp_path, f"env > {seen}; {summary(tmp_path)}"))
    given = dict(line.split("=", 1) for line in seen.read_text().splitlines())
    assert {name for name in given if name.startswith("PG")} == {"PGDATABASE", "PGTZ"}
    for keyword in (
        "host='db.example'",
        "dbname='a=b'",
        "user='o\\'hara'",
        "options='-c x=1'",
        "require_auth='!pass",
    ):
        assert keyword in given["PGDATABASE"]


def test_it_reads_the_script_from_memory(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = "for a in $*; do case $a in --file=*) cat ${a#--file=}"
    run(playing(tmp_path, f"{script} > {seen};; esac; done; {summary(tmp_path)}"))
    assert seen.read_text() == "SELECT 1;\n"


@pytest.mark.parametrize("version", ["15.3", "18.6"])
@pytest.mark.parametrize(
    ("nowhere", "asks"), [('invalid connection option "require_auth"', False), ("connection failed", True)]
)
def test_the_programs_libpq_says_whether_it_knows_require_auth(
    tmp_path: Path, version: str, nowhere: str, asks: bool
) -> None:
    """A program of version 15 may use the libpq of a newer one."""
    seen = tmp_path / "seen"
    run(playing(tmp_path, f"env > {seen}; {summary(tmp_path)}", version, nowhere))
    assert ("require_auth" in seen.read_text()) is asks


@pytest.mark.parametrize(("keyword", "known"), [("require_auth", True), ("no_such_keyword", False)])
def test_a_real_program_says_which_keywords_it_knows(
    keyword: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_KEYWORD", keyword)
    assert process._knows_require_auth(str(settings.PGPERF["PGBENCH"])) is known


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("echo 'pgbench: error: client 0 script 0 aborted in command 0 query 0: ERROR:  division by zero' >&2;"
         " echo 'pgbench: error: Run was aborted; the above results are incomplete.' >&2; exit 2",
         "^server: division by zero$"),
        ("echo 'pgbench: error: client 0 script 0 aborted in command 0 query 0: ERROR:  out of memory' >&2;"
         " echo 'DETAIL:  Failed on request of size 99.' >&2; exit 2",
         "^server: out of memory$"),
        ("echo 'pgbench: error: Run was aborted; the above results are incomplete.' >&2; exit 2",
         "exit code 2: Run was aborted"),
        ("echo 'pgbench (18.6)'; echo 'pgbench: fatal: no such option' >&2; exit 1", "exit code 1: no such option"),
        ("exit 3", "exit code 3"),
        ("kill -9 $$", "signal 9"),
        ("true", "printed no summary"),
    ],
)  # fmt: skip
def test_a_bad_end_is_an_error(tmp_path: Path, does: str, says: str) -> None:
    with pytest.raises(PgperfError, match=says):
        run(playing(tmp_path, does))


def test_a_connection_that_fails_is_known_as_that(tmp_path: Path) -> None:
    refused = 'connection to server at "db", port 1 failed: Connection refused'
    with pytest.raises(ConnectionFailed, match="Connection refused"):
        run(playing(tmp_path, f"echo 'pgbench: error: {refused}' >&2; exit 1"))


def test_failed_transactions_are_an_error(tmp_path: Path) -> None:
    text = KEPT.replace("failed transactions: 0", "failed transactions: 2")
    with pytest.raises(PgperfError, match="2 transactions failed"):
        run(playing(tmp_path, summary(tmp_path, text)))


def test_a_frozen_server_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Pgbench(playing(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 600"), SPEC)
    monkeypatch.setattr(process, "_GRACE_S", 3.0)
    with pytest.raises(PgperfError, match="the server does not answer"):
        program.run("SELECT 1;\n", ["--client=8"], 0.0)
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


@pytest.mark.parametrize(
    ("version", "says"), [("13.20", "needs 14 or newer"), ("", "does not say its version")]
)
def test_an_old_pgbench_is_refused(tmp_path: Path, version: str, says: str) -> None:
    with pytest.raises(LayerUnavailable, match=says):
        Pgbench(playing(tmp_path, "exit 1", version), SPEC)


def test_a_program_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LayerUnavailable, match="cannot be started"):
        Pgbench(str(tmp_path / "none"), SPEC)


@pytest.mark.parametrize("password", ["two\nlines", "carriage\r"])
def test_a_password_that_no_file_can_hold_is_refused(tmp_path: Path, password: str) -> None:
    with pytest.raises(PgperfError, match=r"^password: ") as refused:
        Pgbench(playing(tmp_path, "exit 1"), SPEC._replace(password=password))
    assert password not in str(refused.value)


def test_nothing_is_left_open(tmp_path: Path) -> None:
    program = Pgbench(playing(tmp_path, summary(tmp_path)), SPEC)
    before = open_files("/memfd:", "pipe:")
    program.run("SELECT 1;\n", [], 5.0)
    assert not open_files("/memfd:", "pipe:") - before
    assert stat.S_IMODE(os.stat(f"/proc/self/fd/{program._passfile}").st_mode) == 0o600
