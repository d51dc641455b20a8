"""The parts of a site that is spread over simulated hosts (example.stack.network_hosts)."""

import os
import subprocess
from dataclasses import replace

from example.stack import postgres
from example.stack.network_hosts import Host
from example.stack.place import Place
from example.stack.state import State


def start_server(db: Host, address: str, network: str, place: Place, state: State) -> None:
    """PostgreSQL on that host, for logins from this network; it ends with its host."""
    part = postgres.part(place, state)
    with (place.servers / "postgres" / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all all {network} scram-sha-256\n")
    argv = db.inside(
        *part.argv, f"--listen_addresses={address}", cwd=place.servers, as_user=place.account.setpriv()
    )
    replace(part, argv=argv, account=None).start()
    postgres.create_roles_and_database(place, state)


def start_broker(app: Host, address: str, state: State) -> None:
    """Its settings come on stdin: passwords do not belong in an argv."""
    settings = f"port {state.ports['redis']}\nbind {address}\nsave ''\nrequirepass {state.redis_password}\n"
    broker = subprocess.Popen(
        app.inside("redis-server", "-"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert broker.stdin
    broker.stdin.write(settings)
    broker.stdin.close()


def environment(here: str, there: str, state: State) -> dict[str, str]:
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith(("PGPERF_", "DJANGO_"))},
        "DJANGO_SETTINGS_MODULE": "example.settings",
        "DJANGO_SECRET_KEY": state.django_secret_key,
        "PGPERF_DB_HOST": there,
        "PGPERF_DB_PORT": str(state.ports["postgres"]),
        "PGPERF_DB_NAME": postgres.DATABASE,
        "PGPERF_DB_USER": postgres.ROLE,
        "PGPERF_DB_PASSWORD": state.site_password,
        "PGPERF_REDIS_URL": f"redis://:{state.redis_password}@{here}:{state.ports['redis']}/0",
    }
