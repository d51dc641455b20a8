"""Retries of database steps while the site's own database restarts, over a fresh connection."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import Error, InterfaceError, OperationalError, connections, router

from pgperf.models import Run

logger = logging.getLogger(__name__)

#: The errors of a connection whose server stops, refuses, or is starting up.
CONNECTION_ERRORS = (OperationalError, InterfaceError)
PAUSE_S = 0.25
_DISK_FULL = "53100"
#: After a failover the connection may lead to a server that is still a standby.
_READ_ONLY = "25006"
_DISK_FULL_PAUSE_S = 1.0

T = TypeVar("T")


def retry_while_down(step: Callable[[], T], seconds: float, what: str, disk_full_s: float = 0.0) -> T:
    """The result of `step`, retried for that many seconds while the database is down; then its
    error is raised. `disk_full_s`: the seconds while its disk is full, if they are more.

    The step must be safe to repeat: after a lost connection it is unknown whether a COMMIT took
    effect.
    """
    patience = _Patience(seconds, max(seconds, disk_full_s))
    while True:
        try:
            return step()
        except Error as error:
            full = is_disk_full(error)
            if not is_outage(error) or patience.is_over(full=full) or not drop_broken_connection(error):
                raise
            logger.warning("pgperf: the database is away, trying again: %s (%s)", what, type(error).__name__)
            time.sleep(_DISK_FULL_PAUSE_S if full else PAUSE_S)


class _Patience:
    """How long to wait. A server whose disk was full is restarted afterwards, in a time of its own."""

    def __init__(self, seconds: float, disk_full_s: float) -> None:
        self._limits = {False: seconds, True: disk_full_s}
        self._end = time.monotonic() + seconds + disk_full_s
        self._full, self._since = False, time.monotonic()

    def is_over(self, *, full: bool) -> bool:
        now = time.monotonic()
        if full != self._full:
            self._full, self._since = full, now
        return now - self._since >= self._limits[full] or now >= self._end


def is_outage(error: BaseException) -> bool:
    """Is it worth trying again: is the server away, or read-only as after a failover?"""
    return isinstance(error, CONNECTION_ERRORS) or (
        isinstance(error, Error) and _sqlstate(error) == _READ_ONLY
    )


def is_disk_full(error: BaseException) -> bool:
    """Does the server say that its disk is full?"""
    return _sqlstate(error) == _DISK_FULL


def _sqlstate(error: BaseException) -> str:
    """As psycopg, or else psycopg2, has it; "" of other drivers and errors."""
    cause = error.__cause__
    return getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""


def drop_broken_connection(error: BaseException | None = None) -> bool:
    """Close a broken connection, so the next query opens another; also one to a server that only
    reads. False inside a transaction.
    """
    connection = connections[router.db_for_write(Run)]
    if connection.in_atomic_block:
        return False
    if error is not None and _sqlstate(error) == _READ_ONLY:
        connection.close()
    connection.close_if_unusable_or_obsolete()
    return True
