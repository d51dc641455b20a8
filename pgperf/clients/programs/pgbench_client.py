"""The layer pgbench: for each slice, it runs pgbench itself with all clients of the variant.

pgbench keeps its connections for one slice, or connects for each transaction (`-C`). On kept
connections it counts transactions and times none: its log of transactions costs a tenth of a short
one. With `-C` it logs them, which is a thousandth of a connection.
"""

import os
import resource
import shutil
import sys
import tempfile
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import BinaryIO

from pgperf.clients.loop import given, main
from pgperf.clients.pgbench.process import ConnectionFailed, Finished, Pgbench
from pgperf.clients.pgbench.report import Transaction, transactions
from pgperf.clients.timed_loop import Stamps, Timing
from pgperf.core import protocol
from pgperf.core.exceptions import InvalidDefinition, LayerUnavailable, PgperfError, ReconnectFailed
from pgperf.core.pgbench import SLOWER, Script, script, time_s

_CONNECT = "SELECT 1;\n"
_START_S = 30.0
#: Of each of pgbench's threads. The system's default would count against the client's memory.
_STACK_BYTES = 512 * 1024
_VISIBLE = (
    "args: pgbench takes values from its arguments, which every user of the machine can read;"
    " choose mode simple, or leave this layer out"
)
_TOO_SLOW = (
    "pgbench connected, or worked on an operation, for longer than the slice: nothing of the window was left;"
    " choose a longer slice_ms"
)
_LEAST_OPERATIONS = 3
#: The directory of a slice's logs: that, the client's pid, and a name.
_LOGS = "pgperf-pgbench-"
_OLD_S = 3600.0
#: pgbench may take so many times its time, besides its start and the operations under way at the end.
_LONGER = 1.1

#: The transactions of each client, in order.
Clients = Sequence[Sequence[Transaction]]


class PgbenchClient:
    """A pgbench program, and an address that it can connect to."""

    connection_modes = ("persistent", "per_operation")
    runs_tool = True
    backend_pid = 0
    server_version = ""

    def __init__(self, replies: BinaryIO) -> None:
        self._pgbench: Pgbench

    def load(self, spec: protocol.Spec) -> None:
        program = shutil.which(sys.argv[1] if len(sys.argv) > 1 else "pgbench")
        if not program:
            raise LayerUnavailable("pgbench: no such program; name one in PGPERF['PGBENCH']")
        _, hard = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (_STACK_BYTES, hard))
        self._pgbench = Pgbench(program, spec)
        _remove_old_logs()

    def connect(self, spec: protocol.Spec) -> None:
        """Connect with all clients once, to learn how long that takes."""
        self._start = self._pgbench.run(_CONNECT, _load(spec, "--transactions=1"), _START_S)
        self.server_version = self._start.summary.server_version

    def operation(self, spec: protocol.Spec, other: bool = False) -> "PgbenchOperation":
        if spec.site and spec.mode != "simple" and any(each.args_text for each in given(spec, other)):
            raise InvalidDefinition(_VISIBLE)
        return PgbenchOperation(self._pgbench, spec, script(given(spec, other), spec.mode), self._start)

    def query(self, sql: str) -> protocol.Rows:
        raise PgperfError("query: pgbench shows no rows")

    def versions(self) -> dict[str, str]:
        return {"driver": "pgbench", "driver_version": self._pgbench.version}

    def close(self) -> None:
        pass


class PgbenchOperation:
    """The statements as a script. Each slice runs it in a new process with new connections."""

    def __init__(self, pgbench: Pgbench, spec: protocol.Spec, code: Script, start: Finished) -> None:
        self._pgbench, self._spec, self._script, self._start = pgbench, spec, code, start
        self._connects = spec.connection_mode == "per_operation"
        self._once_s = 0.0  # the longest of the single operations so far, with the start of pgbench
        self._together_s = 0.0  # the longest mean of those of a slice by count, in which all clients work

    def __call__(self) -> int:
        """Run the statements once. pgbench does not say how many rows they read."""
        once = self._spec._replace(workers=1)
        done = self._pgbench.run(self._script.text, [*_load(once, "--transactions=1"), *self._how()], None)
        self._once_s = max(self._once_s, done.elapsed_s)
        return 0

    def run_slice(self, request: protocol.Slice, stamps: list[Stamps]) -> Timing:
        time.sleep(max(0, request.start_ns - time.monotonic_ns()) / 1e9)
        try:
            return self._logged(request) if self._connects else self._counted(request)
        except ConnectionFailed as error:
            raise ReconnectFailed from error

    def _counted(self, request: protocol.Slice) -> Timing:
        done = self._run(request, request.count, ())
        start, window_ns = self._start, done.summary.window_ns
        return Timing(
            ops=done.summary.transactions,
            rows=None,
            lead_in_ops=0,
            first_ns=max(0, done.spawned_ns + round(done.elapsed_s * 1e9) - window_ns),
            user_ns=max(0, done.user_ns - start.user_ns),
            sys_ns=max(0, done.sys_ns - start.sys_ns),
            capped=False,
            durations=b"",
            window_ns=window_ns,
            overran_ns=self._overran_ns(request, done),
        )

    def _logged(self, request: protocol.Slice) -> Timing:
        """The first transaction of each client is its lead-in: nobody knows when it began."""
        with tempfile.TemporaryDirectory(prefix=f"{_LOGS}{os.getpid()}-") as directory:
            logging = ("--connect", "--log", f"--log-prefix={directory}/log")
            done = self._run(request, request.count and request.count + 1, logging)
            lines = chain.from_iterable(log.read_text().splitlines() for log in Path(directory).iterdir())
            clients = transactions(lines, done.epoch_ns)
        timing = _timing(done, clients, self._window(request, done, clients))
        return timing._replace(overran_ns=self._overran_ns(request, done))

    def _window(self, request: protocol.Slice, done: Finished, clients: Clients) -> tuple[int, int]:
        """When the window opens and closes.

        Of one client, it holds whole operations. Of several, it opens at a time at which all of them
        have connected, and closes with pgbench's own time, when all of them still work.
        """
        firsts, lasts = zip(*((each[0].end_ns, each[-1].end_ns) for each in clients), strict=True)
        if request.count or len(clients) == 1:
            return min(firsts), max(lasts)
        connected_ns = done.spawned_ns + round(SLOWER * self._start.elapsed_s * 1e9) + request.lead_in_ns
        closes = done.spawned_ns + self._time_s(request) * 1_000_000_000
        return max(*firsts, connected_ns), closes

    def _run(self, request: protocol.Slice, count: int, more: Sequence[str]) -> Finished:
        time_s = self._time_s(request)
        length = f"--transactions={count}" if request.count else f"--time={time_s}"
        arguments = [*_load(self._spec, length), *self._how(), *more]
        if not request.count:
            longest_s = time_s + self._spec.workers * self._once_s  # with the operations under way
            return self._pgbench.run(self._script.text, arguments, longest_s)
        done = self._pgbench.run(self._script.text, arguments, None)
        self._together_s = max(self._together_s, done.summary.mean_s(self._spec.workers))
        return done

    def _time_s(self, request: protocol.Slice) -> int:
        """As asked; where the log tells the time from one end to the next, long enough for three."""
        least_s = _LEAST_OPERATIONS * max(self._once_s, self._together_s) if self._connects else 0.0
        return time_s(self._start.elapsed_s, max(least_s, (request.lead_in_ns + request.window_ns) / 1e9))

    def _overran_ns(self, request: protocol.Slice, done: Finished) -> int:
        """How much longer than its time it ran, if the server must have stood still; else 0.

        A statement that waits for a frozen server ends no slice, and pgbench reports no error. By
        count, there is no time.
        """
        if request.count:
            return 0
        time_s = self._time_s(request)
        longest_s = _LONGER * time_s + self._start.elapsed_s + self._under_way_s(done)
        return round((done.elapsed_s - time_s) * 1e9) if done.elapsed_s > longest_s else 0

    def _under_way_s(self, done: Finished) -> float:
        """How long the operations under way at the end may take: one alone; of several clients up to
        their mean in the slice, which at most makes them wait for each other.
        """
        workers = self._spec.workers
        return min(workers * self._once_s, max(self._once_s, done.summary.mean_s(workers)))

    def _how(self) -> list[str]:
        variables = [f"--define={name}={value}" for name, value in self._script.variables.items()]
        return [f"--protocol={self._spec.mode}", *variables]


def _load(spec: protocol.Spec, length: str) -> list[str]:
    threads = 1 if spec.layer == "pgbench_one_thread" else spec.workers
    return [f"--client={spec.workers}", f"--jobs={threads}", length]


def _timing(done: Finished, clients: Clients, window: tuple[int, int]) -> Timing:
    """The transactions that ended in the window, chained. The first of a client is not recorded.

    The phase `connect` contains closing: pgbench's log has the time of the statements alone.
    """
    opens, closes = window
    if opens >= closes:
        raise PgperfError(_TOO_SLOW)
    inside = [[pair for pair in pairwise(each) if opens < pair[1].end_ns <= closes] for each in clients]
    pairs = list(chain.from_iterable(inside))
    durations = [later.end_ns - before.end_ns for before, later in pairs]
    connecting = [ns - later.latency_ns for ns, (_, later) in zip(durations, pairs, strict=True)]
    numbers = array("Q", [*durations, *(max(0, ns) for ns in connecting)])
    if sys.byteorder == "big":
        numbers.byteswap()
    firsts = [each[0][0].end_ns if each else opens for each in inside]
    several = len(clients) > 1
    return Timing(
        ops=len(durations),
        rows=None,
        lead_in_ops=done.summary.transactions - len(durations),
        first_ns=min(firsts),
        user_ns=done.user_ns,
        sys_ns=done.sys_ns,
        capped=False,
        durations=numbers.tobytes(),
        worker_ops=[len(each) for each in inside] if several else [],
        worker_first_ns=firsts if several else [],
        phases=["connect"],
        window_ns=closes - opens,
    )


def _remove_old_logs() -> None:
    """Those of clients that were killed within a slice. Another container may share the directory, but
    no slice takes so long.
    """
    oldest = time.time() - _OLD_S
    for directory in Path(tempfile.gettempdir()).glob(f"{_LOGS}*-*"):
        pid = directory.name.removeprefix(_LOGS).partition("-")[0]
        with suppress(OSError):
            if not Path("/proc", pid).exists() and directory.stat().st_mtime < oldest:
                shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(PgbenchClient)
