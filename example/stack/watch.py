"""Keep the parts running: what dies is started again, unless it dies right after its start."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.process import tail

STABLE_S = 5


def watch(parts: Sequence[Part]) -> NoReturn:
    """Returns only by an exception: StackError when a part does not stay up, or whatever a signal handler raises."""
    while True:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        for part in parts:
            if part.has_ended():
                _start_again(part)


def _start_again(part: Part) -> None:
    if part.age_s() < STABLE_S:
        raise StackError(f"{part.name} ended right after its start; {part.log} ends:\n{tail(part.log)}")
    print(f"{part.name} has ended and is started again", file=sys.stderr, flush=True)
    part.start()
