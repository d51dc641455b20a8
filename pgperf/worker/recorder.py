"""Stores a run's blocks, progress and heartbeats, and reads the request to cancel it."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Protocol

from django.db import Error, connections, router

from pgperf.core.exceptions import FenceLost, RunCancelled
from pgperf.core.records import VariantBlock
from pgperf.models import Run
from pgperf.runs import state, store
from pgperf.runs.db_retry import drop_broken_connection, is_outage, retry_while_down

logger = logging.getLogger(__name__)

#: Shorter rounds are not interrupted by a poll of the database.
LONG_ROUND_S = 3.0


class ProgressListener(Protocol):
    """Receives the progress of a run in this process, such as a progress bar."""

    def progress(self, share: float, message: str) -> None: ...


class Recorder:
    """The runner's RunObserver: stores blocks and heartbeats, and reads the cancel request."""

    def __init__(
        self,
        run: Run,
        listener: ProgressListener | None,
        every_s: float,
        retry_s: float = 0.0,
        alive: Callable[[], object] = lambda: None,
    ) -> None:
        """`alive` is called for each heartbeat that is stored, or refused to the main thread."""
        self._run = run
        self._alive = alive
        self._listener = listener
        self._every_s = every_s
        self._retry_s = retry_s
        self._tried_at = self._written_at = self._round_at = time.monotonic()
        self._is_taken_away = False  # the heartbeat's thread sets it
        self._polled_at = 0.0
        self._share, self._message = 0.0, "Connecting."
        self._lock = threading.Lock()

    def block_done(self, blocks: list[VariantBlock]) -> None:
        save = partial(store.save_blocks, self._run, blocks)
        retry_while_down(save, self._retry_s, f"storing a block of {self._run}")
        self._beat_or_wait()

    def progress(self, share: float, message: str) -> None:
        self._share, self._message = share, message
        if self._listener:
            self._listener.progress(share, message)
        if time.monotonic() - self._tried_at >= self._every_s:
            self._beat_or_wait()

    def cancelled(self) -> bool:
        """Between rounds. Queries the database unless the next query is more than LONG_ROUND_S away:
        for so long `poll_cancel` leaves the next round alone.
        """
        self._round_at = time.monotonic()
        return self._is_cancelled(self._every_s - LONG_ROUND_S)

    def _is_cancelled(self, after_s: float) -> bool:
        """Queries the database if the last query was so long ago."""
        if time.monotonic() - self._polled_at < after_s:
            return False
        self._polled_at = time.monotonic()
        try:
            return state.is_cancelling(self._run)
        except Error as error:
            if not is_outage(error):
                raise
            drop_broken_connection(error)
            return False  # the heartbeat limits how long a run continues without an answer

    def poll_cancel(self) -> None:
        """Called while the runner waits for clients, so that neither a slow start nor a long round
        delays a cancel, or the end of a run that was taken away or whose heartbeat cannot be stored.
        Asks for a cancel once per heartbeat interval.
        """
        if self._is_taken_away:
            raise FenceLost(f"run {self._run.pk} was taken away while it measured")
        if self._is_late():
            self._beat_or_wait()
        is_long = time.monotonic() - self._round_at >= LONG_ROUND_S
        if is_long and self._is_cancelled(self._every_s):
            raise RunCancelled("cancelled on request")

    @contextmanager
    def background_heartbeat(self, longest_s: float) -> Iterator[None]:
        """A thread writes the heartbeat when no round ends for that long (slow queries, many
        clients).
        """
        over = threading.Event()
        thread = threading.Thread(target=self._beat_when_late, args=(over, longest_s), daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _beat_when_late(self, over: threading.Event, longest_s: float) -> None:
        while not over.wait(max(0.05, self._tried_at + longest_s - time.monotonic())):
            if time.monotonic() - self._tried_at < longest_s:
                continue
            try:
                with closing(connections[router.db_for_write(Run)]):
                    self._beat()
            except FenceLost:
                self._is_taken_away = True
                return
            except Error:
                logger.warning("run %s: its heartbeat could not be written", self._run.pk)
                self._tried_at = time.monotonic()

    def _beat_or_wait(self) -> None:
        """Survive a short outage of the database; stop the run in a long one, before others mark it
        lost.
        """
        try:
            self._beat()
        except Error as error:
            self._alive()
            if self._is_late() or not is_outage(error) or not drop_broken_connection(error):
                raise
            self._tried_at = time.monotonic()

    def _is_late(self) -> bool:
        return time.monotonic() - self._written_at >= self._retry_s

    def _beat(self) -> None:
        with self._lock:
            state.heartbeat(self._run, self._share, self._message)
            self._tried_at = self._written_at = time.monotonic()
        self._alive()
