"""PgBouncer: one process per pool mode, so that the CPU time of each can be measured.

It serves every database and offers TLS. Clients log in by SCRAM, one pooler excepted, which trusts
a login that may read nothing. Its file of users has the server's own verifiers: with plain
passwords, each login would take 4 ms of PgBouncer's one thread instead of 0.4 ms. The key that a
client proves with its login opens the connections to the server too, so `[databases]` names no
user. The databases of the web steps' clusters have the names of the clusters.
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
from example.stack.postgres import DATABASE, READER, ROLE, TRUSTED, verifiers
from example.stack.state import State
from example.stack.web_steps import CLUSTERS

MAX_CLIENTS = 500


@dataclass(frozen=True)
class Pooling:
    """A pool mode, with the maximum number of server connections per role, and who may log in how."""

    title: str
    mode: str
    size: int
    auth_type: str = "scram-sha-256"
    logins: tuple[str, ...] = (ROLE, READER)


#: In session mode each client holds a server connection, so the pool is as large as a big run
#: needs; the second differs from the first in its authentication only. The third has PgBouncer's
#: default size. In the last, all clients wait for one connection.
POOLINGS = {
    "pgbouncer": Pooling("PgBouncer", "session", 150),
    "pgbouncer_trust": Pooling("PgBouncer without passwords", "session", 150, "trust", (TRUSTED,)),
    "pgbouncer_transaction": Pooling("PgBouncer by transaction", "transaction", 20),
    "pgbouncer_one": Pooling("PgBouncer with one connection", "transaction", 1),
}

# server_login_retry: by default PgBouncer refuses clients for 15 s after a restart of the server.
# extra_float_digits: some drivers send it, and PgBouncer 1.18 refuses unknown startup parameters.
CONFIGURATION = """\
[databases]
{clusters}* = host={socket} port={postgres_port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = {auth_type}
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
    """A pooler. The server must run: it has the verifiers."""
    directory, port, pooling = place.directory(name), state.ports[name], POOLINGS[name]
    certificates.ensure(place)
    text = CONFIGURATION.format(
        clusters="".join(
            f"{cluster} = host={place.socket_directory()} port={state.ports[cluster]} dbname={DATABASE}\n"
            for cluster in CLUSTERS
            if cluster in state.ports
        ),
        socket=place.socket_directory(),
        postgres_port=state.ports["postgres"],
        port=port,
        auth_type=pooling.auth_type,
        users=_users(place, state, name),
        certificate=place.directory("certificates") / "server.crt",
        key=place.directory("certificates") / "server.key",
        mode=pooling.mode,
        clients=MAX_CLIENTS,
        size=pooling.size,
        readers=", ".join(pooling.logins),
    )
    configuration = place.secret_file(directory / "pgbouncer.ini", text)
    return Part(
        name=pooling.title,
        argv=[*_raise_file_limit(), _program(), str(configuration)],
        log=place.own / f"{name}.log",
        answers=lambda _: accepts(port),
        polite=signal.SIGTERM,
        account=place.account,
        cwd=directory,
        env={"PATH": os.defpath},
    )


def accepts(port: int) -> bool:
    """Whether a process accepts connections on this loopback port."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _users(place: Place, state: State, name: str) -> str:
    known = verifiers(place, state, POOLINGS[name].logins)
    text = "".join(f'"{role}" "{verifier or ""}"\n' for role, verifier in known.items())
    return str(place.secret_file(place.directory(name) / "users", text))


def _raise_file_limit() -> list[str]:
    """A prefix that raises the limit of open files to the number of connections."""
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
