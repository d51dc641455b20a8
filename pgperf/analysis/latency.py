"""Latencies as HdrHistograms: fold raw durations, merge by addition, read percentiles that the
sample can carry.

The histograms hold nanoseconds from 1 ns to one hour at 3 significant digits: a percentile is read
at the upper end of its cell, at most 0.1 % above the duration that was measured. Minimum, mean,
deviation and maximum come exactly, from sums that each `VariantBlock` carries beside its histogram.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from hdrh.histogram import HdrHistogram

from pgperf.analysis.cpu_account import Known
from pgperf.core.records import DurationSums, VariantBlock

LOWEST_NS = 1
HIGHEST_NS = 3_600_000_000_000
DIGITS = 3
_CELL_BITS = (
    11  # cells of 3 digits: the 2048 numbers of 11 bits, then doubling in width with each further bit
)

#: The fewest samples from which a percentile is read; any number serves the others.
MIN_SAMPLES = {99.0: 1_000, 99.9: 10_000}
_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0}


def fold(durations: np.ndarray) -> bytes:
    """Durations in ns, in any order, as an encoded HdrHistogram (V2, compressed).

    Those outside 1 ns to one hour are counted at the nearer end.
    """
    histogram = empty()
    clipped = np.clip(durations, LOWEST_NS, HIGHEST_NS).astype(np.int64)
    values, counts = np.unique(_cell_starts(clipped), return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        histogram.record_value(value, count)
    return bytes(histogram.encode())


def sums(durations: np.ndarray) -> DurationSums:
    """The same durations with their exact sums."""
    if not len(durations):
        return DurationSums()
    return DurationSums(
        ops=len(durations),
        sum_ns=int(durations.sum()),
        sum_sq=float(np.square(durations.astype(np.float64)).sum()),
        min_ns=int(durations.min()),
        max_ns=int(durations.max()),
        histogram=fold(durations),
    )


def merge(encoded: Iterable[bytes]) -> HdrHistogram:
    """The sum of encoded histograms; those that are b"" count as empty.

    Raises what hdrh raises for other bytes.
    """
    total = empty()
    for blob in encoded:
        if blob:
            total.add(HdrHistogram.decode(blob, b64_wrap=False))
    return total


def empty() -> HdrHistogram:
    return HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS, b64_wrap=False)


def percentile_ns(histogram: HdrHistogram, percentile: float) -> float | None:
    """The duration that `percentile` per cent of the samples do not exceed; None where there are
    too few of them.
    """
    if histogram.get_total_count() < MIN_SAMPLES.get(percentile, 1):
        return None
    return float(histogram.get_value_at_percentile(percentile))


def summary_us(blocks: Sequence[VariantBlock]) -> dict[str, float | None]:
    """min, mean, stddev, p50, p90, p95, p99 and max of one variant's blocks, µs; None for what is
    not known.
    """
    return _summary_us([_whole(block) for block in blocks])


def variation(latency_us: Mapping[str, float | None]) -> float | None:
    """The standard deviation over the mean, of what `summary_us` gives; None for what is not known."""
    mean, stddev = latency_us.get("mean"), latency_us.get("stddev")
    return stddev / mean if mean and stddev is not None else None


def phases_us(blocks: Sequence[VariantBlock]) -> dict[str, Known]:
    """The same of lag and service time, and of connect, operate and close; {} where there are none."""
    names = dict.fromkeys(name for block in blocks for name in block.phases)
    return {
        name: _summary_us([block.phases[name] for block in blocks if name in block.phases]) for name in names
    }


def _summary_us(parts: Sequence[DurationSums]) -> dict[str, float | None]:
    exact = _exact_ns([part for part in parts if part.ops])
    if exact is None:
        return dict.fromkeys(("min", "mean", "stddev", *_PERCENTILES, "max"))
    histogram = merge(part.histogram for part in parts)
    found: dict[str, float | None] = {key: exact[key] for key in ("min", "mean", "stddev")}
    for name, percentile in _PERCENTILES.items():
        ns = percentile_ns(histogram, percentile)
        found[name] = None if ns is None else min(max(ns, exact["min"]), exact["max"])
    found["max"] = exact["max"]
    return {key: None if ns is None else ns / 1000 for key, ns in found.items()}


def _whole(block: VariantBlock) -> DurationSums:
    """The durations of a block's whole operations; pgbench gives none for kept connections."""
    return DurationSums(
        ops=_timed(block) if block.latency_sum_ns else 0,
        sum_ns=block.latency_sum_ns,
        sum_sq=block.latency_sum_sq,
        min_ns=block.latency_min_ns,
        max_ns=block.latency_max_ns,
        histogram=block.histogram,
    )


def _timed(block: VariantBlock) -> int:
    """How many durations a block has. Those of an open loop are of the operations that were due in
    the windows, and `ops` of those that ended there.
    """
    if block.variant.is_open_loop:
        return int(merge([block.histogram]).get_total_count())
    return sum(piece.ops for piece in block.slices)


def _exact_ns(timed: Sequence[DurationSums]) -> dict[str, float] | None:
    if not timed:
        return None
    n = sum(part.ops for part in timed)
    mean = sum(part.sum_ns for part in timed) / n
    mean_square = math.fsum(part.sum_sq for part in timed) / n
    return {
        "min": float(min(part.min_ns for part in timed)),
        "mean": mean,
        "stddev": math.sqrt(max(0.0, mean_square - mean * mean)),
        "max": float(max(part.max_ns for part in timed)),
    }


def _cell_starts(values: np.ndarray) -> np.ndarray:
    """The lowest number of each value's histogram cell: all but its 11 leading bits cleared."""
    bits = np.frexp(values.astype(np.float64))[1]
    shift = np.maximum(bits - _CELL_BITS, 0)
    return (values >> shift) << shift
