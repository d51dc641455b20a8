"""A page whose server process dies in the middle of every fifteenth request."""

import os
from collections.abc import Callable, Mapping

PAGE = b"<h1>page</h1>" * 100
LIFE = 15
served = 0


def application(environ: Mapping[str, object], start_response: Callable[..., object]) -> list[bytes]:
    """For gunicorn, which starts another process each time."""
    global served
    served += 1
    if served == LIFE:
        os._exit(1)
    start_response("200 OK", [("Content-Length", str(len(PAGE)))])
    return [PAGE]
