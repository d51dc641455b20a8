"""Validators of definition fields. Each error message names the remedy."""

import re
from dataclasses import replace
from datetime import time
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connections
from django.utils.translation import gettext as _

from pgperf.conf import get_settings
from pgperf.core import delayed_routes
from pgperf.core.json_scalar import is_json_scalar
from pgperf.core.layers import LAYERS
from pgperf.core.limits import CLIENTS, LOAD_HOSTS_HIGH, MOST_ROUTES, RATE_HIGH, RATE_LOW, Limit
from pgperf.core.records import CONNECTION_MODES, MODES
from pgperf.core.timetable import DAYS
from pgperf.db import allowed_hosts, client_environments, web_urls
from pgperf.db.host_names import is_address, is_host_name

_CREDENTIAL = re.compile(r"alias:\w[\w-]*|env:PGPERF_SECRET_[A-Z0-9_]+|file:\w[\w.-]*")
_FILE = re.compile(r"\w[\w.-]*")
_PLAIN = re.compile(r"\w[\w.@$+-]*")
_SOCKET = re.compile(r"/[A-Za-z0-9_./+-]+")
#: Directories in which every user may create a socket.
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NAME_BYTES, _SOCKET_BYTES = 63, 100
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,29}")
#: Every slug that a target may have.
_ROUTE = re.compile(r"[A-Za-z0-9_-]{1,30}")
#: The sslmodes that check the server's certificate.
VERIFYING = ("verify-ca", "verify-full")


def plain_text(value: str) -> None:
    """A database or user name that cannot be taken for a connection string, or for an option."""
    if not _PLAIN.fullmatch(value) or len(value.encode(errors="replace")) > _NAME_BYTES:
        raise ValidationError(
            _(
                "Enter a plain name of at most 63 bytes (letters, digits, and _ . @ $ + - inside), "
                "not a connection string."
            )
        )


def one_line(value: str) -> None:
    """Words without control characters, which a terminal would obey."""
    if _CONTROL.search(value):
        raise ValidationError(_("Leave out line breaks and other control characters."))


def credential_reference(value: str) -> None:
    if not _CREDENTIAL.fullmatch(value):
        raise ValidationError(
            _("Enter alias:NAME, env:PGPERF_SECRET_NAME or file:NAME; never the password itself.")
        )


def file_name(value: str) -> None:
    """A file directly in the directory that settings name."""
    if not _FILE.fullmatch(value):
        raise ValidationError(_("Enter the name of a file, without a directory."))


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
    if not (_is_socket(value) if value.startswith("/") else is_address(value) or is_host_name(value)):
        raise ValidationError(
            _(
                "Enter one host name in ASCII, one address written in full, "
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


def web_url(value: str) -> None:
    """The URL of a web server that settings allow."""
    try:
        url = web_urls.WebUrl.parse(value)
    except ValueError:
        raise ValidationError(
            _(
                "Enter a scheme, a name and a port, for example https://site.example or http://127.0.0.1:8000,"
                " and the prefix below which the site is there, such as /shop, if it has one: "
                "no path, which is the workload's, and no user or password."
            )
        ) from None
    if not web_urls.is_allowed(url):
        raise ValidationError(_("Requests to it are not allowed: add %r to PGPERF['WEB_URLS'].") % str(url))


def web_target(url: str, host: str, sslrootcert: str, others: dict[str, Any]) -> None:
    """A target is an address of a database or a URL. `others`: fields of a database's address."""
    if bool(url) == bool(host):
        field = "url" if url else "host"
        raise ValidationError(
            {field: _("Enter the host of a database or the URL of a web server, one of them.")}
        )
    if not url:
        return
    for field, value in others.items():
        if value:
            raise ValidationError({field: _("Leave this empty: a web server's target has a URL only.")})
    if url.startswith("https:") != bool(sslrootcert):
        message = _("A URL with https needs the certificates to verify the server by; http has none.")
        raise ValidationError({"sslrootcert": message})


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


def day_list(value: Any) -> None:
    """Days of the week by their short names, each once."""
    plain = isinstance(value, list) and all(isinstance(day, str) for day in value)
    if not plain or len(set(value)) < len(value) or not set(value) <= set(DAYS):
        raise ValidationError(_("Choose days of the week, each once: %s.") % ", ".join(DAYS))


def whole_minute(value: time) -> None:
    if value.second or value.microsecond:
        raise ValidationError(_("Enter hours and minutes only, for example 03:15."))


def scalar_list(value: Any) -> None:
    if not isinstance(value, list) or not all(is_json_scalar(item) for item in value):
        raise ValidationError(_("Enter a JSON list of strings, numbers, booleans or nulls."))


def layer_list(value: Any) -> None:
    _members(value, tuple(LAYERS))


def mode_list(value: Any) -> None:
    _members(value, MODES)


def connection_mode_list(value: Any) -> None:
    _members(value, CONNECTION_MODES)


def environment_list(value: Any) -> None:
    """Names of this site's environments. A name is all that a form, an import or a command gives."""
    if not _strings(value) or len(set(value)) != len(value):
        raise ValidationError(_('Enter a JSON list of different names, for example ["default"].'))
    if unknown := client_environments.unknown(value):
        raise ValidationError(
            _("PGPERF['ENVIRONMENTS'] has no %(unknown)s. Choose from: %(known)s.")
            % {"unknown": ", ".join(map(repr, unknown)), "known": ", ".join(client_environments.names())}
        )


def name_list(value: Any) -> None:
    if isinstance(value, list) and len(value) > MOST_ROUTES:
        raise ValidationError(_("Choose at most %d routes.") % MOST_ROUTES)
    if not _strings(value) or not all(_is_route(item) for item in value):
        raise ValidationError(
            _('Enter a JSON list of route names, for example ["socket", "tcp"], or "tcp+45ms" with a delay.')
        )


def _is_route(name: str) -> bool:
    return delayed_routes.is_written_well(name) and bool(_ROUTE.fullmatch(delayed_routes.apart(name)[0]))


def client_list(value: Any) -> None:
    limit = client_limit()
    numbers = isinstance(value, list) and value and all(limit.allows(item) for item in value)
    if not numbers or len(set(value)) != len(value):
        raise ValidationError(
            _(
                "Enter a list of different numbers of clients, each %s (PGPERF['MAX_CLIENTS']), for example"
                " [1, 8]."
            )
            % limit.bounds
        )


def rate_list(value: Any) -> None:
    """Rates in operations/s; null is a closed loop."""
    given = value if isinstance(value, list) else []
    rates = [rate for rate in given if rate is not None]
    numbers = all(type(rate) in (int, float) and RATE_LOW <= rate <= RATE_HIGH for rate in rates)
    if not given or not numbers or len(set(given)) != len(given):
        raise ValidationError(
            _(
                "Enter a list of different rates, each %(low)g to %(high)g operations/s, or null for a"
                " closed loop, for example [null, 100, 1000]."
            )
            % {"low": RATE_LOW, "high": RATE_HIGH}
        )


def load_host_counts(value: Any) -> None:
    """How many load hosts make the load; 0 is the run's own worker."""
    given = value if isinstance(value, list) else []
    if not given or not all(type(each) is int and 0 <= each <= LOAD_HOSTS_HIGH for each in given):
        raise ValidationError(
            _("Enter a list of numbers of load hosts, each 0 to %d; 0 is the run's own worker.")
            % LOAD_HOSTS_HIGH
        )
    if len(set(given)) != len(given):
        raise ValidationError(_("Enter each number of load hosts once."))


def load_host_names(value: Any) -> None:
    """Names of load hosts, as the queues of their workers have them."""
    if not isinstance(value, list) or not all(
        isinstance(name, str) and _NAME.fullmatch(name) for name in value
    ):
        raise ValidationError(_('Enter a JSON list of names of load hosts, for example ["a", "b"].'))
    if len(set(value)) != len(value):
        raise ValidationError(_("Enter each load host once."))


def client_limit() -> Limit[int]:
    """The numbers of clients that this site allows."""
    return replace(CLIENTS, high=min(CLIENTS.high, get_settings().MAX_CLIENTS))


def _strings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _members(value: Any, allowed: tuple[str, ...]) -> None:
    if not _strings(value) or set(value) - set(allowed) or len(set(value)) != len(value):
        message = _("Enter a JSON list of different names. Choose from: %s.")
        raise ValidationError(message % ", ".join(allowed))
