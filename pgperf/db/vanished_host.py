"""Lets queries to the site's database fail within seconds after its host has vanished.

A host that loses power closes no connection. By Linux's defaults TCP gives up after 15 minutes, or
after two hours where all that was sent had arrived.
"""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import Error, connections
from django.db.backends.signals import connection_created

#: Level and name of a socket's option -> its value.
Options = Mapping[tuple[int, int], int]


@contextmanager
def noticed_within(seconds: float, alias: str) -> Iterator[None]:
    """Within, TCP gives up a host that has acknowledged nothing for about `seconds`.

    This holds for this thread's connection to the alias, and for those that any thread opens
    meanwhile, where the driver shows its socket (psycopg, psycopg2, mysqlclient). Afterwards this
    thread's connection has the options of before.
    """
    wrapper, thread, limits = connections[alias], threading.get_ident(), _limits(seconds)
    own, before = wrapper.connection, _lower(wrapper, limits)

    def on_created(connection: Any, **_: Any) -> None:
        nonlocal own, before
        if connection.alias == alias:
            found = _lower(connection, limits)
            if threading.get_ident() == thread:
                own, before = connection.connection, found

    connection_created.connect(on_created, weak=False)
    try:
        yield
    finally:
        connection_created.disconnect(on_created)
        if wrapper.connection is own:
            _restore(wrapper, before)


def _limits(seconds: float) -> Options:
    """For data without an acknowledgement, and for probes where none is due; {} on other systems."""
    names = ("TCP_USER_TIMEOUT", "TCP_KEEPIDLE", "TCP_KEEPINTVL")
    if not all(hasattr(socket, name) for name in names):
        return {}
    return {
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT): max(1, round(seconds * 1000)),
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): max(1, int(seconds / 2)),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): max(1, int(seconds / 4)),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1,
    }


def _lower(wrapper: Any, limits: Options) -> Options:
    """The options of before. A site's own lower ones stay; 0 is the system's default."""
    before: Options = {}

    def lower(own: socket.socket) -> None:
        nonlocal before
        before = {key: own.getsockopt(*key) for key in limits}
        for key, most in limits.items():
            own.setsockopt(*key, min(before[key] or most, most))

    _with_socket(wrapper, lower)
    return before


def _restore(wrapper: Any, before: Options) -> None:
    def restore(own: socket.socket) -> None:
        for key, value in before.items():
            own.setsockopt(*key, value)

    _with_socket(wrapper, restore)


def _with_socket(wrapper: Any, act: Callable[[socket.socket], None]) -> None:
    """Without effect where there is no TCP connection, or the driver does not show its socket."""
    try:
        with wrapper.wrap_database_errors:
            descriptor = wrapper.connection.fileno()
        with socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM) as own:
            act(own)
    except (AttributeError, Error, OSError):
        return
