"""Who listens on a port."""

import os
import socket

import psutil
import pytest

from pgperf.runner.processes import listeners


def test_a_port_has_the_processes_that_listen_on_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listeners.by_port()[port] == {os.getpid()}
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert client.getsockname()[1] not in listeners.by_port()


def test_nothing_is_known_where_connections_are_not_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(kind: str) -> list[object]:
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", refused)
    assert listeners.by_port() == {}
