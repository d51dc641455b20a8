"""A client without a database, for tests of the runner: all its answers are predictable.

One operation reads one row and keeps a CPU busy for `spec.nominal_us`. In connection modes other
than persistent, connecting takes half of that beforehand and closing a quarter afterwards. `query`
answers one row: the SQL. If the SQL of the workload is one of these words, the client misbehaves:

- `die`: it is killed by its own SIGKILL
- `quit`: it exits with code 0, without a `bye`
- `hang`: it never answers again
- `garbage`: it answers with a line that is no message
- `cut`: it announces a payload, sends part of it and exits
- `fail`: the operation fails; it sends an error message (SQLSTATE P0001)
- `noise`: it prints to stdout, as text and past Python, and goes on working

Each happens in a slice, after 50 operations. With `die at connect`, `die at ready` or `die at
reconnect` (likewise for the other words) it happens at that stage.
"""

import os
import signal
import sys
from copy import copy
from time import monotonic_ns, sleep
from typing import BinaryIO, NoReturn

from pgperf.clients.loop import main
from pgperf.clients.timed_loop import Operation, Reconnecting
from pgperf.core import protocol

#: The number of operations before it misbehaves in a slice. The cold phases have fewer.
OPERATIONS_BEFORE = 50


class FakeFailure(Exception):
    """Raised by `fail`."""

    sqlstate = "P0001"


class FakeClient:
    """Connects to nothing."""

    backend_pid = 0
    server_version = "fake"
    connection_modes = protocol.CONNECTION_MODES

    def __init__(self, replies: BinaryIO) -> None:
        self._replies = replies
        self._operations = 0

    def load(self, spec: protocol.Spec) -> None:
        text = spec.statements[0].sql if spec.statements else ""
        word, _, stage = text.partition(" at ")
        self._word, self._stage = word, stage or "slice"
        self._misbehave = {
            "die": _die,
            "quit": _quit,
            "hang": _hang,
            "garbage": self._send_garbage,
            "cut": self._send_cut,
            "fail": _fail,
            "noise": _make_noise,
        }.get(word)

    def connect(self, spec: protocol.Spec) -> None:
        self._misbehave_at("connect")

    def another(self) -> "FakeClient":
        """One with a connection of its own, for another worker."""
        return copy(self)

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        self._misbehave_at("ready")
        self._nominal_ns = int(spec.nominal_us * 1000)

        def run() -> int:
            begin = monotonic_ns()
            self._operations += 1
            if self._operations > OPERATIONS_BEFORE:
                self._misbehave_at("slice")
            _spin(begin, self._nominal_ns)
            return 1

        return run

    def reconnecting(self, operation: Operation) -> Reconnecting:
        return Reconnecting(self._reconnect, operation, lambda: _spin(monotonic_ns(), self._nominal_ns // 4))

    def _reconnect(self) -> None:
        begin = monotonic_ns()
        if self._operations >= OPERATIONS_BEFORE:
            self._misbehave_at("reconnect")
        _spin(begin, self._nominal_ns // 2)

    def query(self, sql: str) -> protocol.Rows:
        return protocol.Rows([[sql]])

    def versions(self) -> dict[str, str]:
        return {"driver": "fake"}

    def close(self) -> None:
        pass

    def _misbehave_at(self, stage: str) -> None:
        if self._misbehave and stage == self._stage:
            self._misbehave()

    def _send_garbage(self) -> None:
        self._replies.write(b'{"type":"no such message"}\n')
        self._replies.flush()

    def _send_cut(self) -> None:
        self._replies.write(
            protocol.encode(
                protocol.SliceReply(
                    seq=1,
                    ops=1000,
                    rows=1000,
                    lead_in_ops=10,
                    first_ns=1,
                    user_ns=0,
                    sys_ns=0,
                    capped=False,
                    nbytes=8000,
                )
            )
            + bytes(80)
        )
        self._replies.flush()
        os._exit(0)


def _spin(begin_ns: int, duration_ns: int) -> None:
    while monotonic_ns() - begin_ns < duration_ns:
        pass


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _quit() -> NoReturn:
    os._exit(0)


def _hang() -> None:
    while True:
        sleep(3600)


def _fail() -> None:
    raise FakeFailure("the fake was asked to fail")


def _make_noise() -> None:
    print("noise")
    sys.stdout.flush()
    os.write(1, b"more noise\n")


if __name__ == "__main__":
    main(FakeClient)
