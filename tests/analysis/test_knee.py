"""The highest load that holds a limit: evidence, its middle, and the interval over blocks."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgperf.analysis import knee

LOADS = st.floats(0.02, 1.4)
SLICES = st.lists(st.tuples(LOADS, st.integers(1, 5000), st.floats(0.0, 1.0)), min_size=1, max_size=12)


def of(*slices: tuple[float, int, int]) -> knee.Evidence:
    return sum((knee.evidence(*each) for each in slices), knee.nothing())


def test_without_evidence_the_middle_is_that_of_the_logarithms() -> None:
    assert knee.middle(knee.nothing()) == pytest.approx(math.sqrt(knee.LOWEST * knee.HIGHEST), rel=0.02)


def test_a_slice_without_operations_says_nothing() -> None:
    assert not knee.evidence(0.5, 0, 0).any()


@pytest.mark.parametrize("highest", [0.15, 0.3, 0.8, 0.97])
@pytest.mark.parametrize("beyond", [0.05, 0.4, 1.0])
def test_bisection_finds_where_the_limit_is_passed(highest: float, beyond: float) -> None:
    """Whatever share of the operations is over the limit beyond it."""
    found = knee.nothing()
    for number in range(30):
        load = (0.5, 0.25, 0.75, 0.1, 0.9)[number // 3 % 5] if number % 3 == 0 else knee.middle(found)
        found = found + knee.evidence(load, 5000, 0 if load < highest else int(5000 * beyond))
    assert knee.middle(found) == pytest.approx(highest, rel=0.05)


def test_one_bad_slice_of_many_does_not_decide() -> None:
    """Two per cent of one slice in ten are 0.2 % of all."""
    calm = of(*[(0.5, 5000, 0)] * 9, (1.1, 5000, 3000))
    assert knee.middle(calm + of((0.5, 5000, 100))) > 0.55


def test_slices_of_which_more_than_one_in_a_hundred_are_over_decide() -> None:
    """Three per cent of every second slice: 1.5 % of all."""
    assert knee.middle(of(*[(0.5, 5000, 0), (0.5, 5000, 150)] * 10, (1.1, 5000, 3000))) < 0.5


@settings(max_examples=30, deadline=None)
@given(load=LOADS, over=st.floats(0.05, 1.0))
def test_what_always_holds_lies_below_the_middle_and_what_never_does_above(load: float, over: float) -> None:
    assert knee.middle(of(*[(load, 5000, 0)] * 20)) > load * 0.99
    assert knee.middle(of(*[(load, 5000, int(5000 * over))] * 20)) < load * 1.01


@settings(max_examples=50, deadline=None)
@given(slices=SLICES, seed=st.integers(0, 1000))
def test_the_order_of_blocks_changes_nothing(slices: list[tuple[float, int, float]], seed: int) -> None:
    blocks = [of((load, due, int(due * share))) for load, due, share in slices]
    shuffled = [blocks[at] for at in np.random.default_rng(seed).permutation(len(blocks))]
    (one, _), (other, _) = knee.highest(blocks), knee.highest(shuffled)
    assert one.centre == pytest.approx(other.centre)
    assert one.half_width() == pytest.approx(other.half_width())


@settings(max_examples=50, deadline=None)
@given(slices=SLICES)
def test_the_interval_contains_its_centre_within_the_scale(slices: list[tuple[float, int, float]]) -> None:
    found, values = knee.highest([of((load, due, int(due * share))) for load, due, share in slices])
    assert math.log(knee.LOWEST) <= found.centre <= math.log(knee.HIGHEST)
    assert len(values) == len(slices)
    if len(slices) == 1:
        assert (found.low, found.high) == (None, None)
    else:
        assert found.low is not None
        assert found.high is not None
        assert found.high - found.centre == pytest.approx(found.centre - found.low)
        assert found.high - found.low > 0.019


def test_equal_blocks_still_have_the_width_of_the_evidence() -> None:
    block = of((0.5, 1000, 0), (1.1, 1000, 700))
    few, many = (knee.highest([block] * count)[0].half_width() for count in (2, 12))
    assert few is not None
    assert many is not None
    assert few > many > 0.0099


def test_blocks_that_disagree_widen_the_interval() -> None:
    low, high = (of((load - 0.1, 1000, 0), (load + 0.05, 1000, 500)) for load in (0.5, 0.9))
    same, apart = knee.highest([low] * 6)[0].half_width(), knee.highest([low, high] * 3)[0].half_width()
    assert same is not None
    assert apart is not None
    assert apart > 2 * same
