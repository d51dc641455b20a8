"""Reading a server's statements for a page that asked for them."""

from collections.abc import Callable
from typing import Any

import pytest

from pgperf import tasks
from pgperf.core.exceptions import BrokerUnreachable, CredentialError
from pgperf.models import Run, StatementList
from pgperf.runner.server.top_statements import TopStatement
from pgperf.runs import broker, pause, statement_lists
from pgperf.worker import heartbeat, statement_list
from tests import factories

FOUND = [TopStatement("SELECT $1", 3, 3, 4.5)]


@pytest.fixture
def row(db: None) -> StatementList:
    return statement_lists.ask(factories.make_database())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The databases whose server was asked."""
    asked: list[str] = []

    def read(database: Any) -> list[TopStatement]:
        asked.append(database.name)
        return FOUND

    monkeypatch.setattr(statement_list, "_read", read)
    return asked


def delivered(row: StatementList) -> StatementList:
    tasks.read_statements(row.pk, broker.SCHEMA)
    row.refresh_from_db()
    return row


def test_the_answer_is_stored_with_its_time(row: StatementList, server: list[str]) -> None:
    assert row.asked_at
    found = delivered(row)
    assert (found.asked_at, found.error, server) == (None, "", ["demo"])
    assert found.read_at
    assert found.statements == [{"query": "SELECT $1", "calls": 3, "rows": 3, "total_ms": 4.5}]


def test_a_message_that_comes_twice_asks_once(row: StatementList, server: list[str]) -> None:
    delivered(row)
    delivered(row)
    assert server == ["demo"]


@pytest.mark.parametrize("args", [(), ("x", 1), (1, 99), (4711, broker.SCHEMA)])
def test_other_messages_do_nothing(row: StatementList, server: list[str], args: tuple[Any, ...]) -> None:
    tasks.read_statements(*args)
    assert server == []


def running() -> None:
    factories.make_run(Run.Status.RUNNING, busy_host="one")


def paused() -> None:
    pause.begin("ada")


@pytest.mark.parametrize(("begin", "said"), [(running, "is being measured"), (paused, "pgperf is paused")])
def test_the_server_is_left_alone_while_it_must_be(
    row: StatementList, server: list[str], begin: Callable[[], None], said: str
) -> None:
    begin()
    assert said in delivered(row).error
    assert (row.asked_at, row.read_at, server) == (None, None, [])


def test_a_pool_that_cannot_measure_refuses(
    row: StatementList, server: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "pool_refusal", "no green threads")
    assert delivered(row).error == "no green threads"
    assert server == []


def test_a_refusal_keeps_the_earlier_answer(row: StatementList, server: list[str]) -> None:
    delivered(row)
    running()
    found = delivered(statement_lists.ask(row.database))
    assert found.statements
    assert found.read_at
    assert "is being measured" in found.error


def test_an_error_is_stored_without_secrets(row: StatementList, monkeypatch: pytest.MonkeyPatch) -> None:
    route = type("Route", (), {"password": "hunter2"})()

    def refuse(*_: Any) -> None:
        raise CredentialError("the server says hunter2 is wrong")

    monkeypatch.setattr(statement_list.credentials, "direct_route", lambda database: route)
    monkeypatch.setattr(statement_list, "ControlConnection", refuse)
    found = delivered(row)
    assert "is wrong" in found.error
    assert "hunter2" not in found.error


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(row_id: int, queue: str) -> None:
        raise BrokerUnreachable("Celery's broker does not answer")

    monkeypatch.setattr(broker, "send_statements", silent)
    row = statement_lists.ask(factories.make_database())
    row.refresh_from_db()
    assert (row.asked_at, row.error[:21]) == (None, "Celery's broker does ")
