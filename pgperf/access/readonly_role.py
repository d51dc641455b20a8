"""The SQL that creates a readonly role: a login that can read one database and change nothing."""

from pgperf.access.guardrails import LIMITS, READ_ONLY
from pgperf.core.answers import TEXT, WHOLE, ControlQuery
from pgperf.core.records import Route
from pgperf.runner.server.control_connection import ControlConnection

#: The role of a database is ROLE_dbname: a role belongs to all databases of a server.
ROLE = "pgperf_reader"
_APPLICATION = "pgperf-doctor"


def create_script(route: Route) -> str:
    """The statements that are missing, ready to paste into psql; "" if there are none.

    The last line of a script that creates the role asks for its password. Raises ClientFailed
    without an answer.
    """
    with ControlConnection(route, _APPLICATION) as connection:
        dbname, role, exists = connection.one(_NAMES)
        missing = [statement for (statement,) in connection.all(_MISSING)]
    if not missing:
        return ""
    head = (
        f"-- {role} can read {dbname} and change nothing. Paste into psql, connected to {dbname} as a"
        " superuser, or as a role with CREATEROLE that owns the tables."
    )
    return "\n".join([head, *missing, *([] if exists else [f"\\password {role}"])])


def session_grant(direct: Route, pooled: Route) -> str:
    """The GRANT without which the login of a direct route cannot see the sessions behind a pooler;
    "" if it sees them.

    Raises ClientFailed without an answer.
    """
    with ControlConnection(pooled, _APPLICATION) as behind:
        (session,) = behind.one(_SESSION_ROLE)
    with ControlConnection(direct, _APPLICATION) as connection:
        query = ControlQuery("its roles", _SESSION_GRANT.format(oid=session), (TEXT,))
        return "; ".join(grant for (grant,) in connection.all(query))


def removal_script(route: Route) -> str:
    """The SQL that removes the roles of `create_script` from a server; "" if it has none.

    A role that owns something is left out: DROP OWNED would drop that too. Raises ClientFailed
    without an answer.
    """
    with ControlConnection(route, "pgperf-doctor") as connection:
        found = [(str(role), str(dbname or "")) for role, dbname in connection.query(_GRANTS)]
    lines = []
    for role in dict.fromkeys(role for role, _ in found):
        for dbname in (dbname for other, dbname in found if other == role and dbname):
            lines += [f"\\connect {dbname}", f"DROP OWNED BY {role}; -- its privileges; it owns nothing"]
        lines.append(f"DROP ROLE {role};")
    return "\n".join(lines)


#: A role of ours, and the databases in which it has privileges, also on a database itself.
_GRANTS = (
    "SELECT DISTINCT quote_ident(r.rolname), quote_ident(d.datname) FROM pg_roles r"
    " LEFT JOIN pg_shdepend s ON s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid"
    " LEFT JOIN pg_database d ON d.oid = s.dbid"
    " OR (s.dbid = 0 AND s.classid = 'pg_database'::regclass AND d.oid = s.objid)"
    f" WHERE starts_with(r.rolname, '{ROLE}') AND NOT EXISTS (SELECT FROM pg_shdepend o"
    " WHERE o.refclassid = 'pg_authid'::regclass AND o.refobjid = r.oid AND o.deptype = 'o')"
    " ORDER BY 1, 2 NULLS FIRST"
)
_OURS = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
_READER = f"""
WITH reader AS (
    SELECT named.name, r.oid FROM (SELECT ('{ROLE}_' || current_database())::name AS name) named
    LEFT JOIN pg_roles r ON r.rolname = named.name
)"""
_NAMES = ControlQuery(
    "the name of its readonly role",
    f"{_READER} SELECT quote_ident(current_database()), quote_ident(name), oid FROM reader",
    (TEXT, TEXT, WHOLE.or_null),
)
_SESSION_ROLE = ControlQuery(
    "the role of a session", "SELECT oid FROM pg_roles WHERE rolname = session_user", (WHOLE,)
)
#: A login sees the sessions of its own role, of roles that it inherits, and with pg_read_all_stats
#: all.
_SEES = "(pg_has_role(current_user, {0}, 'USAGE') OR pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'))"
_SESSION_GRANT = (
    "SELECT format('GRANT %I TO %I;', rolname, current_user) FROM pg_roles"
    f" WHERE oid = {{oid}} AND NOT {_SEES.format('oid')}"
)
_SETTINGS = ", ".join(
    f"('{name}', '{value}')"
    for name, value in {READ_ONLY: "on", **{name: f"{most}ms" for name, most in LIMITS.items()}}.items()
)
# A privilege of a role that does not exist yet is null: it is missing.
_MISSING_SQL = f"""{_READER}, schemas AS (SELECT n.oid, n.nspname FROM pg_namespace n WHERE {_OURS}),
relations AS (
    SELECT c.oid, c.relowner, c.relnamespace, n.nspname FROM pg_class c JOIN schemas n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
), statements (place, statement) AS (
    SELECT 1, format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;', name)
    FROM reader WHERE oid IS NULL
    UNION ALL
    SELECT 2, format('GRANT CONNECT ON DATABASE %I TO %I;', current_database(), name)
    FROM reader WHERE has_database_privilege(oid, current_database(), 'CONNECT') IS NOT TRUE
    UNION ALL
    SELECT DISTINCT 3, format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC; -- or every login may', n.nspname)
    FROM pg_namespace n, aclexplode(n.nspacl) a WHERE a.grantee = 0 AND a.privilege_type = 'CREATE' AND {_OURS}
    UNION ALL
    SELECT 4, format('GRANT USAGE ON SCHEMA %I TO %I;', nspname, name)
    FROM reader, schemas WHERE has_schema_privilege(reader.oid, schemas.oid, 'USAGE') IS NOT TRUE
    UNION ALL
    SELECT DISTINCT 5, format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I;', nspname, name)
    FROM reader, relations WHERE has_table_privilege(reader.oid, relations.oid, 'SELECT') IS NOT TRUE
    UNION ALL
    SELECT DISTINCT 6, format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT SELECT ON TABLES TO %I;',
                              pg_get_userbyid(relowner), nspname, name)
    FROM reader, relations WHERE NOT EXISTS (
        SELECT FROM pg_default_acl d, aclexplode(d.defaclacl) a
        WHERE d.defaclrole = relowner AND d.defaclnamespace = relnamespace AND d.defaclobjtype = 'r'
          AND a.grantee = reader.oid AND a.privilege_type = 'SELECT')
    UNION ALL
    SELECT 7, format('ALTER ROLE %I SET %s = %L;', name, wanted, most)
    FROM reader, (VALUES {_SETTINGS}) AS settings (wanted, most) WHERE NOT EXISTS (
        SELECT FROM pg_db_role_setting s, unnest(s.setconfig) AS given
        WHERE s.setrole = reader.oid AND s.setdatabase = 0 AND split_part(given, '=', 1) = wanted
          AND (wanted <> '{READ_ONLY}' OR given = wanted || '=on'))
    UNION ALL
    SELECT 8, format('GRANT %I TO %I; -- so that runs see its sessions behind a pooler', name, current_user)
    FROM reader WHERE {_SEES.format("reader.oid")} IS NOT TRUE
)
SELECT statement FROM statements ORDER BY place, statement
"""
_MISSING = ControlQuery("the privileges of its readonly role", _MISSING_SQL, (TEXT,))
