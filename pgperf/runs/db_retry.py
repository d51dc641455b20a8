"""Retries of database steps while the site's own database restarts, over a fresh connection."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connections, router

from pgperf.models import Run

logger = logging.getLogger(__name__)

#: The errors of a connection whose server stops, refuses, or is starting up.
CONNECTION_ERRORS = (OperationalError, InterfaceError)
PAUSE_S = 0.25

T = TypeVar("T")


def retry_while_down(step: Callable[[], T], seconds: float, what: str) -> T:
    """The result of `step`, retried for that many seconds while the database is down; then its
    error is raised.

    The step must be safe to repeat: after a lost connection it is unknown whether a COMMIT took
    effect.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return step()
        except CONNECTION_ERRORS as error:
            if time.monotonic() >= deadline or not drop_broken_connection():
                raise
            logger.warning("pgperf: the database is away, trying again: %s (%s)", what, type(error).__name__)
            time.sleep(PAUSE_S)


def drop_broken_connection() -> bool:
    """Close a broken connection, so the next query opens another. False inside a transaction."""
    connection = connections[router.db_for_write(Run)]
    if connection.in_atomic_block:
        return False
    connection.close_if_unusable_or_obsolete()
    return True
