"""SQL is split into the tokens of the server."""

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.records import Route
from pgperf.core.sql_lexer import Token, TokenKind, tokens

BREAKS = st.text(st.sampled_from("'\"$\\-/*eEuU&a1_ \n\r\u00a0é;.")) | st.text()


def cut(sql: str) -> list[tuple[str, str]]:
    """What is no space."""
    return [(token.kind.value, token.text) for token in tokens(sql) if token.kind is not TokenKind.SPACE]


@pytest.mark.parametrize(
    ("sql", "pieces"),
    [
        ("a1 $1 1.5", [("word", "a1"), ("param", "$1"), ("number", "1.5")]),
        ("0x1F 1_000 .5 2e-3", [("number", text) for text in ("0x1F", "1_000", ".5", "2e-3")]),
        ("'it''s' E'it\\'s'", [("string", "'it''s'"), ("escape", "E'it\\'s'")]),
        ("X'ff' n'x' b'1'", [("string", text) for text in ("X'ff'", "n'x'", "b'1'")]),
        ("U&'x' u&\"x\"", [("unicode", "U&'x'"), ("unicode_name", 'u&"x"')]),
        ('"a""b" ""', [("name", '"a""b"'), ("name", '""')]),
        ("$$ ' $$ $a$ $$ $a$", [("dollar", "$$ ' $$"), ("dollar", "$a$ $$ $a$")]),
        ("a$$b$ $$x$$", [("word", "a$$b$"), ("dollar", "$$x$$")]),
        ("/* /* */ */x--y\rz", [("comment", "/* /* */ */"), ("word", "x"), ("comment", "--y"), ("word", "z")]),
        ("e'a' -- more\n\n -- and\n'\\''", [("escape", "e'a' -- more\n\n -- and\n'\\''")]),
        ("e'a' '\\'", [("escape", "e'a'"), ("string", "'\\'")]),
        ("se'x'", [("word", "se"), ("string", "'x'")]),
        ("a\u00a0$$ $$", [("word", "a\u00a0$$"), ("dollar", "$$")]),
        ("1;\\", [("number", "1"), ("other", ";"), ("other", "\\")]),
    ],
)  # fmt: skip
def test_each_kind(sql: str, pieces: list[tuple[str, str]]) -> None:
    assert cut(sql) == pieces


@pytest.mark.parametrize(
    ("sql", "kind", "opening"),
    [
        ("'a''", TokenKind.STRING, "'"),
        ("E'a\\'", TokenKind.STRING, "E'"),
        ('"a""', TokenKind.NAME, '"'),
        ("$$a$", TokenKind.DOLLAR, "$$"),
        ("$a$ $b$ $", TokenKind.DOLLAR, "$a$"),
        ("/* /* */", TokenKind.COMMENT, ""),
    ],
)
def test_an_unclosed_token_extends_to_the_end(sql: str, kind: TokenKind, opening: str) -> None:
    *_before, last = tokens("SELECT " + sql)
    assert last == Token(kind, sql, closed=False)
    assert last.opening == opening


@given(BREAKS)
def test_joined_tokens_are_the_text(sql: str) -> None:
    assert "".join(token.text for token in tokens(sql)) == sql


@pytest.mark.parametrize("sql", ["E'a'" + "--" * 50_000, "'" * 50_001, "/*" * 50_000, "E'" + "\\'" * 50_000])
def test_no_text_takes_long(sql: str) -> None:
    """A pattern that backtracks would take exponential time for these."""
    assert len(list(tokens(sql))) < 3


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("1 -- ends here\r, 2", 2),
        ("1 AS a\u00a0$$, 2 AS b$$, 3", 3),
        ("E'a' -- between\n'\\', ', 2", 2),
        ("'a' -- between\r\n', ', 'b'", 2),
        ("$ä$, $ä$, $a$, $A$, $$, $a$", 2),
        ("/* /* , */ , */ 1, 2", 2),
        ("'a\\', 2, E'\\\\', 4", 4),
        ("U&'\\0027, ', 2", 2),
        ('1 AS "a"", ", 2', 2),
        ("'a'/*, 2*/--, 3", 1),
    ],
)
def test_the_server_splits_the_text_alike(routes: dict[str, Route], sql: str, columns: int) -> None:
    """The commas outside quotes and comments, told by the number of columns that the server answers
    with.
    """
    assert 1 + sum(token.text == "," for token in tokens(sql)) == columns
    route = routes["socket"]
    login = {"host": route.host, "port": route.port, "user": route.user, "password": route.password}
    with psycopg.connect(dbname=route.dbname, **login) as connection:  # type: ignore[arg-type]
        answer = connection.pgconn.exec_(f"SELECT {sql}".encode())
    assert (answer.nfields, answer.error_message) == (columns, b"")
