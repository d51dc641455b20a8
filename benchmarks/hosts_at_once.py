"""What several load hosts do to the site's database at the same moment: a process for each of them."""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import median
from threading import BrokenBarrierError
from typing import Any, Generic, NamedTuple, TypeVar

from django.db import connections

T = TypeVar("T")

_FORK = multiprocessing.get_context("fork")
_START_S = 120.0
_together: Any = None  # the barrier of this process and the others


class Done(NamedTuple, Generic[T]):
    """What one host did in one round, by the machine's monotonic clock."""

    begin_s: float
    end_s: float
    found: T


class Rounds(NamedTuple, Generic[T]):
    """What all hosts did, by round."""

    rounds: Sequence[Sequence[Done[T]]]

    def seconds(self) -> float:
        """From the first host's begin to the last one's end, the median of the rounds."""
        return median(
            max(done.end_s for done in each) - min(done.begin_s for done in each) for each in self.rounds
        )

    def found(self) -> list[T]:
        return [done.found for each in self.rounds for done in each]


def at_once(rows: Sequence[int], act: Callable[[int], T], rounds: int = 1) -> Rounds[T]:
    """`act` on each row, in a process of its own; in each round all begin together.

    `act` is a function of a module, or a partial of one.
    """
    connections.close_all()  # a connection of two processes serves neither
    barrier = _FORK.Barrier(len(rows), timeout=_START_S)
    with ProcessPoolExecutor(len(rows), _FORK, partial(_keep, barrier)) as processes:
        by_host = list(processes.map(partial(_rounds, act, rounds), rows))
    return Rounds(list(zip(*by_host, strict=True)))


def _keep(barrier: Any) -> None:
    global _together
    _together = barrier


def _rounds(act: Callable[[int], T], rounds: int, row: int) -> list[Done[T]]:
    try:
        act(row)  # connects
        found = []
        for _ in range(rounds):
            _together.wait()
            begin_s = time.monotonic()
            gave = act(row)
            found.append(Done(begin_s, time.monotonic(), gave))
    except BaseException as error:
        if not isinstance(error, BrokenBarrierError):
            _together.abort()  # else the others would wait for this one
        raise
    return found
