"""The options of a connection's socket, by which TCP gives up a host that has vanished."""

import socket
from typing import Any

import pytest
from django.db import connection, connections

from pgperf.db import vanished_host
from pgperf.db.vanished_host import noticed_within

pytestmark = pytest.mark.django_db(transaction=True)

USER_TIMEOUT = (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
IDLE = (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)


def option(wrapper: Any, name: tuple[int, int]) -> int:
    with socket.fromfd(wrapper.connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as own:
        return own.getsockopt(*name)


def test_the_open_connection_gives_up_sooner_only_within() -> None:
    connection.ensure_connection()
    before = option(connection, USER_TIMEOUT), option(connection, IDLE)
    with noticed_within(10, "default"):
        assert (option(connection, USER_TIMEOUT), option(connection, IDLE)) == (10_000, 5)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 42")
    assert (option(connection, USER_TIMEOUT), option(connection, IDLE)) == before


def test_so_does_a_connection_that_is_opened_meanwhile() -> None:
    connection.close()
    with noticed_within(10, "default"):
        connection.ensure_connection()
        first = option(connection, USER_TIMEOUT)
        connection.close()
        connection.ensure_connection()
        assert (first, option(connection, USER_TIMEOUT)) == (10_000, 10_000)
    assert option(connection, USER_TIMEOUT) == 0
    connection.close()
    connection.ensure_connection()
    assert option(connection, USER_TIMEOUT) == 0


def test_a_site_s_own_shorter_time_stays() -> None:
    connection.ensure_connection()
    with socket.fromfd(connection.connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as own:
        own.setsockopt(*USER_TIMEOUT, 4_000)
    with noticed_within(10, "default"):
        assert option(connection, USER_TIMEOUT) == 4_000
    connection.close()


class NoSocket:
    """A connection of SQLite has none; one over a Unix socket has none of TCP."""

    alias = "default"
    wrap_database_errors = connection.wrap_database_errors

    def __init__(self, raw: object) -> None:
        self.connection = raw


def test_a_connection_without_tcp_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = socket.socketpair()
    with here, there:
        for raw in (None, object(), here):
            monkeypatch.setattr(vanished_host, "connections", {"default": NoSocket(raw)})
            with noticed_within(10, "default"):
                pass
        assert here.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0


def test_a_closed_connection_is_left_alone() -> None:
    connection.ensure_connection()
    with noticed_within(10, "default"):
        connections["default"].connection.close()  # as when its server went away
    connection.close()
