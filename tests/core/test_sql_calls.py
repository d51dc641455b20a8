"""The names in a SQL text that may call a function are found, however they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core.sql_calls import Call, calls
from tests.core.spellings import spelled_calls


@pytest.mark.parametrize(
    ("sql", "found"),
    {
        "SELECT f(1)": [Call("", "f")],
        "SELECT F /* a /* b */ */ -- c\n (1)": [Call("", "f")],
        'SELECT "F"(1), "a""b" (2)': [Call("", "F"), Call("", 'a"b')],
        'SELECT Own . "Next"(1)': [Call("own", "Next")],
        "SELECT db.own.next(1)": [Call("", "own", dotted=True), Call("own", "next")],
        "SELECT (1).f": [Call("", "select"), Call("", "f", dotted=True)],
        "SELECT t.f FROM t": [Call("", "f", dotted=True)],
        "SELECT (ARRAY[1])[1].f": [Call("", "select"), Call("", "f", dotted=True)],
        "SELECT f\u00a0(1)": [Call("", "f\u00a0")],
        "SELECT É(1)": [Call("", "É")],
        "SELECT 'f(1)', $$ f(1) $$ /* f(1) */ -- f(1)": [],
        "SELECT t.* FROM t": [],
        "SELECT 1.5, 2.e1": [],
    }.items(),
)
def test_calls(sql: str, found: list[Call]) -> None:
    assert calls(sql) == found


@given(spelled_calls("own", "probe"))
def test_every_spelling_is_found(sql: str) -> None:
    assert {call.name for call in calls(sql)} >= {"probe"}


@given(st.text())
def test_any_text_has_an_answer(sql: str) -> None:
    assert all(call.name for call in calls(sql))
