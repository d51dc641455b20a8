"""SQL written by a user calls no function that may do more than read, however it is written."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.conf import settings as site_settings
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from psycopg import sql

from pgperf.access import called_functions, guardrails
from pgperf.core import sql_functions
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import Route, WorkloadDefinition
from pgperf.core.sql_calls import Call, calls
from pgperf.runner.server.control_connection import ControlConnection
from tests.core.spellings import spelled_calls
from tests.security.conftest import Harm
from tests.security.test_guardrails import plan

DATABASE = "pgperf_functions"
#: Functions of the site, in schema own, which is on the search path.
_OWN = (
    "CREATE SCHEMA own",
    "CREATE SCHEMA aside",
    f"ALTER DATABASE {DATABASE} SET search_path = public, own",
    "CREATE SEQUENCE own.count",
    "CREATE FUNCTION own.probe(int) RETURNS int LANGUAGE sql VOLATILE AS $$ SELECT nextval('own.count')::int $$",
    "CREATE FUNCTION own.steady(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1'",
    "CREATE FUNCTION own.two(int, int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1'",
    "CREATE FUNCTION own.mixed(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'",
    "CREATE FUNCTION own.mixed(text) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1'",
    "CREATE FUNCTION own.random(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1'",
    "CREATE FUNCTION own.lo_price(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT 1'",
    "CREATE FUNCTION aside.hidden(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1'",
    "CREATE FUNCTION own.\"Two Words\"(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1'",
    f"CREATE FUNCTION own.{'n' * 63}(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1'",
)
#: Functions that SQL cannot call: of triggers, and with arguments that only the server makes.
_UNCALLABLE = """
    'internal'::regtype = ANY (proargtypes::oid[]) OR prorettype IN ('trigger'::regtype, 'event_trigger'::regtype)
"""


@pytest.fixture(scope="module")
def server(superuser_login: dict[str, Any]) -> Iterator[psycopg.Connection[Any]]:
    """A database with every extension that can be created, and functions of its own."""
    with psycopg.connect(**superuser_login, dbname="postgres") as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {DATABASE}")
        with psycopg.connect(**superuser_login, dbname=DATABASE) as connection:
            for (name,) in connection.execute("SELECT name FROM pg_available_extensions").fetchall():
                connection.execute(
                    sql.SQL("CREATE EXTENSION IF NOT EXISTS {} CASCADE").format(sql.Identifier(name))
                )
            for statement in _OWN:
                connection.execute(statement)
        with psycopg.connect(**superuser_login, dbname=DATABASE) as connection:
            yield connection
        admin.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


@pytest.fixture(scope="module")
def route(server: psycopg.Connection[Any], superuser_login: dict[str, Any]) -> Route:
    login = {name: superuser_login[name] for name in ("host", "port", "user", "password")}
    return Route("tcp", dbname=DATABASE, **login)


@pytest.fixture(scope="module")
def control(route: Route) -> Iterator[ControlConnection]:
    with ControlConnection(route) as connection:
        yield connection


def refusals(control: ControlConnection, *called: Call) -> list[str]:
    return [
        why for each in called_functions.functions(control, called) if (why := called_functions.refusal(each))
    ]


def volatile(server: psycopg.Connection[Any], where: str = "true") -> set[tuple[str, str]]:
    rows = server.execute(
        "SELECT DISTINCT n.nspname, p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        f" WHERE p.provolatile = 'v' AND n.nspname NOT IN ('own', 'aside') AND {where}"
    )
    return set(rows.fetchall())


def test_every_volatile_function_is_refused_unless_it_is_known_as_harmless(
    server: psycopg.Connection[Any], control: ControlConnection
) -> None:
    found = volatile(server)
    assert len(found) > 200
    all_calls = [Call(schema, name) for schema, name in found]
    allowed = {
        each.name
        for each in called_functions.functions(control, all_calls)
        if not called_functions.refusal(each)
    }
    assert allowed == {name for _schema, name in found} & sql_functions.HARMLESS


def test_every_volatile_function_that_sql_can_call_is_decided(server: psycopg.Connection[Any]) -> None:
    names = {name for _schema, name in volatile(server, f"NOT ({_UNCALLABLE})")}
    undecided = {name for name in names - sql_functions.HARMLESS if not sql_functions.refusal(name)}
    assert undecided == set()


def test_no_function_is_both_harmless_and_refused() -> None:
    assert [name for name in sql_functions.HARMLESS if sql_functions.refusal(name)] == []


#: Not volatile, and yet refused.
@pytest.mark.parametrize(
    "name",
    ["table_to_xml", "schema_to_xml", "database_to_xml_and_xmlschema", "crosstab", "crosstab2", "connectby",
     "txid_current", "pg_current_xact_id"],
)  # fmt: skip
def test_listed_functions_are_refused_although_they_are_not_volatile(
    control: ControlConnection, name: str
) -> None:
    assert len(refusals(control, Call("", name))) == 1


@pytest.mark.parametrize(
    ("called", "refused"),
    [
        (Call("", "probe"), ["own.probe"]),
        (Call("own", "probe"), ["own.probe"]),
        (Call("", "probe", dotted=True), ["own.probe"]),
        (Call("", "mixed"), ["own.mixed"]),
        (Call("", "two"), ["own.two"]),
        (Call("", "two", dotted=True), []),
        (Call("", "steady"), []),
        (Call("", "lo_price"), []),
        (Call("", "random"), ["own.random"]),
        (Call("pg_catalog", "random"), []),
        (Call("", "hidden"), []),
        (Call("aside", "hidden"), ["aside.hidden"]),
        (Call("", "Two Words"), ["own.Two Words"]),
        (Call("", "n" * 70), ["own." + "n" * 63]),
        (Call("", "no_such_function"), []),
        (Call("no_such_schema", "random"), []),
        (Call("", "'); DROP SCHEMA own CASCADE; --"), []),
        (Call("", "a\\"), []),
    ],
)
def test_the_sites_own_functions(control: ControlConnection, called: Call, refused: list[str]) -> None:
    assert [why.partition("() is refused")[0] for why in refusals(control, called)] == refused


def test_settings_allow_functions_outside_pg_catalog(control: ControlConnection, settings: Any) -> None:
    called = [Call("", name) for name in ("probe", "mixed", "crosstab", "pg_cancel_backend")]
    names = [each.name for each in called_functions.functions(control, called)]
    assert sorted(names) == ["crosstab", "mixed", "pg_cancel_backend", "probe"]
    assert all('"own.' in why or '"public.' in why for why in refusals(control, *called[:3]))
    allowed = ["own.probe", "public.crosstab", "pg_catalog.pg_cancel_backend"]
    settings.PGPERF = {**site_settings.PGPERF, "ALLOWED_FUNCTIONS": allowed}
    assert [why.partition("()")[0] for why in refusals(control, *called)] == [
        "own.mixed",
        "pg_catalog.pg_cancel_backend",
    ]


@given(statement=spelled_calls("own", "probe"))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_every_spelling_that_the_server_understands_is_found(
    server: psycopg.Connection[Any], control: ControlConnection, statement: str
) -> None:
    """The server calls the function for each of these statements."""
    before = _count(server)
    server.execute(statement.encode())
    assert _count(server) > before
    assert any("own.probe" in why for why in refusals(control, *calls(statement)))


def _count(server: psycopg.Connection[Any]) -> int:
    row = server.execute("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM own.count").fetchone()
    assert row
    return int(row[0])


ATTACKS = [
    "SELECT * FROM ts_stat('SELECT to_tsvector(pg_advisory_lock(42)::text)')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, pg_advisory_lock(42)::text::tsquery')",
    "SELECT * FROM ts_stat('SELECT to_tsvector(pg_terminate_backend(pid)::text) FROM pg_stat_activity')",
    "SELECT (42::bigint).pg_advisory_lock",
    "SELECT (42::bigint) . \"pg_advisory_lock\"",
    "SELECT n.pg_advisory_lock FROM CAST(42 AS bigint) AS n",
    "SELECT n.pg_advisory_lock FROM generate_series(42::bigint, 42) AS n",
    "SELECT ('SELECT to_tsvector(pg_advisory_lock(42)::text)'::text).ts_stat",
    "SELECT TREAT(42::bigint AS pg_advisory_lock)",
    "SELECT TREAT(42::bigint AS pg_catalog.pg_advisory_lock)",
    'SELECT pgperf_harm . PG_catalog . "pg_advisory_lock" /* ( */ (42)',
]  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS)
@pytest.mark.parametrize("field", ["sql", "other_sql"])
def test_attacks_are_refused_in_the_worker(harm: Harm, field: str, text: str) -> None:
    before = harm.state()
    work = WorkloadDefinition(**{"name": "own", "sql": "SELECT 1", field: text})
    with pytest.raises(InvalidDefinition, match=rf"^{field}: .* is refused"):
        guardrails.apply(plan(work), {"tcp": harm.route("harm_bare")}, production=False)
    assert harm.state() == before


@pytest.mark.parametrize("args", [("||pg_advisory_lock(42)||",), ("*/ pg_advisory_lock(42) /*",)])
@pytest.mark.parametrize("text", ["SELECT '%s'", "SELECT /* %s */ 1", "SELECT $$ %s $$"])
def test_an_argument_cannot_leave_its_quotes(harm: Harm, text: str, args: tuple[str]) -> None:
    with pytest.raises(InvalidDefinition, match=r"^sql: a placeholder"):
        guardrails.apply(
            plan(WorkloadDefinition("own", text, args)), {"tcp": harm.route("harm_bare")}, production=False
        )


def test_a_name_that_an_argument_completes_is_found(route: Route, server: psycopg.Connection[Any]) -> None:
    server.execute("CREATE OR REPLACE FUNCTION own.step7() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1'")
    with pytest.raises(InvalidDefinition, match=r"^sql: over route tcp, own\.step7\(\) is refused"):
        called_functions.check(route, [WorkloadDefinition("own", "SELECT step%s()", (7,))])


def test_harmless_sql_passes(harm: Harm) -> None:
    text = "SELECT note, upper(note), now(), random(), p.note FROM public.precious AS p WHERE id = abs(%s)"
    work = replace(WorkloadDefinition("own", text, (1,)), other_sql="SELECT clock_timestamp(), pg_sleep(0)")
    guarded = guardrails.apply(plan(work), {"tcp": harm.route("harm_bare")}, production=False)
    assert guarded.routes["tcp"].options
