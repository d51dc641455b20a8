"""Emptying the tables after a test while a worker of the tests lives on, and filling them again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management.commands import flush as flush_command
from django.db import OperationalError, connections, transaction
from django.test import TransactionTestCase
from psycopg.errors import DeadlockDetected

from pgperf.models import Benchmark, BenchmarkWorkload, Workload

_TRIES = 3
#: What handlers of post_migrate fill, those that others refer to first.
FILLED = (ContentType, Permission, Workload, Benchmark, BenchmarkWorkload)


def again_after_a_deadlock(flush: Callable[..., None]) -> Callable[..., None]:
    """The flush, tried again if PostgreSQL ended it: a worker that had read one of the tables wanted
    another.
    """

    @wraps(flush)
    def patient(*args: Any, **kwargs: Any) -> None:
        for _ in range(_TRIES - 1):
            try:
                return flush(*args, **kwargs)
            except OperationalError as error:
                if not isinstance(error.__cause__, DeadlockDetected):
                    raise
        return flush(*args, **kwargs)

    return patient


class Refill:
    """Handlers of post_migrate fill emptied tables with hundreds of statements, and always with the
    same rows. They do it once for each database; later, their rows are copied.
    """

    def __init__(self, emit: Callable[..., None]) -> None:
        self._emit = emit
        self._rows: dict[str, dict[str, bytes]] = {}

    def __call__(self, verbosity: int, interactive: bool, using: str, **more: Any) -> None:
        if using in self._rows:
            with transaction.atomic(using=using):
                self._copy(using)
        else:
            self._emit(verbosity, interactive, using, **more)
            self._rows[using] = _rows(using)

    def _copy(self, using: str) -> None:
        for table, rows in self._rows[using].items():
            with connections[using].cursor() as cursor:
                with cursor.copy(f'COPY "{table}" FROM STDIN') as copy:
                    copy.write(rows)
                # Its numbers may be higher than those of a table that a test made anew.
                cursor.execute(
                    f'SELECT setval(name, greatest(nextval(name), (SELECT max(id) FROM "{table}")))'
                    f" FROM pg_get_serial_sequence('\"{table}\"', 'id') AS name"
                )
        ContentType.objects.clear_cache()


def _rows(using: str) -> dict[str, bytes]:
    """Of the tables that are filled, as COPY writes them."""
    found = {}
    with connections[using].cursor() as cursor:
        for model in FILLED:
            table = model._meta.db_table
            with cursor.copy(f'COPY "{table}" TO STDOUT') as copy:
                found[table] = b"".join(copy)
    return found


@contextmanager
def quick_refills() -> Iterator[None]:
    """Of the tables that a test has emptied at its end. Other flushes are as they are."""
    tear_down, refill = TransactionTestCase._fixture_teardown, Refill(flush_command.emit_post_migrate_signal)

    def quickly(case: TransactionTestCase) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(flush_command, "emit_post_migrate_signal", refill)
            tear_down(case)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", quickly)
        yield
