"""The servers of the stack, started in this process."""

import os
import socket
import stat
import subprocess
import threading
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from redis import Redis

from example.stack import certificates, cgroup, postgres
from example.stack.errors import StackError
from example.stack.place import Place
from example.stack.postgres import READER, TRUSTED
from example.stack.stack import SERVERS, Stack
from example.stack.state import PORTS, SITE_PORT, State, own_ports
from pgperf.access import guardrails
from pgperf.core.records import Route
from pgperf.runner.cpu import cgroups
from pgperf.runner.cpu.cgroups import members
from tests.waiting import until

ROUTES = [
    "PGPERF_DSN_SOCKET",
    "PGPERF_DSN_TCP",
    "PGPERF_DSN_PGBOUNCER",
    "PGPERF_DSN_PGBOUNCER_TLS",
    "PGPERF_DSN_PGBOUNCER_TRANSACTION",
    "PGPERF_DSN_DISTANCE_05MS",
    "PGPERF_DSN_DISTANCE_45MS",
]


def one(dsn: str, statement: str) -> object:
    """The first value of the first row."""
    with psycopg.connect(dsn, connect_timeout=10) as connection:
        row = connection.execute(statement).fetchone()
    return row and row[0]


@pytest.mark.parametrize("route", ROUTES)
def test_postgres_answers_on_every_route(stack: dict[str, str], route: str) -> None:
    assert one(stack[route], "SELECT 1") == 1


@pytest.mark.parametrize("route", ROUTES)
def test_a_wrong_password_is_refused_on_every_route(stack: dict[str, str], route: str) -> None:
    dsn = stack[route].replace(stack["PGPERF_DB_PASSWORD"], "wrong")
    with pytest.raises(psycopg.OperationalError):
        one(dsn, "SELECT 1")


@pytest.mark.parametrize("route", ["PGPERF_DSN_TCP_TRUST", "PGPERF_DSN_PGBOUNCER_TRUST"])
class TestTheLoginWithoutPassword:
    def test_it_answers(self, stack: dict[str, str], route: str) -> None:
        assert "password" not in stack[route]
        assert one(stack[route], "SELECT current_user") == TRUSTED

    @pytest.mark.parametrize(
        "statement",
        [
            "SELECT * FROM pg_authid",
            "SELECT * FROM public.django_session",
            "CREATE TABLE stolen (x int)",
            "CREATE TEMPORARY TABLE full_disk (x int)",
            "SELECT lo_create(0)",
            "SELECT lo_from_bytea(0, 'x')",
            "SELECT pg_read_file('postmaster.pid')",
        ],
    )
    def test_it_reads_and_writes_nothing(self, stack: dict[str, str], route: str, statement: str) -> None:
        """Not even after it has switched its read-only session off."""
        with psycopg.connect(stack["PGPERF_DSN_TCP"], autocommit=True) as site:
            site.execute("CREATE TABLE IF NOT EXISTS public.django_session (x int)")
        with psycopg.connect(stack[route], autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)

    def test_every_other_login_needs_one(self, stack: dict[str, str], route: str) -> None:
        for user in (stack["PGPERF_DB_USER"], READER, "postgres"):
            with pytest.raises(psycopg.OperationalError):
                one(make_conninfo(stack[route], user=user), "SELECT 1")

    def test_it_enters_no_other_database(self, stack: dict[str, str], route: str) -> None:
        with pytest.raises(psycopg.OperationalError):
            one(make_conninfo(stack[route], dbname="postgres"), "SELECT 1")


def test_the_sites_login_may_make_checkpoints(stack: dict[str, str]) -> None:
    """For those before each block of a workload that writes; from PostgreSQL 15 on."""
    with psycopg.connect(stack["PGPERF_DSN_TCP"], autocommit=True) as connection:
        if connection.info.server_version < 150000:
            pytest.skip("before PostgreSQL 15 only a superuser can make a checkpoint")
        connection.execute("CHECKPOINT")


def test_a_pooler_keeps_the_servers_verifiers(tmp_path: Path) -> None:
    """With the password itself, PgBouncer would compute a verifier at each login."""
    with Stack(tmp_path / "own", ["postgres", "pgbouncer"], keep=False) as running:
        users = (running.place.servers / "pgbouncer" / "users").read_text()
        known = postgres.verifiers(running.place, running.state, [postgres.ROLE, READER])
        assert users.splitlines() == [f'"{role}" "{known[role]}"' for role in known]
        assert all(verifier.startswith("SCRAM-SHA-256$") for verifier in known.values())
        assert one(running.env["PGPERF_DSN_PGBOUNCER"], "SELECT 1") == 1


@pytest.mark.parametrize("keep", [True, False])
def test_a_stack_that_is_not_kept_takes_nothing_from_one_that_was_killed(tmp_path: Path, keep: bool) -> None:
    directory = tmp_path / "own"
    left = Stack(directory, keep=keep).place
    left.prepare()
    (left.servers / "old").mkdir()
    (left.servers / "old" / "data").touch()
    with Stack(directory, ["postgres"], keep=keep):
        assert (left.servers / "old" / "data").exists() is keep
    left.remove()


@pytest.mark.parametrize("keep", [True, False])
def test_only_a_stack_that_is_kept_tries_the_sites_usual_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    """Sites of tests start at the same time, and would all find it free."""
    monkeypatch.setattr("example.stack.state.is_free", lambda port: port != 0)
    monkeypatch.setattr(Stack, "_start", lambda stack, names: None)
    with Stack(tmp_path / "own", ["postgres", "site"], keep=keep) as stack:
        assert (stack.state.ports["site"] == SITE_PORT) is keep


def test_processes_that_share_a_test_run_have_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    found: list[int] = []
    for number in range(3):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{number}")
        found += own_ports()
    assert sorted(found) == list(PORTS)


def test_the_server_has_a_control_group_of_its_own(tmp_path: Path) -> None:
    """Root may create one; the short-lived processes of the server are counted there."""
    with Stack(tmp_path / "own", ["postgres"], keep=False) as running:
        group, server = running.running[0].cgroup, running.running[0].process
        assert server
        if not group:
            pytest.skip("this system does not allow to create a control group")
        with psycopg.connect(running.env["PGPERF_DSN_TCP"]) as connection:
            assert {server.pid, connection.info.backend_pid} < members(group)
        assert os.getpid() not in members(group)
    assert not group.exists()


class TestStaleControlGroups:
    """A stack that is killed leaves its server's group behind; the next start removes it."""

    NAME = "pgperf-0-0123456789ab"

    def made(self, parent: Path, name: str = NAME, age_s: float = 3600) -> Path:
        directory = parent / name
        directory.mkdir()
        made_at = time.time() - age_s
        os.utime(directory, (made_at, made_at))
        return directory

    def test_it_is_removed(self, tmp_path: Path) -> None:
        stale = self.made(tmp_path)
        cgroup.remove_stale(tmp_path)
        assert not stale.exists()

    @pytest.mark.parametrize(
        ("name", "age_s"),
        [
            (NAME, 1.0),  # its server is about to start
            ("pgperf-0-0123456789abc", 3600),
            ("pgperf-site", 3600),
            ("system.slice", 3600),
        ],
    )
    def test_new_groups_and_those_of_others_stay(self, tmp_path: Path, name: str, age_s: float) -> None:
        other = self.made(tmp_path, name, age_s)
        cgroup.remove_stale(tmp_path)
        assert other.exists()

    def test_a_group_with_processes_stays(self) -> None:
        parent = next(cgroups.groups_of(os.getpid()), Path("/none"))
        name = f"pgperf-{os.getpid()}-0123456789ab"
        try:
            group = self.made(parent, name, age_s=0)  # other stacks remove what is stale and empty
        except OSError as error:
            pytest.skip(f"no control group can be made here: {error.strerror}")
        with subprocess.Popen(["sleep", "60"]) as process:
            try:
                (group / "cgroup.procs").write_text(str(process.pid))
                os.utime(group, (time.time() - 3600,) * 2)
                cgroup.remove_stale(parent)
                assert members(group) == {process.pid}
            finally:
                process.kill()
        until(lambda: not (group.exists() and members(group)), 10, "the group is empty")
        cgroup.remove_stale(parent)
        assert not group.exists()

    def test_no_parent_is_no_error(self, tmp_path: Path) -> None:
        cgroup.remove_stale(tmp_path / "none")


def test_without_a_control_group_the_stack_starts_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "groups_of", lambda pid: iter([tmp_path / "none"]))
    with Stack(tmp_path / "own", ["postgres"], keep=False) as running:
        assert running.running[0].cgroup is None
        assert one(running.env["PGPERF_DSN_TCP"], "SELECT 1") == 1


def test_one_pooler_serves_with_tls_and_without(stack: dict[str, str]) -> None:
    for name, encrypted in (("PGPERF_DSN_PGBOUNCER", False), ("PGPERF_DSN_PGBOUNCER_TLS", True)):
        with psycopg.connect(stack[name]) as connection:
            assert connection.pgconn.ssl_in_use == encrypted


def test_a_pooler_is_trusted_only_by_its_own_authority(stack: dict[str, str], tmp_path: Path) -> None:
    """The authority of another stack does not verify this pooler."""
    place = Place(tmp_path / "other")
    place.prepare()
    try:
        other = make_conninfo(stack["PGPERF_DSN_PGBOUNCER_TLS"], sslrootcert=str(certificates.ensure(place)))
        with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
            one(other, "SELECT 1")
    finally:
        place.remove()


def test_certificates_are_renewed_before_they_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path / "own")
    place.prepare()
    try:
        first = certificates.ensure(place).read_bytes()
        assert certificates.ensure(place).read_bytes() == first
        monkeypatch.setattr(certificates, "RENEW_BEFORE", certificates.LIFETIME)
        assert certificates.ensure(place).read_bytes() != first
    finally:
        place.remove()


def test_the_transaction_pooler_shares_a_connection(stack: dict[str, str]) -> None:
    """A client outside a transaction holds no server connection, so two clients share one."""
    with (
        psycopg.connect(stack["PGPERF_DSN_PGBOUNCER_TRANSACTION"], autocommit=True) as first,
        psycopg.connect(stack["PGPERF_DSN_PGBOUNCER_TRANSACTION"], autocommit=True) as second,
    ):
        pids = [each.execute("SELECT pg_backend_pid()").fetchone() for each in (first, second)]
    assert pids[0] == pids[1]


def test_the_readonly_role_has_the_guardrails(stack: dict[str, str]) -> None:
    password = (Path(stack["PGPERF_CREDENTIAL_DIR"]) / READER).read_text()
    port = int(stack["PGPERF_PGBOUNCER_TRANSACTION_PORT"])
    route = Route(
        "pooled", "127.0.0.1", port, stack["PGPERF_DB_NAME"], READER, password, pooler="transaction"
    )
    guarded, access = guardrails.guard(route, guardrails.Demand.PROOF)
    assert guarded == route
    assert not access.can_write


def test_a_delayed_route_adds_its_round_trip(stack: dict[str, str]) -> None:
    with psycopg.connect(stack["PGPERF_DSN_DISTANCE_45MS"], autocommit=True) as connection:
        began = time.monotonic()
        connection.execute("SELECT 1")
        assert time.monotonic() - began >= 0.043


def test_redis_answers_only_with_its_password(stack: dict[str, str]) -> None:
    assert Redis.from_url(stack["PGPERF_REDIS_URL"]).ping()
    with socket.create_connection(("127.0.0.1", int(stack["PGPERF_REDIS_PORT"])), timeout=10) as connection:
        connection.sendall(b"PING\r\n")
        assert connection.recv(100).startswith(b"-NOAUTH")


def test_two_stacks_run_side_by_side(stack: dict[str, str], tmp_path: Path) -> None:
    with Stack(tmp_path / "other", [*SERVERS, "pgbouncer_one"], keep=False) as other:
        assert one(other.env["PGPERF_DSN_TCP"], "SELECT 1") == 1
        assert one(other.env["PGPERF_DSN_PGBOUNCER_ONE"], "SELECT 1") == 1
        assert "PGPERF_DSN_PGBOUNCER_ONE" not in stack
        for port in ("PGPERF_DB_PORT", "PGPERF_PGBOUNCER_PORT", "PGPERF_REDIS_PORT"):
            assert other.env[port] != stack[port]


def test_data_and_passwords_are_kept_until_removal(tmp_path: Path) -> None:
    first = Stack(tmp_path / "own", parts=["postgres"])
    with first, psycopg.connect(first.env["PGPERF_DSN_TCP"]) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    second = Stack(tmp_path / "own", parts=["postgres"])
    with second:
        assert second.env["PGPERF_DB_PASSWORD"] == first.env["PGPERF_DB_PASSWORD"]
        assert one(second.env["PGPERF_DSN_SOCKET"], "SELECT answer FROM kept") == 42
    with Stack(tmp_path / "own", parts=["postgres"], keep=False):
        pass
    assert not second.place.servers.exists()
    assert not second.place.own.exists()


def test_a_directory_has_one_stack_at_a_time(tmp_path: Path) -> None:
    with Stack(tmp_path / "own", parts=["postgres"], keep=False) as running:
        with pytest.raises(StackError, match="already running"):
            Stack(tmp_path / "own").start()
        assert one(running.env["PGPERF_DSN_TCP"], "SELECT 1") == 1


def test_password_files_have_one_reader(tmp_path: Path) -> None:
    with Stack(tmp_path / "own", keep=False) as running:
        password = running.env["PGPERF_DB_PASSWORD"].encode()
        holders = [path for top in (running.place.own, running.place.servers) for path in top.rglob("*")
                   if path.is_file() and password in path.read_bytes()]  # fmt: skip
        assert {"env", "state.json"} <= {path.name for path in holders}
        assert "users" not in {path.name for path in holders}
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in holders)


def test_programs_are_copied_when_the_servers_user_cannot_reach_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "can_run", lambda place, program: False)
    with Stack(tmp_path / "own", parts=["postgres"], keep=False) as running:
        program = Path(running.running[0].argv[0])
        assert program.is_relative_to(running.place.servers)
        assert one(running.env["PGPERF_DSN_TCP"], "SELECT 1") == 1


def test_a_strict_umask_does_not_block_the_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "can_run", lambda place, program: False)
    before = os.umask(0o077)
    try:
        with Stack(tmp_path / "own", keep=False) as running:
            assert one(running.env["PGPERF_DSN_PGBOUNCER"], "SELECT 1") == 1
    finally:
        os.umask(before)


def test_variables_of_a_stack_that_was_killed_are_gone_when_the_next_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[bool] = []

    def look(stack: Stack) -> None:
        left.append((stack.place.own / "env").exists())
        raise StackError("seen")

    monkeypatch.setattr(Stack, "_save_state", look)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "env").write_text("PGPERF_DB_PORT=1\n")
    with pytest.raises(StackError, match="seen"), Stack(tmp_path / "own", keep=False):
        pass
    assert left == [False]


def test_data_of_another_version_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "own")
    place.prepare()
    data = place.directory("postgres") / "data"
    data.mkdir()
    (data / "PG_VERSION").write_text("9.6\n")
    try:
        with pytest.raises(StackError, match=r"9\.6.*make clean"):
            postgres.part(place, State(ports={"postgres": 1}))
    finally:
        place.remove()


def test_a_stack_starts_in_the_main_thread_only(tmp_path: Path) -> None:
    refusals: list[StackError] = []

    def start() -> None:
        stack = Stack(tmp_path / "own", parts=["postgres"], keep=False)
        try:
            with stack:
                pass
        except StackError as error:
            refusals.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(refusals[0])


def test_the_site_login_is_no_superuser(stack: dict[str, str]) -> None:
    assert one(stack["PGPERF_DSN_TCP"], "SELECT current_setting('is_superuser')") == "off"
    assert one(stack["PGPERF_DSN_TCP"], "SELECT current_setting('server_version')") != ""
