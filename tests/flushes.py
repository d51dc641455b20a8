"""Emptying the tables after a test while a worker of the tests lives on."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import OperationalError
from psycopg.errors import DeadlockDetected

_TRIES = 3


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
