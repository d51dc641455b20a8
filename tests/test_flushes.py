"""A flush that a deadlock ended is tried again; any other error is shown. A refill makes the rows that
post_migrate makes.
"""

from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal
from django.db import OperationalError, connection
from psycopg.errors import DeadlockDetected, LockNotAvailable

from pgperf.models import Workload
from tests.flushes import FILLED, Refill, again_after_a_deadlock


@pytest.mark.parametrize("deadlocks", [0, 1, 2])
def test_a_deadlock_is_no_end(deadlocks: int) -> None:
    calls = 0

    def flush(sql: str) -> None:
        nonlocal calls
        calls += 1
        if calls <= deadlocks:
            raise OperationalError from DeadlockDetected()

    again_after_a_deadlock(flush)("TRUNCATE")
    assert calls == deadlocks + 1


@pytest.mark.parametrize(("cause", "tries"), [(DeadlockDetected, 3), (LockNotAvailable, 1)])
def test_an_error_is_shown_in_the_end(cause: type[Exception], tries: int) -> None:
    calls = 0

    def flush() -> None:
        nonlocal calls
        calls += 1
        raise OperationalError from cause()

    with pytest.raises(OperationalError):
        again_after_a_deadlock(flush)()
    assert calls == tries


def flushed() -> list[list[Any]]:
    """All rows of a database that was just flushed, without numbers."""
    call_command("flush", interactive=False, verbosity=0)
    return [sorted(map(str, _values(model))) for model in FILLED]


def _values(model: Any) -> Any:
    """What a row refers to is told by its name."""
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    for row in model._default_manager.all():
        yield {field.name: str(getattr(row, field.name)) for field in fields}


@pytest.mark.django_db(transaction=True)
def test_a_refill_makes_the_rows_that_the_handlers_make(monkeypatch: pytest.MonkeyPatch) -> None:
    made = flushed()
    filled = {
        model for model in apps.get_models(include_auto_created=True) if model._default_manager.exists()
    }
    assert filled == {*FILLED}
    refill = Refill(emit_post_migrate_signal)
    monkeypatch.setattr("django.core.management.commands.flush.emit_post_migrate_signal", refill)
    assert flushed() == made, "by the handlers, which it remembers"
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pgperf_workload ALTER COLUMN id RESTART")
    assert flushed() == made
    numbers = list(Workload.objects.values_list("pk", flat=True))
    assert Workload.objects.create(name="next", title="Next").pk > max(numbers)
