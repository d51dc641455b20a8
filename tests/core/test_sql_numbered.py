"""Statements as pg_stat_statements gives them: no value is left, and each placeholder has a number."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import sql_numbered, sql_parameters
from pgperf.core.sql_lexer import TokenKind, tokens

VALUES = {TokenKind.STRING, TokenKind.ESCAPE, TokenKind.UNICODE, TokenKind.DOLLAR, TokenKind.NUMBER}
PIECES = st.sampled_from(
    ["SELECT", " ", "a", "=", "$1", "$2", "$17", "'x'", "E'\\''", "42", "1.5e3", "$$t$$", '"N"', "--c\n", "/*v*/",
     "%", "("]
)  # fmt: skip


@given(st.lists(PIECES).map(" ".join) | st.text(max_size=80))
def test_no_value_and_no_comment_is_left(sql: str) -> None:
    kinds = {each.kind for each in tokens(sql_numbered.without_values(sql))}
    assert not kinds & {*VALUES, TokenKind.COMMENT}


@given(st.lists(PIECES).map(" ".join))
def test_each_placeholder_becomes_one(sql: str) -> None:
    masked = sql_numbered.without_values(sql)
    text, numbers = sql_numbered.placeholders(masked)
    assert len(numbers) == masked.count("$")
    assert sql_parameters.numbered(text).count("$") == len(numbers)


@pytest.mark.parametrize(
    ("sql", "masked"),
    [
        ("SELECT a FROM t WHERE b = $1", "SELECT a FROM t WHERE b = $1"),
        ("SELECT a FROM t WHERE b = 'secret'", "SELECT a FROM t WHERE b = $1"),
        (
            "SELECT a FROM t WHERE b = $2 AND c = $1 LIMIT 7",
            "SELECT a FROM t WHERE b = $2 AND c = $1 LIMIT $3",
        ),
        ("SELECT 1 /* user=ada */ + 2", "SELECT $1   + $2"),
        ("SELECT 'never closed", "SELECT $1"),
        ("SELECT DATE'2026-01-01'", "SELECT DATE $1"),
        ("SELECT 'a'\"B\"", 'SELECT $1"B"'),
    ],
)
def test_what_the_server_left_is_masked(sql: str, masked: str) -> None:
    assert sql_numbered.without_values(sql) == masked


def test_placeholders_have_the_order_of_the_text() -> None:
    found = sql_numbered.placeholders("SELECT a % $2 FROM t WHERE b = $1 AND c = $2")
    assert found == ("SELECT a %% %s FROM t WHERE b = %s AND c = %s", [2, 1, 2])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42), ("-1.5", -1.5), ("true", True), ("null", None), ('"42"', "42"), ("Cobalt Press", "Cobalt Press"),
        ("007", "007"), ("[1]", "[1]"), ("{}", "{}"), ("NaN", "NaN"), ("Infinity", "Infinity"), ("", ""), (" ", " "),
        ("0.1", 0.1), ("1e3", 1000.0), ("1234567890.12345678901", "1234567890.12345678901"), ("1e400", "1e400"),
        ("-1e400", "-1e400"), ("1e-400", "1e-400"), ("[1.00000000000000000001]", "[1.00000000000000000001]"),
        ('"\\ud800"', '"\\ud800"'), ('"\\u0000"', '"\\u0000"'), ("[" * 9000, "[" * 9000), ("9" * 5000, "9" * 5000),
    ],
)  # fmt: skip
def test_a_typed_value_is_a_json_scalar_or_text(text: str, value: Any) -> None:
    found = sql_numbered.typed_value(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("sql", "word"),
    [("SELECT $1", "select"), ("((  With x", "with"), ("", ""), ("<insufficient privilege>", "")],
)
def test_the_first_word(sql: str, word: str) -> None:
    assert sql_numbered.first_word(sql) == word
