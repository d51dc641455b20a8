"""Ends a process whose main thread hangs: its client processes end with it."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial

logger = logging.getLogger(__name__)

#: A process that was suspended continues late: it has so many seconds to say that it lives.
GRACE_S = 5.0
#: The log may be as silent as the database.
_LOG_S = 1.0


class Lifeline:
    """Ends this process when nothing has called `alive` for `seconds`, and for `grace_s` after that:
    its main thread may hang in a query to a database that is out of reach.
    """

    def __init__(
        self, seconds: float, end: Callable[[], object] | None = None, grace_s: float = GRACE_S
    ) -> None:
        self._seconds, self._grace_s = seconds, grace_s
        self._end = end or partial(_end_this_process, seconds)
        self._over = threading.Event()
        self._seen_s = time.monotonic()

    def alive(self) -> None:
        self._seen_s = time.monotonic()

    def __enter__(self) -> "Lifeline":
        self.alive()
        self._thread = threading.Thread(target=self._watch, name="pgperf-lifeline", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(max(0.05, self._left_s())):
            if self._left_s() <= 0 and self._is_silent_for_grace():
                self._end()
                return

    def _left_s(self) -> float:
        return self._seen_s + self._seconds - time.monotonic()

    def _is_silent_for_grace(self) -> bool:
        return not self._over.wait(self._grace_s) and self._left_s() <= 0


def _end_this_process(seconds: float) -> None:
    """The kernel ends the clients; a thread that hangs in a driver cannot be ended otherwise."""
    words = "pgperf: the site's database has not answered for %g s: process %s ends, and its clients with it"
    log = threading.Thread(target=logger.critical, args=(words, seconds, os.getpid()), daemon=True)
    log.start()
    log.join(_LOG_S)
    os.kill(os.getpid(), signal.SIGKILL)
