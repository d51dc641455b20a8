"""Which certificate of a server is accepted: libpq's rules for what does not connect by libpq.

A certificate that pgperf accepts where libpq does not would let an impostor hear a run's statements.
Standard library only.
"""

import ipaddress
import os
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pgperf.core import client_certificate
from pgperf.core.exceptions import ClientFailed

#: The value of sslrootcert by which libpq 16 and newer trust the system's authorities.
SYSTEM = "system"
_FULL = "verify-full"
_VERIFYING = ("verify-ca", _FULL)
#: The kinds of names in a certificate, as Python calls them.
_NAME, _ADDRESS = "DNS", "IP Address"
_NO_ROOT = (
    "sslrootcert: the file of root certificates does not exist (the Target's sslrootcert; ~/.postgresql/root.crt by"
    " default)"
)
_BAD_ROOT = "sslrootcert: the file of root certificates cannot be read, or has no certificate in PEM"
_WEAK = f"sslmode: choose {_FULL}; with another one, libpq refuses sslrootcert={SYSTEM}"
_OTHER_NAME = f"sslmode {_FULL}: the server's certificate does not match the host name"


class _Named(ssl.SSLContext):
    """Takes the server for one of another name than that of the address connected to.

    asyncpg knows one name for both.
    """

    name = ""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return super().wrap_bio(incoming, outgoing, server_side, self.name or server_hostname, session)


def context(sslmode: str, sslrootcert: str, name: str = "") -> ssl.SSLContext:
    """TLS that trusts what libpq trusts: the authorities in the file `sslrootcert`, by default
    ~/.postgresql/root.crt, and no other ones. It presents the client certificate of this user.

    If the file exists, certificates are verified for `require` and `prefer` too, as libpq does. Names
    are not checked: see `check_name`. Raises ClientFailed, naming the setting.

    `name`: the server's name, which `wrap_bio` uses instead of the one passed to it (for SNI, and for
    the check where a caller sets `check_hostname`); "": it uses the passed one.
    """
    made = _Named(ssl.PROTOCOL_TLS_CLIENT)
    made.name = name
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED if _trust(made, sslmode, sslrootcert) else ssl.CERT_NONE
    client_certificate.present(made)
    return made


def check_name(sslmode: str, host: str, certificate: Mapping[str, Any]) -> None:
    """For `verify-full`, raises ClientFailed unless the certificate is one for `host`.

    `certificate`: a verified one, as `SSLSocket.getpeercert` gives it.
    """
    if sslmode == _FULL and not _is_for(certificate, host):
        raise ClientFailed(_OTHER_NAME)


def _trust(made: ssl.SSLContext, sslmode: str, sslrootcert: str) -> bool:
    """Load the authorities; False if there are none, and none are needed."""
    if sslrootcert == SYSTEM:
        if sslmode != _FULL:
            raise ClientFailed(_WEAK)
        made.load_default_certs()
        return True
    root = sslrootcert or _in_home("root.crt")
    if not os.path.exists(root):
        if sslmode in _VERIFYING:
            raise ClientFailed(_NO_ROOT)
        return False
    try:
        made.load_verify_locations(root)
    except OSError:
        raise ClientFailed(_BAD_ROOT) from None
    _revoke(made)
    return True


def _revoke(made: ssl.SSLContext) -> None:
    """Refuse the certificates in the user's list of revoked ones, if there is a list."""
    with suppress(OSError):
        made.load_verify_locations(_in_home("root.crl"))
        made.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN


def _in_home(name: str) -> str:
    """Path of a file of libpq's; "" if this user has no home."""
    with suppress(RuntimeError):
        return str(Path.home() / ".postgresql" / name)
    return ""


def _is_for(certificate: Mapping[str, Any], host: str) -> bool:
    """The subject's common name counts if no alternative name is of the host's own kind."""
    alternatives = certificate.get("subjectAltName", ())
    if any(_matches(kind, name, host) for kind, name in alternatives):
        return True
    if (_ADDRESS if _packed(host) else _NAME) in {kind for kind, _ in alternatives}:
        return False
    subject = (pair for part in certificate.get("subject", ()) for pair in part)
    common_names = (value for key, value in subject if key == "commonName")
    return _matches(_NAME, next(common_names, ""), host)


def _matches(kind: str, name: str, host: str) -> bool:
    """A star stands for one label, the first one."""
    if kind == _ADDRESS:
        return bool(_packed(host)) and _packed(name) == _packed(host)
    name, host = name.lower(), host.lower()
    label, _, domain = host.partition(".")
    return kind == _NAME and (name == host or (bool(label and domain) and name == f"*.{domain}"))


def _packed(text: str) -> bytes:
    """The bytes of an address, as libpq reads it; b"" if it is none."""
    with suppress(OSError):
        return socket.inet_aton(text)
    with suppress(ValueError):
        return ipaddress.IPv6Address(text).packed if "%" not in text else b""
    return b""
