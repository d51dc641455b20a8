"""Ends a process whose main thread hangs: its client processes end with it."""

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import partial


class Lifeline:
    """Ends this process when nothing has called `alive` for so long: its main thread may hang in a
    query to a database that is out of reach.
    """

    def __init__(self, seconds: float, end: Callable[[], object] | None = None) -> None:
        self._seconds, self._end = seconds, end or partial(os.kill, os.getpid(), signal.SIGKILL)
        self._over = threading.Event()
        self._seen_s = time.monotonic()

    def alive(self) -> None:
        self._seen_s = time.monotonic()

    def __enter__(self) -> "Lifeline":
        self._thread = threading.Thread(target=self._watch, name="pgperf-lifeline", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(max(0.05, self._seen_s + self._seconds - time.monotonic())):
            if time.monotonic() - self._seen_s >= self._seconds:
                self._end()
                return
