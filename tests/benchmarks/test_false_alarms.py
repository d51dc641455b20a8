"""benchmarks.false_alarms: the compared pairs, the definition of an alarm, and the bar."""

from argparse import Namespace
from typing import Any

import pytest

from benchmarks.false_alarms import (
    FULL,
    WIDER,
    RunsBar,
    _definition,
    count,
    judged,
    rate_of_runs,
    with_duplicates,
)
from pgperf.analysis.outcome import DIFFERS, INCONCLUSIVE
from pgperf.analysis.summary import summarise
from pgperf.core.records import Variant, VariantBlock
from pgperf.runner.plan import make_plan, round_order
from tests.core.builders import slice_record

PLAN = with_duplicates(make_plan(_definition(Namespace(quick=False, rounds=2, suite=False), 1)))


def row(low: float = 0.99, high: float = 1.01, outcome: str = INCONCLUSIVE) -> dict[str, Any]:
    return {"low": low, "high": high, "outcome": outcome}


def block(variant: Variant, number: int) -> VariantBlock:
    slices = tuple(slice_record(round=at, us_per_op=100.0 + number + at) for at in range(2))
    return VariantBlock(variant=variant, cohort=0, block=number, slices=slices)


def test_every_variant_has_a_duplicate_and_is_compared_with_it() -> None:
    assert len(PLAN.variants) == 24
    assert sum(variant.control for variant in PLAN.variants) == 12
    assert sorted(round_order(PLAN, 0, 0, 0)) == list(range(24))
    blocks = [block(variant, number) for number in range(6) for variant in PLAN.variants]
    rows = [
        row for row in summarise(PLAN.definition, PLAN.variants, blocks, "psycopg")["comparisons"] if row.aa
    ]
    assert len({variant for row in rows for variant in (row.variant, row.baseline)}) == 24
    assert count([judged(row, seed=1) for row in rows]) == (0, 0)


def test_an_interval_that_excludes_one_is_an_alarm() -> None:
    found = [row(), row(low=1.001), row(high=0.999), row(low=1.02, high=1.03, outcome=DIFFERS)]
    assert count(found) == (3, 1)


@pytest.mark.parametrize(
    ("alarms", "differs", "holds"),
    [(20, 0, True), (12, 3, True), (28, 0, True), (11, 0, False), (29, 0, False), (20, 4, False)],
)
def test_the_bar_for_400_comparisons(alarms: int, differs: int, holds: bool) -> None:
    found = [row(low=1.001, outcome=DIFFERS if i < differs else INCONCLUSIVE) for i in range(alarms)]
    assert FULL.holds([*found, *[row()] * (400 - alarms)]) is holds


@pytest.mark.parametrize(("alarms", "holds"), [(0, True), (3, True), (6, False)])
def test_the_bar_for_one_run(alarms: int, holds: bool) -> None:
    assert WIDER.holds([*[row(low=1.001)] * alarms, *[row()] * (12 - alarms)]) is holds


def test_a_suite_duplicates_every_variant_of_three_workloads() -> None:
    plan = with_duplicates(make_plan(_definition(Namespace(quick=False, rounds=2, suite=True), 1)))
    assert len({variant.workload for variant in plan.variants}) == 3
    assert (len(plan.variants), sum(variant.control for variant in plan.variants)) == (36, 18)


def of_runs(*alarms: int, differs: int = 0) -> list[dict[str, Any]]:
    """Runs of 18 comparisons with so many alarms each; the first `differs` runs have a "differs"."""
    return [
        {**row(low=1.001 if at < many else 0.99), "seed": seed}
        | ({"outcome": DIFFERS} if seed < differs and at == 0 else {})
        for seed, many in enumerate(alarms)
        for at in range(18)
    ]


@pytest.mark.parametrize(
    ("alarms", "differs", "holds"),
    [
        ([1] * 20 + [0, 2], 0, True),
        ([0] * 22, 0, False),
        ([3, 4, 3, 2] * 6, 0, False),
        ([1] * 20 + [0, 2], 1, True),
        ([1] * 20 + [0, 2], 2, False),
    ],
)
def test_the_bar_with_the_runs_as_the_sample(alarms: list[int], differs: int, holds: bool) -> None:
    assert RunsBar().holds(of_runs(*alarms, differs=differs)) is holds


def test_alarms_that_come_in_the_same_runs_widen_the_interval() -> None:
    low, high = rate_of_runs(of_runs(*[1] * 10, *[0] * 10))
    clustered_low, clustered_high = rate_of_runs(of_runs(10, *[0] * 19))
    assert clustered_high - clustered_low > 2 * (high - low)
