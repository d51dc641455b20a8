"""Processes that each keep one CPU busy, as many as a load should have.

spinning(count) -> they run during the context
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_MOST_S = 3600
#: For a load beside a whole campaign.
DAY_S = 24 * 3600
#: Also ends by itself: after the time, or when the script that started it has died.
_SPIN = """
import os, sys, time
parent, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while os.getppid() == parent and time.monotonic() < end:
    pause = time.perf_counter() + 0.1
    while time.perf_counter() < pause: pass
"""


@contextmanager
def spinning(count: int, most_s: float = _MOST_S) -> Iterator[list[int]]:
    """Their process ids."""
    argv = [sys.executable, "-c", _SPIN, str(os.getpid()), str(most_s)]
    running = [subprocess.Popen(argv) for _ in range(count)]
    try:
        yield [each.pid for each in running]
    finally:
        for each in running:
            each.kill()
            each.wait()
