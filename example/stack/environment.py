"""Environment variables with the addresses and passwords of a stack."""

from collections.abc import Collection
from pathlib import Path

from psycopg.conninfo import make_conninfo

from example.stack import certificates, distance, pgbouncer, postgres, redis_server, web_steps
from example.stack.place import Place
from example.stack.state import State

ADMIN_USER = "admin"


def environment(place: Place, state: State, parts: Collection[str]) -> dict[str, str]:
    """The variables of the parts that the stack runs. They contain passwords: never log them."""
    installation = postgres.installation()
    env = {
        "DJANGO_SETTINGS_MODULE": "example.settings",
        "DJANGO_SECRET_KEY": state.django_secret_key,
        "DJANGO_STATIC_ROOT": str(place.static()),
        "PGPERF_DB_NAME": postgres.DATABASE,
        "PGPERF_DB_USER": postgres.ROLE,
        "PGPERF_DB_PASSWORD": state.site_password,
        "PGPERF_DB_SOCKET": str(place.socket_directory()),
        "PGPERF_DB_HOST": "127.0.0.1",
        "PGPERF_DB_PORT": str(state.ports["postgres"]),
        "PGPERF_PG_CONFIG": str(installation / "bin" / "pg_config"),
        "PGPERF_PGBENCH": str(installation / "bin" / "pgbench"),
        "PGPERF_DSN_SOCKET": _dsn(state, place.socket_directory(), state.ports["postgres"]),
        "PGPERF_DSN_TCP": _dsn(state, "127.0.0.1", state.ports["postgres"]),
        "PGPERF_CREDENTIAL_DIR": str(place.secrets()),
    }
    env["PGPERF_DSN_TCP_TRUST"] = _trusted_dsn(state.ports["postgres"])
    for name in parts:
        if name in (*pgbouncer.POOLINGS, *distance.DISTANCES):
            env[f"PGPERF_{name.upper()}_PORT"] = str(state.ports[name])
            env[f"PGPERF_DSN_{name.upper()}"] = _dsn(state, "127.0.0.1", state.ports[name])
    if "pgbouncer_trust" in parts:
        env["PGPERF_DSN_PGBOUNCER_TRUST"] = _trusted_dsn(state.ports["pgbouncer_trust"])
    if "pgbouncer" in parts:
        authority = str(place.secrets() / certificates.AUTHORITY)
        env["PGPERF_DSN_PGBOUNCER_TLS"] = make_conninfo(
            env["PGPERF_DSN_PGBOUNCER"], sslmode="verify-full", sslrootcert=authority
        )
    if "redis" in parts:
        env["PGPERF_REDIS_PORT"] = str(state.ports["redis"])
        env["PGPERF_REDIS_URL"] = redis_server.url(state)
    return {**env, **_web(place, state, parts)}


def _web(place: Place, state: State, parts: Collection[str]) -> dict[str, str]:
    """The addresses of the site and of the web steps, and the login of the admin."""
    site = {"PGPERF_URL": f"http://127.0.0.1:{state.ports['site']}/"} if "site" in parts else {}
    steps = [name for name in web_steps.STEPS if name in parts]
    if not (site or steps):
        return {}
    login = {"PGPERF_ADMIN_USER": ADMIN_USER, "PGPERF_ADMIN_PASSWORD": state.admin_password}
    urls = {web_steps.variable(name): web_steps.url(name, state.ports[name]) for name in steps}
    control = {"PGPERF_STACK_CONTROL": str(place.control())} if steps else {}
    return {**site, **login, **urls, **control}


def _dsn(state: State, host: Path | str, port: int) -> str:
    login = f"dbname={postgres.DATABASE} user={postgres.ROLE} password={state.site_password}"
    return f"host={host} port={port} {login} sslmode=disable"


def _trusted_dsn(port: int) -> str:
    return f"host=127.0.0.1 port={port} dbname={postgres.DATABASE} user={postgres.TRUSTED} sslmode=disable"
