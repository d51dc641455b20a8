"""Messages to a working broker, an unreachable one, and one that never answers."""

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import current_app
from kombu import Queue

from pgperf.core.exceptions import BrokerUnreachable
from pgperf.runs import broker

QUEUE = "pgperf-test-sending"
PATIENCE_S = 20.0


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port with a listener that never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def broker_at(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    monkeypatch.setattr(current_app.conf, "broker_url", f"redis://:canary-password@127.0.0.1:{port}/0")


@pytest.mark.parametrize(
    ("send", "task"),
    [
        (broker.send, broker.TASK),
        (broker.send_watch, broker.WATCH),
        (broker.send_statements, broker.STATEMENTS),
        (broker.send_look, broker.LOOK),
    ],
)
def test_the_message_contains_only_the_row_s_id(send: Callable[[int, str], None], task: str) -> None:
    send(7, QUEUE)
    with current_app.connection_for_read() as connection:
        queue = Queue(QUEUE)(connection.default_channel)
        message = queue.get(no_ack=True)
        queue.delete()
    assert message is not None
    assert message.headers["task"] == task
    assert message.headers["timelimit"] == [1890, 1860]
    assert message.headers["ignore_result"] is True
    args, kwargs, _embedded = message.decode()
    assert (args, kwargs) == ([7, broker.SCHEMA], {})


def test_agents_of_two_sites_have_separate_queues(settings: Any) -> None:
    settings.PGPERF = {**settings.PGPERF, "QUEUE": "bench"}
    assert broker.agent_queue("db1") == "bench-agent-db1"


def test_ping_tells_whether_the_broker_answers() -> None:
    broker.ping()


@pytest.mark.parametrize("act", [lambda: broker.send(7, QUEUE), broker.ping])
@pytest.mark.parametrize("port", ["closed_port", "silent_port"])
def test_a_silent_broker_times_out(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, act: object, port: str
) -> None:
    monkeypatch.setattr(broker, "ANSWER_TIMEOUT_S", 0.2)
    broker_at(monkeypatch, request.getfixturevalue(port))
    begin = time.monotonic()
    with pytest.raises(BrokerUnreachable) as caught:
        act()  # type: ignore[operator]
    assert time.monotonic() - begin < PATIENCE_S
    assert "canary-password" not in str(caught.value)
