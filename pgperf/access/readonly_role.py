"""The SQL that creates a readonly role: a login that can read one database and change nothing."""

from pgperf.access.guardrails import LIMITS, READ_ONLY
from pgperf.core.answers import TEXT, ControlQuery
from pgperf.core.records import Route
from pgperf.runner.server.control_connection import ControlConnection

ROLE = "pgperf_reader"


def create_script(route: Route) -> str:
    """Ready to paste into psql; the password is asked for by its last line.

    Raises ClientFailed without an answer.
    """
    with ControlConnection(route, "pgperf-doctor") as connection:
        (dbname,) = connection.one(_DBNAME)
        schemas = [schema for (schema,) in connection.all(_SCHEMAS)]
        owners = connection.all(_OWNERS)
        open_schemas = [schema for (schema,) in connection.all(_OPEN_SCHEMAS)]
    lines = [
        f"-- A login that can read {dbname} and change nothing. Paste into psql, connected to {dbname} as a superuser.",
        f"CREATE ROLE {ROLE} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;",
        f"GRANT CONNECT ON DATABASE {dbname} TO {ROLE};",
        *(f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC; -- or every login may" for schema in open_schemas),
        *(f"GRANT USAGE ON SCHEMA {schema} TO {ROLE};" for schema in schemas),
        *(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {ROLE};" for schema in schemas),
        *(
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {schema} GRANT SELECT ON TABLES TO {ROLE};"
            for schema, owner in owners
        ),
        f"ALTER ROLE {ROLE} SET {READ_ONLY} = on;",
        *(f"ALTER ROLE {ROLE} SET {name} = '{most}ms';" for name, most in LIMITS.items()),
        f"\\password {ROLE}",
    ]
    return "\n".join(lines)


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
_SCHEMAS_SQL = f"SELECT quote_ident(n.nspname) FROM pg_namespace n WHERE {_OURS} ORDER BY 1"
_OWNERS_SQL = (
    "SELECT DISTINCT quote_ident(n.nspname), quote_ident(pg_get_userbyid(c.relowner)) FROM pg_class c"
    f" JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OURS}"
    " ORDER BY 1, 2"
)
_OPEN_SCHEMAS_SQL = (
    "SELECT DISTINCT quote_ident(n.nspname) FROM pg_namespace n, aclexplode(n.nspacl) a"
    f" WHERE a.grantee = 0 AND a.privilege_type = 'CREATE' AND {_OURS} ORDER BY 1"
)
_DBNAME = ControlQuery("its database", "SELECT quote_ident(current_database())", (TEXT,))
_SCHEMAS = ControlQuery("its schemas", _SCHEMAS_SQL, (TEXT,))
_OWNERS = ControlQuery("the owners of its tables", _OWNERS_SQL, (TEXT, TEXT))
_OPEN_SCHEMAS = ControlQuery("its schemas", _OPEN_SCHEMAS_SQL, (TEXT,))
