"""Of a failed connection, only words of pgperf's own tables are shown, whatever the server wrote."""

import base64
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import connection_errors
from pgperf.core.connection_errors import CLEAR_TEXT, MEANINGS, shown

AT = 'connection to server at "127.0.0.1", port 5432 failed: '
WORDS = {
    *connection_errors._OF_CLIENTS.values(),
    *connection_errors._OF_SYSTEM.values(),
    *MEANINGS.values(),
    connection_errors._UNKNOWN,
}


@pytest.mark.parametrize(
    ("message", "sqlstate"),
    [
        ('FATAL:  password authentication failed for user "app"', "28P01"),
        ("FATAL:  SASL authentication failed", "28P01"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "a", database "b", no encryption', "28000"),
        ('FATAL:  role "app" does not exist', "28000"),
        ('FATAL:  role "app" is not permitted to log in', "28000"),
        ('FATAL:  Peer authentication failed for user "app"', "28000"),
        ('FATAL:  database "app" does not exist', "3D000"),
        ("FATAL:  no such database: app", "3D000"),
        ("FATAL:  sorry, too many clients already", "53300"),
        ("FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute", "53300"),
        ('FATAL:  too many connections for role "app"', "53300"),
        ("FATAL:  no more connections allowed (max_client_conn)", "53300"),
        ("FATAL:  the database system is starting up", "57P03"),
        ('FATAL:  permission denied for database "app"', "42501"),
        ('FATAL:  unrecognized configuration parameter "x"', "42704"),
        ("FATAL:  server login has been failing, try again later (server_login_retry)", "08006"),
    ],
)
def test_the_text_of_a_server_becomes_its_sqlstate(message: str, sqlstate: str) -> None:
    assert shown(f"connection failed: {AT}{message}") == (MEANINGS[sqlstate], sqlstate)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (f"{AT}Connection refused\n\tIs the server running on that host", "Connection refused: is the server"),
        ('connection to server on socket "/x/.s.PGSQL.1" failed: No such file or directory', "No such file or"),
        (f"{AT}Cannot assign requested address\n\tIs the server", "no local port is free: closed connections"),
        (f"{AT}server closed the connection unexpectedly", "server closed the connection unexpectedly"),
        (f"{AT}timeout expired", "timeout expired"),
        (f"{AT}SSL error: certificate verify failed", "SSL error: certificate verify failed"),
        (f"{AT}fe_sendauth: no password supplied", "the server asks for a password"),
        (f"{AT}server does not support SSL, but SSL was required", "server does not support SSL"),
        (f"{AT}session is read-only", "session is read-only"),
        ('could not translate host name "x" to address: Name or service not known', "the host name cannot"),
        (f'{AT}authentication method requirement "!password" failed: server requested a cleartext password',
         CLEAR_TEXT),
        ('invalid sslmode value "require": SSL support is not compiled in', "SSL support is not compiled in"),
    ],
)  # fmt: skip
def test_the_text_of_libpq_is_shown(message: str, text: str) -> None:
    found, sqlstate = shown(message)
    assert found.startswith(text)
    assert sqlstate == ""


def test_two_addresses_of_a_host_give_one_sentence_each() -> None:
    found, _ = shown(f"{AT}Connection refused\n{AT}No route to host")
    assert set(found.split("; ")) == {connection_errors._REFUSED, "No route to host"}


def test_a_sentence_that_another_one_contains_is_left_out() -> None:
    found, _ = shown('could not translate host name "x": Temporary failure in name resolution')
    assert found == "the host name cannot be resolved at the moment"


@pytest.mark.parametrize("code", ["28P01", "53300", "57P03"])
def test_a_known_sqlstate_gives_its_meaning(code: str) -> None:
    assert shown("anything", code) == (MEANINGS[code], code)


def test_an_unknown_sqlstate_is_not_shown() -> None:
    assert shown("anything", "hunter2") == (connection_errors._UNKNOWN, "")


FORMS = (
    lambda secret: secret,
    lambda secret: secret[::-1],
    lambda secret: secret.swapcase(),
    lambda secret: secret.encode().hex(),
    lambda secret: base64.b64encode(secret.encode()).decode(),
    lambda secret: "\n".join(secret),
)
PARTS = [
    *connection_errors._OF_CLIENTS, *connection_errors._OF_SERVERS, *connection_errors._OF_SYSTEM, AT, "FATAL:  ",
    "\n", 'role "', '" does not exist', "failed: ", os.strerror(111),
]  # fmt: skip


@given(
    st.text(min_size=1, max_size=20),
    st.sampled_from(FORMS),
    st.lists(st.sampled_from(PARTS), max_size=5),
    st.integers(0, 5),
    st.booleans(),
)
def test_nothing_else_is_ever_shown(secret, form, parts, at, in_code) -> None:  # type: ignore[no-untyped-def]
    parts.insert(at, form(secret))
    found, sqlstate = shown(" ".join(parts), form(secret) if in_code else "")
    assert set(found.split("; ")) <= {each for words in WORDS for each in words.split("; ")}
    assert sqlstate in ("", *MEANINGS)
