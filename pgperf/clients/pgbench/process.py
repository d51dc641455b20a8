"""Runs pgbench: its arguments, its environment and its end.

The password, the script and what else is not for other users goes through files in memory that
pgbench inherits. So nothing of it is in an argument, in a directory or in the environment.
"""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, getrusage

from pgperf.clients.pgbench.report import Summary
from pgperf.core import pgbench, protocol
from pgperf.core.exceptions import LayerUnavailable, PgperfError, ServerError
from pgperf.core.parent_death import die_with_parent

_KEYWORD = "require_auth"
#: A socket that no server has: what a program says of it shows which keywords its libpq knows.
_NOWHERE = "host=/dev/null/none"
#: How long pgbench may take beyond its time.
_GRACE_S = 10.0
_CONNECTION = "connection to server"
#: libpq's words from the versions whose messages do not begin like that.
_OF_CONNECTION = (
    _CONNECTION,
    "could not translate host name",
    "could not connect",
    "while establishing connection",
)
#: Lines that add nothing to those before them.
_REST = ("Run was aborted", "aborted while establishing connection", "could not create connection for")


class ConnectionFailed(OSError):
    """A connection of pgbench failed; the message may be the server's."""


@dataclass(frozen=True)
class Finished:
    """A run of pgbench that ended well. CPU times are those of its process, ns."""

    summary: Summary
    spawned_ns: int
    epoch_ns: int  # time of the system minus CLOCK_MONOTONIC when it started
    elapsed_s: float
    user_ns: int
    sys_ns: int


class Pgbench:
    """A pgbench program with the address and the login that it connects with."""

    def __init__(self, program: str, spec: protocol.Spec) -> None:
        self._program, self._spec = program, spec
        self.version = _version(program)
        self._knows_require_auth = _knows_require_auth(program)
        self._passfile = _in_memory("passfile", _passfile(spec.password))

    def run(self, script: str, arguments: Sequence[str], time_s: float | None) -> Finished:
        """Run a script to its end.

        Raises PgperfError if it does not end well within `time_s` and ten seconds (None: no limit),
        or if a transaction fails; ConnectionFailed if it cannot connect.
        """
        file = _in_memory("script", script)
        argv = [*die_with_parent(), self._program, "--no-vacuum", f"--file={_path(file)}", *arguments]
        before, spawned_ns = getrusage(RUSAGE_CHILDREN), time.monotonic_ns()
        epoch_ns = time.time_ns() - spawned_ns
        try:
            out = self._finished(argv, file, None if time_s is None else time_s + _GRACE_S)
        finally:
            os.close(file)
        elapsed_s, after = (time.monotonic_ns() - spawned_ns) / 1e9, getrusage(RUSAGE_CHILDREN)
        summary = Summary.of(out)
        if summary.failed:
            raise PgperfError(
                f"pgbench: {summary.failed} transactions failed; the time of the others means nothing"
            )
        return Finished(
            summary,
            spawned_ns,
            epoch_ns,
            elapsed_s,
            user_ns=round((after.ru_utime - before.ru_utime) * 1e9),
            sys_ns=round((after.ru_stime - before.ru_stime) * 1e9),
        )

    def _finished(self, argv: Sequence[str], file: int, timeout_s: float | None) -> str:
        """What it printed."""
        with subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(file, self._passfile),
            env=self._environment(),
            text=True,
            errors="replace",
        ) as process:
            try:
                out, err = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise PgperfError(
                    f"pgbench did not end {_GRACE_S:g} s after its time: the server does not answer"
                ) from None
        if process.returncode:
            raise _failure(process.returncode, err)
        return out

    def _environment(self) -> dict[str, str]:
        return {**_plain(), "PGTZ": "UTC", "PGDATABASE": self._connection_string()}

    def _connection_string(self) -> str:
        """All keywords, so that a database name that looks like a connection string stays a name."""
        spec = self._spec
        keywords = {
            "host": spec.certificate_name or spec.host,
            "hostaddr": spec.host if spec.certificate_name else "",
            "port": spec.port,
            "dbname": spec.dbname,
            "user": spec.user,
            "passfile": _path(self._passfile),
            "sslmode": spec.sslmode,
            "sslrootcert": spec.sslrootcert,
            "connect_timeout": spec.connect_timeout_s,
            "application_name": spec.application_name,
            "options": spec.options,
            "gssencmode": "disable",
            "client_encoding": "UTF8",
        }
        if self._knows_require_auth:
            keywords[_KEYWORD] = spec.require_auth
        return " ".join(f"{name}={_quoted(str(value))}" for name, value in keywords.items() if value != "")


def _version(program: str) -> str:
    """The version of a pgbench program, such as "18.6".

    Raises LayerUnavailable for one that cannot be used.
    """
    version = pgbench.version_of(_said(program, "--version").stdout)
    if refusal := pgbench.version_refusal(version):
        raise LayerUnavailable(f"{program} {refusal}")
    return version


def _knows_require_auth(program: str) -> bool:
    """Does its libpq know the keyword? Its version does not say: the libpq may be a newer one.

    No server is asked, because it could lie.
    """
    environment = {**_plain(), "PGDATABASE": f"{_NOWHERE} {_KEYWORD}=!password"}
    said = _said(program, "--no-vacuum", "--transactions=1", env=environment).stderr
    return f'invalid connection option "{_KEYWORD}"' not in said


def _plain() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def _said(
    program: str, *arguments: str, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """The program after it ended. Raises LayerUnavailable if it does not start or end."""
    try:
        return subprocess.run(
            [program, *arguments], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_GRACE_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LayerUnavailable(f"{program} cannot be started: {error}") from None


def _failure(code: int, err: str) -> Exception:
    """The first cause that pgbench names."""
    said = [line.partition("error: ")[2] or line.partition("fatal: ")[2] or line for line in err.splitlines()]
    said = [line for line in said if line.strip() and not line.startswith(("pgbench (", "pgbench: hint"))]
    causes = [line for line in said if not any(rest in line for rest in _REST)] or said
    if any(words in err for words in _OF_CONNECTION):
        return ConnectionFailed("\n".join(line for line in causes) or "pgbench could not connect")
    _, is_of_server, words = causes[0].partition("ERROR:  ") if causes else ("", "", "")
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    if is_of_server:
        return ServerError(f"{protocol.OF_SERVER}{words}")
    return PgperfError(f"pgbench ended with {how}: {causes[0] if causes else ''}")


def _passfile(password: str) -> str:
    """The password of every address. Without any, pgbench would ask for one at the terminal."""
    if "\n" in password or "\r" in password:
        raise PgperfError(
            "password: pgbench reads it from a password file, where it cannot have several lines"
        )
    escaped = password.replace("\\", "\\\\").replace(":", "\\:")
    return f"*:*:*:*:{escaped or '-'}\n"


def _in_memory(name: str, text: str) -> int:
    """A file in memory that only this user may read."""
    file = os.memfd_create(name)
    os.fchmod(file, 0o600)
    os.write(file, text.encode())
    return file


def _path(file: int) -> str:
    return f"/proc/self/fd/{file}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
