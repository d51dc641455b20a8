"""A hot standby of the stack's server."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg

from example.stack import postgres
from example.stack.part import Part
from example.stack.process import guarded
from example.stack.stack import Stack
from example.stack.state import free_port


@contextmanager
def standby(stack: Stack, primary: Part) -> Iterator[int]:
    """The port of a standby that replays the primary's changes meanwhile."""
    data = stack.place.directory("standby") / "data"
    port = free_port(taken=set(stack.state.ports.values()))
    _copy(stack, Path(primary.argv[0]).with_name("pg_basebackup"), data)
    second = _part(stack, primary, data, port)
    second.start()
    try:
        yield port
    finally:
        second.stop()


def _copy(stack: Stack, program: Path, data: Path) -> None:
    """Copy the running primary; `-R` makes the copy a standby."""
    place, state = stack.place, stack.state
    login = [
        "-h",
        str(place.socket_directory()),
        "-p",
        str(state.ports["postgres"]),
        "-U",
        postgres.SUPERUSER,
    ]
    command = [str(program), *login, "-D", str(data), "-R", "--checkpoint=fast"]
    subprocess.run(
        guarded(command, signal.SIGKILL, place.account),
        cwd=place.servers,
        env={**os.environ, "PGPASSWORD": state.superuser_password},
        check=True,
    )


def _part(stack: Stack, primary: Part, data: Path, port: int) -> Part:
    words = [f"--port={port}" if word.startswith("--port=") else word for word in primary.argv]
    words[words.index("-D") + 1] = str(data)

    def answers(_: Part) -> bool:
        return _is_standby(stack, port)

    log = primary.log.with_name("standby.log")
    return replace(primary, name="standby", argv=words, log=log, answers=answers, process=None)


def _is_standby(stack: Stack, port: int) -> bool:
    try:
        with psycopg.connect(
            host=str(stack.place.socket_directory()), port=port, dbname="postgres", user=postgres.SUPERUSER,
            password=stack.state.superuser_password, connect_timeout=10,
        ) as connection:  # fmt: skip
            found = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    except psycopg.OperationalError:
        return False
    return bool(found and found[0])
