"""Retries while the database is unreachable, and after a connection was cut."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from pgperf.runs import db_retry
from pgperf.runs.db_retry import retry_while_down
from tests.database_outage import terminate_own_backend


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db_retry, "PAUSE_S", 0.0)
    monkeypatch.setattr(db_retry, "_DISK_FULL_PAUSE_S", 0.0)


def failing(times: int) -> Callable[[], str]:
    left = [OperationalError("away")] * times

    def step() -> str:
        if left:
            raise left.pop()
        return "done"

    return step


@pytest.mark.django_db(transaction=True)
def test_retries_until_the_database_is_back() -> None:
    assert retry_while_down(failing(3), 60, "testing") == "done"


@pytest.mark.django_db(transaction=True)
def test_gives_up_after_the_time_limit() -> None:
    with pytest.raises(OperationalError):
        retry_while_down(failing(1), 0, "testing")


def say(sqlstate: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{sqlstate}'; END $$")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("sqlstate", "tries"), [("53100", 3), ("53200", 1), ("57P03", 1)])
def test_a_full_disk_has_a_time_limit_of_its_own(sqlstate: str, tries: int) -> None:
    calls: list[str] = []

    def step() -> str:
        calls.append(sqlstate)
        if len(calls) < 3:
            say(sqlstate)
        return "stored"

    if tries == 3:
        assert retry_while_down(step, 0, "testing", disk_full_s=60) == "stored"
    else:
        with pytest.raises(OperationalError):
            retry_while_down(step, 0, "testing", disk_full_s=60)
    assert len(calls) == tries


@pytest.mark.django_db(transaction=True)
def test_a_standby_after_a_failover_is_left_for_another_connection() -> None:
    pids: list[int] = []

    def step() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pids.append(cursor.fetchone()[0])
        if len(pids) < 2:
            say("25006")
        return "stored"

    assert retry_while_down(step, 60, "testing") == "stored"
    assert pids[0] != pids[1]


class Refused(Exception):
    """An error of psycopg2."""

    pgcode = "53100"


@pytest.mark.django_db(transaction=True)
def test_a_restart_after_a_full_disk_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    full, away = OperationalError("no space"), OperationalError("starting up")
    full.__cause__ = Refused()
    clock = iter([0.0, 0.0, 500.0, 501.0, 519.0])
    monkeypatch.setattr(db_retry.time, "monotonic", lambda: next(clock))
    errors = [full, away, away]

    def step() -> str:
        if errors:
            raise errors.pop(0)
        return "stored"

    assert retry_while_down(step, 20, "testing", disk_full_s=600) == "stored"


@pytest.mark.django_db(transaction=True)
def test_other_errors_are_raised_at_once() -> None:
    calls: list[Any] = []

    def step() -> None:
        calls.append(1)
        raise ValueError

    with pytest.raises(ValueError):
        retry_while_down(step, 60, "testing")
    assert len(calls) == 1


@pytest.mark.django_db(transaction=True)
def test_a_step_within_a_transaction_is_not_retried() -> None:
    with transaction.atomic(), pytest.raises(OperationalError):
        retry_while_down(failing(1), 60, "testing")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("inside", [False, True])
def test_a_cut_connection_is_retried(inside: bool) -> None:
    def step() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 42")
            return int(cursor.fetchone()[0])

    def in_a_transaction() -> int:
        with transaction.atomic():
            return step()

    step()
    terminate_own_backend()
    assert retry_while_down(in_a_transaction if inside else step, 60, "testing") == 42
