"""A WSGI application whose answer costs nothing: PAGE_BYTES bytes that exist already."""

import os
from collections.abc import Callable, Mapping

BODY = b" " * int(os.environ.get("PAGE_BYTES", "1"))
HEADERS = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(BODY)))]


def application(environ: Mapping[str, object], start_response: Callable[..., object]) -> list[bytes]:
    """Answer any request with the same page."""
    start_response("200 OK", HEADERS)
    return [BODY]
