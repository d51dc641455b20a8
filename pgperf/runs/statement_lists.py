"""Asks a worker for the statements of a database's server. A row holds the request and the answer."""

from datetime import timedelta
from functools import partial

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import router, transaction
from django.db.models import QuerySet

from pgperf.conf import get_settings
from pgperf.core.exceptions import BrokerUnreachable
from pgperf.db.now import Now
from pgperf.models import Database, StatementList
from pgperf.runs import broker

#: For so long a request waits for a worker: a broker may lose its message.
WAIT_S = 900


def ask(database: Database, user: AbstractBaseUser) -> StatementList:
    """Ask for the statements of the database. If the broker does not answer, the row says so."""
    lists = _lists()
    asked = {"asked_at": Now(), "asked_by_id": user.pk, "error": ""}
    with transaction.atomic(using=lists.db):
        row = lists.update_or_create(database=database, defaults=asked)[0]
        transaction.on_commit(partial(_send, row.pk), using=lists.db)
    return row


def asked(row_id: int) -> StatementList | None:
    """The row, if its answer is still awaited."""
    since = Now() - timedelta(seconds=WAIT_S)
    return _lists().select_related("database").filter(pk=row_id, asked_at__gte=since).first()


def answer(row: StatementList, statements: list[dict[str, object]]) -> None:
    """Store what the server has."""
    _lists().filter(pk=row.pk).update(asked_at=None, read_at=Now(), statements=statements, error="")


def refuse(row_id: int, reason: str) -> None:
    """Store why there is no answer; an earlier one stays."""
    _lists().filter(pk=row_id).update(asked_at=None, error=reason[:300])


def _send(row_id: int) -> None:
    try:
        broker.send_statements(row_id, get_settings().QUEUE)
    except BrokerUnreachable as error:
        refuse(row_id, f"{error}; ask again when it does.")


def _lists() -> QuerySet[StatementList]:
    return StatementList.objects.using(router.db_for_write(StatementList))
