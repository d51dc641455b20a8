"""Counters of another machine over time, and their growth in slices timed on this one. Pure.

The counters of an idle process stand still. So a counter's value at the edge of a slice is any
sample between that slice and the next one that uses the same process. If there is no sample in
between, the value in the middle of the gap is interpolated from the samples around it, if those are
close enough.
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
#: Of a block's samples, packed and unpacked: a forged row must not exhaust the worker's memory.
MAX_PACKED_BYTES, MAX_UNPACKED_BYTES = 4 * 1024 * 1024, 16 * 1024 * 1024
_CORRUPT = (zlib.error, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
#: If the clock error exceeds this fraction (1/n) of a slice, its growth is unknown.
_CLOCK_SHARE = 10
#: Samples further apart than this fraction (1/n) of a slice are not interpolated.
_GAP_SHARE = 4
_FOREVER = 1 << 62
#: The column of PostgreSQL's auxiliary processes; the prefixes of the machine's columns and of
#: those of its top line.
AUXILIARIES, HOST, TOP = "auxiliaries", "host", "top"
#: Load averages are not counters: kept in hundredths, and read by `CounterSamples.at`.
LOAD_PARTS = 100


def run_column(pid: int) -> str:
    """The column with a process's run time, ns."""
    return f"{pid}.run"


def wait_column(pid: int) -> str:
    """The column with a process's wait time in the run queue, ns."""
    return f"{pid}.wait"


@dataclass(frozen=True)
class CounterSamples:
    """Counters that only grow, one column each, and the times of the samples (ns, monotonic clock,
    increasing).
    """

    times_ns: Counts
    columns: Mapping[str, Counts]

    @classmethod
    def of(cls, times_ns: Iterable[int], columns: Mapping[str, Iterable[int]]) -> Self:
        """Raises ValueError unless every column has a value for every time, and times increase."""
        times = np.fromiter(times_ns, np.int64)
        arrays = {name: np.fromiter(values, np.int64) for name, values in columns.items()}
        if any(len(values) != len(times) for values in arrays.values()) or (np.diff(times) <= 0).any():
            raise ValueError("samples: every column needs a value for every time, and times must increase")
        return cls(times, arrays)

    def pack(self) -> bytes:
        """The differences between samples as JSON, compressed with zlib.

        Idle processes need almost no space.
        """
        steps = {
            "times_ns": _steps(self.times_ns),
            "columns": {k: _steps(v) for k, v in self.columns.items()},
        }
        return zlib.compress(json.dumps(steps, separators=(",", ":")).encode())

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Raises AgentFailed unless the bytes are the output of `pack`."""
        try:
            steps = json.loads(_unzipped(packed))
            columns = {str(name): np.cumsum(values) for name, values in steps["columns"].items()}
            return cls.of(np.cumsum(steps["times_ns"]), columns)
        except _CORRUPT as error:
            raise AgentFailed("samples: the bytes from the agent are corrupt; repeat the run") from error

    def at(self, name: str, moment_ns: int) -> int | None:
        """A column's value in the first sample after that moment; None if there is none."""
        values, found = self.columns.get(name), int(np.searchsorted(self.times_ns, moment_ns))
        if values is None or found == len(values) or values[found] == UNKNOWN:
            return None
        return int(values[found])

    def on_clock(self, offset: ClockOffset) -> "CounterSamples":
        """The same samples with the times of another clock."""
        return CounterSamples(self.times_ns + offset.ns, self.columns)


def _unzipped(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(packed, MAX_UNPACKED_BYTES)
    if not unpacking.eof:
        raise ValueError("samples: truncated or too large")
    return data


@dataclass(frozen=True)
class CounterInterval:
    """An interval in which the processes of some columns worked, in the time of the samples' clock."""

    begin_ns: int
    end_ns: int
    columns: frozenset[str]

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


def growth(
    samples: CounterSamples, intervals: Sequence[CounterInterval], error_ns: int, *, steady: bool = False
) -> list[int | None]:
    """The growth of the sum of its columns in each interval. The intervals are in order of time.

    `error_ns`: the possible error of the intervals' clock. The growth is None if a column is
    missing or unreadable, the clock error too large, or the samples too far apart. `steady`: the
    columns grow all the time, so samples may be a whole interval apart.
    """
    sums: dict[frozenset[str], Counts | None] = {}
    found: list[int | None] = []
    for interval, before, after in zip(
        intervals, _quiet_before(intervals), _quiet_after(intervals), strict=True
    ):
        if interval.columns not in sums:
            sums[interval.columns] = _sum(samples, interval.columns)
        values = sums[interval.columns]
        if values is None or error_ns * _CLOCK_SHARE > interval.length_ns:
            found.append(None)
            continue
        gap_ns = interval.length_ns // (1 if steady else _GAP_SHARE)
        first = _at(samples.times_ns, values, before, error_ns, gap_ns, last=True)
        last = _at(samples.times_ns, values, after, error_ns, gap_ns, last=False)
        found.append(None if first is None or last is None or last < first else round(last - first))
    return found


def _at(
    times: Counts, values: Counts, quiet: tuple[int, int], error_ns: int, gap_ns: int, *, last: bool
) -> float | None:
    """The value during a quiet interval; None if no sample gives it."""
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


def _sum(samples: CounterSamples, names: frozenset[str]) -> Counts | None:
    """The sum of the columns; None if one is missing.

    A sample is UNKNOWN if one of its values is.
    """
    columns = [samples.columns.get(name) for name in names]
    known = [column for column in columns if column is not None]
    if not known or len(known) < len(columns):
        return None
    total: Any = np.sum(known, axis=0)
    total[np.any(np.stack(known) == UNKNOWN, axis=0)] = UNKNOWN
    return total


def _quiet_before(intervals: Sequence[CounterInterval]) -> list[tuple[int, int]]:
    """For each interval, the quiet time before it: since the last use of any of its columns."""
    used: dict[str, int] = {}
    found = []
    for interval in intervals:
        since = max((used.get(name, -_FOREVER) for name in interval.columns), default=-_FOREVER)
        found.append((since, interval.begin_ns))
        used |= dict.fromkeys(interval.columns, interval.end_ns)
    return found


def _quiet_after(intervals: Sequence[CounterInterval]) -> list[tuple[int, int]]:
    """For each interval, the quiet time after it: until any of its columns is in use again."""
    used: dict[str, int] = {}
    found = []
    for interval in reversed(intervals):
        until = min((used.get(name, _FOREVER) for name in interval.columns), default=_FOREVER)
        found.append((interval.end_ns, until))
        used |= dict.fromkeys(interval.columns, interval.begin_ns)
    return found[::-1]


def _steps(values: Counts) -> list[int]:
    return [int(step) for step in np.diff(values, prepend=0)]
