"""Waiting for the ends of processes."""

import select
import time
from collections.abc import Sequence


def await_ends(pidfds: Sequence[int], seconds: float) -> int:
    """How many of the processes are still there when all have ended or the time is over."""
    deadline, waiting = time.monotonic() + seconds, set(pidfds)
    while waiting:
        poll = select.poll()
        for pidfd in waiting:
            poll.register(pidfd, select.POLLIN)
        ended = poll.poll(max(0, int((deadline - time.monotonic()) * 1000)))
        if not ended:
            break
        waiting -= {pidfd for pidfd, _ in ended}
    return len(waiting)
