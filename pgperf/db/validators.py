"""Validators of definition fields. Each error message names the remedy."""

import math
import re
from dataclasses import replace
from ipaddress import ip_address
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections
from django.utils.translation import gettext as _

from pgperf.conf import get_settings
from pgperf.core.layers import LAYERS
from pgperf.core.limits import CLIENTS, Limit
from pgperf.core.records import CONNECTION_MODES, MODES
from pgperf.db import allowed_hosts

_CREDENTIAL = re.compile(r"alias:\w[\w-]*|env:PGPERF_SECRET_[A-Z0-9_]+|file:\w[\w.-]*")
_FILE = re.compile(r"\w[\w.-]*")
_PLAIN = re.compile(r"\w[\w.@$+-]*")
_SOCKET = re.compile(r"/[A-Za-z0-9_./+-]+")
#: Directories in which every user may create a socket.
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
#: Names that the resolver reads as an address: 2130706433, 127.1, 0x7f000001.
_NUMBER = re.compile(r"\d+|0[xX][0-9A-Fa-f]*")
_NAME_BYTES, _HOST_BYTES, _SOCKET_BYTES = 63, 253, 100
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,29}")
#: The sslmodes that check the server's certificate.
VERIFYING = ("verify-ca", "verify-full")


def plain_text(value: str) -> None:
    """A database or user name that cannot be taken for a connection string, or for an option."""
    if not _PLAIN.fullmatch(value) or len(value.encode(errors="replace")) > _NAME_BYTES:
        raise ValidationError(
            _(
                "Give a plain name of at most 63 bytes (letters, digits, and _ . @ $ + - inside), "
                "not a connection string."
            )
        )


def credential_reference(value: str) -> None:
    if not _CREDENTIAL.fullmatch(value):
        raise ValidationError(
            _("Write alias:NAME, env:PGPERF_SECRET_NAME or file:NAME; never the password itself.")
        )


def file_name(value: str) -> None:
    """A file directly in the directory that settings name."""
    if not _FILE.fullmatch(value):
        raise ValidationError(_("Give the name of a file, without a directory."))


def certificates(sslrootcert: str, sslmode: str) -> None:
    """Without a verifying sslmode, some drivers use the certificates and some ignore them."""
    if sslrootcert and sslmode not in VERIFYING:
        raise ValidationError(
            {"sslrootcert": _("Choose sslmode verify-ca or verify-full, or leave this empty.")}
        )


def cleartext_password(allowed: bool, sslmode: str, host: str) -> None:
    """Only TLS with the server's certificate and name checked hides it from others on the way."""
    if allowed and (sslmode != "verify-full" or host.startswith("/")):
        raise ValidationError(
            {"allow_cleartext_password": _("Choose a route by TCP with sslmode verify-full, or untick this.")}
        )


def own_login(user: str, credential: str) -> None:
    """Without its own credential, this user would log in with another user's password."""
    if user and not credential:
        raise ValidationError({"user": _("A user of this route's own needs a credential of its own.")})


def host(value: str) -> None:
    """One host: a name, an address written in full, or the absolute directory of a Unix socket."""
    if not (_is_socket(value) if value.startswith("/") else _is_address(value) or _is_host_name(value)):
        raise ValidationError(
            _(
                "Give one host name in ASCII, one address written in full, "
                "or the absolute directory of a Unix socket."
            )
        )
    if _is_shared(value) and not _is_named_by_settings(value):
        raise ValidationError(
            _(
                "Every user can create a socket in %(host)s and receive the password there. "
                "Choose a route by TCP, or another of the server's unix_socket_directories; "
                "or allow this one in PGPERF['ALLOWED_HOSTS']."
            )
            % {"host": value}
        )


def _is_shared(value: str) -> bool:
    """Check the name only. The worker also checks the directory, on its own machine."""
    return (
        value.startswith("/") and "/" + "/".join(p for p in value.split("/") if p not in ("", ".")) in _SHARED
    )


def _is_named_by_settings(value: str) -> bool:
    """Is the directory in ALLOWED_HOSTS, or does a DATABASES alias of the site use it?"""
    own = [str(alias.get("HOST") or "") for alias in connections.databases.values()]
    return value in own or any(value == entry.host for entry in allowed_hosts.entries())


def _is_socket(value: str) -> bool:
    return bool(_SOCKET.fullmatch(value)) and ".." not in value.split("/") and len(value) <= _SOCKET_BYTES


def _is_address(value: str) -> bool:
    try:
        return "%" not in value and bool(ip_address(value))
    except ValueError:
        return False


def _is_host_name(value: str) -> bool:
    labels = value.removesuffix(".").split(".")
    return (
        len(value) <= _HOST_BYTES
        and all(_LABEL.fullmatch(label) for label in labels)
        and not _NUMBER.fullmatch(labels[-1])
    )


def scalar_list(value: Any) -> None:
    if not isinstance(value, list) or not all(_is_scalar(item) for item in value):
        raise ValidationError(_("Give a JSON list of strings, numbers, booleans or nulls."))


def _is_scalar(item: Any) -> bool:
    """JSON scalars only: JSON has no NaN and no infinity."""
    return math.isfinite(item) if isinstance(item, float) else not isinstance(item, list | dict)


def layer_list(value: Any) -> None:
    _members(value, tuple(LAYERS))


def mode_list(value: Any) -> None:
    _members(value, MODES)


def connection_mode_list(value: Any) -> None:
    _members(value, CONNECTION_MODES)


def name_list(value: Any) -> None:
    if not _strings(value) or not all(_NAME.fullmatch(item) for item in value):
        raise ValidationError(_('Give a JSON list of route names, for example ["socket", "tcp"].'))


def client_list(value: Any) -> None:
    limit = client_limit()
    numbers = isinstance(value, list) and value and all(limit.allows(item) for item in value)
    if not numbers or len(set(value)) != len(value):
        raise ValidationError(
            _(
                "Give a list of different numbers of clients, each %s (PGPERF['MAX_CLIENTS']), for example [1, 8]."
            )
            % limit.bounds
        )


def client_limit() -> Limit:
    """The numbers of clients that this site allows."""
    return replace(CLIENTS, high=min(CLIENTS.high, get_settings().MAX_CLIENTS))


def _strings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _members(value: Any, allowed: tuple[str, ...]) -> None:
    if not _strings(value) or set(value) - set(allowed) or len(set(value)) != len(value):
        raise ValidationError(_("Give a JSON list of different names out of: %s.") % ", ".join(allowed))
