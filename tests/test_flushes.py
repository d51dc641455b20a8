"""A flush that a deadlock ended is tried again; any other error is shown."""

import pytest
from django.db import OperationalError
from psycopg.errors import DeadlockDetected, LockNotAvailable

from tests.flushes import again_after_a_deadlock


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
