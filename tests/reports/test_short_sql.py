"""Statements in a few words."""

import pytest

from pgperf.reports.short_sql import short_sql

COLUMNS = ", ".join(f'"books_book"."column_{at}"' for at in range(9))


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (f'SELECT {COLUMNS} FROM "books_book" WHERE "id" = ?', 'SELECT … FROM "books_book" WHERE "id" = ?'),
        (f"select distinct\n  {COLUMNS}\nfrom b", "select distinct … from b"),
        ("SELECT a, b FROM t", "SELECT a, b FROM t"),
        ("SELECT EXTRACT(year FROM made), (SELECT max(x) FROM u) FROM t", "SELECT … FROM t"),
        ("""SELECT 'it''s FROM', "a ""FROM"" b", long_column FROM t""", "SELECT … FROM t"),
        (f"SELECT {COLUMNS}", f"SELECT {COLUMNS}"[:159] + "…"),
        ("UPDATE t SET a = ?", "UPDATE t SET a = ?"),
        ("", ""),
    ],
    ids=["columns", "lower case", "short list", "subquery", "quoted", "no FROM", "no SELECT", "empty"],
)
def test_the_list_of_columns_is_left_out(text: str, short: str) -> None:
    assert short_sql(text) == short


def test_a_long_condition_is_cut() -> None:
    short = short_sql("SELECT a FROM t WHERE " + "b = ? AND " * 40, most=40)
    assert short == "SELECT a FROM t WHERE b = ? AND b = ? A…"
    assert len(short) == 40
