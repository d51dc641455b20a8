"""Sleeping inside an asyncio event loop to the microsecond.

asyncio rounds the timeouts of its poll up to milliseconds. A request that arrives wakes a server's
loop at once, and so does this timer, which is a descriptor.
"""

import asyncio
import os
from time import monotonic_ns

from pgperf.core.timerfd import Timer


class LoopTimer:
    """The timer of one task of a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._timer = loop, Timer()
        self._waiting: asyncio.Future[None] | None = None
        loop.add_reader(self._timer.fd, self._wake)

    async def sleep_until(self, due_ns: int) -> None:
        """Return at that time of the monotonic clock; at once if it has passed."""
        if due_ns > monotonic_ns():
            self._waiting = self._loop.create_future()
            self._timer.set(due_ns)
            await self._waiting

    def _wake(self) -> None:
        os.read(self._timer.fd, 8)
        if self._waiting and not self._waiting.done():
            self._waiting.set_result(None)
