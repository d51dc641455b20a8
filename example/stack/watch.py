"""Restarts parts that end, unless they end right after their start."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.process import tail

STABLE_S = 5


def watch(parts: Sequence[Part]) -> NoReturn:
    """Watch forever. Raises StackError if a part ends right after its start."""
    while True:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        for part in parts:
            if part.has_ended():
                _restart(part)


def _restart(part: Part) -> None:
    if part.age_s() < STABLE_S:
        raise StackError(f"{part.name} ended right after its start; {part.log} ends:\n{tail(part.log)}")
    print(f"{part.name} has ended; restarting it", file=sys.stderr, flush=True)
    part.start()
