"""Runs the same call in many threads at once."""

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

from pgperf.core.exceptions import RunConflict


def at_once(count: int, act: Callable[[], Any]) -> list[Any]:
    """The results of `act` in `count` threads that start together; a RunConflict counts as a
    result.
    """
    barrier, got = threading.Barrier(count), []

    def one() -> None:
        barrier.wait()
        try:
            got.append(act())
        except RunConflict as error:
            got.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == count
    return got
