"""Control connections that stay open, for tests that ask a server many times over the same route.

Each one starts a client process, which costs more than most of its answers.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from pgperf.core.exceptions import ClientFailed, UnexpectedAnswer
from pgperf.runner.server.control_connection import ControlConnection


@contextmanager
def kept(*modules: str) -> Iterator[None]:
    """Within, these modules open one connection over each route and use it again.

    One whose client reports an error is not used again.
    """
    opened: dict[tuple[Any, ...], ControlConnection] = {}

    with pytest.MonkeyPatch.context() as patch, ExitStack() as ends:

        @contextmanager
        def connection(*words: Any) -> Iterator[ControlConnection]:
            if words not in opened:
                opened[words] = ends.enter_context(ControlConnection(*words))
            try:
                yield opened[words]
            except UnexpectedAnswer:
                raise
            except ClientFailed:
                del opened[words]
                raise

        for module in modules:
            patch.setattr(f"{module}.ControlConnection", connection)
        yield
