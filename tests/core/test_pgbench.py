"""Scripts for pgbench, and its versions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.core import pgbench, sql_parameters
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.protocol import Statement

#: Text in which pgbench could find something of its own.
TRICKY = st.text(st.sampled_from("ab1:;\\'\"$-\n _"), max_size=30)


def script(sql: str, *args: object, mode: str = "simple") -> pgbench.Script:
    return pgbench.script(sql_parameters.statements(sql, args), mode)


def substituted(found: pgbench.Script) -> str:
    """What pgbench sends in mode simple: it replaces the variables that it knows, and only these."""
    known = {**found.variables, "scale": "1", "client_id": "0", "random_seed": "7", "default_seed": "8"}
    name = re.compile(r"(:+)([A-Za-z_][A-Za-z0-9_]*)?")

    def value(match: re.Match[str]) -> str:
        colons, variable = match.groups()
        return known.get(variable, match[0]) if colons == ":" and variable else match[0]

    return name.sub(value, found.text)


@pytest.mark.parametrize(
    ("sql", "mode", "text"),
    [
        ("select 1", "simple", "select 1\n;\n"),
        ("select 1 ; -- end\n", "simple", "select 1\n;\n"),
        ("select '\\', 1::int", "prepared", "select '\\', 1::int\n;\n"),
        ("select 1; select 2", "simple", "select 1\\; select 2\n;\n"),
    ],
)
def test_a_statement_is_one_command(sql: str, mode: str, text: str) -> None:
    assert script(sql, mode=mode).text == text


def test_each_statement_is_a_command() -> None:
    both = [*sql_parameters.statements("select 1", ()), *sql_parameters.statements("select 2", ())]
    assert pgbench.script(both, "simple").text == "select 1\n;\nselect 2\n;\n"


def test_values_are_variables_in_the_extended_protocol() -> None:
    found = script("select %s, %s", "it's :scale", None, mode="extended")
    assert found.text == "select :pgperf_0_1 , :pgperf_0_2 \n;\n"
    assert found.variables == {"pgperf_0_1": "it's :scale"}


@given(TRICKY)
def test_pgbench_sends_a_value_as_it_is(value: str) -> None:
    found = script("select %s", f"{value}:scale:client_id::random_seed")
    literal = sql_parameters.literal("select %s", [f"{value}:scale:client_id::random_seed"])
    assert substituted(found) == f"{literal}\n;\n"


@pytest.mark.parametrize(
    "sql", ["\\! rm x", "select 1 \\gset", "select 1\n\\sleep 1 s", "select 1 \\; select 2"]
)
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_a_backslash_outside_of_quotes_is_refused(sql: str, mode: str) -> None:
    with pytest.raises(InvalidDefinition, match=r"sql: .*backslash"):
        script(sql, mode=mode)


@pytest.mark.parametrize(
    "sql", ["select ':name'", "select a[1:n] from t", 'select ":x"', "select 1 -- :y\n, 2"]
)
def test_a_name_after_a_colon_is_refused_in_the_extended_protocol(sql: str) -> None:
    with pytest.raises(InvalidDefinition, match=r"sql: .*takes :[nxy]"):
        script(sql, mode="extended")
    assert substituted(script(sql)) == f"{sql}\n;\n"


def test_a_value_with_a_type_is_refused() -> None:
    with pytest.raises(InvalidDefinition, match=r"args: .*type"):
        pgbench.script([Statement(numbered="select $1", args_text=["1"], arg_oids=[23])], "prepared")


@pytest.mark.parametrize(
    ("said", "version", "works"),
    [
        ("pgbench (PostgreSQL) 18.6", "18.6", True),
        ("pgbench (PostgreSQL) 14.0 (Debian 14.0-1)", "14.0", True),
        ("pgbench (PostgreSQL) 19devel", "19devel", True),
        ("pgbench (PostgreSQL) 13.20", "13.20", False),
        ("pgbench (PostgreSQL) 9.6.24", "9.6.24", False),
        ("psql (PostgreSQL) 18.6", "", False),
        ("", "", False),
    ],
)
def test_versions(said: str, version: str, works: bool) -> None:
    assert pgbench.version_of(said) == version
    assert (pgbench.version_refusal(version) == "") is works
