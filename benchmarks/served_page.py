"""Serves benchmarks.bottleneck_site by gunicorn, alone or behind nginx, on a stack's PostgreSQL."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from benchmarks.web_clients import free_port
from example.stack import gunicorn, nginx
from example.stack.stack import Stack
from pgperf.core.records import Route

#: The name of its route.
WEB = "web"
_APPLICATION = "benchmarks.bottleneck_site:application()"
_LOGIN = ("PGPERF_DB_NAME", "PGPERF_DB_USER", "PGPERF_DB_PASSWORD")


@contextmanager
def serving(
    stack: Stack, *, workers: int = 3, database: str = "postgres", proxied: bool = False
) -> Iterator[Route]:
    """The route to the started site. `database`: the part of the stack that is its database.

    This process has the variables of the site's settings meanwhile: a view in process needs them.
    """
    own = {
        **{name: stack.env[name] for name in _LOGIN},
        "PGPERF_DB_PORT": str(stack.state.ports[database]),
        "DJANGO_SETTINGS_MODULE": "benchmarks.bottleneck_site",
    }
    port = application = free_port()
    part = gunicorn.part(stack.place, "bottleneck", {**os.environ, **own}, application)
    program, _wsgi, *options = part.argv
    parts = [replace(part, argv=[program, _APPLICATION, *options, f"--workers={workers}"])]
    if proxied:
        port = free_port()
        parts.append(nginx.part(stack.place, "web_nginx", port, application))
    with patch.dict(os.environ, own):
        try:
            for each in parts:
                each.start()
            yield Route(WEB, "127.0.0.1", port, "", "", "", url=f"http://127.0.0.1:{port}")
        finally:
            for each in reversed(parts):
                each.stop()
