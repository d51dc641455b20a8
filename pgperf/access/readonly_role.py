"""The SQL that creates a readonly role: a login that can read one database and change nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from pgperf.access.guardrails import LIMITS, READ_ONLY
from pgperf.core.answers import IDENTIFIER, LINE, TRUTH, WHOLE, Column, ControlQuery
from pgperf.core.records import Route
from pgperf.core.sql_names import psql_connect, quoted
from pgperf.runner.server.control_connection import ControlConnection

#: The role of a database is ROLE_dbname: a role belongs to all databases of a server.
ROLE = "pgperf_reader"
_APPLICATION = "pgperf-doctor"


@dataclass(frozen=True)
class _Lack:
    """A kind of statement, and the query for the names of those that are missing.

    The text of a statement is never the server's.
    """

    statement: str
    names: ControlQuery


def create_script(route: Route) -> str:
    """The statements that are missing, ready to paste into psql; "" if there are none.

    The last line of a script that creates the role asks for its password. Raises ClientFailed
    without an answer.
    """
    with ControlConnection(route, _APPLICATION) as connection:
        dbname, role, exists = connection.one(_NAMES)
        missing = list(_missing(connection))
    if not missing:
        return ""
    head = (
        f"-- {role} can read {dbname} and change nothing. Paste into psql, connected to {dbname} as a"
        " superuser, or as a role with CREATEROLE that owns the tables."
    )
    return "\n".join([head, *missing, *([] if exists else [f"\\password {quoted(role)}"])])


def reads_all(route: Route) -> bool:
    """Whether the login of a route may read every table of the site. Raises ClientFailed without an
    answer.
    """
    with ControlConnection(route, _APPLICATION) as connection:
        return bool(connection.one(_READS_ALL)[0])


def _missing(connection: ControlConnection) -> Iterator[str]:
    for lack in _LACKS:
        yield from (lack.statement.format(*names) for names in connection.all(lack.names))


def session_grant(direct: Route, pooled: Route) -> str:
    """The GRANT without which the login of a direct route cannot see the sessions behind a pooler;
    "" if it sees them.

    Raises ClientFailed without an answer.
    """
    with ControlConnection(pooled, _APPLICATION) as behind:
        (session,) = behind.one(_SESSION_ROLE)
    with ControlConnection(direct, _APPLICATION) as connection:
        query = ControlQuery("its roles", _SESSION_GRANT.format(oid=session), (IDENTIFIER, IDENTIFIER))
        return "; ".join(f"GRANT {role} TO {login};" for role, login in connection.all(query))


def removal_script(route: Route) -> str:
    """The SQL that removes the roles of `create_script` from a server; "" if it has none.

    A role that owns something is left out: DROP OWNED would drop that too. Raises ClientFailed
    without an answer.
    """
    with ControlConnection(route, _APPLICATION) as connection:
        found = connection.all(_GRANTS)
    lines = []
    for role in dict.fromkeys(role for role, _ in found):
        for dbname in (dbname for other, dbname in found if other == role and dbname):
            lines += [
                psql_connect(dbname),
                f"DROP OWNED BY {quoted(role)}; -- its privileges; it owns nothing",
            ]
        lines.append(f"DROP ROLE {quoted(role)};")
    return "\n".join(lines)


def _own_role(name: str) -> str:
    if not name.startswith(ROLE):
        raise ValueError(name)
    return str(LINE.read(name))


def _own_schema(name: str) -> str:
    """Not one of the server's: its tables have the passwords of all roles."""
    if name.startswith("pg_") or name == "information_schema":
        raise ValueError(name)
    return str(IDENTIFIER.read(name))


def _setting(name: str) -> str:
    return f"{name} = '{_WANTED[name]}'"


_WANTED = {READ_ONLY: "on", **{name: f"{most}ms" for name, most in LIMITS.items()}}
_OWN_ROLE = Column(f"a printable name that begins with {ROLE}", _own_role)
_READER_NAME = Column(_OWN_ROLE.holds, lambda name: quoted(_own_role(name)))
_SCHEMA = Column("a printable name of a schema of the site", _own_schema)
_SETTING = Column("a setting of a session that only reads", _setting)
#: A role of ours, and the databases in which it has privileges, also on a database itself.
_GRANTS_SQL = (
    "SELECT DISTINCT r.rolname, d.datname FROM pg_roles r"
    " LEFT JOIN pg_shdepend s ON s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid"
    " LEFT JOIN pg_database d ON d.oid = s.dbid"
    " OR (s.dbid = 0 AND s.classid = 'pg_database'::regclass AND d.oid = s.objid)"
    f" WHERE starts_with(r.rolname, '{ROLE}') AND NOT EXISTS (SELECT FROM pg_shdepend o"
    " WHERE o.refclassid = 'pg_authid'::regclass AND o.refobjid = r.oid AND o.deptype = 'o')"
    " ORDER BY 1, 2 NULLS FIRST"
)
_GRANTS = ControlQuery("the roles that doctor's SQL has made", _GRANTS_SQL, (_OWN_ROLE, LINE.or_null))
_OURS = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
_READER = f"""
WITH reader AS (
    SELECT named.name, r.oid FROM (SELECT ('{ROLE}_' || current_database())::name AS name) named
    LEFT JOIN pg_roles r ON r.rolname = named.name
)"""
_NAMES = ControlQuery(
    "the name of its readonly role",
    f"{_READER} SELECT current_database(), name, oid FROM reader",
    (LINE, _OWN_ROLE, WHOLE.or_null),
)
_SESSION_ROLE = ControlQuery(
    "the role of a session", "SELECT oid FROM pg_roles WHERE rolname = session_user", (WHOLE,)
)
#: A login sees the sessions of its own role, of roles that it inherits, and with pg_read_all_stats
#: all.
_SEES = "(pg_has_role(current_user, {0}, 'USAGE') OR pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'))"
#: A member of a superuser could become one, so the GRANT is of a role that sees all sessions instead.
_SESSION_GRANT = (
    "SELECT CASE WHEN rolsuper THEN 'pg_read_all_stats' ELSE rolname END, current_user FROM pg_roles"
    f" WHERE oid = {{oid}} AND NOT {_SEES.format('oid')}"
)
_DATABASE = "SELECT oid FROM pg_database WHERE datname = current_database()"
_TRUE = "'on', 'true', 't', 'yes', 'y', '1'"
_SETTINGS = ", ".join(f"('{name}', '{value}')" for name, value in _WANTED.items())


def _lack(statement: str, sql: str, *columns: Column) -> _Lack:
    return _Lack(statement, ControlQuery("the privileges of its readonly role", sql, columns))


# A privilege of a role that does not exist yet is null: it is missing.
# What an extension made has privileges of its own, which a site's owner may not be able to change.
_SITE_RELATIONS = f"""relations AS (
    SELECT c.oid, c.relowner, c.relnamespace, n.nspname FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OURS} AND NOT EXISTS (
        SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e'
    )
)"""
_RELATIONS = f"{_READER}, {_SITE_RELATIONS}"
_READS_ALL = ControlQuery(
    "whether its login reads every table",
    f"WITH {_SITE_RELATIONS} SELECT NOT EXISTS (SELECT FROM relations"
    " WHERE NOT has_table_privilege(oid, 'SELECT') OR NOT has_schema_privilege(relnamespace, 'USAGE'))",
    (TRUTH,),
)
#: Members of this role of PostgreSQL 14 and newer read the tables of the future too.
_READS_FUTURE = (
    "SELECT FROM pg_roles a WHERE a.rolname = 'pg_read_all_data' AND pg_has_role(reader.oid, a.oid, 'USAGE')"
)
_LACKS = (
    _lack(
        "CREATE ROLE {0} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;",
        f"{_READER} SELECT name FROM reader WHERE oid IS NULL",
        _READER_NAME,
    ),
    _lack(
        "GRANT CONNECT ON DATABASE {0} TO {1};",
        f"{_READER} SELECT current_database(), name FROM reader"
        " WHERE has_database_privilege(oid, current_database(), 'CONNECT') IS NOT TRUE",
        IDENTIFIER,
        _READER_NAME,
    ),
    _lack(
        "REVOKE CREATE ON SCHEMA {0} FROM PUBLIC; -- or every login may",
        "SELECT DISTINCT n.nspname FROM pg_namespace n, aclexplode(n.nspacl) a"
        f" WHERE a.grantee = 0 AND a.privilege_type = 'CREATE' AND {_OURS} ORDER BY 1",
        _SCHEMA,
    ),
    _lack(
        "GRANT USAGE ON SCHEMA {0} TO {1};",
        f"{_READER} SELECT n.nspname, reader.name FROM reader, pg_namespace n"
        f" WHERE {_OURS} AND has_schema_privilege(reader.oid, n.oid, 'USAGE') IS NOT TRUE ORDER BY 1",
        _SCHEMA,
        _READER_NAME,
    ),
    _lack(
        "GRANT SELECT ON ALL TABLES IN SCHEMA {0} TO {1};",
        f"{_RELATIONS} SELECT DISTINCT nspname, name FROM reader, relations"
        " WHERE has_table_privilege(reader.oid, relations.oid, 'SELECT') IS NOT TRUE ORDER BY 1",
        _SCHEMA,
        _READER_NAME,
    ),
    _lack(
        "ALTER DEFAULT PRIVILEGES FOR ROLE {0} IN SCHEMA {1} GRANT SELECT ON TABLES TO {2};",
        f"{_RELATIONS} SELECT DISTINCT pg_get_userbyid(relowner), nspname, name FROM reader, relations"
        " WHERE NOT EXISTS (SELECT FROM pg_default_acl d, aclexplode(d.defaclacl) a"
        " WHERE d.defaclrole = relowner AND d.defaclnamespace = relnamespace AND d.defaclobjtype = 'r'"
        f" AND a.grantee = reader.oid AND a.privilege_type = 'SELECT') AND NOT EXISTS ({_READS_FUTURE})"
        " ORDER BY 1, 2",
        IDENTIFIER,
        _SCHEMA,
        _READER_NAME,
    ),
    _lack(
        "ALTER ROLE {0} SET {1};",
        f"{_READER} SELECT name, wanted FROM reader, (VALUES {_SETTINGS}) AS settings (wanted, most)"
        " WHERE EXISTS (SELECT FROM pg_settings known WHERE known.name = wanted)"
        " AND NOT EXISTS (SELECT FROM pg_db_role_setting s, unnest(s.setconfig) AS given"
        f" WHERE s.setrole = reader.oid AND s.setdatabase IN (0, ({_DATABASE}))"
        " AND split_part(given, '=', 1) = wanted"
        f" AND (wanted <> '{READ_ONLY}' OR lower(split_part(given, '=', 2)) IN ({_TRUE}))) ORDER BY 2",
        _READER_NAME,
        _SETTING,
    ),
    _lack(
        "GRANT {0} TO {1}; -- so that runs see its sessions behind a pooler",
        f"{_READER} SELECT name, current_user FROM reader WHERE {_SEES.format('reader.oid')} IS NOT TRUE",
        _READER_NAME,
        IDENTIFIER,
    ),
)
