"""What a plan will reach in its time: more scatter is wider, more time is narrower."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis import stopping
from pgperf.core.limits import BLOCKS, LEAST_BLOCKS
from pgperf.core.records import Plan, Prediction
from pgperf.runner import run_time
from pgperf.runner.plan import make_plan
from pgperf.runner.prediction import predicted
from tests.machine_looks import look
from tests.runner.builders import definition

ROUNDS, LONGEST = 7, BLOCKS.high
LAYERS = ("fake", "libpq", "psycopg")
#: Of the look's slices: longer or shorter. In turn, those that are two apart would be alike.
SIGNS = random.Random(1).choices((-1, 1), k=70)


def plan(**changes: object) -> Plan:
    values = {
        "layers": LAYERS,
        "blocks": 10,
        "rounds": ROUNDS,
        "slice_ms": 50,
        "diagnostic_ms": 0,
        "precision": 2.0,
    }
    return make_plan(definition(**{**values, **changes}))


def found(scatter: float = 0.05, **changes: object) -> Prediction:
    slices_us = tuple(100 * math.exp(scatter * sign) for sign in SIGNS)
    prediction = predicted(plan(**changes), look(scatter, slices_us=slices_us))
    assert prediction
    return prediction


@given(st.floats(0.001, 0.6), st.floats(1, 5), st.sampled_from([0.0, 0.5, 2.0, 10.0]))
def test_more_scatter_is_predicted_wider_after_as_many_blocks(
    scatter: float, times: float, target: float
) -> None:
    calm, wild = (found(each, precision=target, budget_s=60) for each in (scatter, times * scatter))
    assert wild.blocks >= calm.blocks
    if wild.blocks == calm.blocks:
        assert wild.precision >= calm.precision * (1 - 1e-9)


@given(st.floats(0.001, 0.6), st.integers(6, 100), st.integers(1, 100), st.sampled_from([0.0, 2.0]))
def test_more_time_is_predicted_narrower(scatter: float, budget_s: int, more_s: int, target: float) -> None:
    """Once six blocks of all rounds fit. Before, a second more may buy a round and cost a block."""
    short, long = (
        found(scatter, budget_s=budget, precision=target) for budget in (budget_s, budget_s + more_s)
    )
    assert long.rounds >= short.rounds
    if short.rounds == ROUNDS:
        assert long.precision <= 1.004 * short.precision
        assert long.blocks >= short.blocks
    assert short.seconds <= budget_s


@given(st.floats(0.001, 0.6))
def test_a_run_ends_at_the_first_look_that_reaches_the_target(scatter: float) -> None:
    ended = found(scatter, budget_s=300)
    assert ended.target == pytest.approx(0.02)
    if ended.blocks < LONGEST:
        assert ended.reaches_target
        assert ended.target_s == pytest.approx(ended.seconds)
        assert ended.blocks in stopping.WIDENING
    elif ended.target_s is not None:
        assert ended.target_s > ended.seconds


def test_little_time_takes_rounds_first_and_never_blocks_below_six() -> None:
    longest = found(0.2, budget_s=300)
    least_s = run_time.least_s(plan())
    short = found(0.2, budget_s=int(least_s) + 1)
    assert LEAST_BLOCKS <= short.blocks < longest.blocks
    assert 1 <= short.rounds < longest.rounds == ROUNDS


def test_a_run_of_a_fixed_length_has_all_its_blocks_and_no_target() -> None:
    fixed = found(0.05, precision=0.0, blocks=3)
    assert (fixed.blocks, fixed.rounds, fixed.target, fixed.target_s) == (3, ROUNDS, None, None)
    assert fixed.seconds == pytest.approx(run_time.seconds(plan(precision=0.0, blocks=3)))


def test_a_target_out_of_reach_has_no_time() -> None:
    assert found(0.6, precision=0.1).target_s is None


@pytest.mark.parametrize("changes", [{"blocks": 1}])
def test_a_plan_without_intervals_over_blocks_has_no_prediction(changes: dict[str, object]) -> None:
    assert predicted(plan(**changes), look()) is None


def test_a_look_of_few_slices_predicts_nothing() -> None:
    assert predicted(plan(), replace(look(), slices_us=(100.0, 101.0))) is None


def test_slices_further_apart_are_compared_further_apart() -> None:
    """A slow wave: neighbours hardly differ, and slices that are half a wave apart do."""
    wave = replace(look(), slices_us=(100.0,) * 6 + (200.0,) * 6 + (100.0,) * 6 + (200.0,) * 6, step_s=0.05)
    near, far = (predicted(plan(slice_ms=length), wave) for length in (50, 500))
    assert near
    assert far
    assert far.precision > near.precision
