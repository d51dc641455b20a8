"""The precision that a plan will reach in its time, by a look at the machine (pure)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from pgperf.analysis import predicted_precision, stopping
from pgperf.analysis.fit import Pair
from pgperf.analysis.machine_look import MachineLook
from pgperf.analysis.variant_comparisons import first_kind
from pgperf.core.limits import LEAST_BLOCKS
from pgperf.core.records import Definition, Plan, Prediction
from pgperf.runner import run_time
from pgperf.runner.plan import round_order

#: Rounds whose order tells how far apart compared slices are.
_ORDERS = 6


def predicted(plan: Plan, look: MachineLook) -> Prediction | None:
    """What a run of the plan will reach, where its operations are fast. None without a comparison,
    with a single block, or where the look has too few slices.
    """
    compared = first_kind(plan.definition, plan.variants)
    if not compared:
        return None
    pair = predicted_precision.pair_scatter(look.slices_us, _distance(plan, compared, look.step_s))
    length = Length.of(plan)
    if pair is None or length.blocks < 2:
        return None
    expected = _Expected(
        plan.definition, predicted_precision.block_scatter(pair, length.rounds), len(compared)
    )
    target = plan.definition.precision / 100 if plan.definition.stops_early else None
    blocks = expected.end(length.blocks, target)
    enough = expected.first_look(target)
    return Prediction(
        precision=expected.precision(blocks),
        seconds=length.seconds(blocks),
        blocks=blocks,
        rounds=length.rounds,
        target=target,
        target_s=length.seconds(enough) if enough else None,
    )


class Length:
    """The blocks and rounds that a plan has time for, and how long blocks take."""

    def __init__(self, plan: Plan, rounds: int) -> None:
        self._plan, self.rounds = plan, rounds
        self.blocks = plan.definition.most_blocks if plan.definition.is_fixed else self._affordable()

    @classmethod
    def of(cls, plan: Plan) -> "Length":
        """As many rounds as let six blocks fit; then as many blocks as fit, six at least."""
        if plan.definition.is_fixed:
            return cls(plan, plan.definition.rounds)
        budget_s = run_time.promised_s(plan)
        fitting = (
            rounds
            for rounds in range(plan.definition.rounds, 1, -1)
            if _seconds(plan, LEAST_BLOCKS, rounds) <= budget_s
        )
        return cls(plan, next(fitting, 1))

    def seconds(self, blocks: int) -> float:
        """The wall time of a run of so many blocks."""
        return _seconds(self._plan, blocks, self.rounds)

    def _affordable(self) -> int:
        least_s = self.seconds(LEAST_BLOCKS)
        block_s = self.seconds(LEAST_BLOCKS + 1) - least_s
        more = math.floor((run_time.promised_s(self._plan) - least_s) / block_s)
        return max(LEAST_BLOCKS, min(self._plan.definition.most_blocks, LEAST_BLOCKS + more))


class _Expected:
    """The precision after numbers of blocks."""

    def __init__(self, definition: Definition, scatter: float, comparisons: int) -> None:
        self._definition, self._scatter, self._comparisons = definition, scatter, comparisons

    def precision(self, blocks: int) -> float:
        widening = stopping.widening(self._definition, blocks)
        return predicted_precision.half_width(self._scatter, blocks, self._comparisons, widening)

    def first_look(self, target: float | None) -> int | None:
        """The first look that reaches the target; None if none does."""
        if target is None:
            return None
        return next((blocks for blocks in stopping.WIDENING if self.precision(blocks) <= target), None)

    def end(self, most: int, target: float | None) -> int:
        """The blocks of a run that may have so many."""
        return min(most, self.first_look(target) or most)


def _seconds(plan: Plan, blocks: int, rounds: int) -> float:
    return run_time.seconds(replace(plan, definition=replace(plan.definition, blocks=blocks, rounds=rounds)))


def _distance(plan: Plan, compared: Sequence[Pair], step_s: float) -> int:
    """How many slices of the look lie between the slices of a comparison, on average."""
    found = [each for cohort in range(len(plan.cohorts)) for each in _distances_s(plan, cohort, compared)]
    return max(1, round(fmean(found) / step_s)) if found else 1


def _distances_s(plan: Plan, cohort: int, compared: Sequence[Pair]) -> list[float]:
    """The times between the compared slices in some rounds of a cohort, seconds."""
    own = plan.cohorts[cohort]
    at = {variant: index for index, variant in enumerate(own.variants)}
    slice_s = run_time.predicted_round_s(plan.definition, own) / len(own.variants)
    orders = [round_order(plan, cohort, 0, round_) for round_ in range(_ORDERS)]
    return [
        slice_s * abs(order.index(at[variant]) - order.index(at[base]))
        for order in orders
        for variant, base in compared
        if variant in at and base in at
    ]
