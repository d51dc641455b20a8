"""From a Database and its Targets to routes with a login. Only the process that measures does this.

A credential is a reference; the password it leads to stays in the Route, in memory. No error here
quotes a secret.
"""

import os
import socket
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ValidationError
from django.db import connections

from pgperf.conf import get_settings
from pgperf.core.accepting_address import accepting
from pgperf.core.exceptions import CredentialError
from pgperf.core.records import Route, most_direct
from pgperf.db import allowed_hosts
from pgperf.db.site_aliases import is_postgresql
from pgperf.db.web_urls import WebUrl
from pgperf.models import Database, Target

_SECRET_PREFIX = "PGPERF_SECRET_"
_MAX_BYTES = 4096
_DEFAULT_PORT = 5432
_OF_TARGET = (
    "host", "port", "sslmode", "sslrootcert", "allow_cleartext_password", "pooler", "user", "credential",
)  # fmt: skip


@dataclass(frozen=True)
class Login:
    """Who to log in as.

    `host` and `port` are those that the credential belongs to; None: it belongs to no host.
    """

    user: str
    password: str
    host: str | None = None
    port: str = ""

    def __repr__(self) -> str:
        return f"Login({self.user!r})"


def resolve(database: Database, names: Iterable[str]) -> dict[str, Route]:
    """The routes of that name. Raises CredentialError naming the field and the remedy."""
    names = list(names)
    targets = {target.route: target for target in database.targets.filter(enabled=True)}
    missing = [name for name in names if name not in targets]
    if missing:
        raise CredentialError(f"routes: database {database} has no enabled target for {', '.join(missing)}")
    of_database = [name for name in names if not targets[name].url]
    login = _database_login(database) if of_database else None
    return {
        name: _route(database, targets[name], login) if login and name in of_database else _web(targets[name])
        for name in names
    }


def direct_route(database: Database) -> Route:
    """The most direct enabled route; a pooler only if there is no other.

    Raises CredentialError naming the field and the remedy.
    """
    targets = list(database.targets.filter(enabled=True, url=""))
    if not targets:
        raise CredentialError(f"routes: database {database} has no enabled target; add one in the admin")
    name = most_direct(targets).route
    return resolve(database, [name])[name]


def _database_login(database: Database) -> Login:
    _check_fields(database, ("dbname", "user"))
    return _login(database)


def _web(target: Target) -> Route:
    """The route of a URL, to an address that its name has now. Clients connect there, whatever the
    name leads to later.
    """
    _check_fields(target, ("url", "sslrootcert"))
    url = WebUrl.parse(target.url)
    try:
        found = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise CredentialError(f"url: the name in {url} of target {target} cannot be resolved") from None
    return Route(
        name=target.route,
        host=str(accepting([(each[0], each[4]) for each in found])[1][0]),
        port=url.port,
        dbname="",
        user="",
        password="",
        sslrootcert=_certificates(target),
        url=str(url),
    )


def _route(database: Database, target: Target, login: Login) -> Route:
    _check_fields(target, _OF_TARGET)
    login = _login(target) if target.credential else login
    _check_host(target, login)
    return Route(
        name=target.route,
        host=target.host,
        port=target.port,
        dbname=database.dbname,
        user=login.user,
        password=login.password,
        sslmode=target.sslmode,
        sslrootcert=_certificates(target),
        allow_cleartext_password=target.allow_cleartext_password,
        pooler=target.pooler,
    )


def _check_fields(row: Database | Target, names: Iterable[str]) -> None:
    """The form's rules again: a row may have come another way, and what it says goes to libpq."""
    for name in names:
        try:
            row._meta.get_field(name).clean(getattr(row, name), row)  # type: ignore[union-attr]
        except ValidationError as error:
            raise CredentialError(
                f"{name}: {_named(row)} has a wrong one. {' '.join(error.messages)}"
            ) from None
    try:
        row.clean()
    except ValidationError as error:
        name, messages = next(iter(error.message_dict.items()))
        raise CredentialError(f"{name}: {_named(row)} has a wrong one. {' '.join(messages)}") from None


def _named(row: Database | Target) -> str:
    return f"{row._meta.verbose_name} {row}"


def _check_host(target: Target, login: Login) -> None:
    """An alias's password goes to the alias's own host and port, or where settings allow it; others'
    where settings say so.
    """
    own_port = login.port if login.host is not None else None
    if allowed_hosts.allows(target.host, target.port, own_port):
        return
    entry = allowed_hosts.entry_for(target.host, target.port)
    if login.host is not None and (target.host, str(target.port)) != (login.host, login.port):
        raise CredentialError(
            f"host: target {target} has {target.host!r}, port {target.port}, which is not the alias's own address; "
            f"to send the alias's password there, add {entry!r} to PGPERF['ALLOWED_HOSTS']"
        )
    if login.host is None and get_settings().STRICT_HOSTS:
        raise CredentialError(
            f"host: target {target} has {target.host!r}, port {target.port}, which is not in PGPERF['ALLOWED_HOSTS']; "
            f"with PGPERF['STRICT_HOSTS'] no password goes anywhere else, unless you add {entry!r}"
        )
    if login.host is None and _everybody_writes(target.host):
        raise CredentialError(
            f"host: target {target} has {target.host!r}, where everybody may open a socket and wait for a password; "
            f"choose a directory that only the server writes to, or TCP, or add {entry!r} to PGPERF['ALLOWED_HOSTS']"
        )


def _everybody_writes(host: str) -> bool:
    """Is it a directory in which anybody may be the one who listens? Not where there is none."""
    try:
        return host.startswith("/") and bool(Path(host).stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


def _login(row: Database | Target) -> Login:
    kind, _, name = row.credential.partition(":")
    if kind == "alias":
        return _from_alias(row, name)
    if kind not in ("env", "file"):
        raise CredentialError(
            f"credential: {_named(row)} needs alias:NAME, env:PGPERF_SECRET_NAME or file:NAME"
        )
    if not row.user:
        raise CredentialError(f"user: {_named(row)} needs one, {kind}: holds a password only")
    password = _from_environment(name) if kind == "env" else _from_file(name)
    if "\x00" in password:
        raise CredentialError(f"credential: {kind}:{name} contains a NUL character and cannot be a password")
    return Login(row.user, password)


def _from_alias(row: Database | Target, name: str) -> Login:
    if name not in connections.databases:
        raise CredentialError(f"credential: DATABASES has no alias {name!r} on this machine")
    alias = connections.databases[name]
    if not is_postgresql(alias):
        raise CredentialError(
            f"credential: alias {name!r} of DATABASES is not a PostgreSQL database ({alias['ENGINE']})"
        )
    user = str(alias.get("USER") or "")
    if row.user not in ("", user):
        raise CredentialError(f"user: leave it empty, the password of alias {name!r} is not {row.user!r}'s")
    if not user:
        raise CredentialError(f"credential: alias {name!r} of DATABASES has no USER")
    address = str(alias.get("HOST") or ""), str(alias.get("PORT") or _DEFAULT_PORT)
    return Login(user, str(alias.get("PASSWORD") or ""), *address)


def _from_environment(name: str) -> str:
    if not name.startswith(_SECRET_PREFIX):
        raise CredentialError(f"credential: the variable's name must start with {_SECRET_PREFIX}")
    if name not in os.environ:
        raise CredentialError(
            f"credential: {name} is not set in the environment of the process that measures"
        )
    return os.environ[name]


def _from_file(name: str) -> str:
    path = _file("credential", name)
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode().rstrip("\r\n")
    except OSError as error:
        raise CredentialError(f"credential: file {name!r} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise CredentialError(f"credential: file {name!r} is not UTF-8 text") from None


def _certificates(target: Target) -> str:
    """Path of the certificates that the target names, "" if it names none.

    They are read by its clients.
    """
    if not target.sslrootcert:
        return ""
    path = _file("sslrootcert", target.sslrootcert)
    if not os.access(path, os.R_OK):
        raise CredentialError(f"sslrootcert: file {target.sslrootcert!r} cannot be read")
    return str(path)


def _file(field: str, name: str) -> Path:
    """A file in the one directory for secrets, links followed.

    Raises CredentialError, naming the field.
    """
    directory = get_settings().SECRETS_DIR
    if not directory:
        raise CredentialError(f"{field}: a file needs PGPERF['SECRETS_DIR']")
    root = Path(directory).resolve()
    path = (root / name).resolve()
    if not name or not path.is_relative_to(root) or not path.is_file():
        raise CredentialError(f"{field}: no file {name!r} in PGPERF['SECRETS_DIR'] on this machine")
    return path
