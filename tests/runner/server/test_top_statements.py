"""The statements of a server: those that only read, without values."""

from dataclasses import replace
from typing import Any

import pytest

from pgperf.core.records import Route
from pgperf.runner.server import top_statements
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.pg_stat_statements import PgStatStatements

FOUND = PgStatStatements("public", "top", True)


class Answers:
    """A control connection whose server gives these rows."""

    def __init__(self, *rows: tuple[Any, ...]) -> None:
        self.rows = list(rows)

    def all(self, query: Any) -> list[tuple[Any, ...]]:
        return self.rows


def read(monkeypatch: pytest.MonkeyPatch, *texts: str) -> list[str]:
    monkeypatch.setattr(PgStatStatements, "find", lambda connection: FOUND)
    rows = [(text, 10, 10, float(at)) for at, text in enumerate(texts)]
    found = top_statements.read(Answers(*rows))  # type: ignore[arg-type]
    assert not isinstance(found, str)
    return [each.query for each in found]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES ($1)", "UPDATE t SET a = $1", "DELETE FROM t", "SET x = $1", "BEGIN",
        "WITH x AS (DELETE FROM t RETURNING a) SELECT a FROM x", "SELECT a INTO b FROM t",
        "SELECT a FROM t FOR UPDATE", "SELECT a FROM t FOR SHARE", "SELECT pg_terminate_backend($1)",
        "<insufficient privilege>", "", "VACUUM t", "EXPLAIN SELECT $1", "SELECT $1; DROP TABLE t", "SHOW x", "TABLE t",
    ],
)  # fmt: skip
def test_what_does_more_than_read_is_left_out(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert read(monkeypatch, text, "SELECT a FROM t WHERE b = $1") == ["SELECT a FROM t WHERE b = $1"]


@pytest.mark.parametrize(
    "text", ["SELECT a FROM t WHERE b = 'hunter2'", "SELECT a /* hunter2 */ FROM t WHERE b = $1"]
)
def test_no_value_is_kept(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (found,) = read(monkeypatch, text)
    assert "hunter2" not in found


def test_a_statement_whose_quotes_depend_on_a_setting_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With standard_conforming_strings off, the quote after the backslash does not close."""
    assert read(monkeypatch, r"SELECT 'it\'s hunter2 ', a FROM t", "SELECT a FROM t") == ["SELECT a FROM t"]


def test_the_most_time_comes_first_and_equal_texts_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PgStatStatements, "find", lambda connection: FOUND)
    rows = [("SELECT $1", 1, 1, 2.0), ("SELECT a FROM t", 5, 5, 3.0), ("SELECT $1", 2, 2, 2.0)]
    found = top_statements.read(Answers(*rows))  # type: ignore[arg-type]
    assert found == [
        top_statements.TopStatement("SELECT $1", 3, 3, 4.0),
        top_statements.TopStatement("SELECT a FROM t", 5, 5, 3.0),
    ]


def test_a_server_without_the_extension_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PgStatStatements, "find", lambda connection: "this database lacks the extension")
    assert top_statements.read(Answers()) == "this database lacks the extension"  # type: ignore[arg-type]


def test_a_real_server_answers(routes: dict[str, Route]) -> None:
    with ControlConnection(replace(routes["tcp"]), "pgperf-test") as connection:
        found = top_statements.read(connection)
    assert isinstance(found, list) or "pg_stat_statements" in found
