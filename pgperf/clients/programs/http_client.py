"""The layer http: HTTP requests for a page, over one connection, through libcurl."""

from typing import BinaryIO

import pycurl

from pgperf.clients.http.exchange import Exchange
from pgperf.clients.http.requests import Requests
from pgperf.clients.loop import main
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol
from pgperf.core.exceptions import InvalidDefinition, PgperfError
from pgperf.core.limits import REQUEST_DEADLINE_S


class HttpClient:
    """A connection to a web server, which the first request opens."""

    connection_modes = ("persistent", "per_operation")
    deadline_s: float = REQUEST_DEADLINE_S
    counts_rows = False
    is_http = True
    backend_pid = 0
    server_version = ""

    def __init__(self, replies: BinaryIO) -> None:
        self._exchange: Exchange | None = None

    def load(self, spec: protocol.Spec) -> None:
        if not spec.page.path:
            raise InvalidDefinition(
                "page: none given; this layer requests pages, so choose a workload that is one"
            )
        if not spec.url:
            raise InvalidDefinition("url: none given; this layer needs a target with the URL of a site")
        if spec.page.method not in protocol.PAGE_METHODS:
            raise InvalidDefinition(f"page.method: choose {' or '.join(protocol.PAGE_METHODS)}")

    def connect(self, spec: protocol.Spec) -> None:
        self._exchange = Exchange(spec, self.deadline_s)

    def operation(self, spec: protocol.Spec, other: bool = False) -> Requests:
        assert self._exchange
        return Requests(self._exchange)

    def reconnecting(self, operation: Operation) -> Operation:
        return operation

    def query(self, sql: str) -> protocol.Rows:
        raise PgperfError("query: a web server runs no SQL")

    def versions(self) -> dict[str, str]:
        libcurl = pycurl.version_info()[1]
        return {"driver": "pycurl", "driver_version": _version(), "libcurl": libcurl}

    def close(self) -> None:
        if self._exchange:
            self._exchange.close()


def _version() -> str:
    """Of pycurl itself: its own version text names all libraries."""
    return pycurl.version.split()[0].partition("/")[2]


if __name__ == "__main__":
    main(HttpClient)
