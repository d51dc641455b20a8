"""Steps against the site's own database that outlive its restart: done again, over a fresh connection."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connections, router

from pgperf.models import Run

logger = logging.getLogger(__name__)

#: What a connection raises when its server goes away, refuses, or is starting up.
CONNECTION_ERRORS = (OperationalError, InterfaceError)
PAUSE_S = 0.25

T = TypeVar("T")


def retry_while_down(step: Callable[[], T], seconds: float, what: str) -> T:
    """What `step` returns. While the database is away it is done again, for so many seconds; then the error is raised.

    The step must bear being done twice: of a COMMIT that was under way, nobody knows whether it happened.
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
    """Let go of a connection that is broken, so that the next query opens another. False inside a transaction."""
    connection = connections[router.db_for_write(Run)]
    if connection.in_atomic_block:
        return False
    connection.close_if_unusable_or_obsolete()
    return True
