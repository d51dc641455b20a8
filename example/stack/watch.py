"""Restarts parts that end, unless they end right after their start, and answers requests."""

import os
import select
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import NoReturn

from example.stack.control import Control
from example.stack.errors import StackError
from example.stack.part import Part
from example.stack.process import has_ended, tail

STABLE_S = 5


def watch(parts: Sequence[Part], control: Control | None = None) -> NoReturn:
    """Watch forever. Raises StackError if a part ends right after its start.

    The parts may change while `control` answers a request.
    """
    while True:
        asked = _wait([part.process for part in parts if part.process], control)
        for part in parts:
            if part.has_ended():
                _restart(part)
        if control and asked:
            control.answer()


def answer_until(process: subprocess.Popen[bytes], control: Control) -> int:
    """Answer requests until the process ends; its exit code."""
    while process.poll() is None:
        if _wait([process], control):
            control.answer()
    return process.returncode


def _wait(processes: Iterable[subprocess.Popen[bytes]], control: Control | None) -> bool:
    """Wait until a process ends or a request arrives. Returns whether there is a request."""
    poll = select.poll()
    with ExitStack() as opened:
        for process in processes:
            if has_ended(process):
                return False
            pidfd = os.pidfd_open(process.pid)
            opened.callback(os.close, pidfd)
            poll.register(pidfd, select.POLLIN)
        if control:
            poll.register(control.fileno(), select.POLLIN)
        ready = {fd for fd, _ in poll.poll()}
    return control is not None and control.fileno() in ready


def _restart(part: Part) -> None:
    if part.age_s() < STABLE_S:
        raise StackError(f"{part.name} ended right after its start; {part.log} ends:\n{tail(part.log)}")
    print(f"{part.name} has ended; restarting it", file=sys.stderr, flush=True)
    part.start()
