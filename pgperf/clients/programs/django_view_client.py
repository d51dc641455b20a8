"""The layer django_view: a page of the site through Django's own handler, in this process.

Request, middleware, view and template are the site's; there is no web server, and no connection to
one. The database is that of the route, as for the other layers of Django.
"""

from typing import BinaryIO

from pgperf.clients import page_guards, page_instruments
from pgperf.clients.loop import main
from pgperf.clients.page_request import PageRequest
from pgperf.clients.programs.django_client import DjangoClient
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol
from pgperf.core.exceptions import InvalidDefinition


class DjangoViewClient(DjangoClient):
    """Django's handler over the site's connection."""

    connection_modes: tuple[str, ...] = ("persistent",)
    #: The view reads rows, and only it knows how many.
    counts_rows = False

    def __init__(self, replies: BinaryIO) -> None:
        super().__init__(replies)
        self._page: PageRequest | None = None

    def load(self, spec: protocol.Spec) -> None:
        if not (spec.site and spec.page.path):
            raise InvalidDefinition("page: this layer requests a page; give the workload a path")
        super().load(spec)
        page_guards.install()
        self._page = PageRequest(spec.page, spec.url)

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        assert self._page
        self._page.check_session()
        return self._page

    def instrumented(self, operation: Operation, count: int) -> protocol.Instrumented:
        """The parts of the page's time."""
        return protocol.Instrumented(*page_instruments.parted(operation, self._connection, count))

    def versions(self) -> dict[str, str]:
        assert self._page
        return {**super().versions(), "answer": self._page.found()}


if __name__ == "__main__":
    main(DjangoViewClient)
