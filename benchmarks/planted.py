"""A psycopg client whose operation takes a known share longer, in proportion to its own time.

The share stands in a comment of the workload's SQL (`longer`), so one program serves all variants of
a run. After each statement the client spins for that share of the time that the statement took, by
the same clock. So the true ratio of two variants is known by construction, whatever the machine
does: 1 + share, but for the readings of the clock, which both variants have. As a check, each client
leaves the ratio of its whole operations to their statements in a file (`Stretch`).

write(folder) -> path of a program that serves as the interpreter of layer psycopg
"""

import json
import re
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import BinaryIO, NamedTuple

from pgperf.clients.loop import main
from pgperf.clients.programs.psycopg_client import PsycopgClient
from pgperf.clients.timed_loop import Operation
from pgperf.core import protocol

ROOT = Path(__file__).resolve().parent.parent
_STRETCHES = "stretches.jsonl"
_SHARE = re.compile(r"^/\* longer by ([0-9.]+) \*/ ")
_PROGRAM = """\
#!{python}
import sys
sys.path.insert(0, {root!r})
from benchmarks.planted import serve
serve({file!r})
"""


class Stretch(NamedTuple):
    """The median of one client's whole operations over their statements. Those that the scheduler
    interrupts, as it does while all clients warm up together, do not move it.
    """

    share: float
    ratio: float


class Longer:
    """An operation followed by a spin of `share` of its time."""

    def __init__(
        self, operation: Operation, share: float, clock: Callable[[], int] = perf_counter_ns
    ) -> None:
        self._operation, self._share, self._clock = operation, share, clock
        self._ratios = array("d")

    def __call__(self) -> int:
        clock = self._clock
        began = clock()
        rows = self._operation()
        took = clock() - began
        until = clock() + int(took * self._share)
        while (now := clock()) < until:
            pass
        self._ratios.append((now - began) / took)
        return rows

    @property
    def stretch(self) -> Stretch | None:
        return Stretch(self._share, median(self._ratios)) if self._ratios else None


class PlantedClient(PsycopgClient):
    """Leaves the stretch of its operations in a file when it ends."""

    def __init__(self, replies: BinaryIO, file: Path) -> None:
        super().__init__(replies)
        self._longer: Longer | None = None
        self._file = file

    def operation(self, spec: protocol.Spec, other: bool = False) -> Operation:
        operation = super().operation(spec, other)
        if other:
            return operation
        self._longer = Longer(operation, share_of(spec.statements[0].sql))
        return self._longer

    def close(self) -> None:
        super().close()
        if self._longer and (stretch := self._longer.stretch):
            with self._file.open("a") as file:
                file.write(json.dumps(stretch) + "\n")


def serve(file: str) -> None:
    """Be the client's program."""
    main(lambda replies: PlantedClient(replies, Path(file)))


def longer(sql: str, share: float) -> str:
    """The same SQL for an operation that takes `share` longer, 0.05 for 5 %."""
    return f"/* longer by {share:.4f} */ {sql}"


def share_of(sql: str) -> float:
    """The share of a text made by `longer`; 0 of any other."""
    found = _SHARE.match(sql)
    return float(found[1]) if found else 0.0


def write(folder: Path) -> str:
    """Write the program, whose clients leave their stretches in the same folder; its path."""
    path = folder / "planted-client"
    path.write_text(_PROGRAM.format(python=sys.executable, root=str(ROOT), file=str(folder / _STRETCHES)))
    path.chmod(0o755)
    return str(path)


def true_difference(folder: Path, share: float) -> float | None:
    """By how much the clients with that share stretched their operations more than those without one,
    0.05 for 5 %. None if there were none of either.
    """
    file = folder / _STRETCHES
    found = [Stretch(*json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []
    longer_, plain = ([each.ratio for each in found if each.share == own] for own in (share, 0.0))
    return median(longer_) / median(plain) - 1 if longer_ and plain else None
