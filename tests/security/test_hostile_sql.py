"""Hostile SQL is refused at its field. If it bypasses all checks, a read-only role blocks it."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ValidationError

from pgperf.access import guardrails
from pgperf.core import protocol, sql_parameters
from pgperf.core.exceptions import ClientFailed, InvalidDefinition
from pgperf.core.records import Route
from pgperf.install import launch
from pgperf.models import Workload
from pgperf.runner.client_process import ClientProcess, login
from tests.runner.forked_clients import of_no_site
from tests.security.conftest import Harm

MARK = Path("/tmp/pgperf-hostile-sql-was-here")
#: SQL that the field must refuse: two statements, commands, and writes.
REFUSED = [
    "SELECT 1;COMMIT",
    "SELECT 1; UPDATE precious SET note = ''",
    "SELECT 1;COMMIT;BEGIN READ WRITE;DELETE FROM precious;COMMIT",
    "COMMIT;DELETE FROM precious",
    "ROLLBACK;DELETE FROM precious",
    "BEGIN READ WRITE;DELETE FROM precious;COMMIT",
    "START TRANSACTION READ WRITE;TRUNCATE precious;COMMIT",
    "SET default_transaction_read_only = off;DELETE FROM precious",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE;DELETE FROM precious",
    "SET statement_timeout = 0;SELECT pg_sleep(0)",
    "RESET ALL;DELETE FROM precious",
    "DISCARD ALL",
    "SET ROLE postgres;DELETE FROM precious",
    "SET SESSION AUTHORIZATION postgres",
    "ALTER ROLE harm_reader SUPERUSER",
    "ALTER SYSTEM SET log_statement = 'all'",
    "CREATE TABLE more (id int)",
    "CREATE TEMP TABLE more (id int)",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE EXTENSION dblink",
    "DROP TABLE precious",
    "INSERT INTO precious VALUES (0, '')",
    "UPDATE precious SET note = ''",
    "DELETE FROM precious",
    "TRUNCATE precious",
    "MERGE INTO precious USING precious p ON true WHEN MATCHED THEN DELETE",
    "LOCK TABLE precious IN ACCESS EXCLUSIVE MODE",
    f"COPY (SELECT 1) TO PROGRAM 'touch {MARK}'",
    f"COPY precious FROM PROGRAM 'touch {MARK}'",
    f"COPY (SELECT 1) TO '{MARK}'",
    "COPY precious FROM STDIN",
    f"DO $$BEGIN EXECUTE 'COPY (SELECT 1) TO PROGRAM ''touch {MARK}'''; END$$",
    "DO $$BEGIN DELETE FROM precious; END$$",
    f"\\! touch {MARK}",
    f"\\shell touch {MARK}",
    f"SELECT 1 \\g |touch {MARK}",
    f"\\setshell x touch {MARK}",
    "SELECT 1 \\gset",
    "PREPARE p AS DELETE FROM precious; EXECUTE p",
    "VACUUM FULL precious",
    "REINDEX TABLE precious",
    "CLUSTER precious",
    "NOTIFY x, 'y'",
    "LISTEN x",
    "EXPLAIN ANALYZE DELETE FROM precious",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_advisory_xact_lock_shared(1)",
    "SELECT set_config('statement_timeout', '0', false)",
    "SELECT nextval('counter')",
    "SELECT setval('counter', 99)",
    "SELECT lo_creat(-1)",
    "SELECT lo_from_bytea(0, 'x')",
    f"SELECT lo_export(1, '{MARK}')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT query_to_xml('DELETE FROM precious', true, true, '')",
    "SELECT U&'\\0027; DELETE FROM precious --'",
    "SELECT 'a\\'; DELETE FROM precious; --'",
    "SELECT '",
    "SELECT $$",
    "SELECT $a$ $b$",
    "SELECT 1 /*",
    "SELECT 1 /* /* */ ; DELETE FROM precious",
    "SELECT 1\x00; DELETE FROM precious",
    "SELECT '" + "x" * 65536 + "'",
    ";",
    "-- ",
]
#: SQL that the field accepts as one statement; the read-only role or a timeout must stop it.
TAKEN = [
    "WITH gone AS (DELETE FROM precious RETURNING 1) SELECT * FROM gone",
    "WITH x AS (UPDATE precious SET note = '' RETURNING 1) SELECT count(*) FROM x",
    "WITH x AS (INSERT INTO precious VALUES (0, '') RETURNING 1) TABLE x",
    "SELECT * INTO more FROM precious",
    "SELECT * INTO TEMP more FROM precious",
    "SELECT * FROM precious FOR UPDATE",
    "SELECT * FROM precious FOR SHARE",
    "SELECT $$;COMMIT;DELETE FROM precious$$",
    "SELECT $x$ ' ; -- $x$ || '; DELETE FROM precious --'",
    "SELECT /* ; DELETE FROM precious */ 1 -- ; DELETE FROM precious",
    'SELECT "note;DELETE FROM precious" FROM precious',
    "SELECT '" + "x" * 65000 + "'",
    "SELECT repeat('x', 1000000)",
    "SHOW all",
]
#: What the server says of them: a read-only transaction, or no privilege.
READ_ONLY, DENIED = "25006", "42501"
SLEEPS = ["SELECT pg_sleep(60)", "SELECT count(*) FROM generate_series(1, 100000000000)"]
LAYERS = ["libpq", "psycopg2", "psycopg", "psycopg_async", "asyncpg", "django_cursor"]


@pytest.fixture(scope="module")
def reading(harm: Harm) -> Route:
    return on_rails(harm.route("harm_reader"))


@pytest.fixture(scope="module")
def impatient(harm: Harm) -> Route:
    """Its statements end after 200 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(guardrails.LIMITS, "statement_timeout", 200)
        return on_rails(harm.route("harm_bare"))


@pytest.fixture(scope="module", autouse=True)
def nursery() -> Iterator[None]:
    """Each statement has a client of its own; libpq's starts without a fork."""
    with of_no_site(*(layer for layer in LAYERS if layer != "libpq")) as found, found.raising():
        yield


@pytest.fixture(autouse=True)
def nothing_changes(harm: Harm) -> Iterator[None]:
    before = harm.state()
    MARK.unlink(missing_ok=True)
    yield
    assert harm.state() == before
    assert not MARK.exists()


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: ascii(text[:50]))
@pytest.mark.parametrize("field", ["sql", "other_sql"])
def test_hostile_sql_is_refused_at_its_field(field: str, text: str) -> None:
    row = Workload(**{"name": "own", "title": "Own", "sql": "SELECT 1", field: text})
    with pytest.raises(ValidationError) as caught:
        row.full_clean(validate_unique=False, validate_constraints=False)
    assert list(caught.value.message_dict) == [field]


@pytest.mark.parametrize("text", TAKEN, ids=lambda text: text[:50])
def test_harmless_sql_is_accepted(text: str) -> None:
    Workload(name="own", title="Own", sql=text).full_clean(validate_unique=False, validate_constraints=False)


@pytest.mark.parametrize("layer", LAYERS)
def test_the_readonly_role_blocks_sql_that_bypasses_the_checks(
    harm: Harm, reading: Route, c_client: Path, layer: str
) -> None:
    """Sent directly to a client. Large objects are excluded: any role may create its own."""
    assert send(layer, reading, "SELECT 1", c_client.parent) == ""
    assert send(layer, reading, TAKEN[0], c_client.parent) in (READ_ONLY, DENIED)
    for text in [each for each in (*REFUSED, *TAKEN) if "lo_" not in each and "\x00" not in each]:
        send(layer, reading, text, c_client.parent)
    assert harm.superuser.execute("SELECT count(*) FROM precious").fetchone() == (100,)


@pytest.mark.parametrize("text", SLEEPS)
@pytest.mark.parametrize("layer", LAYERS)
def test_the_statement_timeout_ends_an_endless_statement(
    impatient: Route, c_client: Path, layer: str, text: str
) -> None:
    begin = time.monotonic()
    assert send(layer, impatient, text, c_client.parent) == "57014"
    assert time.monotonic() - begin < 20


def on_rails(route: Route) -> Route:
    guarded, _access = guardrails.guard(route, guardrails.Demand.PROOF)
    return guarded


def send(layer: str, route: Route, text: str, build_dir: Path) -> str:
    """Run the statement a dozen times in a cold client; return the SQLSTATE, "" without an error."""
    try:
        statements = sql_parameters.statements(text.replace("%", "%%"), ())
    except InvalidDefinition:
        return "refused"
    with ClientProcess(layer, launch.command(layer, str(build_dir)), route.password) as client:
        mode = "extended" if layer == "asyncpg" else "simple"
        client.send(
            protocol.Spec(
                layer=layer, mode=mode, **login(route), statements=statements, runner_pid=os.getpid()
            )
        )
        try:
            client.expect(protocol.Ready, 60)
        except ClientFailed as error:
            return error.sqlstate or "failed"
    return ""
