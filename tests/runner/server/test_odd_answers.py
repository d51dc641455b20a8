"""Control queries against forged answers: a typed error that names the route and the server."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.access import called_functions, fixtures, guardrails, readonly_role
from pgperf.core.answers import (
    ADDRESS,
    IDENTIFIER,
    LINE,
    NUMBER,
    PID,
    TEXT,
    TRUTH,
    WHOLE,
    ControlQuery,
    named,
)
from pgperf.core.exceptions import ClientFailed, PreflightRefused, UnexpectedAnswer
from pgperf.core.records import Route
from pgperf.core.sql_calls import Call
from pgperf.runner import environment
from pgperf.runner.memory import RunMemory
from pgperf.runner.server import pg_stat_activity, version
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.pg_stat_statements import PgStatStatements
from pgperf.runner.server.pgbouncer_console import PgBouncerConsole
from pgperf.runner.server.probe import ServerProbe
from tests.clients.hostile_server import HTML, ROWS, HostileServer
from tests.fuzz.hostile import WORDS

pytestmark = pytest.mark.usefixtures("forked_control_connections")


def probe(route: Route, ask: Callable[[ServerProbe], Any]) -> Any:
    with ServerProbe([route], ControlConnection(route), "odd", True) as opened:
        return ask(opened)


def over(route: Route, ask: Callable[[ControlConnection], Any]) -> Any:
    with ControlConnection(route) as connection:
        return ask(connection)


def console(route: Route, ask: Callable[[PgBouncerConsole], Any]) -> Any:
    with PgBouncerConsole(route, "odd") as opened:
        return ask(opened)


CALL = Call("", "now")
#: What pgperf asks a server, by the room that asks.
QUESTIONS: dict[str, Callable[[Route], Any]] = {
    "version": lambda route: over(route, lambda each: version.check(*each.one(version.NUMBER))),
    "headroom": lambda route: probe(route, lambda server: server.headroom(RunMemory.now())),
    "own process": lambda route: probe(route, lambda server: server.pin_refusal()),
    "sessions": lambda route: probe(route, lambda server: server.finder(None)([])),  # type: ignore[arg-type]
    "settings": lambda route: probe(route, lambda server: environment.settings(server.all)),
    "sources": lambda route: probe(route, lambda server: environment.overriding_sources(server.all)),
    "replication": lambda route: probe(route, lambda server: environment.replicates(server.all)),
    "proof": lambda route: guardrails.guard(route, guardrails.Demand.SESSION),
    "fixture": lambda route: fixtures.exists("site", route),
    "doctor's script": readonly_role.create_script,
    "doctor's script of removal": readonly_role.removal_script,
    "doctor's grant": lambda route: readonly_role.session_grant(route, route),
    "a run's grant": lambda route: probe(
        replace(route, pooler="session"),
        lambda server: server.finder(None)([]),  # type: ignore[arg-type]
    ),
    "functions": lambda route: over(route, lambda each: called_functions.functions(each, [CALL])),
    "states": lambda route: over(route, lambda each: pg_stat_activity.poll(each, "true", 5)),
    "the time": lambda route: over(route, pg_stat_activity.begun_after),
    "statements": lambda route: over(route, PgStatStatements.find),
    "console's totals": lambda route: console(route, lambda each: each.totals()),
    "console's pool": lambda route: console(route, lambda each: each.pool()),
}


def refusal(question: str, route: Route) -> Exception | None:
    """Why the answer is refused, None if it is used. Any other error than pgperf's own is raised."""
    try:
        QUESTIONS[question](route)
    except (ClientFailed, PreflightRefused) as error:
        return error
    return None


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_odd_answer_is_used_safely_or_refused(question: str, rows: str, routes: dict[str, Route]) -> None:
    """Never with the server's own text."""
    is_console = question.startswith("console")
    real = routes["pgbouncer" if is_console else "tcp"]
    with HostileServer(real.port, {"SHOW S" if is_console else "SELECT": ROWS[rows]}) as server:
        error = refusal(question, replace(real, host="127.0.0.1", port=server.port))
    assert "ended unexpectedly" not in str(error)
    assert not isinstance(error, UnexpectedAnswer) or (
        f"over {real.name}: the answer of 127.0.0.1:{server.port}" in str(error)
        and HTML.decode() not in str(error)
    )


@pytest.mark.parametrize("question", ["headroom", "own process", "sessions"])
def test_a_pid_or_number_that_is_none_is_refused(question: str, routes: dict[str, Route]) -> None:
    with HostileServer(routes["tcp"].port, {"pg_": ROWS["text"]}) as server:
        route = replace(routes["tcp"], port=server.port)
        with pytest.raises(
            UnexpectedAnswer, match=r"over tcp: the answer of 127\.0\.0\.1:\d+ about .* column 1"
        ):
            QUESTIONS[question](route)


#: A line break, what a terminal obeys, and what turns or hides text.
UNPRINTABLE = ["a\nb", "a\rb", "a\x1b[2Jb", "a\x9b31m", "a\tb", "a\0b", "a\u2028b", "a\u202eb", "a\u200bb"]
_COLUMNS = st.sampled_from([TEXT, LINE, IDENTIFIER, WHOLE, PID, NUMBER, TRUTH, TEXT.or_null, WHOLE.or_null])
_VALUES = st.none() | WORDS | st.integers().map(str) | st.floats().map(str) | st.sampled_from(["t", "f"])


@given(st.lists(_COLUMNS, max_size=4), st.lists(st.lists(_VALUES, max_size=4), max_size=4))
def test_any_rows_are_read_or_refused(columns: list[Any], rows: list[list[str | None]]) -> None:
    query = ControlQuery("anything", "", tuple(columns))
    for read in (query.read, query.read_one):
        with suppress(ValueError):
            read(rows)


@given(st.lists(WORDS, max_size=4), st.lists(_VALUES, max_size=4))
def test_any_named_row_is_read_or_refused(names: list[str], row: list[str | None]) -> None:
    wanted = {"database": TEXT, "total_xact_count": WHOLE}
    with suppress(ValueError):
        assert set(named(names, row, wanted)) == set(wanted)


@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        (PID, {"1": 1, "4194304": 4194304}, ["0", "-1", "x", "", "²", "2147483648", "1_0", " 1"]),
        (WHOLE, {"-5": -5, "0": 0}, ["1.5", "9" * 40, "٣", "1e3", "+1", ""]),
        (NUMBER, {"1.5": 1.5, "-2e3": -2000.0, "7": 7.0}, ["nan", "inf", "1e400", "0x1", "1_0", "e999"]),
        (ADDRESS, {"127.0.0.1": "127.0.0.1", "::1": "::1"}, ["", "localhost", "1.2.3", "::1/128"]),
        (TRUTH, {"t": True, "False": False}, ["T", "1", "yes", ""]),
        (TEXT, {"": "", "é": "é"}, ["a\0b", "x" * 200_000]),
        (LINE, {"18.4 (Debian)": "18.4 (Debian)", "é\\": "é\\"}, ["", *UNPRINTABLE, "x" * 2_000]),
        (IDENTIFIER, {"shop": '"shop"', 'a"b': '"a""b"', "\\! x": '"\\! x"'}, ["", *UNPRINTABLE]),
    ],
)
def test_each_column_reads_its_own_text_only(column: Any, good: dict[str, Any], bad: list[str]) -> None:
    assert {text: column.read(text) for text in good} == good
    for text in bad:
        with pytest.raises((ValueError, KeyError)):
            column.read(text)
