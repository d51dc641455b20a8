"""The origin of the web servers that a run requests, by which a site may choose its page."""

from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import urlsplit

from pgperf.core.records import Definition, Route


def asked_there(definition: Definition, routes: Iterable[Route]) -> Definition:
    """The definition with the scheme, name and port of its web servers, if all have the same: a view
    in process is then asked as they are. With several, no one of them is the page's.
    """
    origins = {_origin(route.url) for route in routes if route.url}
    return replace(definition, web_origin=origins.pop()) if len(origins) == 1 else definition


def _origin(url: str) -> str:
    """Without the prefix of a site that is below one."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
