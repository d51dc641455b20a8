"""When a run knows enough: its looks at the precision, and the wider intervals that pay for them.

A run that ends because its intervals are narrow ends more often where they are narrow by chance, so
they would contain the true value less often than they say. Looks are therefore few and fixed
beforehand, and all intervals of such a run are wider by a factor. `benchmarks/stopping_coverage.py`
simulates the coverage. Pure.
"""

from bisect import bisect_right
from collections.abc import Sequence

from pgperf.analysis.http_requests import counting, without_outcome
from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_comparisons import Measurements
from pgperf.analysis.variant_comparisons import first_kind
from pgperf.core.limits import LEAST_BLOCKS
from pgperf.core.records import Definition, VariantBlock

#: Numbers of blocks after which the run looks, each with the factor on half-widths from there on.
#: Each look has a third more blocks than the one before.
WIDENING = {
    LEAST_BLOCKS: 1.02, 8: 1.07, 11: 1.08, 15: 1.08, 20: 1.06, 27: 1.05, 36: 1.04, 48: 1.03, 64: 1.02, 85: 1.02,
}  # fmt: skip


def is_look(blocks: int) -> bool:
    """Does a run look at its precision after that many blocks?"""
    return blocks in WIDENING


def widening(definition: Definition, blocks: int) -> float:
    """The factor on the half-widths of a run with that many blocks; 1 where it cannot stop early."""
    return factor(blocks) if definition.stops_early else 1.0


def factor(blocks: int) -> float:
    """The factor of the last look at or before that many blocks, or of the first."""
    looks = list(WIDENING)
    return WIDENING[looks[max(0, bisect_right(looks, blocks) - 1)]]


def measurements(definition: Definition, blocks: Sequence[VariantBlock]) -> Measurements:
    """The run's slices, with intervals as wide as its looks demand."""
    count = len({block.block for block in blocks})
    return Measurements(counting(blocks), widening(definition, count))


def reached(definition: Definition, blocks: Sequence[VariantBlock]) -> float | None:
    """The precision of the run so far: the widest half-width among the log ratios of its first kind
    of comparison, 0.016 for ±1.6 %. None without a comparison, or if one has no interval.
    """
    found, failing = measurements(definition, blocks), without_outcome(blocks)
    sound = [
        variant for variant in dict.fromkeys(block.variant for block in blocks) if variant not in failing
    ]
    compared = [found.paired(*pair) for pair in first_kind(definition, sound)]
    widths = [paired.log.at(CONFIDENCE).half_width() for paired in compared if paired]
    known = [width for width in widths if width is not None]
    return max(known) if known and len(known) == len(widths) else None
