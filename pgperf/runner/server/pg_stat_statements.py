"""Calls and rows of a login's statements, from pg_stat_statements.

Counting costs the server time, so it may be off (`track` = none) while slices are timed. If the
login has the permission, pgperf switches it on for the sessions of a diagnostic slice only.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pgperf.core import protocol, sql_parameters
from pgperf.core.answers import IDENTIFIER, TEXT, TRUTH, WHOLE, ControlQuery
from pgperf.runner.client_process import ClientProcess
from pgperf.runner.server.control_connection import ControlConnection

_TIMEOUT_S = 15.0
#: The first version that lets a login set a superuser's parameter, if it was granted that.
_GRANTS_SINCE = 15


@dataclass(frozen=True)
class StatementCounts:
    """The statements of a login in this database up to the server's `moment`, without pgperf's own
    queries.
    """

    calls: int
    rows: int
    moment: str
    others: int  # other sessions of the login that have worked since the moment given


@dataclass(frozen=True)
class PgStatStatements:
    """The extension as a control connection finds it."""

    schema: str  # quoted
    track: str  # pg_stat_statements.track in a session as it starts
    top_level: bool  # does it tell statements from those that they call?

    @classmethod
    def find(cls, connection: ControlConnection) -> "PgStatStatements | str":
        """The extension, or why it cannot be read.

        Raises ClientFailed if the server cannot be queried.
        """
        (track,) = connection.one(_TRACK)
        if not track:
            return "pg_stat_statements is not in the server's shared_preload_libraries"
        found = connection.all(_EXTENSION)
        if not found:
            return "this database lacks the extension: CREATE EXTENSION pg_stat_statements"
        schema, readable, top_level = found[0]
        if not readable:
            return f"the login may not read {schema}.pg_stat_statements"
        return cls(schema, track, top_level)

    def shows(self, connection: ControlConnection, user: str) -> bool:
        """Does it show the texts of that login's statements? They are needed to exclude pgperf's
        own queries.
        """
        query = ControlQuery(
            "the statements that it shows", sql_parameters.literal(_SHOWS, (user,)), (TRUTH,)
        )
        (shows,) = connection.one(query)
        return bool(shows)

    def count(
        self, connection: ControlConnection, user: str, application: str, since: str = ""
    ) -> StatementCounts:
        """The counts now, for that login.

        `application`: the prefix of pgperf's own application names.
        """
        text = _COUNT.format(schema=self.schema, where="AND s.toplevel" if self.top_level else "")
        text = sql_parameters.literal(text, (user, f"{application}%", since or None, user))
        query = ControlQuery("the counts of statements", text, (WHOLE, WHOLE, TEXT, WHOLE))
        return StatementCounts(*connection.one(query))


def switch_on(clients: Iterable[ClientProcess], server_version: str) -> bool:
    """Count the statements of these clients from now on; False if the login may not set that."""
    major = server_version.partition(".")[0]
    if not major.isdecimal() or int(major) < _GRANTS_SINCE:
        return False
    return all(_switch_on(client) for client in clients)


def _switch_on(client: ClientProcess) -> bool:
    _ask(client, _SWITCH_ON)
    return _ask(client, _IS_ON) == [["on"]]


def switch_off(clients: Iterable[ClientProcess]) -> None:
    """Count the statements of these clients as when their sessions began."""
    for client in clients:
        _ask(client, _SWITCH_OFF)


def _ask(client: ClientProcess, text: str) -> list[list[str | None]]:
    client.send(protocol.Query(text))
    return client.expect(protocol.Rows, _TIMEOUT_S).rows


_TRACK = ControlQuery(
    "pg_stat_statements.track", "SELECT current_setting('pg_stat_statements.track', true)", (TEXT.or_null,)
)
_EXTENSION_SQL = """
SELECT n.nspname, has_table_privilege(c.oid, 'SELECT'),
       EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'toplevel')
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'pg_stat_statements'
WHERE e.extname = 'pg_stat_statements'
"""
_EXTENSION = ControlQuery("the extension pg_stat_statements", _EXTENSION_SQL, (IDENTIFIER, TRUTH, TRUTH))
_SHOWS = "SELECT /* pgperf diagnosis */ current_user = %s OR pg_has_role('pg_read_all_stats', 'USAGE')"
# A pooler sets application_name for each client; that is not part of the workload.
_COUNT = """
SELECT /* pgperf diagnosis */ coalesce(sum(s.calls), 0), coalesce(sum(s.rows), 0), clock_timestamp(),
       (SELECT count(*) FROM pg_stat_activity
        WHERE usename = %s AND datname = current_database() AND pid <> pg_backend_pid()
          AND application_name NOT LIKE %s AND query_start >= %s::timestamptz)
FROM {schema}.pg_stat_statements s
WHERE s.userid = (SELECT oid FROM pg_roles WHERE rolname = %s)
  AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND s.query NOT LIKE '%%/* pgperf diagnosis */%%' AND s.query NOT ILIKE 'set application_name%%' {where}
"""
_SWITCH_ON = """
SELECT /* pgperf diagnosis */ set_config('pg_stat_statements.track', 'top', false),
                              set_config('compute_query_id', 'on', false)
WHERE current_setting('pg_stat_statements.track', true) = 'none'
  AND has_parameter_privilege('pg_stat_statements.track', 'SET') AND has_parameter_privilege('compute_query_id', 'SET')
"""
_SWITCH_OFF = """
SELECT /* pgperf diagnosis */ set_config(name, reset_val, false)
FROM pg_settings WHERE name IN ('pg_stat_statements.track', 'compute_query_id')
"""
_IS_ON = """
SELECT /* pgperf diagnosis */ CASE WHEN current_setting('pg_stat_statements.track', true) <> 'none'
                                    AND current_setting('compute_query_id', true) <> 'off' THEN 'on' ELSE 'off' END
"""
