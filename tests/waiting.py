"""Waits for what other processes make true."""

import time
from collections.abc import Callable
from typing import Any


def until(holds: Callable[[], Any], seconds: float, what: str) -> None:
    """All we can do is look."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)
