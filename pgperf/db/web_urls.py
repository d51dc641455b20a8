"""URLs of web servers: those of targets, and the entries of PGPERF["WEB_URLS"], which allow them.

A URL is a scheme, a name or an address, and a port: `https://site.example`, `http://[::1]:8000`. The
prefix below which this server has the site may follow: `https://site.example/shop`. It has no path,
which is the page's, and no credentials.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from pgperf.conf import get_settings
from pgperf.db.host_names import is_address, is_host_name

_PORTS = {"http": 80, "https": 443}
#: No part of the prefix begins with a dot: a web server may read another one there.
_URL = re.compile(
    r"(https?)://(?:\[([0-9A-Fa-f:.]+)\]|([^:/?#@\[\]\s]+))(?::([0-9]{1,5}))?((?:/[\w~-][\w.~-]*)*)", re.ASCII
)


@dataclass(frozen=True)
class WebUrl:
    """Where a web server is."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError if it is no URL of this form."""
        found = _URL.fullmatch(text)
        scheme, address, name, port, prefix = found.groups() if found else ("", "", "", "", "")
        host = (address or name or "").lower()
        number = int(port) if port else _PORTS.get(scheme, 0)
        good = is_address(host) if address else is_address(host) or is_host_name(host)
        if not good or not 1 <= number <= 65535 or (":" in host) != bool(address):
            raise ValueError(f"{text!r} is not a URL of the form https://name:port")
        return cls(scheme, host, number, prefix)

    @property
    def is_encrypted(self) -> bool:
        return self.scheme == "https"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.prefix}"


def allowed() -> Iterator[WebUrl]:
    """Those of the settings. A malformed one allows nothing; a system check reports it."""
    for text in get_settings().WEB_URLS:
        with suppress(ValueError):
            yield WebUrl.parse(text)


def is_allowed(url: WebUrl) -> bool:
    """May pgperf send requests there? Scheme, name, port and prefix must be those of an entry."""
    return url in allowed()
