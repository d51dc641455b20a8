"""One HTTP request and its answer, through libcurl, again and again over one connection."""

import os
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pycurl

from pgperf.core import protocol
from pgperf.core.exceptions import RequestFailed
from pgperf.core.limits import REQUEST_DEADLINE_S

#: A longer body is an error. No part of a body is kept.
MOST_BYTES = 32 << 20
_SHOWN_CHARACTERS = 100
_OK = range(200, 300)
_REDIRECTS = range(300, 400)
_PROTOCOLS = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
_FEWER = "the clients may wait for each other: use fewer clients"

#: By libcurl's number, CURLE_..; pycurl names only some of them.
_REASONS = {
    1: "the answer is not HTTP",
    7: "no connection: nothing listens at the address, or it is not reachable",
    8: "the answer is not HTTP",
    18: "the body ended before its announced length",
    23: f"the body is longer than {MOST_BYTES >> 20} MiB",
    35: "TLS: no agreement with the server: does it speak TLS at this port?",
    52: "the server closed the connection without an answer",
    55: "the connection was lost while the request was sent",
    56: "the connection was lost while the answer was read",
    60: "TLS: the server's certificate does not fit: another host name, expired, or not signed by the"
    " target's certificates",
    77: "TLS: the file of certificates cannot be read",
}


class Answer(NamedTuple):
    """`length` of the body in bytes; `connect_ns`: 0 where the connection was kept; `first_byte_ns`:
    from then to the first byte of the answer.
    """

    length: int
    connect_ns: int
    first_byte_ns: int


class Exchange:
    """A request over a connection of its own, kept or made anew as the spec says.

    A request that takes longer than `deadline_s` fails.
    """

    def __init__(self, spec: protocol.Spec, deadline_s: float = REQUEST_DEADLINE_S) -> None:
        self._curl, self._deadline_s = pycurl.Curl(), deadline_s
        self._secrets = {"session": spec.page.cookie.partition("=")[2]}
        self._received = 0
        for option, value in _options(spec, deadline_s).items():
            self._curl.setopt(option, value)
        self._curl.unsetopt(pycurl.CAPATH)  # the named certificates and no others
        self._curl.setopt(pycurl.WRITEFUNCTION, self._count)

    def __call__(self) -> Answer:
        """Raises RequestFailed for anything but a whole answer with a status of success."""
        curl = self._curl
        self._received = 0
        try:
            curl.perform()
        except pycurl.error as error:
            raise self._failed(error.args[0]) from None
        status = curl.getinfo(pycurl.RESPONSE_CODE)
        if status not in _OK:
            raise RequestFailed(f"status {status}", self._redirect(status))
        connected = _connected_s(curl) if curl.getinfo(pycurl.NUM_CONNECTS) else 0.0
        first_byte = curl.getinfo(pycurl.STARTTRANSFER_TIME) - connected
        return Answer(self._received, round(connected * 1e9), max(0, round(first_byte * 1e9)))

    def close(self) -> None:
        self._curl.close()

    def _failed(self, code: int) -> RequestFailed:
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return RequestFailed(f"no complete answer within {self._deadline_s:g} s", _FEWER)
        return RequestFailed(_REASONS.get(code, f"libcurl's error {code}"))

    def _count(self, data: bytes) -> int | None:
        self._received += len(data)
        return -1 if self._received > MOST_BYTES else None

    def _redirect(self, status: int) -> str:
        """Where a redirect leads; "" for another answer, or a target that is no URL."""
        if status not in _REDIRECTS:
            return ""
        try:
            target = self._curl.getinfo(pycurl.REDIRECT_URL)  # UnicodeDecodeError, a ValueError
            place = _place(protocol.scrub(target, self._secrets)) if target else ""
        except ValueError:
            return ""
        return place and f"a redirect to {_printable(place)}, which is not followed"


def _place(url: str) -> str:
    """The host and the first part of the path: the rest may hold a token or a user's values."""
    parts = urlsplit(url)
    first, _, rest = parts.path.lstrip("/").partition("/")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/{first}" + (
        "/…" if rest else "/" if first else ""
    )


def _options(spec: protocol.Spec, deadline_s: float) -> dict[int, Any]:
    """libcurl's options: the URL's own name and port in Host and TLS, the checked address for the
    socket; no proxy, no .netrc, no redirect, no protocol but HTTP/1.1.
    """
    page, address = spec.page, f"[{spec.host}]" if ":" in spec.host else spec.host
    once = spec.connection_mode == "per_operation"
    return {
        pycurl.URL: spec.url + page.path,
        pycurl.PATH_AS_IS: 1,
        pycurl.NOBODY: int(page.method == "HEAD"),
        pycurl.CONNECT_TO: [f"::{address}:{spec.port}"],
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
        pycurl.PROTOCOLS: _PROTOCOLS,
        pycurl.FOLLOWLOCATION: 0,
        pycurl.PROXY: "",
        pycurl.NOPROXY: "*",
        pycurl.NETRC: pycurl.NETRC_IGNORED,
        pycurl.NOSIGNAL: 1,
        pycurl.HTTPHEADER: [f"{name}: {value}" for name, value in protocol.PAGE_HEADERS.items()],
        pycurl.TIMEOUT_MS: round(deadline_s * 1000),
        pycurl.CONNECTTIMEOUT: spec.connect_timeout_s,
        pycurl.MAXCONNECTS: 1,
        pycurl.FRESH_CONNECT: int(once),
        pycurl.FORBID_REUSE: int(once),
        pycurl.SSL_VERIFYPEER: 1,
        pycurl.SSL_VERIFYHOST: 2,
        **({pycurl.CAINFO: os.fsencode(spec.sslrootcert)} if spec.sslrootcert else {}),
        **({pycurl.COOKIE: page.cookie} if page.cookie else {}),
    }


def _connected_s(curl: Any) -> float:
    """From the start of the request until TCP, and TLS if any, was ready."""
    return float(curl.getinfo(pycurl.APPCONNECT_TIME) or curl.getinfo(pycurl.CONNECT_TIME))


def _printable(text: str) -> str:
    """A server's text, short and in plain characters."""
    plain = "".join(each if " " <= each <= "~" else "?" for each in text.strip())
    return plain[:_SHOWN_CHARACTERS]
