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
_DISK_FULL = "53100"
_DISK_FULL_PAUSE_S = 1.0

T = TypeVar("T")


def retry_while_down(step: Callable[[], T], seconds: float, what: str, disk_full_s: float = 0.0) -> T:
    """The result of `step`, retried for that many seconds while the database is down; then its
    error is raised. `disk_full_s`: the seconds while its disk is full, if they are more.

    The step must be safe to repeat: after a lost connection it is unknown whether a COMMIT took
    effect.
    """
    begin = time.monotonic()
    while True:
        try:
            return step()
        except CONNECTION_ERRORS as error:
            full = is_disk_full(error)
            limit = max(seconds, disk_full_s) if full else seconds
            if time.monotonic() - begin >= limit or not drop_broken_connection():
                raise
            logger.warning("pgperf: the database is away, trying again: %s (%s)", what, type(error).__name__)
            time.sleep(_DISK_FULL_PAUSE_S if full else PAUSE_S)


def is_disk_full(error: BaseException) -> bool:
    """Does the server say that its disk is full?"""
    return getattr(error.__cause__, "sqlstate", "") == _DISK_FULL


def drop_broken_connection() -> bool:
    """Close a broken connection, so the next query opens another. False inside a transaction."""
    connection = connections[router.db_for_write(Run)]
    if connection.in_atomic_block:
        return False
    connection.close_if_unusable_or_obsolete()
    return True
