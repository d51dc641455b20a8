"""Every client through the same cases, whatever its language, layer and mode."""

import os
import time
from collections.abc import Iterator
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path

import psycopg
import pytest

from pgperf.catalog import BENCHMARKS
from pgperf.core import layers, protocol, sql_parameters
from pgperf.core.records import Route, WorkloadDefinition
from tests.clients.conftest import Start
from tests.clients.driving import Driven, Subject, spec, with_workloads
from tests.clients.proxy import Proxy

#: psycopg's program under another implementation: one mode is enough, and psycopg_c has to be
#: compiled.
FEWER_MODES: dict[str, tuple[str, ...]] = {
    "psycopg_binary": ("simple",),
    "psycopg_python": ("prepared",),
    "psycopg_c": (),
}
#: Layer -> its program and the modes that it is tried in. Pages are in runner/capture/test_pages.py.
PROGRAM_OF = {
    name: (layer.program, FEWER_MODES.get(name, layer.modes))
    for name, layer in layers.LAYERS.items()
    if layer.connects and not layer.tool and not layer.requests_pages
}
LAYERS = (
    *[Subject(layer, mode, module) for layer, (module, modes) in PROGRAM_OF.items() for mode in modes],
    Subject("django_cursor", "simple", "tests.clients.django_on_psycopg2", "django_cursor-without-psycopg"),
    Subject("django_orm", "simple", "tests.clients.django_on_psycopg2", "django_orm-without-psycopg"),
)
NAMED = {str(subject): subject for subject in LAYERS}
LIBPQ = NAMED["libpq-simple"]
FAKE = Subject("fake", "simple", "pgperf.clients.programs.fake_client")
ON_UVLOOP = (NAMED["psycopg_async_uvloop-simple"], NAMED["asyncpg_uvloop-prepared"])
PROGRAMS = (
    LIBPQ, NAMED["psycopg2-simple"], NAMED["psycopg-simple"], NAMED["psycopg_async-simple"],
    NAMED["asyncpg-prepared"], *ON_UVLOOP, NAMED["django_orm-simple"], NAMED["django_orm_async-simple"], FAKE,
)  # fmt: skip
#: The readers of the protocol: one in C, one in Python, alone and in programs with and without an
#: event loop.
READERS = (LIBPQ, FAKE, NAMED["psycopg-simple"], NAMED["asyncpg-prepared"])
SQL_LAYERS = [subject for subject in LAYERS if not subject.calls_orm]
ORM_LAYERS = [subject for subject in LAYERS if subject.calls_orm]
#: Each program with each driver once, in whichever mode comes first: for what happens before a
#: statement is sent.
LOGINS = list({(subject.layer, subject.module): subject for subject in reversed(LAYERS)}.values())


def is_asyncpg(subject: Subject) -> bool:
    """On either event loop."""
    return subject.module == layers.LAYERS["asyncpg"].program


SITE = BENCHMARKS["orm-overhead"].workloads[0]
AT_ONCE = protocol.Slice(seq=1, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=1)

every_layer = pytest.mark.parametrize("subject", LAYERS, ids=str)
every_login = pytest.mark.parametrize("subject", LOGINS, ids=str)
every_reader = pytest.mark.parametrize("subject", READERS, ids=str)
every_program = pytest.mark.parametrize("subject", PROGRAMS, ids=str)


def one_hour_slice() -> protocol.Slice:
    """A slice that begins now and does not end within a test."""
    start_ns = time.monotonic_ns()
    return protocol.Slice(
        seq=1, start_ns=start_ns, lead_in_ops=0, lead_in_ns=0, window_ns=3_600 * 10**9, count=0
    )


def select(sql: str, *args: object) -> WorkloadDefinition:
    """A workload of any SELECT with the columns id, domain, name: the ORM reads it as rows of its
    model.
    """
    return WorkloadDefinition("select", sql, args, orm="tests.raw")


def started(
    start: Start, subject: Subject, route: Route, work: WorkloadDefinition = SITE, **changes: object
) -> Driven:
    """A client that has its spec; one of the ORM reads any SELECT through `tests.raw`."""
    if subject.calls_orm and work.orm.startswith("tests."):
        subject = Subject(subject.layer, subject.mode, with_workloads(subject))
        changes = {"orm_args": [work.sql] if work.orm == "tests.raw" else list(work.args), **changes}
    client = start(subject)
    client.send(spec(subject, route, work)._replace(**changes))
    return client


# One session of a client serves all tests that only ask it for slices.


@pytest.fixture(scope="module", params=LAYERS, ids=str)
def session(
    request: pytest.FixtureRequest, c_program: Path, tcp: Route, admin: psycopg.Connection
) -> Iterator[tuple[Driven, protocol.Ready, Subject]]:
    with Driven.start(request.param, c_program) as client:
        client.send(spec(request.param, tcp, SITE))
        yield client, client.read(protocol.Ready), request.param
        client.send(protocol.Bye())
        assert client.wait() == protocol.EXIT_OK
        assert client.at_end()


Session = tuple[Driven, protocol.Ready, Subject]


def test_ready_identifies_the_client(session: Session, admin: psycopg.Connection) -> None:
    client, ready, subject = session
    activity = admin.execute(
        "SELECT application_name, state, xact_start, backend_type FROM pg_stat_activity WHERE pid = %s",
        [ready.backend_pid],
    ).fetchone()
    assert activity == ("conformance", "idle", None, "client backend")
    assert ready.pid == client.process.pid
    assert ready.rows_per_op == 1
    assert ready.server_version == admin.info.parameter_status("server_version")
    assert is_asyncpg(subject) or ready.versions["libpq"].partition(".")[0].isdigit()
    if subject.layer.startswith("django"):
        assert ready.versions["django"]
        on_psycopg2 = "psycopg2" in subject.layer or "without-psycopg" in subject.name
        assert ready.versions["driver"] == ("psycopg2" if on_psycopg2 else "psycopg")
    on_uvloop = {"loop": "uvloop", "uvloop": version("uvloop")}
    loop = on_uvloop if layers.LAYERS[subject.layer].event_loop else {"loop": "asyncio"}
    if "async" in subject.layer and not subject.calls_orm:
        assert {name: ready.versions.get(name) for name in loop} == loop
    if subject.layer in ("psycopg_binary", "psycopg_python"):
        assert ready.versions["implementation"] == subject.layer.removeprefix("psycopg_")
    if subject.module:
        assert {"python", "driver", "driver_version"} <= set(ready.versions)


def test_ready_has_every_cold_phase(session: Session) -> None:
    phases = {name: value for name, value in session[1]._asdict().items() if name.endswith("_us")}
    assert len(phases) == 7
    assert all(value > 0 for value in phases.values())


def test_the_password_is_not_visible_to_other_processes(session: Session, tcp: Route) -> None:
    client, ready, _ = session
    process = Path("/proc", str(ready.pid))
    for part in ("cmdline", "environ"):
        assert tcp.password.encode() not in (process / part).read_bytes()
    assert tcp.password not in client.last_words()


def test_a_slice_by_time_ends_with_the_first_operation_past_its_window(session: Session) -> None:
    window = 30_000_000
    before = time.monotonic_ns()
    reply, durations = session[0].slice(
        protocol.Slice(seq=5, start_ns=0, lead_in_ops=7, lead_in_ns=10_000_000, window_ns=window, count=0)
    )
    after = time.monotonic_ns()
    assert reply.lead_in_ops >= 7
    assert before + 10_000_000 <= reply.first_ns <= after
    assert reply.rows == reply.ops == len(durations) >= 1
    assert sum(durations[:-1]) < window <= sum(durations) <= after - reply.first_ns
    assert not reply.capped
    assert 0 <= reply.user_ns + reply.sys_ns <= after - before


def test_a_slice_by_count_is_exact(session: Session) -> None:
    reply, durations = session[0].slice(
        protocol.Slice(seq=6, start_ns=0, lead_in_ops=3, lead_in_ns=0, window_ns=0, count=17)
    )
    assert (reply.ops, len(durations), reply.rows, reply.lead_in_ops, reply.capped) == (17, 17, 17, 3, False)
    assert all(durations)


def test_an_armed_slice_keeps_to_its_window(session: Session) -> None:
    start, lead_in, window = time.monotonic_ns() + 60_000_000, 10_000_000, 30_000_000
    session[0].send(
        protocol.Slice(seq=7, start_ns=start, lead_in_ops=1, lead_in_ns=lead_in, window_ns=window, count=0)
    )
    assert session[0].read(protocol.Armed) == protocol.Armed(7)
    reply = session[0].read(protocol.SliceReply)
    durations = session[0].samples(reply)
    ends = list(accumulate(durations, initial=reply.first_ns))
    assert reply.lead_in_ops >= 1
    assert reply.first_ns >= start + lead_in
    assert reply.ops == 0 or ends[-2] < start + lead_in + window <= ends[-1]


def test_an_armed_slice_by_count_waits_for_its_start(session: Session) -> None:
    start = time.monotonic_ns() + 30_000_000
    reply, durations = session[0].slice(
        protocol.Slice(seq=8, start_ns=start, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=3)
    )
    assert reply.first_ns >= start
    assert len(durations) == 3


def test_a_window_that_is_over_before_the_lead_in_stays_empty(session: Session) -> None:
    reply, durations = session[0].slice(
        protocol.Slice(seq=9, start_ns=1, lead_in_ops=4, lead_in_ns=0, window_ns=1, count=0)
    )
    assert (reply.ops, reply.rows, reply.lead_in_ops, len(durations)) == (0, 0, 4, 0)


def test_each_operation_runs_the_statement_once_and_reads_its_rows(
    session: Session, admin: psycopg.Connection
) -> None:
    assert admin.execute("SELECT count(*) FROM pgperf.site").fetchone() == (4,)
    reply, _ = session[0].slice(
        protocol.Slice(seq=10, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=5)
    )
    assert reply.rows == 5


# What goes over the wire.


#: What one operation sends: asyncpg knows a result's columns already, or asks about them in a round
#: trip of its own.
EXTENDED = {
    (False, "prepared"): ["B", "D", "E", "S"],
    (False, "extended"): ["P", "B", "D", "E", "S"],
    (True, "prepared"): ["B", "E", "S"],
    (True, "extended"): ["P", "D", "H", "P", "B", "E", "S"],
}


@every_layer
def test_every_layer_sends_the_same_messages(subject: Subject, start: Start, tcp: Route) -> None:
    with Proxy(tcp.port) as proxy:
        client = start(subject)
        told = spec(subject, tcp, SITE)._replace(host="127.0.0.1", port=proxy.port)
        client.send(told)
        client.read(protocol.Ready)
        proxy.forget()
        client.slice(protocol.Slice(seq=1, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=3))
        sent = proxy.messages()
    if subject.binds_on_client:
        assert sent == [("Q", told.statements[0].literal.encode() + b"\x00")] * 3
    else:
        assert [kind for kind, _ in sent] == EXTENDED[is_asyncpg(subject), subject.mode] * 3
        assert all(b"example.com" in body for kind, body in sent if kind == "B")


@every_login
def test_without_cold_phases_it_runs_the_statement_once(subject: Subject, start: Start, tcp: Route) -> None:
    ready = started(start, subject, tcp, cold=False).read(protocol.Ready)
    assert ready.rows_per_op == 1
    assert [value for name, value in ready._asdict().items() if name.endswith("_us")] == [None] * 7


@every_login
def test_the_environment_changes_nothing(
    subject: Subject, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    work = select(
        "SELECT 1 / (current_setting('TimeZone') = 'UTC' AND current_setting('application_name') = 'conformance'"
        " AND current_setting('statement_timeout') = '0')::int AS id, 'd' AS domain, 'n' AS name"
    )
    served_by_others = {
        "PGHOST": "192.0.2.1", "PGHOSTADDR": "192.0.2.1", "PGPORT": "1", "PGUSER": "nobody", "PGDATABASE": "none",
        "PGPASSWORD": "wrong", "PGOPTIONS": "-c statement_timeout=1", "PGTZ": "Asia/Tokyo", "PGSERVICE": "none",
        "PGSSLMODE": "verify-full", "PGAPPNAME": "other", "PGCLIENTENCODING": "LATIN1", "PGSYSCONFDIR": "/nonexistent",
    }  # fmt: skip
    client = started(lambda subject: start(subject, **served_by_others), subject, tcp, work)
    assert client.read(protocol.Ready).rows_per_op == 1


@every_login
def test_the_session_has_one_time_zone_whatever_the_servers_is(
    subject: Subject, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    work = select("SELECT 1 / (current_setting('TimeZone') = 'UTC')::int AS id, 'd' AS domain, 'n' AS name")
    admin.execute(f"ALTER ROLE \"{tcp.user}\" SET timezone = 'Asia/Tokyo'")
    try:
        assert started(start, subject, tcp, work).read(protocol.Ready).rows_per_op == 1
    finally:
        admin.execute(f'ALTER ROLE "{tcp.user}" RESET timezone')


# Values.

#: Far more rows than any driver or Django takes at a time.
MANY = 30_000
#: A SELECT and how many rows it has.
RESULTS = {
    "nulls": ("SELECT 1 AS id, NULL::text AS domain, NULL::text AS name", 1),
    "two megabytes": ("SELECT 1 AS id, repeat('x', 2000000) AS domain, '' AS name", 1),
    "many": (f"SELECT i AS id, 'd' AS domain, 'n' AS name FROM generate_series(1, {MANY}) i", MANY),
    "no rows": ("SELECT 1 AS id, 'd' AS domain, 'n' AS name WHERE false", 0),
    "beyond ASCII": (
        "SELECT 1 / (length('Größe 漢字😀') = 9 AND octet_length('Größe 漢字😀') = 18)::int AS id,"
        " 'Größe 漢字😀' AS domain, chr(128512) AS name", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("subject", ORM_LAYERS, ids=str)
@pytest.mark.parametrize("kind", RESULTS)
def test_results_of_every_kind(subject: Subject, start: Start, tcp: Route, kind: str) -> None:
    text, rows = RESULTS[kind]
    client = started(start, subject, tcp, select(text), cold=False)
    assert client.read(protocol.Ready).rows_per_op == rows
    reply, _ = client.slice(AT_ONCE._replace(count=2))
    assert reply.rows == 2 * rows


@pytest.mark.parametrize("subject", SQL_LAYERS, ids=str)
def test_results_of_every_kind_in_one_operation(subject: Subject, start: Start, tcp: Route) -> None:
    """For a layer of SQL a result is a result, in whichever statement."""
    statements = tuple(sql_parameters.statement(text, []) for text, _ in RESULTS.values())
    client = started(
        start, subject, tcp, WorkloadDefinition("results", "", statements=statements), cold=False
    )
    assert client.read(protocol.Ready).rows_per_op == MANY + 3
    reply, _ = client.slice(AT_ONCE._replace(count=2))
    assert reply.rows == 2 * (MANY + 3)


@pytest.mark.parametrize("subject", SQL_LAYERS, ids=str)
def test_arguments_of_every_kind(subject: Subject, start: Start, tcp: Route) -> None:
    args = ["it's \\ 'ü' 漢\n%", 7, -7, 2.5, True, None]
    work = WorkloadDefinition(
        "arguments",
        "SELECT 1 / (%s::text = E'it''s \\\\ ''ü'' 漢\\n' || chr(37) AND 10 %% %s::int = 3 AND 1-%s::int = 8"
        " AND %s::float8 = 2.5 AND %s::bool AND %s::text IS NULL)::int",
        tuple(args),
    )
    assert started(start, subject, tcp, work).read(protocol.Ready).rows_per_op == 1


@pytest.mark.parametrize("subject", SQL_LAYERS, ids=str)
def test_a_command_without_rows_and_with_a_notice(subject: Subject, start: Start, tcp: Route) -> None:
    work = WorkloadDefinition("command", "DO $$ BEGIN RAISE WARNING 'stray'; END $$")
    client = started(start, subject, tcp, work)
    assert client.read(protocol.Ready).rows_per_op == 0
    assert client.slice(AT_ONCE)[0].rows == 0


@pytest.mark.parametrize("subject", ORM_LAYERS, ids=str)
@pytest.mark.parametrize(("orm", "rows"), [("tests.lazy", 1), ("tests.nothing", 0)])
def test_rows_of_an_orm_callable_are_counted(
    subject: Subject, start: Start, tcp: Route, orm: str, rows: int
) -> None:
    client = started(start, subject, tcp, WorkloadDefinition("orm", "%s", ("example.com",), orm=orm))
    assert client.read(protocol.Ready).rows_per_op == rows


# Several statements.

THREE = (
    sql_parameters.statement("SELECT id FROM pgperf.site WHERE id <= %s AND domain <> '50%%'", [3]),
    sql_parameters.statement("DO $$ BEGIN NULL; END $$", []),
    sql_parameters.statement("SELECT %s::text, 'two'", ["one"]),
)


@pytest.mark.parametrize("subject", SQL_LAYERS, ids=str)
def test_an_operation_runs_its_statements_in_order(subject: Subject, start: Start, tcp: Route) -> None:
    work = WorkloadDefinition("three", "", statements=THREE)
    with Proxy(tcp.port) as proxy:
        client = started(start, subject, tcp, work, host="127.0.0.1", port=proxy.port)
        assert client.read(protocol.Ready).rows_per_op == 4
        proxy.forget()
        reply, _ = client.slice(AT_ONCE._replace(count=2))
        sent = proxy.messages()
    assert (reply.ops, reply.rows) == (2, 8)
    if subject.binds_on_client:
        assert sent == [("Q", each.literal.encode() + b"\x00") for each in THREE] * 2
    else:  # a driver may send one without arguments as a simple query
        assert len([kind for kind, _ in sent if kind in "QE"]) == 6


@pytest.mark.parametrize("subject", SQL_LAYERS, ids=str)
def test_a_slice_can_run_one_of_the_statements_alone(subject: Subject, start: Start, tcp: Route) -> None:
    several = tuple(
        sql_parameters.statement("select * from generate_series(1, %s::int)", [rows]) for rows in (1, 2, 3)
    )
    client = started(start, subject, tcp, WorkloadDefinition("three", "", statements=several))
    assert client.read(protocol.Ready).rows_per_op == 6
    for number, rows in ((1, 1), (3, 3), (2, 2), (0, 6)):
        reply, _ = client.slice(AT_ONCE._replace(count=2, statement=number))
        assert (reply.ops, reply.rows) == (2, 2 * rows)
    client.send(AT_ONCE._replace(statement=4))
    error = client.read(protocol.Error)
    assert (error.stage, error.message) == (
        "slice",
        "statement: this client runs its operations as a whole only",
    )
    assert client.wait() == protocol.EXIT_FAILED


@pytest.mark.parametrize("subject", [s for s in SQL_LAYERS if s.module], ids=str)
def test_a_statement_without_python_values_runs_unchanged(subject: Subject, start: Start, tcp: Route) -> None:
    text = "SELECT 1 / ('%s %% %' = '%s ' || repeat('%', 2) || ' %')::int"
    statement = protocol.Statement("not this", None, text, "nor this")
    client = started(start, subject, tcp, WorkloadDefinition("as it is", "", statements=(statement,)))
    assert client.read(protocol.Ready).rows_per_op == 1


@pytest.mark.parametrize("subject", SQL_LAYERS, ids=str)
def test_an_empty_list_of_statements_is_refused(subject: Subject, start: Start, tcp: Route) -> None:
    client = started(start, subject, tcp, statements=[])
    error = client.read(protocol.Error)
    assert (error.stage, error.message.partition(":")[0]) == ("ready", "statements")
    assert client.wait() == protocol.EXIT_FAILED


# Failures.


@every_layer
def test_bad_sql_is_an_error_with_its_code_and_without_the_arguments(
    subject: Subject, start: Start, tcp: Route
) -> None:
    work = select("SELECT id, 'private value' AS domain, name FROM no_such_table")
    client = started(start, subject, tcp, work)
    error = client.read(protocol.Error)
    assert (error.stage, error.sqlstate) == ("ready", "42P01")
    assert 'relation "no_such_table" does not exist' in error.message
    assert "private value" not in error.message
    assert client.wait() == protocol.EXIT_FAILED
    assert client.at_end()


@every_login
def test_the_error_of_a_wrong_password_does_not_contain_it(
    subject: Subject, start: Start, tcp: Route
) -> None:
    secret = "s3cret'Ω\\ x"
    client = started(start, subject, tcp, password=secret)
    error = client.read(protocol.Error)
    assert error.stage == "connect"
    assert "password authentication failed" in error.message
    assert client.wait() == protocol.EXIT_FAILED
    assert not any(part in text for part in ("s3cret", "Ω") for text in (error.message, client.last_words()))


@every_login
def test_a_password_that_the_server_repeats_is_scrubbed(subject: Subject, start: Start, tcp: Route) -> None:
    client = started(start, subject, tcp, dbname=tcp.password)
    error = client.read(protocol.Error)
    assert 'database "<password>" does not exist' in error.message
    assert tcp.password not in client.last_words()


@every_login
def test_a_connection_string_as_database_name_is_not_expanded(
    subject: Subject, start: Start, tcp: Route
) -> None:
    for name in ("dbname=pgperf user=other", "postgresql://other@127.0.0.1/pgperf"):
        error = started(start, subject, tcp, dbname=name).read(protocol.Error)
        assert f'database "{name}" does not exist' in error.message


@every_login
def test_a_refused_connection_is_an_error(subject: Subject, start: Start, tcp: Route) -> None:
    client = started(start, subject, tcp, host="127.0.0.1", port=1)
    error = client.read(protocol.Error)
    assert (error.stage, error.sqlstate) == ("connect", "")
    assert "refused" in error.message
    assert client.wait() == protocol.EXIT_FAILED


@every_layer
def test_a_backend_terminated_mid_slice(
    subject: Subject, start: Start, tcp: Route, admin: psycopg.Connection
) -> None:
    client = started(start, subject, tcp, cold=False)
    ready = client.read(protocol.Ready)
    client.send(one_hour_slice())
    client.read(protocol.Armed)
    assert admin.execute("SELECT pg_terminate_backend(%s)", [ready.backend_pid]).fetchone() == (True,)
    error = client.read(protocol.Error)
    assert error.stage == "slice"
    assert error.sqlstate in ("57P01", "", *(["08003"] if is_asyncpg(subject) else []))
    assert error.message
    assert "cannot switch" not in error.message
    assert client.wait() == protocol.EXIT_FAILED


@every_layer
def test_the_connection_cut_mid_slice(subject: Subject, start: Start, tcp: Route) -> None:
    with Proxy(tcp.port) as proxy:
        client = started(start, subject, tcp, host="127.0.0.1", port=proxy.port, cold=False)
        client.read(protocol.Ready)
        client.send(one_hour_slice())
        client.read(protocol.Armed)
        proxy.cut()
        error = client.read(protocol.Error)
    assert error.stage == "slice"
    assert error.message
    assert client.wait() == protocol.EXIT_FAILED


LACKING = [
    (NAMED[name], mode)
    for name in ("psycopg2-simple", "django_orm_psycopg2-simple", "django_cursor-without-psycopg")
    for mode in ("extended", "prepared")
] + [(NAMED["asyncpg-prepared"], "simple")]


@pytest.mark.parametrize(("subject", "mode"), LACKING, ids=str)
def test_a_mode_that_a_layer_lacks_is_refused(subject: Subject, mode: str, start: Start, tcp: Route) -> None:
    client = started(start, subject, tcp, mode=mode)
    error = client.read(protocol.Error)
    assert error.stage == "spec"
    assert error.message.startswith("mode: ")
    assert client.wait() == protocol.EXIT_FAILED


@every_login
def test_an_unknown_mode_is_refused(subject: Subject, start: Start, tcp: Route) -> None:
    client = started(start, subject, tcp, mode="guessed")
    assert client.read(protocol.Error).message.startswith("mode: ")
    assert client.wait() == protocol.EXIT_FAILED


@pytest.mark.parametrize("orm", ["", "pgperf.no_such"])
def test_an_unknown_orm_callable_is_named(start: Start, tcp: Route, orm: str) -> None:
    client = started(start, NAMED["django_orm-simple"], tcp, orm=orm)
    error = client.read(protocol.Error)
    assert f"orm: no workload '{orm}' is registered; registered are: pgperf." in error.message
    assert "pgperf.site_by_domain" in error.message
    assert client.wait() == protocol.EXIT_FAILED


# The runner gone.


@every_program
@pytest.mark.parametrize("step", ["spec", "ready", "slice"])
def test_end_of_input_ends_it_at_every_step(subject: Subject, start: Start, tcp: Route, step: str) -> None:
    client = start(subject)
    if step != "spec":
        client.send(spec(subject, tcp, SITE))
        client.read(protocol.Ready)
    if step == "slice":
        client.send(
            protocol.Slice(
                seq=1,
                start_ns=time.monotonic_ns() + 20_000_000,
                lead_in_ops=0,
                lead_in_ns=0,
                window_ns=0,
                count=3,
            )
        )
    client.close_stdin()
    assert client.wait() == protocol.EXIT_OK


@every_program
def test_end_of_input_while_it_connects(subject: Subject, start: Start, tcp: Route) -> None:
    client = start(subject)
    client.send(spec(subject, tcp, SITE))
    client.close_stdin()
    client.read(protocol.Ready)
    assert client.wait() == protocol.EXIT_OK


@every_program
def test_a_closed_reply_pipe_ends_it(subject: Subject, start: Start, tcp: Route) -> None:
    client = start(subject)
    client.send(spec(subject, tcp, SITE))
    client.read(protocol.Ready)
    client.close_stdout()
    client.send(protocol.Slice(seq=1, start_ns=0, lead_in_ops=0, lead_in_ns=0, window_ns=0, count=1))
    assert client.wait() == protocol.EXIT_OK


@every_program
def test_another_parent_than_the_runner_ends_it(subject: Subject, start: Start, tcp: Route) -> None:
    client = start(subject)
    client.send(spec(subject, tcp, SITE)._replace(runner_pid=1 if os.getpid() != 1 else 2))
    assert client.wait() == protocol.EXIT_OK
    assert client.at_end()


# Input in pieces, and input that is none.


@every_program
def test_input_one_byte_at_a_time(subject: Subject, start: Start, tcp: Route) -> None:
    client = start(subject)
    client.trickle(spec(subject, tcp, SITE))
    client.read(protocol.Ready)
    client.trickle(AT_ONCE)
    assert client.read(protocol.SliceReply).ops == 1
    client.trickle(protocol.Bye())
    assert client.wait() == protocol.EXIT_OK


@every_program
def test_a_whole_conversation_in_one_write(subject: Subject, start: Start, tcp: Route) -> None:
    client = start(subject)
    asked = (spec(subject, tcp, SITE), AT_ONCE, AT_ONCE._replace(seq=2), protocol.Bye())
    client.send(b"".join(map(protocol.encode, asked)))
    client.read(protocol.Ready)
    for seq in (1, 2):
        reply = client.read(protocol.SliceReply)
        assert (reply.seq, len(client.samples(reply))) == (seq, 1)
    assert client.wait() == protocol.EXIT_OK


@every_reader
@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x00\xff\xfe\n",
        b"\n",
        b"[]\n",
        b'{"type":"spec","surprise":1}\n',
        b'{"type":"spec","protocol":1}\n',
        b'{"type":"spec","port":"5432"}\n',
        b'{"type":"slice","seq":1}\n',
        b'{"type":"spec","orm":"an incomplete line"',
        b"[" * 100_000 + b"\n",
        b"x" * (protocol.MAX_LINE_BYTES + 1),
    ],
    ids=[
        "bytes",
        "nothing",
        "list",
        "unknown field",
        "other protocol",
        "wrong type",
        "slice",
        "cut",
        "deep",
        "long",
    ],
)
def test_nonsense_instead_of_a_spec(subject: Subject, start: Start, nonsense: bytes) -> None:
    client = start(subject)
    try:
        client.send(nonsense)
        client.close_stdin()
    except BrokenPipeError:  # it has seen enough
        pass
    error = client.read(protocol.Error)
    assert (error.stage, error.sqlstate) == ("spec", "")
    assert client.wait() == protocol.EXIT_PROTOCOL
    assert client.at_end()


@every_reader
@pytest.mark.parametrize(
    "nonsense",
    [b"?\n", b'{"type":"slice","seq":-1}\n', b'{"type":"armed","seq":1}\n', protocol.encode(protocol.Spec())],
    ids=["text", "negative", "not for clients", "second spec"],
)  # fmt: skip
def test_nonsense_instead_of_a_slice(subject: Subject, start: Start, tcp: Route, nonsense: bytes) -> None:
    client = start(subject)
    client.send(spec(subject, tcp, SITE)._replace(cold=False))
    client.read(protocol.Ready)
    client.send(nonsense)
    assert client.read(protocol.Error).stage == "slice"
    assert client.wait() == protocol.EXIT_PROTOCOL
    assert client.at_end()


# Python clients only, but for the queries.


@pytest.mark.parametrize(
    "module", ["tests.clients.django_with_workloads", "tests.clients.django_on_psycopg2"]
)
def test_stray_prints_do_not_reach_the_replies(start: Start, tcp: Route, module: str) -> None:
    subject = Subject("django_orm", "simple", module)
    client = start(subject)
    client.send(spec(subject, tcp, WorkloadDefinition("noisy", "%s", ("example.com",), orm="tests.noisy")))
    client.read(protocol.Ready)
    assert client.slice(AT_ONCE._replace(count=5))[0].rows == 5
    client.send(protocol.Bye())
    assert client.wait() == protocol.EXIT_OK
    assert client.at_end()
    assert client.last_words().count("stray text") >= 10


@pytest.mark.parametrize(
    "subject",
    [LIBPQ, *(s for s in LAYERS if s.module and s.mode == "simple" and not s.calls_orm)],
    ids=str,
)
def test_queries_are_answered_as_the_server_writes_them(subject: Subject, start: Start, tcp: Route) -> None:
    client = started(start, subject, tcp)
    client.read(protocol.Ready)
    answers = {
        "SELECT true, 1.50, NULL, 'ü', '{1,NULL}'::int[], '2026-01-02 03:04:05+00'::timestamptz, '\\x00ff'::bytea,"
        " 'NaN'::float8, '{\"a\": 1}'::jsonb, '1 day'::interval": [
            [
                "t",
                "1.50",
                None,
                "ü",
                "{1,NULL}",
                "2026-01-02 03:04:05+00",
                "\\x00ff",
                "NaN",
                '{"a": 1}',
                "1 day",
            ]
        ],
        "SELECT 1 WHERE false": [],
        "SET statement_timeout = 0": [],
        "SELECT '%s %% %'": [["%s %% %"]],
    }
    for text, rows in answers.items():
        client.send(protocol.Query(text))
        assert client.read(protocol.Rows).rows == rows
    assert client.slice(AT_ONCE)[0].rows == 1
    client.send(protocol.Query("SELECT 1/0"))
    error = client.read(protocol.Error)
    assert (error.stage, error.sqlstate, error.message) == ("query", "22012", "division by zero")
    assert client.wait() == protocol.EXIT_FAILED


@pytest.mark.parametrize("subject", LAYERS, ids=str)
def test_every_client_sets_settings_and_reads_them_as_text(
    subject: Subject, start: Start, tcp: Route
) -> None:
    client = started(start, subject, tcp)
    client.read(protocol.Ready)
    client.send(protocol.Query("SELECT set_config('work_mem', '1MB', false) AS was, NULL AS nothing"))
    assert client.read(protocol.Rows) == protocol.Rows([["1MB", None]], ["was", "nothing"])
    client.send(protocol.Query("SELECT current_setting('work_mem') WHERE true"))
    assert client.read(protocol.Rows) == protocol.Rows([["1MB"]], ["current_setting"])
    client.send(protocol.Query("SELECT ''::text WHERE false"))
    assert client.read(protocol.Rows).rows == []


@pytest.mark.parametrize("subject", [NAMED["asyncpg-prepared"]], ids=str)
def test_a_client_without_texts_refuses_queries(subject: Subject, start: Start, tcp: Route) -> None:
    client = started(start, subject, tcp)
    client.read(protocol.Ready)
    client.send(protocol.Query("SELECT 1"))
    assert client.read(protocol.Error).stage == "query"
    assert client.wait() == protocol.EXIT_FAILED


@pytest.mark.parametrize("subject", [s for s in LAYERS if is_asyncpg(s)], ids=str)
def test_asyncpg_reports_a_wrong_type_without_the_value(subject: Subject, start: Start, tcp: Route) -> None:
    work = WorkloadDefinition("wrong", "SELECT %s::int", ("private value",))
    error = started(start, subject, tcp, work).read(protocol.Error)
    assert (error.stage, error.message.partition(":")[0]) == ("ready", "args")
    assert "private" not in error.message


@pytest.mark.parametrize("subject", [s for s in LAYERS if is_asyncpg(s)], ids=str)
def test_asyncpg_leaves_out_the_detail_that_quotes_values(subject: Subject, start: Start, tcp: Route) -> None:
    work = WorkloadDefinition("detail", "INSERT INTO pgperf.site VALUES (99, %s, 'x')", ("example.com",))
    error = started(start, subject, tcp, work).read(protocol.Error)
    assert error.sqlstate == "23505"
    assert "example.com" not in error.message
