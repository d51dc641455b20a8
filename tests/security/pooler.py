"""A PgBouncer with the users and settings of a test."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from example.stack.part import Part
from example.stack.pgbouncer import accepts
from example.stack.place import Account
from example.stack.state import free_port

_CONFIGURATION = """\
[databases]
* = host={host} port={server_port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
"""
_DEFAULTS = {"pool_mode": "transaction", "ignore_startup_parameters": "extra_float_digits"}


def part(server: tuple[str, int], users: Mapping[str, str], settings: Mapping[str, str]) -> tuple[int, Part]:
    """The port, and the process to start; its files are temporary."""
    account, port = Account.unprivileged(), free_port(set())
    directory = Path(tempfile.mkdtemp(prefix="pgperf-pooler-"))
    lines = ['"{}" "{}"'.format(name, password.replace('"', '""')) for name, password in users.items()]
    text = _CONFIGURATION.format(host=server[0], server_port=server[1], port=port, users=directory / "users")
    text += "".join(f"{name} = {value}\n" for name, value in {**_DEFAULTS, **settings}.items())
    for name, content in (("users", "\n".join(lines) + "\n"), ("pgbouncer.ini", text)):
        (directory / name).write_text(content)
        os.chown(directory / name, account.uid, account.gid)
    os.chown(directory, account.uid, account.gid)
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    assert program
    return port, Part(
        name="a PgBouncer",
        argv=[program, str(directory / "pgbouncer.ini")],
        log=Path(tempfile.mkdtemp(prefix="pgperf-pooler-log-")) / "pgbouncer.log",
        answers=lambda _: accepts(port),
        account=account,
        cwd=directory,
        env={"PATH": os.defpath},
    )
