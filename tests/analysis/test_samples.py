from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pgperf.analysis.paired_statistics import Estimate, signed_rank_interval
from pgperf.analysis.samples import Sample, difference, interval, sample_of

grouped = st.lists(
    st.lists(st.integers(-6400, 6400).map(lambda i: i / 64), min_size=1, max_size=6).map(np.array),
    min_size=1,
    max_size=8,
)


def test_two_blocks_make_blocks_the_sample() -> None:
    sample = sample_of([np.array([1.0, 2.0, 3.0]), np.array([5.0])])
    assert (sample.kind, list(sample.values), sample.observations) == ("blocks", [2.0, 5.0], 4)


def test_one_block_leaves_the_rounds() -> None:
    data = np.random.default_rng(1).normal(size=20)
    sample = sample_of([data])
    assert (sample.kind, sample.observations) == ("rounds", 20)
    assert interval(sample) == signed_rank_interval(data)


def _blocks(*centres: float) -> Sample:
    return sample_of([np.array([centre]) for centre in centres])


def test_interval_over_blocks_is_the_signed_ranks() -> None:
    assert interval(_blocks(1, 2, 3, 4, 5, 6)) == Estimate(
        3.5, pytest.approx(1.3), pytest.approx(5.7), 6, 0.95
    )


def test_interval_over_blocks_is_students_where_ranks_cannot_reach() -> None:
    centres = np.array([1.0, 2, 3, 4, 5, 6])
    low, high = stats.t.interval(0.99, 5, 3.5, stats.sem(centres) * np.sqrt(np.pi / 3))
    found = interval(_blocks(*centres), 0.99)
    assert (found.low, found.centre, found.high) == pytest.approx((low, 3.5, high))
    assert (found.n, found.confidence) == (6, 0.99)


def test_students_interval_over_blocks_leaves_no_block_out() -> None:
    found = interval(_blocks(0, 0, 0, 0, 0, 0, 9), 0.99)
    assert (found.low, found.high) == (-9, 9)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_few_rounds_get_a_wide_interval(n: int) -> None:
    found = interval(sample_of([np.arange(n, dtype=float)]))
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0
    assert found.high > n - 1


def test_one_value_has_no_interval() -> None:
    assert interval(sample_of([np.array([7.0])])) == Estimate(7.0, None, None, 1, 0.0)


@given(grouped)
def test_more_confidence_is_never_narrower(blocks: list[np.ndarray]) -> None:
    found = [
        interval(sample_of(blocks), confidence).half_width() for confidence in (0.6, 0.9, 0.95, 0.99, 0.999)
    ]
    widths = [width for width in found if width is not None]
    assert len(widths) in (0, len(found))
    assert all(wider >= width - 1e-9 for width, wider in pairwise(widths))


@given(grouped)
def test_changing_signs_mirrors_the_interval(blocks: list[np.ndarray]) -> None:
    plain, mirrored = interval(sample_of(blocks)), interval(sample_of([-block for block in blocks]))
    assert mirrored.centre == pytest.approx(-plain.centre)
    if plain.low is not None:
        assert mirrored.high == pytest.approx(-plain.low)


def test_difference_of_independent_estimates_adds_squares() -> None:
    found = difference(Estimate(10, 7, 12, 6, 0.95), Estimate(1, -1, 5, 8, 0.96))
    assert (found.centre, found.low, found.high) == (9, 4, pytest.approx(9 + 8**0.5))
    assert (found.n, found.confidence) == (6, 0.95)


def test_difference_from_an_unbounded_estimate_is_unbounded() -> None:
    assert difference(Estimate(3, 2, 4, 6, 0.95), Estimate(1, None, None, 1, 0.0)) == Estimate(
        2, None, None, 1, 0.0
    )
