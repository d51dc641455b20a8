"""A relay is told from other listening processes."""

import socket
from dataclasses import replace

import psutil
import pytest

from pgperf.core.records import Route
from pgperf.delay.relay import DelayRelay
from pgperf.runner.processes import relay_process

NEAR = Route("near", "127.0.0.1", 1, "none", "nobody", "")


def test_a_route_s_relay_is_found_and_no_other_listener() -> None:
    with DelayRelay("127.0.0.1", 1, 5) as far, socket.create_server(("127.0.0.1", 0)) as server:
        longer = replace(far.over(NEAR), name="longer")
        own = replace(NEAR, name="own", port=server.getsockname()[1])
        elsewhere = replace(longer, name="elsewhere", host="db.example")
        assert relay_process.find([NEAR, longer, own, elsewhere]) == {"longer": far.pid}
    assert relay_process.find([longer]) == {}


def test_a_relay_is_found_by_its_port() -> None:
    """As web servers that reach their database over a relay are followed."""
    with DelayRelay("127.0.0.1", 1, 5) as far, socket.create_server(("127.0.0.1", 0)) as server:
        ports = {far.over(NEAR).port, server.getsockname()[1], 1}
        assert list(relay_process.at(ports)) == [far.pid]
    assert list(relay_process.at(ports)) == []


def test_no_relay_is_found_if_ports_are_not_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(kind: str) -> list[object]:
        raise psutil.AccessDenied

    with DelayRelay("127.0.0.1", 1, 5) as far:
        monkeypatch.setattr(psutil, "net_connections", refused)
        assert relay_process.find([far.over(NEAR)]) == {}
