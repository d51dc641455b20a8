"""A timer of the kernel that is a file descriptor, for programs that wait for descriptors.

An event loop rounds its own timeouts up to milliseconds.
"""

import ctypes
import os
import time


class Timer:
    """A timerfd of CLOCK_MONOTONIC. Python has one since 3.13."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._set_ns = 0

    def set(self, at_ns: int) -> None:
        """Make the descriptor readable at that time of CLOCK_MONOTONIC; 0: never."""
        if at_ns == self._set_ns:
            return
        self._set_ns = at_ns
        value = (ctypes.c_long * 4)(0, 0, at_ns // 1_000_000_000, at_ns % 1_000_000_000)
        self._libc.timerfd_settime(self.fd, 1, value, None)  # 1: TFD_TIMER_ABSTIME
