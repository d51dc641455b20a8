"""The SQL that creates a readonly role: a login that can read one database and change nothing."""

from pgperf.access.guardrails import LIMITS, READ_ONLY
from pgperf.core.records import Route
from pgperf.runner.server.control_connection import ControlConnection

ROLE = "pgperf_reader"


def create_script(route: Route) -> str:
    """Ready to paste into psql; the password is asked for by its last line.

    Raises ClientFailed without an answer.
    """
    with ControlConnection(route, "pgperf-doctor") as connection:
        ((dbname,),) = connection.query("SELECT quote_ident(current_database())")
        schemas = [str(row[0]) for row in connection.query(_SCHEMAS)]
        owners = [(str(schema), str(owner)) for schema, owner in connection.query(_OWNERS)]
        open_schemas = [str(row[0]) for row in connection.query(_OPEN_SCHEMAS)]
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


_OURS = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"
_SCHEMAS = f"SELECT quote_ident(n.nspname) FROM pg_namespace n WHERE {_OURS} ORDER BY 1"
_OWNERS = (
    "SELECT DISTINCT quote_ident(n.nspname), quote_ident(pg_get_userbyid(c.relowner)) FROM pg_class c"
    f" JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OURS}"
    " ORDER BY 1, 2"
)
_OPEN_SCHEMAS = (
    "SELECT DISTINCT quote_ident(n.nspname) FROM pg_namespace n, aclexplode(n.nspacl) a"
    f" WHERE a.grantee = 0 AND a.privilege_type = 'CREATE' AND {_OURS} ORDER BY 1"
)
