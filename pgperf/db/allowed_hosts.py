"""The entries of PGPERF["ALLOWED_HOSTS"]: where an alias's password may go besides its own address.

`db.example`, `[::1]`, `/run/postgresql`: this host, on the alias's own port. `db.example:6432`,
`[::1]:6432`, `/run/postgresql:6432`: on this port. `db.example:*`: on any port. An IPv6 address
without a port needs no brackets.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from pgperf.conf import get_settings

_ANY = "*"
_ENTRY = re.compile(
    r"\[(?P<bracketed>[0-9A-Fa-f.]*:[0-9A-Fa-f:.]+)\](?::(?P<port_a>\d{1,5}|\*))?"
    r"|(?P<bare>[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)"
    r"|(?P<plain>[^:\[\]\s,]+)(?::(?P<port_b>\d{1,5}|\*))?"
)


@dataclass(frozen=True)
class AllowedHost:
    """One entry. `port`: "" for the alias's own, "*" for any."""

    host: str
    port: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError if it is no entry."""
        found = _ENTRY.fullmatch(text)
        port = (found["port_a"] or found["port_b"] or "") if found else ""
        if not found or (port.isdigit() and not 1 <= int(port) <= 65535):
            raise ValueError(f"{text!r} is not a host with or without a port")
        return cls(found["bracketed"] or found["bare"] or found["plain"], port)

    def allows(self, host: str, port: int, own_port: str | None) -> bool:
        """`own_port`: that of the alias; None if the credential belongs to no alias, and so to no
        port.
        """
        if host != self.host:
            return False
        wanted = self.port or (_ANY if own_port is None else own_port)
        return wanted == _ANY or wanted == str(port)


def entries() -> Iterator[AllowedHost]:
    """Those of the settings. A malformed one allows nothing; a system check reports it."""
    for text in get_settings().ALLOWED_HOSTS:
        with suppress(ValueError):
            yield AllowedHost.parse(str(text))


def allows(host: str, port: int, own_port: str | None) -> bool:
    """Do the settings allow this address?"""
    return any(entry.allows(host, port, own_port) for entry in entries())


def entry_for(host: str, port: int) -> str:
    """The entry that allows this address and no other."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
