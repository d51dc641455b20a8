"""The forms of a statement agree with those of the drivers."""

import math
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import sql_parameters
from pgperf.core.exceptions import InvalidDefinition

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
TRICKY = st.text(st.sampled_from("'\\%\"$s1 -é漢\U0001f600\n\t"))
ARGUMENT = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | TRICKY
PIECE = st.text(st.sampled_from("abc '\"\\$é?:;-()"), max_size=8) | st.just("%%")
STATEMENT = st.lists(PIECE | st.just("%s"), max_size=8).map("".join)


def mogrify(statement: str, args: list[Any], connection: psycopg.Connection) -> str:
    return psycopg.ClientCursor(connection).mogrify(statement, args)


@pytest.fixture(scope="module")
def connection(stack: dict[str, str]) -> Any:
    login = {
        "password": stack["PGPERF_DB_PASSWORD"],
        "user": stack["PGPERF_DB_USER"],
        "client_encoding": "utf8",
    }
    with psycopg.connect(
        host="127.0.0.1",
        port=int(stack["PGPERF_DB_PORT"]),
        dbname=stack["PGPERF_DB_NAME"],
        autocommit=True,
        **login,
    ) as opened:
        yield opened


@given(args=st.lists(ARGUMENT, max_size=5), data=st.data())
def test_literal_equals_the_binding_of_psycopg(
    connection: psycopg.Connection, args: list[Any], data: st.DataObject
) -> None:
    pieces = [data.draw(STATEMENT.filter(lambda text: "%s" not in text)) for _ in range(len(args) + 1)]
    statement = "%s".join(pieces)
    assert sql_parameters.literal(statement, args).encode() == mogrify(statement, args, connection).encode()


@given(
    args=st.lists(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXT | TRICKY, min_size=1, max_size=5
    )
)
def test_the_server_reads_the_arguments_back(connection: psycopg.Connection, args: list[Any]) -> None:
    statement = sql_parameters.literal("SELECT " + ", ".join(["%s"] * len(args)), args)
    assert list(connection.execute(statement).fetchone() or ()) == args


@given(st.lists(ARGUMENT, min_size=1, max_size=5))
def test_text_and_numbers_mean_the_same_to_the_server(
    connection: psycopg.Connection, args: list[Any]
) -> None:
    statement = sql_parameters.numbered("SELECT " + ", ".join(f"%s::{_cast(arg)}" for arg in args))
    values = [None if value is None else value.encode() for value in sql_parameters.as_text(args)]
    result = connection.pgconn.exec_params(statement.encode(), values)
    bound = connection.execute(
        sql_parameters.literal("SELECT " + ", ".join(f"%s::{_cast(a)}" for a in args), args)
    ).pgresult
    assert bound is not None
    assert [result.get_value(0, i) for i in range(len(args))] == [
        bound.get_value(0, i) for i in range(len(args))
    ]


def _cast(arg: Any) -> str:
    return {bool: "bool", int: "numeric", float: "float8"}.get(type(arg), "text")


@given(STATEMENT)
def test_a_statement_without_arguments_is_read_the_same_way(statement: str) -> None:
    if "%s" in statement.replace("%%", ""):
        with pytest.raises(InvalidDefinition, match="placeholders for 0 arguments"):
            sql_parameters.literal(statement, [])
    else:
        assert (
            sql_parameters.literal(statement, [])
            == sql_parameters.numbered(statement)
            == statement.replace("%%", "%")
        )


@given(st.text(alphabet="%sab1 ", max_size=12), st.lists(ARGUMENT, max_size=3))
def test_any_text_gives_a_statement_or_says_what_to_write(statement: str, args: list[Any]) -> None:
    placeholders = statement.replace("%%", "").count("%s")
    strays = statement.replace("%%", "").replace("%s", "").count("%")
    if placeholders == len(args) and not strays:
        sql_parameters.literal(statement, args)
    else:
        with pytest.raises(InvalidDefinition, match=r"write .*%%"):
            sql_parameters.literal(statement, args)


def test_numbering() -> None:
    assert sql_parameters.numbered("a %s b %%s %s%s%%") == "a $1 b %s $2$3%"


def test_signs_never_make_a_comment() -> None:
    assert sql_parameters.literal("SELECT 1-%s-%s", [-1, -0.0]) == "SELECT 1- -1- -0.0"


def test_text_forms() -> None:
    args = [None, True, False, -3, 1.5, "é'\\", math.inf]
    assert sql_parameters.as_text(args) == [None, "t", "f", "-3", "1.5", "é'\\", "inf"]


@pytest.mark.parametrize("statement", ["%", "5 % 3", "%(name)s", "%d", "a%\n", "%t"])
def test_a_stray_percent_is_refused_with_the_remedy(statement: str) -> None:
    for form in (lambda: sql_parameters.literal(statement, []), lambda: sql_parameters.numbered(statement)):
        with pytest.raises(InvalidDefinition, match="%%"):
            form()


@pytest.mark.parametrize("arg", ["secret \x00", "secret \ud800", b"secret", ["secret"], {"a": "secret"}, 1j])
def test_arguments_without_an_sql_form_are_refused_without_being_shown(arg: Any) -> None:
    for form in (lambda: sql_parameters.literal("%s", [arg]), lambda: sql_parameters.as_text([arg])):
        with pytest.raises(InvalidDefinition, match=r"^args: ") as caught:
            form()
        assert "secret" not in str(caught.value)


def test_a_statement_has_every_form() -> None:
    assert sql_parameters.statement("select %s, %s || '%%'", [1, None])._asdict() == {
        "sql": "select %s, %s || '%%'",
        "args": [1, None],
        "literal": "select 1, NULL || '%'",
        "numbered": "select $1, $2 || '%'",
        "args_text": ["1", None],
        "arg_oids": [0, 0],
    }


def test_an_empty_text_is_no_statement() -> None:
    assert sql_parameters.statements("", [1]) == []
    assert [each.literal for each in sql_parameters.statements("select 1", [])] == ["select 1"]
