"""Whether the longest part of an operation's time is longer than the next one in every block. Pure."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pgperf.analysis import cpu_accounting, cpu_per_operation
from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_comparisons import Measure, of_variant, us_per_op
from pgperf.analysis.paired_statistics import hodges_lehmann
from pgperf.analysis.samples import BLOCKS, Sample, interval
from pgperf.analysis.time_breakdown import HIDDEN, TimeBreakdown
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.analysis.verdict import Lead
from pgperf.core.records import VariantBlock


def by_block(
    variant: VariantSummary, blocks: Sequence[VariantBlock], measure: Measure = us_per_op
) -> list[TimeBreakdown]:
    """The time breakdown of each block; waits are divided as in all blocks together. `measure`: the
    time per operation that the run's variants are compared by.
    """
    return [TimeBreakdown.of(_alone(variant, block, measure)) for block in blocks if block.slices]


def lead(
    part: str, whole: TimeBreakdown, blocks: Sequence[TimeBreakdown], widening: float = 1.0
) -> Lead | None:
    """The lead of a part over the longest other one; None where no other part is known. Time that
    cannot be divided counts as one, as in the rules: all of it may be one part's. `widening`: the
    factor on the half-width of its interval.
    """
    known = {name: us for name in (*whole.rivals(), *HIDDEN) if (us := _us(whole, name)) is not None}
    own = known.pop(part, None)
    runner_up = max(known, key=lambda name: known[name], default=None)
    if own is None or runner_up is None:
        return None
    pairs = [(_us(time, part), _us(time, runner_up)) for time in blocks]
    values = [first - second for first, second in pairs if first is not None and second is not None]
    if len(values) < 2:
        return Lead(part, runner_up, own - known[runner_up])
    us = own - known[runner_up]
    found = interval(Sample(BLOCKS, np.array(values), len(values), widening), CONFIDENCE)
    return Lead(part, runner_up, us, _least(us, found.low), _most(us, found.high))


def _us(time: TimeBreakdown, part: str) -> float | None:
    """The time of a part, or that in which some part is hidden."""
    return time.parts()[part] if part in HIDDEN else time.of_part(part)


def _least(us: float, low: float | None) -> float | None:
    """The lower end, which the difference of the two parts of all blocks never undercuts."""
    return None if low is None else min(us, low)


def _most(us: float, high: float | None) -> float | None:
    return None if high is None else max(us, high)


def _alone(variant: VariantSummary, block: VariantBlock, measure: Measure) -> VariantSummary:
    """The variant with the times of one block."""
    own = of_variant(block.variant, measure)
    times = np.array([own(piece) for piece in block.slices if piece.ops])
    rates = np.array([piece.ops_per_s for piece in block.slices if piece.ops])
    return replace(
        variant,
        us_per_op=hodges_lehmann(times) if len(times) else None,
        ops_per_s=hodges_lehmann(rates) if len(rates) else None,
        cpu_us_per_op=cpu_per_operation.per_op_us([block]),
        cpu_account=cpu_accounting.cpu_account([block]),
    )
