"""PgBouncer, one process per way of pooling, so that each one's processor time can be told apart.

SCRAM from its clients and to the server, every database of the server, TLS for the clients that ask for it.
"""

import os
import resource
import shutil
import signal
import socket
from dataclasses import dataclass

from example.stack import certificates
from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.place import Place
from example.stack.postgres import READER, ROLE
from example.stack.state import State

MAX_CLIENTS = 500


@dataclass(frozen=True)
class Pooling:
    """How one of them pools, and how many server connections it holds for a login at most."""

    title: str
    mode: str
    size: int


#: A session holds its server connection for as long as it stands by, so there are as many as a big run has clients.
#: PgBouncer's own default for the second; the third makes everybody wait for everybody.
POOLINGS = {
    "pgbouncer": Pooling("PgBouncer", "session", 150),
    "pgbouncer_transaction": Pooling("PgBouncer by transaction", "transaction", 20),
    "pgbouncer_one": Pooling("PgBouncer with one connection", "transaction", 1),
}

# A server that restarts is back in seconds; by default every client would be refused for 15 s more.
# psycopg and others send extra_float_digits when they connect; 1.18 refuses what it does not know.
CONFIGURATION = """\
[databases]
* = host={socket} port={postgres_port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
client_tls_sslmode = allow
client_tls_cert_file = {certificate}
client_tls_key_file = {key}
pool_mode = {mode}
max_client_conn = {clients}
default_pool_size = {size}
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
stats_users = {readers}
log_connections = 0
log_disconnections = 0
"""


def part(place: Place, state: State, name: str = "pgbouncer") -> Part:
    """A pooler. Its password file holds plain text: SCRAM to the server needs the password, not its verifier."""
    directory, port, pooling = place.directory(name), state.ports[name], POOLINGS[name]
    certificates.ensure(place)
    text = CONFIGURATION.format(
        socket=place.socket_directory(),
        postgres_port=state.ports["postgres"],
        port=port,
        users=_users(place, state, name),
        certificate=place.directory("certificates") / "server.crt",
        key=place.directory("certificates") / "server.key",
        mode=pooling.mode,
        clients=MAX_CLIENTS,
        size=pooling.size,
        readers=f"{ROLE}, {READER}",
    )
    configuration = place.secret_file(directory / "pgbouncer.ini", text)
    return Part(
        name=pooling.title,
        argv=[*_enough_files(), _program(), str(configuration)],
        log=place.own / f"{name}.log",
        answers=lambda _: accepts(port),
        polite=signal.SIGTERM,
        account=place.account,
        cwd=directory,
        env={"PATH": os.defpath},
    )


def accepts(port: int) -> bool:
    """Does anyone accept connections on this loopback port?"""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _users(place: Place, state: State, name: str) -> str:
    logins = {ROLE: state.site_password, READER: state.reader_password}
    text = "".join(f'"{role}" "{password}"\n' for role, password in logins.items())
    return str(place.secret_file(place.directory(name) / "users", text))


def _enough_files() -> list[str]:
    """A descriptor for every client and every server connection; PgBouncer takes the limit that it finds."""
    most = max(pooling.size for pooling in POOLINGS.values())
    wanted = MAX_CLIENTS + 2 * most + 100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return []
    return ["prlimit", f"--nofile={wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)}:"]


def _program() -> str:
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if not found:
        raise StackError("PgBouncer is missing: apt install pgbouncer")
    return found
