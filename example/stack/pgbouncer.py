"""PgBouncer: SCRAM from its clients and to the server, session pooling, every database of the server."""

import os
import shutil
import signal
import socket

from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.place import Place
from example.stack.postgres import ROLE
from example.stack.state import State

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
pool_mode = session
max_client_conn = 200
default_pool_size = 50
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
stats_users = {role}
log_connections = 0
log_disconnections = 0
"""


def part(place: Place, state: State) -> Part:
    """The pooler. Its password file holds plain text: SCRAM to the server needs the password, not its verifier."""
    directory = place.directory("pgbouncer")
    port = state.ports["pgbouncer"]
    users = place.secret_file(directory / "users", f'"{ROLE}" "{state.site_password}"\n')
    text = CONFIGURATION.format(
        socket=place.socket_directory(),
        postgres_port=state.ports["postgres"],
        port=port,
        users=users,
        role=ROLE,
    )
    configuration = place.secret_file(directory / "pgbouncer.ini", text)
    return Part(
        name="PgBouncer",
        argv=[_program(), str(configuration)],
        log=place.own / "pgbouncer.log",
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


def _program() -> str:
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if not found:
        raise StackError("PgBouncer is missing: apt install pgbouncer")
    return found
