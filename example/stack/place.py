"""The directories of a stack, and the user that runs its servers.

PostgreSQL and PgBouncer refuse to run as root, and the user `nobody` cannot read a checkout below a
mode-700 home. The servers' files are therefore in the system's temporary directory, in a directory
named by a hash of the stack's directory.
"""

import hashlib
import os
import pwd
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from example.stack.errors import StackError

SOCKET_PATH_BYTES = 107  # sun_path less its NUL


@dataclass(frozen=True)
class Account:
    """The user that runs the servers: `nobody` if this process is root, otherwise the current user."""

    uid: int
    gid: int

    @classmethod
    def unprivileged(cls) -> "Account":
        if os.geteuid() != 0:
            return cls(os.getuid(), os.getgid())
        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid)

    def is_other(self) -> bool:
        return self.uid != os.geteuid()

    def setpriv(self) -> list[str]:
        """Options of setpriv(1) that switch to this user."""
        if not self.is_other():
            return []
        return [f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]


class Place:
    """`own`: environment and logs, private to the current user. `servers`: files of the servers."""

    def __init__(self, directory: Path) -> None:
        self.own = directory.resolve()
        name = hashlib.sha256(str(self.own).encode()).hexdigest()[:12]
        self.servers = Path(tempfile.gettempdir()).resolve() / f"pgperf-{os.geteuid()}-{name}"
        self.account = Account.unprivileged()

    def prepare(self) -> None:
        """Create both directories. Raises StackError if another user owns the shared one."""
        self.own.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.servers.mkdir(mode=0o711, exist_ok=True)
        if self.servers.is_symlink() or self.servers.stat().st_uid != os.geteuid():
            raise StackError(f"{self.servers} belongs to another user; remove it or set TMPDIR")
        self.servers.chmod(0o711)  # regardless of the umask
        if len(str(self.socket(65535))) > SOCKET_PATH_BYTES:
            raise StackError(
                f"{self.servers} is too long a path for a Unix socket; set TMPDIR to a shorter one"
            )

    def directory(self, name: str) -> Path:
        """A directory that only the servers' user can enter."""
        path = self.servers / name
        path.mkdir(mode=0o700, exist_ok=True)
        os.chown(path, self.account.uid, self.account.gid)
        return path

    def secret_file(self, path: Path, text: str) -> Path:
        """Write a file that only the servers' user can read."""
        self.own_file(path, text)
        os.chown(path, self.account.uid, self.account.gid)
        return path

    def secrets(self) -> Path:
        """The directory of PGPERF['SECRETS_DIR']: passwords and certificates for the site and the
        worker.
        """
        path = self.own / "secrets"
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    def own_file(self, path: Path, text: str) -> None:
        """Write a file that only the current user can read."""
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)

    def socket_directory(self) -> Path:
        """The directory of the Unix sockets: any user may connect, with a password."""
        path = self.directory("socket")
        path.chmod(0o755)
        return path

    def static(self) -> Path:
        """The directory of the site's static files, which the web servers' users read."""
        return self.servers / "static"

    def control(self) -> Path:
        """The socket on which the stack takes requests of its own user."""
        return self.servers / "control"

    def socket(self, port: int) -> Path:
        return self.servers / "socket" / f".s.PGSQL.{port}"

    def clear(self) -> None:
        """Remove what servers left that were killed, so that it is not taken for this stack's."""
        for path in self.servers.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def remove(self) -> None:
        shutil.rmtree(self.servers, ignore_errors=True)
        shutil.rmtree(self.own, ignore_errors=True)
