"""Masking of values, and the effect of a statement."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import sql_parameters
from pgperf.core.sql_masking import Effect, effect, masked, of_server, without_values


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SELECT 'secret', 4711", "SELECT ?, ?"),
        ("SELECT E'it\\'s' || 'it''s'", "SELECT ? || ?"),
        ("SELECT $$secret$$, $tag$ $$ secret $tag$", "SELECT ?, ?"),
        ('SELECT "user"."id" FROM "user" WHERE x = 1.5e-3', 'SELECT "user"."id" FROM "user" WHERE x = ?'),
        ("SELECT a1 FROM t2 WHERE b = $1", "SELECT a1 FROM t2 WHERE b = $1"),
        ("SELECT 1 -- traceparent='secret'", "SELECT ?"),
        ("SELECT /* a /* secret */ b */ 1", "SELECT  ?"),
        ("SELECT B'01', X'ff', U&'d\\0061t'", "SELECT ?, ?, ?"),
        ("SELECT 0x1F + 1_000 + .5", "SELECT ? + ? + ?"),
        ("WHERE id IN (1, 2, 3, 4, 5)", "WHERE id IN (? × 5)"),
        ("WHERE id IN (1, 2, 3)", "WHERE id IN (?, ?, ?)"),
        ("SELECT 'never closed", "SELECT ?"),
        ("SELECT $$never closed", "SELECT ?"),
        ('SELECT "never closed', "SELECT ?"),
        ("SELECT E'a'\n'it\\'s secret'", "SELECT ?"),
        ("SELECT /* never closed", "SELECT"),
        ("SELECT -5", "SELECT -?"),
    ],
)
def test_values_are_masked_and_names_are_not(text: str, shown: str) -> None:
    assert masked(text) == shown


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")) | st.integers() | st.booleans())
)
def test_bound_values_become_question_marks(args: list[object]) -> None:
    """The words of the statement are all that is left."""
    text = sql_parameters.literal("SELECT " + ", ".join(["%s"] * len(args)) + " FROM t", args)
    shown = masked(text)
    assert set(shown) <= set("SELECT ?,-×0123456789 FROM t" + "true" + "false")
    if args and all(isinstance(arg, str) for arg in args) and len(args) < 4:
        assert shown.split() == ["SELECT", *["?,"] * (len(args) - 1), "?", "FROM", "t"]


@given(st.text() | st.text("ab1 '\"$-/*;,\\\n"))
def test_no_text_keeps_a_value(text: str) -> None:
    """Outside quoted identifiers, no quote, comment or number is left; every text has an effect."""
    shown = re.sub(r'"[^"]*"', "", masked(f"({text})"))
    assert not re.search(r"""['"]|--|/\*|(?<![\w$\x80-\U0010ffff])[0-9]""", re.sub(r"\? × [0-9]+", "", shown))
    assert effect(text) in Effect


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("SELECT 1", Effect.READS),
        ("  (SELECT 1) UNION (SELECT 2);", Effect.READS),
        ("/* hint */ select 1", Effect.READS),
        ("SELECT 'DELETE', \"update\" FROM t", Effect.READS),
        ("WITH x AS (SELECT 1) SELECT * FROM x", Effect.READS),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", Effect.WRITES),
        ("SELECT 1 INTO t", Effect.WRITES),
        ("SELECT * FROM t FOR UPDATE", Effect.WRITES),
        ("SELECT * FROM t FOR SHARE", Effect.WRITES),
        ("SELECT * FROM t FOR KEY SHARE", Effect.WRITES),
        ("SELECT share FROM holdings", Effect.READS),
        ("SELECT merge FROM requests", Effect.READS),
        (
            "WITH m AS (MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN DO NOTHING) SELECT 1",
            Effect.WRITES,
        ),
        ("INSERT INTO t VALUES (1)", Effect.WRITES),
        ("CREATE TABLE t ()", Effect.WRITES),
        ("CALL f()", Effect.WRITES),
        ("BEGIN", Effect.CONTROLS),
        ("savepoint s1", Effect.CONTROLS),
        ("SET search_path TO x", Effect.CONTROLS),
        ("DECLARE c CURSOR FOR SELECT 1", Effect.CONTROLS),
        ("SELECT 1; SELECT 2", Effect.SEVERAL),
        ("", Effect.READS),
    ],
)
def test_the_effect_of_a_statement(text: str, does: Effect) -> None:
    assert effect(text) == does


@pytest.mark.parametrize(
    "text", [r"SELECT 'it\'s Jane', 1", r"SELECT 'a\''Jane'", r"SELECT 'a\', 'Jane', id FROM t"]
)
def test_a_quote_after_a_backslash_may_not_close(text: str) -> None:
    """It closes a text with standard_conforming_strings on, and does not with the setting off."""
    assert masked(text) == "SELECT ?"


def test_a_backslash_elsewhere_in_a_text_changes_nothing() -> None:
    assert masked(r"SELECT 'C:\x', E'it\'s', id FROM t") == "SELECT ?, ?, id FROM t"


def test_values_in_error_messages_are_masked() -> None:
    assert without_values('invalid input syntax for type integer: "secret"') == (
        "invalid input syntax for type integer: ?"
    )
    assert without_values("value 4711 out of range, 'secret' too") == "value ? out of range, ? too"
    assert without_values('cut "secr') == "cut ?"
    assert without_values('type integer: "{"name": "Jane Doe"}" at 7') == "type integer: ? at ?"


@pytest.mark.parametrize("quotes", ["»«", "«»", "„“", "„”", "“”", "‘’", "「」"])
def test_values_in_messages_of_other_languages_are_masked(quotes: str) -> None:
    opening, closing = quotes
    assert without_values(f"Integer: {opening}secret{closing} x") == "Integer: ? x"
    assert without_values(f"Integer: {opening}secr") == "Integer: ?"


@pytest.mark.parametrize(
    ("sqlstate", "source_file"),
    [
        ("P0001", ""),
        ("P0004", "pl_exec.c"),
        ("42501", "pl_exec.c"),
        ("25006", "../src/pl/plpgsql/src/pl_exec.c"),
        ("XX000", "plpy_elog.c"),
    ],
)
def test_words_of_a_function_of_the_site_are_not_shown(sqlstate: str, source_file: str) -> None:
    """RAISE puts values into a text without quotes, and may choose any SQLSTATE."""
    shown = of_server("no customer Jane Doe", sqlstate, source_file)
    assert shown.startswith("a function of the database raised an error")
    assert "Jane" not in shown


def test_names_of_tables_and_roles_are_shown_where_the_server_itself_names_them() -> None:
    for file in ("", "parse_relation.c"):
        assert (
            of_server('relation "books" does not exist', "42P01", file) == 'relation "books" does not exist'
        )
