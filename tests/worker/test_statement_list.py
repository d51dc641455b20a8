"""Reading a server's statements for a page that asked for them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone

from pgperf import tasks
from pgperf.access import permissions
from pgperf.core.exceptions import BrokerUnreachable, CredentialError
from pgperf.models import Database, Run, StatementList
from pgperf.reports.statement_lists import stored
from pgperf.runner.server.top_statements import TopStatement
from pgperf.runs import broker, pause, statement_lists
from pgperf.worker import heartbeat, statement_list
from tests import factories

FOUND = [TopStatement("SELECT $1", 3, 3, 4.5)]


@pytest.fixture
def asker(db: None) -> User:
    """Who may ask, and is no superuser."""
    user = User.objects.create_user("asker")
    names = [name.partition(".")[2] for name in permissions.READ_STATEMENTS]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


@pytest.fixture
def row(asker: User) -> StatementList:
    return statement_lists.ask(factories.make_database(), asker)


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


def test_a_message_that_comes_too_late_asks_nothing(row: StatementList, server: list[str]) -> None:
    StatementList.objects.update(asked_at=timezone.now() - timedelta(seconds=statement_lists.WAIT_S + 1))
    delivered(row)
    assert server == []
    (shown,) = stored(User.objects.create_superuser("root"))
    assert (shown.asked_at, shown.error) == (None, "No worker has answered; ask again.")


def without_targets(user: User) -> None:
    user.user_permissions.remove(Permission.objects.get(codename="manage_targets"))


def without_runs(user: User) -> None:
    user.user_permissions.remove(Permission.objects.get(codename="start_run"))


def locked(user: User) -> None:
    user.is_active = False
    user.save()


def deleted(user: User) -> None:
    user.delete()


def outside(user: User) -> None:
    """Of the group that alone sees the database now."""
    Database.objects.get().groups.set([Group.objects.create(name="insiders")])


@pytest.mark.parametrize("lose", [without_targets, without_runs, locked, deleted])
def test_who_lost_the_permission_meanwhile_gets_no_answer(
    row: StatementList, asker: User, server: list[str], lose: Callable[[User], None]
) -> None:
    lose(asker)
    found = delivered(row)
    assert found.error == (
        "permission: the user who asked for these statements may not ask a server for its statements any more"
    )
    assert (found.asked_at, found.read_at, server) == (None, None, [])


def test_who_may_not_see_the_database_any_more_gets_no_answer(
    row: StatementList, asker: User, server: list[str]
) -> None:
    outside(asker)
    assert delivered(row).error == (
        "permission: the user who asked for these statements may not see database demo any more"
    )
    assert (row.asked_at, row.read_at, server) == (None, None, [])


def test_the_last_who_asked_is_the_one_who_must_be_allowed(
    row: StatementList, asker: User, server: list[str]
) -> None:
    statement_lists.ask(row.database, User.objects.create_superuser("root"))
    locked(asker)
    assert delivered(row).statements
    assert server == ["demo"]


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
    assert row.asked_by
    found = delivered(statement_lists.ask(row.database, row.asked_by))
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
    user = User.objects.create_user("asker")
    row = statement_lists.ask(factories.make_database(), user)
    row.refresh_from_db()
    assert (row.asked_at, row.error[:21]) == (None, "Celery's broker does ")
