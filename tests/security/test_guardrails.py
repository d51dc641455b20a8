"""Guardrails: detection of write privileges, read-only roles and session settings."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgperf import catalog
from pgperf.access import called_functions, guardrails, readonly_role
from pgperf.access.guardrails import Demand
from pgperf.catalog import FIXTURES
from pgperf.catalog.driver_queries import BATCH, COPYFROM
from pgperf.core.answers import TEXT, ControlQuery
from pgperf.core.exceptions import ClientFailed, InvalidDefinition, PreflightRefused
from pgperf.core.records import LeftOut, Page, Plan, Route, VariantBlock, WorkloadDefinition
from pgperf.runner.plan import make_plan
from pgperf.runner.processes.backends import hidden_from
from pgperf.runner.run import RunSettings, execute
from pgperf.runner.server.control_connection import ControlConnection
from tests import older_server
from tests.kept_connections import kept
from tests.runner.builders import definition
from tests.security.conftest import DATABASE, LOGINS, READER, Harm

SHIPPED = catalog.BENCHMARKS["orm-overhead"].workloads[0]
FREE = WorkloadDefinition("own", "SELECT note FROM precious WHERE id = %s", (1,))
REGISTERED = WorkloadDefinition("registered", "", orm="shop.open_orders")


class Silent:
    """A watcher without output."""

    def block_done(self, blocks: Any) -> None:
        pass

    def progress(self, share: float, message: str) -> None:
        pass

    def cancelled(self) -> bool:
        return False


#: Those with the mode simple; asyncpg has only the others.
LAYERS = ("libpq", "psycopg2", "psycopg", "psycopg_async", "django_cursor")
PSQL = Path(os.environ["PGPERF_PG_CONFIG"]).with_name("psql")


class TestDemand:
    @pytest.mark.parametrize(
        ("work", "pooler", "production", "connect", "wanted"),
        [
            (SHIPPED, "", False, "persistent", Demand.NONE),
            (SHIPPED, "transaction", False, "per_operation", Demand.NONE),
            (SHIPPED, "", True, "persistent", Demand.SESSION),
            (SHIPPED, "session", True, "persistent", Demand.PROOF),
            (replace(SHIPPED, sql=SHIPPED.sql + " "), "", False, "persistent", Demand.PROOF),
            (replace(SHIPPED, args=("other.example",)), "", False, "persistent", Demand.PROOF),
            (replace(SHIPPED, other_sql="SELECT 1"), "", False, "persistent", Demand.PROOF),
            (FREE, "", False, "persistent", Demand.PROOF),
            (REGISTERED, "", False, "persistent", Demand.SESSION),
            (REGISTERED, "", True, "persistent", Demand.SESSION),
            (REGISTERED, "session", False, "persistent", Demand.PROOF),
            (REGISTERED, "transaction", False, "persistent", Demand.PROOF),
            (REGISTERED, "", False, "per_operation", Demand.PROOF),
            (replace(REGISTERED, other_sql="SELECT 1"), "", False, "persistent", Demand.PROOF),
            (COPYFROM, "", False, "persistent", Demand.WRITE),
            (BATCH, "session", False, "per_operation", Demand.WRITE),
        ],
    )
    def test_by_workload_and_route(
        self, work: WorkloadDefinition, pooler: str, production: bool, connect: str, wanted: Demand
    ) -> None:
        assert guardrails.demand(work, pooler, production, connect) == wanted

    @pytest.mark.parametrize(
        ("works", "production", "allowed", "words"),
        [
            ((COPYFROM,), True, True, "database: copyfrom insert rows, which never run on a production"),
            (
                (COPYFROM, BATCH),
                False,
                False,
                "database: copyfrom, batch insert rows .* tick 'allow fixtures'",
            ),
            (
                (replace(BATCH, bulk=replace(BATCH.bulk, table="public.users")),),
                False,
                True,
                "bulk: batch is no",
            ),
            ((replace(BATCH, bulk=replace(BATCH.bulk, rows=2)),), False, True, "bulk: batch is no"),
            ((replace(BATCH, sql="DELETE FROM users"),), False, True, "bulk: batch is no"),
            ((BATCH, FREE), False, True, "access: batch need .* own a session that only reads"),
            ((BATCH, REGISTERED), False, True, "access: batch need .* registered a session that only reads"),
        ],
    )
    def test_writing_is_refused_outside_of_its_own_tables(
        self, works: tuple[WorkloadDefinition, ...], production: bool, allowed: bool, words: str
    ) -> None:
        with pytest.raises(PreflightRefused, match=rf"^{words}"):
            guardrails.check_writing(definition(workloads=works), production, allowed)

    @pytest.mark.parametrize("works", [(COPYFROM, BATCH), (BATCH, SHIPPED), (SHIPPED,), (FREE,)])
    def test_workloads_of_the_catalog_run_beside_those_that_write(
        self, works: tuple[WorkloadDefinition, ...]
    ) -> None:
        guardrails.check_writing(definition(workloads=works), False, True)

    def test_the_worker_reads_the_statement_again(self) -> None:
        with pytest.raises(InvalidDefinition, match=r"^sql: one statement"):
            guardrails.check_statements(replace(FREE, sql="SELECT 1; COMMIT"))
        guardrails.check_statements(SHIPPED)

    def test_the_worker_reads_the_path_of_a_web_server_s_page_again(self) -> None:
        """Also where no layer of the run connects to a database."""
        page = WorkloadDefinition("page", "", page=Page("/admin/"))
        plan = make_plan(
            definition(workloads=(page,), layers=("http",), routes=("web",), web_routes={"web": ""})
        )
        assert [each.layer for each in plan.variants if not each.control] == ["http"]
        web = Route("web", "127.0.0.1", 80, "", "", "", url="http://127.0.0.1")
        with pytest.raises(InvalidDefinition, match=r"^path: Pages of the admin"):
            guardrails.apply(plan, {"web": web}, production=False)


@pytest.mark.parametrize(
    ("role", "words"),
    {
        "harm_writer": "may change 1 tables, such as precious",
        "harm_column": "may change 1 tables, such as precious",
        "harm_truncater": "may change 1 tables, such as precious",
        "harm_viewer": "may change 1 tables, such as precious_view",
        "harm_sequence": "may advance 1 sequences, such as counter",
        "harm_creator": "may create objects in schema public",
        "harm_schema": "may create schemas in this database",
        "harm_owner": "owns 1 objects",
        "harm_function": "owns 1 objects",
        "harm_inserter": "may change 1 tables, such as precious",
        "harm_column_inserter": "may change 1 tables, such as precious",
        "harm_deleter": "may change 1 tables, such as precious",
        "harm_trigger": "may change 1 tables, such as precious",
        "harm_maintainer": "may change 1 tables, such as precious",
        "harm_setval": "may advance 1 sequences, such as counter",
        "harm_large_object": "may change 1 large objects, such as 4242",
        "harm_settings": "may change settings of the server, such as work_mem",
        "harm_wrapper": "may create foreign servers of elsewhere",
        "harm_server": "may create user mappings for far",
        "harm_heir": "may become the superuser harm_super",
        **{
            role: f"is a member of {role.removeprefix('harm_')}"
            for role in LOGINS
            if role.startswith("harm_pg_")
        },
        "harm_write_all": "is a member of pg_write_all_data",
        "harm_program": "is a member of pg_execute_server_program",
        "harm_sleeper": "may change 1 tables, such as precious",
        "harm_roles": "may create roles",
        "harm_databases": "may create databases",
        "harm_replica": "may replicate",
        "harm_super": "is a superuser",
    }.items(),
)
def test_every_write_privilege_is_found_and_refused(harm: Harm, role: str, words: str) -> None:
    with kept(guardrails.__name__, called_functions.__name__):
        access = guardrails.examine(harm.route(role))
        assert access.role == role
        assert words in access.powers
        with pytest.raises(PreflightRefused, match=rf"^access: .*{role} .*doctor"):
            guardrails.apply(plan(FREE), {"tcp": harm.route(role)}, production=False)


@pytest.mark.parametrize("role", ["harm_bare", "harm_reader"])
def test_a_readonly_role_is_accepted(harm: Harm, role: str) -> None:
    before = harm.state()
    guarded = guardrails.apply(plan(FREE), {"tcp": harm.route(role)}, production=False)
    assert guarded.facts() == {"access": {"tcp": f"{role}: cannot write, proved"}}
    assert harm.state() == before


def test_a_privilege_missing_from_the_catalogs_is_found_by_a_trial_write(
    harm: Harm, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = ControlQuery("nothing", "SELECT 'x' WHERE false", (TEXT,))
    monkeypatch.setattr(guardrails, "_POWERS", nothing)
    for role, attempt in (
        ("harm_schema", "CREATE SCHEMA"),
        ("harm_write_all", 'DELETE FROM "public"."precious"'),
    ):
        with pytest.raises(PreflightRefused, match=f"as {role}, '{attempt}.*was not refused"):
            guardrails.apply(plan(FREE), {"tcp": harm.route(role)}, production=False)


def test_a_registered_workload_may_use_a_role_that_can_write_with_a_warning(harm: Harm) -> None:
    guarded = guardrails.apply(plan(REGISTERED), {"tcp": harm.route("harm_writer")}, production=True)
    assert guarded.facts()["can_write"] == "harm_writer"
    assert "this role can write (may change 1 tables" in guarded.access["tcp"]
    route = guarded.routes["tcp"]
    with connect(route) as connection, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("UPDATE precious SET note = ''")


def test_a_page_that_no_variant_requests_is_captured_in_a_read_only_session(harm: Harm) -> None:
    """The ORM has no call of it, so the plan leaves it out; the capture asks for it nevertheless."""
    page = WorkloadDefinition("page", "", page=Page("/books/"))
    planned = make_plan(definition(workloads=(SHIPPED, page), layers=("django_orm",), routes=("tcp",)))
    assert {each.workload for each in planned.variants} == {SHIPPED.name}
    guarded = guardrails.apply(planned, {"tcp": harm.route("harm_writer")}, production=False)
    assert "default_transaction_read_only=on" in guarded.routes["tcp"].options
    admin = replace(page, page=Page("/admin/"))
    planned = make_plan(definition(workloads=(SHIPPED, admin), layers=("django_orm",), routes=("tcp",)))
    with pytest.raises(InvalidDefinition, match=r"^path: Pages of the admin"):
        guardrails.apply(planned, {"tcp": harm.route("harm_writer")}, production=False)


@pytest.mark.parametrize(
    ("direct", "wanted"), [(True, Demand.SESSION), (False, Demand.PROOF)], ids=["direct", "poolers only"]
)
def test_the_route_of_a_capture_is_guarded_though_no_variant_uses_it(direct: bool, wanted: Demand) -> None:
    """Such as one that demands TLS, which the only layer lacks."""
    names = ("tls", "pgbouncer")
    skipped = [LeftOut(layer="libpq", route="tls", reason="its libpq is built without TLS")]
    planned = make_plan(definition(workloads=(REGISTERED,), layers=("libpq",), routes=names), skipped)
    routes = {
        name: Route(
            name, "127.0.0.1", 5432, "app", "ada", "", pooler="" if direct and name == "tls" else "session"
        )
        for name in names
    }
    demands = guardrails._demands(planned, routes, True)
    assert demands == {"pgbouncer": Demand.PROOF}
    assert guardrails._of_captures(demands, planned, routes)["tls"] == wanted


def test_an_alias_of_the_site_may_not_lift_a_limit_that_the_role_has(harm: Harm) -> None:
    """Its options come first, and the last ones win: so every limit is sent."""
    guarded = guardrails.apply(plan(FREE), {"tcp": harm.route("harm_reader")}, production=False)
    sent = guarded.routes["tcp"].options
    assert "-c statement_timeout=2000" in sent
    route = replace(guarded.routes["tcp"], options=f"-c statement_timeout=0 {sent}")
    with connect(route) as connection:
        assert shown(connection, "statement_timeout") == "2s"


def test_the_catalog_needs_no_readonly_role_outside_production(harm: Harm) -> None:
    route = harm.route("harm_super")
    guarded = guardrails.apply(plan(SHIPPED), {"tcp": route}, production=False)
    assert (guarded.routes["tcp"], guarded.facts()) == (route, {})


def test_stricter_limits_of_the_role_are_kept(harm: Harm) -> None:
    for role, timeout in (("harm_bare", "30s"), ("harm_reader", "2s")):
        route = guardrails.apply(plan(FREE), {"tcp": harm.route(role)}, production=False).routes["tcp"]
        with connect(route) as connection:
            assert shown(connection, "statement_timeout") == timeout
            assert shown(connection, "default_transaction_read_only") == "on"
            assert shown(connection, "client_connection_check_interval") in ("1s", "500ms")


class TestOlderServer:
    """A server that lacks a setting refuses a session that asks for it."""

    @pytest.mark.parametrize(("work", "layer"), [(FREE, "psycopg"), (FREE, "libpq"), (REGISTERED, "psycopg")])
    def test_a_setting_that_it_lacks_is_not_sent(
        self, harm: Harm, work: WorkloadDefinition, layer: str
    ) -> None:
        with older_server.seen_by("harm_bare", harm.superuser):
            guarded = guardrails.apply(
                plan(work, (layer,)), {"tcp": harm.route("harm_bare")}, production=False
            )
            sent = guarded.routes["tcp"].options
        assert sent == (
            "-c default_transaction_read_only=on -c statement_timeout=30000 -c lock_timeout=1000"
            " -c idle_in_transaction_session_timeout=10000"
        )

    def test_it_is_not_sent_with_a_login_that_writes_either(self, harm: Harm) -> None:
        copying = make_plan(definition(workloads=(COPYFROM,), layers=("psycopg",), routes=("tcp",)))
        for statement in FIXTURES["copyfrom"].create:
            harm.superuser.execute(statement)
        try:
            with older_server.seen_by("harm_super", harm.superuser):
                route = harm.route("harm_super")
                guarded = guardrails.apply(copying, {"tcp": route}, production=False, allow_fixtures=True)
        finally:
            harm.superuser.execute("DROP SCHEMA pgperf CASCADE")
        assert "lock_timeout" in guarded.routes["tcp"].options
        assert "client_connection_check_interval" not in guarded.routes["tcp"].options

    def test_behind_a_pooler_the_role_need_not_have_it(self, harm: Harm, pooled: Callable[..., int]) -> None:
        route = harm.route("harm_reader", name="pgbouncer", port=pooled(), pooler="transaction")
        planned = plan(FREE, route="pgbouncer")
        harm.superuser.execute("ALTER ROLE harm_reader RESET client_connection_check_interval")
        try:
            with pytest.raises(PreflightRefused, match="do not keep client_connection_check_interval"):
                guardrails.apply(planned, {"pgbouncer": route}, production=False)
            with older_server.seen_by("harm_reader", harm.superuser):
                again = replace(route, port=pooled())  # whose sessions begin now
                guarded = guardrails.apply(planned, {"pgbouncer": again}, production=False)
        finally:
            harm.superuser.execute("ALTER ROLE harm_reader SET client_connection_check_interval = '500ms'")
        assert guarded.routes["pgbouncer"].options == ""

    def test_the_script_for_a_role_does_not_set_it(self, harm: Harm) -> None:
        route = harm.route("harm_writer")
        with older_server.seen_by("harm_writer", harm.superuser):
            printed = readonly_role.create_script(route)
        assert "SET lock_timeout = '1000ms';" in printed
        assert "client_connection_check_interval" not in printed
        assert "SET client_connection_check_interval = '1000ms';" in readonly_role.create_script(route)

    def test_one_that_is_too_old_is_refused_before_a_login_is_proved(self, harm: Harm) -> None:
        with (
            older_server.seen_by("harm_bare", harm.superuser, older_server.VERSION),
            pytest.raises(PreflightRefused, match=r"^database: the server is PostgreSQL 13\.23, "),
        ):
            guardrails.apply(plan(FREE), {"tcp": harm.route("harm_bare")}, production=False)


def test_every_layer_has_the_same_session_settings(harm: Harm, c_client: Path) -> None:
    """The statement fails if a setting is wrong."""
    wanted = {"default_transaction_read_only": "on", "statement_timeout": "30s", "lock_timeout": "1s",
              "idle_in_transaction_session_timeout": "10s", "client_connection_check_interval": "1s"}  # fmt: skip
    holds = " AND ".join(f"current_setting('{name}') = '{value}'" for name, value in wanted.items())
    work = WorkloadDefinition("session", f"SELECT 1 / (CASE WHEN {holds} THEN 1 ELSE 0 END)")
    bare, machine = harm.route("harm_bare"), RunSettings(build_dir=str(c_client.parent), run_id="rails")
    guarded = guardrails.apply(plan(work), {"tcp": bare}, production=False)
    measured: set[str] = set()
    for layers in (LAYERS, ("asyncpg",)):
        observer = Silent()
        observer.block_done = lambda blocks: measured.update(  # type: ignore[method-assign]
            block.variant.layer for block in blocks if all(piece.ops for piece in block.slices)
        )
        planned = plan(work, layers)
        execute(planned, guarded.routes, machine, observer)
        with pytest.raises(ClientFailed, match="division by zero"):
            execute(planned, {"tcp": bare}, machine, Silent())
    assert measured == {*LAYERS, "asyncpg"}


class TestPooled:
    def test_a_pooler_needs_the_settings_from_the_role(self, harm: Harm, pooled: Callable[..., int]) -> None:
        port = pooled()
        route = harm.route("harm_bare", name="pgbouncer", port=port, pooler="transaction")
        with pytest.raises(
            PreflightRefused, match=r'ALTER ROLE "harm_bare" SET default_transaction_read_only = on;'
        ):
            guardrails.apply(plan(FREE, route="pgbouncer"), {"pgbouncer": route}, production=False)
        good = replace(route, user="harm_reader")
        guarded = guardrails.apply(plan(FREE, route="pgbouncer"), {"pgbouncer": good}, production=False)
        assert guarded.routes["pgbouncer"].options == ""
        with pytest.raises(PreflightRefused, match="harm_super is a superuser"):
            guardrails.apply(
                plan(FREE, route="pgbouncer"), {"pgbouncer": superuser_over(good)}, production=False
            )

    def test_an_undeclared_pooler_that_drops_the_settings_is_detected(
        self, harm: Harm, pooled: Callable[..., int]
    ) -> None:
        port = pooled(ignore_startup_parameters="extra_float_digits,options")
        hidden = harm.route("harm_bare", port=port)
        with pytest.raises(
            PreflightRefused, match="do not keep default_transaction_read_only, statement_timeout"
        ):
            guardrails.apply(plan(REGISTERED), {"tcp": hidden}, production=False)

    def test_a_pooler_that_refuses_the_settings_gives_an_error(
        self, harm: Harm, pooled: Callable[..., int]
    ) -> None:
        with pytest.raises(ClientFailed, match="options"):
            guardrails.apply(
                plan(REGISTERED), {"tcp": harm.route("harm_bare", port=pooled())}, production=False
            )


@pytest.fixture
def reader(harm: Harm) -> Iterator[str]:
    """The name of the script's role, which no earlier test has left."""
    with dropped_afterwards(harm):
        yield READER


@contextmanager
def dropped_afterwards(harm: Harm) -> Iterator[None]:
    yield
    harm.superuser.execute(f"REASSIGN OWNED BY {READER} TO postgres")
    harm.superuser.execute(f"DROP OWNED BY {READER}")
    harm.superuser.execute(f"DROP ROLE {READER}")


def run_script(harm: Harm, printed: str, superuser_login: dict[str, Any]) -> None:
    """As in psql; the password is set as \\password would."""
    statements = [line for line in printed.splitlines() if line != f'\\password "{READER}"']
    environment = {"PGPASSWORD": superuser_login["password"], "PATH": os.defpath}
    login = [f"--host={harm.host}", f"--port={harm.port}", "--username=postgres", f"--dbname={DATABASE}"]
    psql = [str(PSQL), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", *login]
    done = subprocess.run(
        psql, input="\n".join(statements), env=environment, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    harm.superuser.execute(f"ALTER ROLE {READER} PASSWORD '{harm.password}'")


def test_the_printed_script_creates_a_role_that_passes(
    harm: Harm, superuser_login: dict[str, Any], pooled: Callable[..., int], reader: str
) -> None:
    printed = readonly_role.create_script(harm.route("harm_writer"))
    assert harm.password not in printed
    assert printed.splitlines()[-1] == f'\\password "{reader}"'
    run_script(harm, printed, superuser_login)
    direct, route = harm.route(reader), {"port": pooled(), "pooler": "transaction"}
    for each in (direct, replace(direct, **route)):  # type: ignore[arg-type]
        guarded = guardrails.apply(plan(FREE), {"tcp": each}, production=True)
        assert guarded.access == {"tcp": f"{reader}: cannot write, proved"}
    with connect(direct) as connection:
        assert connection.execute("SELECT count(*) FROM precious").fetchone() == (100,)


#: What is undone after the script has run, and what the script has then.
UNDONE: list[tuple[str, list[str]]] = [
    ("SELECT 1", []),
    (
        "ALTER ROLE {} RESET lock_timeout",
        ["ALTER ROLE \"{}\" SET lock_timeout = '1000ms';"],
    ),
    (
        "ALTER ROLE {} SET default_transaction_read_only = off",
        ["ALTER ROLE \"{}\" SET default_transaction_read_only = 'on';"],
    ),
    ("ALTER ROLE {} SET statement_timeout = '1s'", []),
    *((f"ALTER ROLE {{}} SET default_transaction_read_only = '{word}'", []) for word in ("true", "Yes", "1")),
    (
        f"ALTER ROLE {{0}} RESET lock_timeout; ALTER ROLE {{0}} IN DATABASE {DATABASE} SET lock_timeout = '1s'",
        [],
    ),
    (
        "ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA public REVOKE SELECT ON TABLES FROM {0};"
        " GRANT pg_read_all_data TO {0}",
        [],
    ),
    ("REVOKE SELECT ON precious FROM {}", ['GRANT SELECT ON ALL TABLES IN SCHEMA "public" TO "{}";']),
    (
        "ALTER DEFAULT PRIVILEGES FOR ROLE postgres IN SCHEMA public REVOKE SELECT ON TABLES FROM {}",
        ['ALTER DEFAULT PRIVILEGES FOR ROLE "postgres" IN SCHEMA "public" GRANT SELECT ON TABLES TO "{}";'],
    ),
    (
        "REVOKE {} FROM harm_writer",
        ['GRANT "{}" TO "harm_writer"; -- so that runs see its sessions behind a pooler'],
    ),
    ("GRANT pg_monitor TO harm_writer; REVOKE {} FROM harm_writer", []),
]


def test_the_script_for_a_role_that_exists_has_only_what_is_missing(
    harm: Harm, superuser_login: dict[str, Any]
) -> None:
    found = {}
    with kept(readonly_role.__name__):
        for undo, _printed_again in UNDONE:
            with dropped_afterwards(harm):
                found[undo] = script_after(harm, superuser_login, undo)
    assert found == {undo: [line.format(READER) for line in printed] for undo, printed in UNDONE}


def script_after(harm: Harm, superuser_login: dict[str, Any], undo: str) -> list[str]:
    """The lines of the second script that are of the site's own tables."""
    route = harm.route("harm_writer")
    run_script(harm, readonly_role.create_script(route), superuser_login)
    try:
        harm.superuser.execute(undo.format(READER))  # type: ignore[arg-type]
        again = readonly_role.create_script(route).splitlines()
    finally:
        harm.superuser.execute("REVOKE pg_monitor FROM harm_writer")
    return [line for line in again if "harm_owner" not in line][1:]


def test_a_table_of_an_extension_is_none_that_the_reader_lacks(
    harm: Harm, superuser_login: dict[str, Any], reader: str
) -> None:
    route = harm.route("harm_writer")
    run_script(harm, readonly_role.create_script(route), superuser_login)
    harm.superuser.execute("CREATE EXTENSION pg_stat_statements")
    try:
        harm.superuser.execute(f"REVOKE ALL ON pg_stat_statements FROM PUBLIC, {reader}")
        assert readonly_role.create_script(route) == ""
        assert readonly_role.reads_all(harm.route(reader))
    finally:
        harm.superuser.execute("DROP EXTENSION pg_stat_statements")


def test_a_login_that_reads_every_table(harm: Harm, superuser_login: dict[str, Any], reader: str) -> None:
    run_script(harm, readonly_role.create_script(harm.route("harm_writer")), superuser_login)
    assert readonly_role.reads_all(harm.route(reader))
    for taken in (f"SELECT ON precious FROM {reader}", "USAGE ON SCHEMA public FROM PUBLIC, {reader}"):
        harm.superuser.execute("REVOKE " + taken.format(reader=reader))
        assert not readonly_role.reads_all(harm.route(reader))
        harm.superuser.execute(
            f"GRANT SELECT ON precious TO {reader}; GRANT USAGE ON SCHEMA public TO PUBLIC"
        )


def test_the_grant_for_sessions_behind_a_pooler(harm: Harm, pooled: Callable[..., int]) -> None:
    direct = harm.route("harm_writer")
    behind = harm.route("harm_bare", port=pooled(), pooler="transaction")
    assert readonly_role.session_grant(direct, behind) == 'GRANT "harm_bare" TO "harm_writer";'
    assert readonly_role.session_grant(direct, replace(behind, user="harm_writer")) == ""
    assert readonly_role.session_grant(harm.route("harm_super"), behind) == ""
    harm.superuser.execute("GRANT harm_bare TO harm_writer")
    try:
        assert readonly_role.session_grant(direct, behind) == ""
    finally:
        harm.superuser.execute("REVOKE harm_bare FROM harm_writer")


def test_no_grant_makes_a_login_a_member_of_a_superuser(harm: Harm, pooled: Callable[..., int]) -> None:
    """Neither where doctor asks, nor where a run finds hidden sessions."""
    direct = harm.route("harm_writer")
    behind = harm.route("harm_super", port=pooled(), pooler="transaction")
    assert readonly_role.session_grant(direct, behind) == 'GRANT "pg_read_all_stats" TO "harm_writer";'
    session = psycopg.connect(
        host=harm.host, port=harm.port, dbname=DATABASE, user="harm_super", password=harm.password,
        application_name="pgperf-odd-1",
    )  # fmt: skip
    with session, ControlConnection(direct) as connection:
        assert connection.all(hidden_from("pgperf-odd")) == [('"pg_read_all_stats"', '"harm_writer"')]


def test_a_run_behind_a_pooler_names_the_grant_that_it_lacks(
    harm: Harm, pooled: Callable[..., int], c_client: Path
) -> None:
    """A login of its own for the pooler, as doctor recommends; then with the grant."""
    port = pooled()
    routes = {
        "tcp": harm.route("harm_writer"),
        "pooled": harm.route("harm_bare", name="pooled", port=port, pooler="transaction"),
    }
    planned = make_plan(
        definition(
            workloads=(replace(FREE, sql="SELECT 1", args=()),),
            layers=("libpq",),
            routes=("tcp", "pooled"),
            modes=("simple",),
            slice_ms=50,
            rounds=3,
        )
    )

    def accounts() -> dict[str, dict[str, Any]]:
        blocks: list[VariantBlock] = []
        observer = Silent()
        observer.block_done = blocks.extend  # type: ignore[method-assign]
        execute(planned, routes, RunSettings(str(c_client.parent), "grants"), observer)
        return {block.variant.route: {**block.cpu_account, "server_ns": seen(block)} for block in blocks}

    def seen(block: VariantBlock) -> int | None:
        """Of the first slice that has it: a pooler's new connection is unknown in its first round."""
        return next((piece.server_ns for piece in block.slices if piece.server_ns), None)

    found = accounts()
    assert found["tcp"]["server_ns"]
    assert "missing_grant" not in found["tcp"]
    assert found["pooled"]["server_ns"] is None
    assert found["pooled"]["missing_grant"] == 'GRANT "harm_bare" TO "harm_writer"'
    harm.superuser.execute(found["pooled"]["missing_grant"])
    try:
        found = accounts()
    finally:
        harm.superuser.execute("REVOKE harm_bare FROM harm_writer")
    assert found["pooled"]["server_ns"]
    assert "missing_grant" not in found["pooled"]


def plan(work: WorkloadDefinition, layers: tuple[str, ...] = ("psycopg",), route: str = "tcp") -> Plan:
    mode = "extended" if layers == ("asyncpg",) else "simple"
    return make_plan(definition(workloads=(work,), layers=layers, routes=(route,), modes=(mode,)))


def connect(route: Route) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=route.host, port=route.port, dbname=route.dbname, user=route.user, password=route.password,
        options=route.options, autocommit=True,
    )  # fmt: skip


def shown(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute(f"SHOW {name}").fetchone()
    assert row
    return str(row[0])


def superuser_over(route: Route) -> Route:
    return replace(route, user="harm_super")


def test_a_login_that_writes_may_fill_and_empty_its_own_tables_only(harm: Harm) -> None:
    """Refused with the GRANT; with it, the session has the timeouts and is not read-only."""
    copying = make_plan(definition(workloads=(COPYFROM,), layers=("psycopg",), routes=("tcp",)))
    route = harm.route("harm_bare")
    for statement in FIXTURES["copyfrom"].create:
        harm.superuser.execute(statement)
    try:
        with pytest.raises(PreflightRefused, match=r"^access: .*harm_bare may not fill") as refusal:
            guardrails.apply(copying, {"tcp": route}, production=False, allow_fixtures=True)
        harm.superuser.execute(str(refusal.value).partition("owner: ")[2])
        guarded = guardrails.apply(copying, {"tcp": route}, production=False, allow_fixtures=True)
        assert "not read-only" in guarded.access["tcp"]
        options = guarded.routes["tcp"].options
        assert "statement_timeout" in options
        assert "read_only" not in options
        with ControlConnection(guarded.routes["tcp"]) as connection:
            connection.query("INSERT INTO pgperf.copyfrom (a) VALUES (1)")
            connection.query("TRUNCATE pgperf.copyfrom")
            with pytest.raises(ClientFailed, match="permission denied"):
                connection.query("DELETE FROM precious")
    finally:
        harm.superuser.execute("DROP SCHEMA pgperf CASCADE")
