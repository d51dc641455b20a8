"""A database with valuable data, and roles with different privileges."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql

from example.stack.part import Part
from pgperf.core.records import Route
from tests.security import pooler

DATABASE = "pgperf_harm"
#: The role of the printed script.
READER = f"pgperf_reader_{DATABASE}"
#: Role -> its privileges.
LOGINS = {
    "harm_bare": (),
    "harm_writer": ("GRANT UPDATE ON precious TO harm_writer",),
    "harm_column": ("GRANT UPDATE (note) ON precious TO harm_column",),
    "harm_truncater": ("GRANT TRUNCATE ON precious TO harm_truncater",),
    "harm_viewer": ("GRANT DELETE ON precious_view TO harm_viewer",),
    "harm_sequence": ("GRANT USAGE ON SEQUENCE counter TO harm_sequence",),
    "harm_creator": ("GRANT CREATE ON SCHEMA public TO harm_creator",),
    "harm_schema": (f"GRANT CREATE ON DATABASE {DATABASE} TO harm_schema",),
    "harm_owner": (
        "CREATE TABLE theirs (id int)",
        "ALTER TABLE theirs OWNER TO harm_owner",
    ),
    "harm_function": (
        "CREATE FUNCTION their_function() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "ALTER FUNCTION their_function() OWNER TO harm_function",
    ),
    "harm_inserter": ("GRANT INSERT ON precious TO harm_inserter",),
    "harm_column_inserter": ("GRANT INSERT (note) ON precious TO harm_column_inserter",),
    "harm_deleter": ("GRANT DELETE ON precious TO harm_deleter",),
    "harm_trigger": ("GRANT TRIGGER ON precious TO harm_trigger",),
    "harm_maintainer": ("GRANT MAINTAIN ON precious TO harm_maintainer",),
    "harm_setval": ("GRANT UPDATE ON SEQUENCE counter TO harm_setval",),
    "harm_large_object": (
        "SELECT lo_create(4242)",
        "GRANT UPDATE ON LARGE OBJECT 4242 TO harm_large_object",
    ),
    "harm_settings": ("GRANT ALTER SYSTEM ON PARAMETER work_mem TO harm_settings",),
    "harm_wrapper": (
        "CREATE FOREIGN DATA WRAPPER elsewhere",
        "GRANT USAGE ON FOREIGN DATA WRAPPER elsewhere TO harm_wrapper",
    ),
    "harm_server": (
        "CREATE SERVER far FOREIGN DATA WRAPPER elsewhere",
        "GRANT USAGE ON FOREIGN SERVER far TO harm_server",
    ),
    **{
        f"harm_{group}": (f"GRANT {group} TO harm_{group}",)
        for group in (
            "pg_write_server_files",
            "pg_read_server_files",
            "pg_signal_backend",
            "pg_maintain",
            "pg_checkpoint",
            "pg_create_subscription",
            "pg_use_reserved_connections",
        )
    },
    "harm_write_all": ("GRANT pg_write_all_data TO harm_write_all",),
    "harm_program": ("GRANT pg_execute_server_program TO harm_program",),
    "harm_sleeper": (
        "ALTER ROLE harm_sleeper NOINHERIT",
        "GRANT harm_writer TO harm_sleeper WITH SET TRUE",
    ),
    "harm_roles": ("ALTER ROLE harm_roles CREATEROLE",),
    "harm_databases": ("ALTER ROLE harm_databases CREATEDB",),
    "harm_replica": ("ALTER ROLE harm_replica REPLICATION",),
    "harm_super": ("ALTER ROLE harm_super SUPERUSER",),
    "harm_heir": ("ALTER ROLE harm_heir NOINHERIT", "GRANT harm_super TO harm_heir WITH SET TRUE"),
    "harm_reader": (
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO harm_reader",
        "ALTER ROLE harm_reader SET default_transaction_read_only = on",
        "ALTER ROLE harm_reader SET statement_timeout = '2s'",
        "ALTER ROLE harm_reader SET lock_timeout = '500ms'",
        "ALTER ROLE harm_reader SET idle_in_transaction_session_timeout = '5s'",
        "ALTER ROLE harm_reader SET client_connection_check_interval = '500ms'",
    ),
}
_SET_UP = (
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    "CREATE TABLE precious (id int PRIMARY KEY, note text NOT NULL)",
    "INSERT INTO precious SELECT n, 'note ' || n FROM generate_series(1, 100) n",
    "CREATE VIEW precious_view AS SELECT * FROM precious",
    "CREATE SEQUENCE counter",
)


@dataclass(frozen=True)
class Harm:
    """The database with the valuable table, and its roles."""

    host: str
    port: int
    password: str
    superuser: psycopg.Connection[Any]

    def route(self, role: str, **changes: Any) -> Route:
        values = {"name": "tcp", "host": self.host, "port": self.port, "password": self.password, **changes}
        return Route(**{"dbname": DATABASE, "user": role, **values})

    def state(self) -> tuple[Any, ...]:
        """The state that must not change: rows, objects, settings and roles."""
        row = self.superuser.execute(_STATE).fetchone()
        assert row
        return row


_STATE = """
SELECT (SELECT md5(string_agg(id || note, ',' ORDER BY id)) FROM precious), (SELECT last_value FROM counter),
       (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_namespace),
       (SELECT count(*) FROM pg_roles), (SELECT count(*) FROM pg_largeobject_metadata),
       (SELECT md5(string_agg(setconfig::text, ',' ORDER BY setrole, setdatabase)) FROM pg_db_role_setting),
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')
"""


@pytest.fixture(scope="session")
def harm(superuser_login: dict[str, Any]) -> Iterator[Harm]:
    password = secrets.token_hex(12)
    with psycopg.connect(**superuser_login, dbname="postgres") as admin:
        _tear_down(admin)
        admin.execute(f"CREATE DATABASE {DATABASE}")
        with psycopg.connect(**superuser_login, dbname=DATABASE) as connection:
            for statement in _SET_UP:
                connection.execute(statement)
            for role, statements in LOGINS.items():
                make = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
                connection.execute(make.format(sql.Identifier(role), sql.Literal(password)))
                for statement in statements:
                    connection.execute(statement)
            yield Harm(superuser_login["host"], superuser_login["port"], password, connection)
        _tear_down(admin)


def _tear_down(admin: psycopg.Connection[Any]) -> None:
    admin.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
    for role in (*LOGINS, READER):
        if admin.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).rowcount:
            admin.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
        admin.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


@pytest.fixture(scope="session")
def pooled(harm: Harm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., int]]:
    """Starts a PgBouncer with these settings and returns its port."""
    started: list[Part] = []

    def start(**settings: str) -> int:
        users = dict.fromkeys([*LOGINS, READER], harm.password)
        port, part = pooler.part((harm.host, harm.port), users, settings)
        started.append(part)
        part.start()
        return port

    yield start
    for part in started:
        part.stop()
