"""A login whose sessions see what a server before PostgreSQL 14 shows of itself.

The server obeys the newer setting all the same, so a test looks at what is sent.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

_SCHEMA = "older_server"
#: Its settings, without the one that PostgreSQL 14 brought.
SETTINGS = (
    f"CREATE VIEW {_SCHEMA}.pg_settings AS"
    " SELECT * FROM pg_catalog.pg_settings WHERE name <> 'client_connection_check_interval'",
    f"GRANT SELECT ON {_SCHEMA}.pg_settings TO PUBLIC",
)
#: Its version, 13.23.
VERSION = (
    f"CREATE FUNCTION {_SCHEMA}.current_setting(name text) RETURNS text STABLE LANGUAGE sql AS $$"
    " SELECT CASE name WHEN 'server_version_num' THEN '130023' ELSE pg_catalog.current_setting(name) END $$",
)


@contextmanager
def seen_by(
    role: str, superuser: "psycopg.Connection[Any]", statements: tuple[str, ...] = SETTINGS
) -> Iterator[None]:
    """Within, sessions of the role that begin in the superuser's database see the older server."""
    path = f"ALTER ROLE {role} IN DATABASE {superuser.info.dbname}"
    superuser.execute(f"CREATE SCHEMA {_SCHEMA}")
    try:
        for statement in (
            f"GRANT USAGE ON SCHEMA {_SCHEMA} TO {role}",
            *statements,
            f"{path} SET search_path = {_SCHEMA}, pg_catalog, public",
        ):
            superuser.execute(statement)
        yield
    finally:
        superuser.execute(f"{path} RESET search_path")
        superuser.execute(f"DROP SCHEMA {_SCHEMA} CASCADE")
