"""When the operations of an open loop are due (pure; standard library only).

The clients in C and in Python compute the same numbers; docs/protocol.md gives the formula. Gaps are
whole nanoseconds, so that their sum is the same on every machine.
"""

from collections.abc import Iterator
from itertools import accumulate, count, islice, takewhile
from math import log

from pgperf.core.protocol import Slice

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def intended_starts(request: Slice) -> Iterator[int]:
    """The intended start of each operation, ns after the start of the slice; without end."""
    mean_ns = 1e9 / request.rate
    if request.schedule == "constant":
        return (request.offset_ns + round(number * mean_ns) for number in count())
    gaps = (round(-log(uniform(request.seed, number)) * mean_ns) for number in count(1))
    return (request.offset_ns + elapsed_ns for elapsed_ns in accumulate(gaps))


def due_in(request: Slice, most: int) -> list[int]:
    """Those of the slice's window, or its first `count`; at most `most`."""
    starts = intended_starts(request)
    if request.count:
        return list(islice(starts, min(request.count, most)))
    close_ns = request.lead_in_ns + request.window_ns
    return list(islice(takewhile(lambda due: due < close_ns, starts), most))


def uniform(seed: int, number: int) -> float:
    """Output `number` (1, 2, ..) of SplitMix64, as a number above 0, up to 1."""
    mixed = (seed + number * _GOLDEN) & _MASK
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _MASK
    mixed ^= mixed >> 31
    return ((mixed >> 11) + 1) * 2.0**-53
