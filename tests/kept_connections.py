"""Control connections that stay open, for tests that ask a server many times over the same route.

Each one starts a client process, which costs more than most of its answers.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from pgperf.core import protocol
from pgperf.core.exceptions import ClientFailed
from pgperf.runner.server.control_connection import ControlConnection


class _Kept(ControlConnection):
    """A client ends when it has reported an error."""

    has_failed = False

    def ask(self, *words: Any) -> protocol.Rows:
        try:
            return super().ask(*words)
        except ClientFailed:
            self.has_failed = True
            raise


@contextmanager
def kept(*modules: str) -> Iterator[None]:
    """Within, these modules open one connection over each route and use it again."""
    opened: dict[tuple[Any, ...], _Kept] = {}

    with pytest.MonkeyPatch.context() as patch, ExitStack() as ends:

        @contextmanager
        def connection(*words: Any) -> Iterator[ControlConnection]:
            if words not in opened or opened[words].has_failed:
                opened[words] = ends.enter_context(_Kept(*words))
            yield opened[words]

        for module in modules:
            patch.setattr(f"{module}.ControlConnection", connection)
        yield
