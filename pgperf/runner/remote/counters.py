"""Counters of another machine over time, and what a slice timed on this one took of them. Pure.

Whoever stands by uses nothing. So a counter is read where it stands still: at any moment between two slices that use
it. Where no reading falls between them, the middle of that time is interpolated, if the readings round it are close.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pgperf.core.exceptions import AgentFailed
from pgperf.runner.remote.clock_offset import ClockOffset

Counts = NDArray[np.int64]

#: A counter that could not be read; counters themselves are never negative.
UNKNOWN = -1
#: Clocks that may be further apart than this part of a slice tell nothing about it.
_CLOCK_SHARE = 10
#: Two readings further apart than this part of a slice are not interpolated.
_GAP_SHARE = 4
_FOREVER = 1 << 62
#: The columns of PostgreSQL's own processes together; what those of the machine as a whole, and of its line in top,
#: begin with.
AUXILIARIES, HOST, TOP = "auxiliaries", "host", "top"
#: Load averages are no counters: kept in hundredths, and read by `Readings.at`.
LOAD_PARTS = 100


def run_column(pid: int) -> str:
    """The column with a process's time on a processor, ns."""
    return f"{pid}.run"


def wait_column(pid: int) -> str:
    """The column with a process's time ready but waiting for a processor, ns."""
    return f"{pid}.wait"


@dataclass(frozen=True)
class CounterSamples:
    """Counters that only grow, a column each, and when they were read (ns of a monotonic clock, increasing)."""

    times_ns: Counts
    columns: Mapping[str, Counts]

    @classmethod
    def of(cls, times_ns: Iterable[int], columns: Mapping[str, Iterable[int]]) -> Self:
        """Raises ValueError unless every column has a value for every time, and times increase."""
        times = np.fromiter(times_ns, np.int64)
        arrays = {name: np.fromiter(values, np.int64) for name, values in columns.items()}
        if any(len(values) != len(times) for values in arrays.values()) or (np.diff(times) <= 0).any():
            raise ValueError("readings: a value for every time, and times that increase")
        return cls(times, arrays)

    def pack(self) -> bytes:
        """What each reading adds to the one before, as JSON, deflated: of those who stand by next to nothing."""
        steps = {
            "times_ns": _steps(self.times_ns),
            "columns": {k: _steps(v) for k, v in self.columns.items()},
        }
        return zlib.compress(json.dumps(steps, separators=(",", ":")).encode())

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Raises AgentFailed for anything but what `pack` gives."""
        try:
            steps = json.loads(zlib.decompress(packed))
            columns = {str(name): np.cumsum(values) for name, values in steps["columns"].items()}
            return cls.of(np.cumsum(steps["times_ns"]), columns)
        except (zlib.error, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise AgentFailed("readings: what the agent handed over is broken; run it again") from error

    def at(self, name: str, moment_ns: int) -> int | None:
        """What a column had when it was first read after that moment; None if it was not."""
        values, found = self.columns.get(name), int(np.searchsorted(self.times_ns, moment_ns))
        if values is None or found == len(values) or values[found] == UNKNOWN:
            return None
        return int(values[found])

    def on_clock(self, offset: ClockOffset) -> "CounterSamples":
        """The same by another clock."""
        return CounterSamples(self.times_ns + offset.ns, self.columns)


@dataclass(frozen=True)
class CounterInterval:
    """A time in which the processes of some columns worked, on the clock of the readings."""

    begin_ns: int
    end_ns: int
    columns: frozenset[str]

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


def growth(
    readings: CounterSamples, stretches: Sequence[CounterInterval], error_ns: int, *, steady: bool = False
) -> list[int | None]:
    """By how much the sum of its columns grew in each stretch, in their order, which is that of time.

    `error_ns`: by so much may the clock of the stretches differ from that of the readings. None for what cannot be
    told: a column that is missing or was not readable, clocks too uncertain, readings too far apart. `steady`: the
    columns grow all the time, so readings may be a whole stretch apart.
    """
    sums: dict[frozenset[str], Counts | None] = {}
    found: list[int | None] = []
    for stretch, before, after in zip(
        stretches, _quiet_before(stretches), _quiet_after(stretches), strict=True
    ):
        if stretch.columns not in sums:
            sums[stretch.columns] = _sum(readings, stretch.columns)
        values = sums[stretch.columns]
        if values is None or error_ns * _CLOCK_SHARE > stretch.length_ns:
            found.append(None)
            continue
        gap_ns = stretch.length_ns // (1 if steady else _GAP_SHARE)
        first = _at(readings.times_ns, values, before, error_ns, gap_ns, last=True)
        last = _at(readings.times_ns, values, after, error_ns, gap_ns, last=False)
        found.append(None if first is None or last is None or last < first else round(last - first))
    return found


def _at(
    times: Counts, values: Counts, quiet: tuple[int, int], error_ns: int, gap_ns: int, *, last: bool
) -> float | None:
    """The value in a time when it stands still; None if nothing tells."""
    inside = _inside(times, quiet[0] + error_ns, quiet[1] - error_ns)
    if len(inside):
        value = values[inside[-1 if last else 0]]
        return None if value == UNKNOWN else float(value)
    if quiet[0] <= -_FOREVER or quiet[1] >= _FOREVER:
        return None
    return _between(times, values, sum(quiet) // 2, gap_ns)


def _inside(times: Counts, first_ns: int, last_ns: int) -> Counts:
    start, stop = np.searchsorted(times, first_ns, "left"), np.searchsorted(times, last_ns, "right")
    return np.arange(start, stop)


def _between(times: Counts, values: Counts, moment_ns: int, gap_ns: int) -> float | None:
    after = int(np.searchsorted(times, moment_ns))
    if not 0 < after < len(times) or times[after] - times[after - 1] > gap_ns:
        return None
    pair = values[after - 1 : after + 1]
    if UNKNOWN in pair:
        return None
    share = float(moment_ns - times[after - 1]) / float(times[after] - times[after - 1])
    return float(pair[0]) + share * float(pair[1] - pair[0])


def _sum(readings: CounterSamples, names: frozenset[str]) -> Counts | None:
    """The columns' sum; None without them. It is unknown where one of them is."""
    columns = [readings.columns.get(name) for name in names]
    known = [column for column in columns if column is not None]
    if not known or len(known) < len(columns):
        return None
    total: Any = np.sum(known, axis=0)
    total[np.any(np.stack(known) == UNKNOWN, axis=0)] = UNKNOWN
    return total


def _quiet_before(stretches: Sequence[CounterInterval]) -> list[tuple[int, int]]:
    """For each, the time since any of its columns was used."""
    used: dict[str, int] = {}
    found = []
    for stretch in stretches:
        since = max((used.get(name, -_FOREVER) for name in stretch.columns), default=-_FOREVER)
        found.append((since, stretch.begin_ns))
        used |= dict.fromkeys(stretch.columns, stretch.end_ns)
    return found


def _quiet_after(stretches: Sequence[CounterInterval]) -> list[tuple[int, int]]:
    """For each, the time until any of its columns is used again."""
    used: dict[str, int] = {}
    found = []
    for stretch in reversed(stretches):
        until = min((used.get(name, _FOREVER) for name in stretch.columns), default=_FOREVER)
        found.append((stretch.end_ns, until))
        used |= dict.fromkeys(stretch.columns, stretch.begin_ns)
    return found[::-1]


def _steps(values: Counts) -> list[int]:
    return [int(step) for step in np.diff(values, prepend=0)]
